"""
Reaping for a daemon that is process 1 of its container: orphans become its children.

Statuses of its own children are never taken: those that are known are left alone, and any other
is reaped only a while after its end, when whoever started it has long had its status.

docs/executors.md, "As process 1", tells users what to expect.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from twisted.internet import process as twisted_process
from twisted.internet.interfaces import IDelayedCall

from cronstable import platform
from cronstable.clock import Clock

log = logging.getLogger("cronstable")

LEFT_FOR = 1.0
"""Seconds for which an ended process is left to whoever may be waiting for it."""

GAP = 0.25
"""Least seconds between two passes, however many children end."""

ROUND = 30.0
"""Most seconds between two passes."""


class OrphanReaper:
    """
    Reaps ended children that nobody waits for; C{own} returns the pids that others reap.

    Does nothing unless this process is number 1 (C{needed} says otherwise in tests).
    """

    def __init__(
        self,
        reactor: Any,
        clock: Clock,
        own: Callable[[], Collection[int]],
        *,
        needed: bool | None = None,
    ) -> None:
        self._reactor = reactor
        self._clock = clock
        self._own = own
        self._needed = platform.is_pid1() if needed is None else needed
        self._ended: dict[int, float] = {}
        self._timer: IDelayedCall | None = None
        self._due = 0.0
        self._previous: Any = None
        self._noted = False
        self.reaped = 0
        """How many were reaped so far."""

    def start(self) -> None:
        """Begin as soon as the reactor runs, which installs a handler of its own for SIGCHLD."""
        if self._needed:
            self._reactor.callWhenRunning(self._begin)

    def _begin(self) -> None:
        self._previous = signal.getsignal(signal.SIGCHLD)
        signal.signal(signal.SIGCHLD, self._child_ended)
        self._arm(0)

    def stop(self) -> None:
        """Reap nothing any more."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None
        if self._previous is not None:
            signal.signal(signal.SIGCHLD, self._previous)
            self._previous = None

    def _child_ended(self, number: int, frame: Any) -> None:
        if callable(self._previous):
            self._previous(number, frame)
        if not self._noted:
            self._noted = True
            self._reactor.callFromThread(self._soon)

    def _soon(self) -> None:
        self._noted = False
        if self._previous is not None:
            self._arm(GAP)

    def _arm(self, delay: float) -> None:
        at = self._clock.seconds() + delay
        if self._timer is not None and self._timer.active():
            if self._due <= at:
                return
            self._timer.cancel()
        self._due = at
        self._timer = self._clock.callLater(delay, self._pass)

    def _pass(self) -> None:
        self._timer = None
        try:
            young = self._reap()
        except Exception:
            log.exception("reaping orphans failed")
            young = False
        self._arm(LEFT_FOR / 2 if young else ROUND)

    def _reap(self) -> bool:
        """Reap what has been over for long enough; return whether there is more to come."""
        now = self._clock.seconds()
        own = {*self._own(), *twisted_process.reapProcessHandlers}
        ended: dict[int, float] = {}
        for pid in children():
            if pid in own or not _has_ended(pid):
                continue
            since = self._ended.get(pid, now)
            if now - since >= LEFT_FOR:
                self._take(pid)
            else:
                ended[pid] = since
        self._ended = ended
        return bool(ended)

    def _take(self, pid: int) -> None:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return
        self.reaped += 1
        log.debug("reaped orphan %d", pid)


def children(proc: Path = Path("/proc")) -> list[int]:
    """Return the children of this process, ended ones included."""
    found: list[int] = []
    try:
        for task in os.listdir(proc / "self/task"):
            text = (proc / "self/task" / task / "children").read_text()
            found.extend(map(int, text.split()))
    except OSError:
        return _children_by_parent(proc)
    return found


def _children_by_parent(proc: Path) -> list[int]:
    """The same for kernels that keep no list: look at the parent of every process."""
    found = []
    parent = str(os.getpid()).encode()
    for name in os.listdir(proc):
        if not name.isdigit():
            continue
        try:
            fields = (proc / name / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[1] == parent:
            found.append(int(name))
    return found


def _has_ended(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False
