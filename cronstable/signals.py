"""
The signals that people and supervisors send, told to the daemon on the reactor thread.

docs/operations.md, "Signals", tells an operator what each of them does.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

from cronstable.clock import Clock


class EarlySignals:
    """
    Answers signals that come while the configuration is still being read.

    A stop ends the process with status 0, since nothing was started; a reload is remembered for
    the L{Signals} that are installed later.
    """

    def __init__(self) -> None:
        self.reload_asked = False

    def install(self) -> None:
        """Take the signals over; called on the main thread, as early as can be."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, self._reload)

    @classmethod
    def asked_by(cls, handler: Any) -> bool:
        """Return whether C{handler} is the one for reloads, and was called."""
        if getattr(handler, "__func__", None) is not cls._reload:
            return False
        asked: bool = handler.__self__.reload_asked
        return asked

    def _stop(self, number: int, frame: Any) -> None:
        raise SystemExit(0)

    def _reload(self, number: int, frame: Any) -> None:
        self.reload_asked = True


class Signals:
    """
    Takes over SIGTERM, SIGINT and SIGHUP while the daemon runs.

    C{stop} is told the monotonic second in which its signal came, however long it waited then.
    """

    def __init__(
        self,
        reactor: Any,
        clock: Clock,
        stop: Callable[[float], object],
        reload: Callable[[], object],
    ) -> None:
        self._reactor = reactor
        self._clock = clock
        self._calls: dict[int, Callable[[float], object]] = {
            signal.SIGTERM: stop,
            signal.SIGINT: stop,
        }
        if hasattr(signal, "SIGHUP"):
            self._calls[signal.SIGHUP] = lambda when: reload()
        self._before: dict[int, Any] = {}

    def install(self) -> None:
        """Take the signals over; called on the main thread once the reactor runs."""
        for number in self._calls:
            before = self._before[number] = signal.signal(number, self._caught)
            if EarlySignals.asked_by(before):
                self._caught(number, None)

    def remove(self) -> None:
        """Give the signals back to whoever had them."""
        for number, handler in self._before.items():
            if handler is not None:
                signal.signal(number, handler)
        self._before.clear()

    def _caught(self, number: int, frame: Any) -> None:
        self._reactor.callFromThread(self._calls[number], self._clock.seconds())
