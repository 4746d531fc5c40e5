"""
The one source of time: monotonic durations and wall-clock instants.

Every component that waits or reads the time is given a clock; nothing else in the package
asks the operating system.  See docs/architecture.md, "Time".
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import Clock as _TaskClock

from cronstable import platform


class Clock(Protocol):
    """What a component may ask about time."""

    def seconds(self) -> float:
        """Return monotonic seconds; they never step and do not count a suspended host."""

    def now(self) -> float:
        """Return the wall clock, in seconds since the epoch (UTC); it may step."""

    def awake_and_asleep(self) -> float:
        """Return monotonic seconds that also count the time a host was suspended."""

    def callLater(  # noqa: N802 - the name is Twisted's
        self, delay: float, call: Callable[..., object], *args: Any, **kwargs: Any
    ) -> IDelayedCall:
        """Call C{call} once, C{delay} monotonic seconds from now."""


class SystemClock:
    """The real time, with timers on the reactor."""

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self.callLater = reactor.callLater
        self.seconds = time.monotonic
        self.now = time.time

    def awake_and_asleep(self) -> float:
        """Return CLOCK_BOOTTIME where the system has it, else the monotonic clock."""
        return platform.seconds_since_boot()


class ManualClock(_TaskClock):
    """
    A clock that moves when told to: C{advance} passes time, C{step} moves only the wall clock,
    C{suspend} passes wall time without running a timer.
    """

    def __init__(self, now: float = 1_767_225_600.0) -> None:
        super().__init__()
        self._offset = now
        self._asleep = 0.0

    def now(self) -> float:
        """Return the simulated wall clock, in seconds since the epoch."""
        return self.seconds() + self._offset

    def awake_and_asleep(self) -> float:
        """Return simulated seconds including suspended ones."""
        return self.seconds() + self._asleep

    def step(self, seconds: float) -> None:
        """Move the wall clock by C{seconds}, either way; no timer is touched."""
        self._offset += seconds

    def suspend(self, seconds: float) -> None:
        """Let the host sleep: the wall clock goes on, timers and monotonic time do not."""
        self._offset += seconds
        self._asleep += seconds


def use_monotonic_timers(reactor: Any) -> None:
    """
    Make the reactor count its timers in monotonic seconds.

    Twisted counts them on the wall clock, so that a step back would stall every timeout.  Call
    this before the first timer is set.
    """
    reactor.seconds = time.monotonic
