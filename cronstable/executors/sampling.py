"""
What a job's process tree uses, read off the reactor thread at each monitored run's interval.

docs/executors.md, "Resource use", tells users what the numbers mean.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.python.failure import Failure

from cronstable import platform
from cronstable.clock import Clock
from cronstable.executors.interfaces import Usage
from cronstable.service import log_failure

FIRST_AFTER = 0.25
"""Seconds after the start at which a run is first read, if its interval is not shorter."""

TOGETHER = 0.05
"""Runs due within this many seconds are read in one go."""


@attrs.frozen
class Reading:
    """What a tree has used until now, in seconds, and holds now, in bytes."""

    user: float
    system: float
    rss: int


def read_tree(pid: int, proc: Path = Path("/proc")) -> Reading | None:
    """Return the reading of process C{pid} and its descendants, None if it is gone."""
    if sys.platform.startswith("linux"):
        return _read_proc(pid, proc)
    return _read_psutil(pid)


def _read_proc(pid: int, proc: Path) -> Reading | None:
    ticks = float(os.sysconf("SC_CLK_TCK"))
    page = os.sysconf("SC_PAGE_SIZE")
    user = system = rss = 0
    seen = set()
    to_read = [pid]
    while to_read:
        member = to_read.pop()
        if member in seen:
            continue
        seen.add(member)
        try:
            stat = (proc / str(member) / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            if member == pid:
                return None
            continue
        # utime and cutime: what it used itself, and what its waited-for children did.
        user += int(stat[11]) + int(stat[13])
        system += int(stat[12]) + int(stat[14])
        rss += int(stat[21])
        to_read.extend(platform.children_of(member, proc))
    return Reading(user / ticks, system / ticks, rss * page)


def _read_psutil(pid: int) -> Reading | None:
    import psutil

    try:
        root = psutil.Process(pid)
        members = [root, *root.children(recursive=True)]
    except psutil.Error:
        return None
    user = system = 0.0
    rss = 0
    for member in members:
        with contextlib.suppress(psutil.Error):
            with member.oneshot():
                times = member.cpu_times()
                rss += member.memory_info().rss
            user += times.user + getattr(times, "children_user", 0.0)
            system += times.system + getattr(times, "children_system", 0.0)
    return Reading(user, system, rss)


class Samples:
    """The readings of one run so far."""

    def __init__(self, interval: float, history: int, started: float) -> None:
        self.interval = interval
        self.count = 0
        self._points: deque[tuple[float, float, int]] = deque(maxlen=history)
        self._latest: tuple[float, float, int] | None = None
        self._at = started
        self._user = self._system = 0.0
        self._peak = 0

    def add(self, reading: Reading, at: float, wall: float) -> None:
        """Take a reading made C{at} monotonic seconds, epoch seconds C{wall}."""
        # Orphaned members take their time out of the sum: what was used stays used.
        before = self._user + self._system
        self._user = max(self._user, reading.user)
        self._system = max(self._system, reading.system)
        self._peak = max(self._peak, reading.rss)
        spent = self._user + self._system - before
        percent = 100.0 * spent / (at - self._at) if at > self._at else 0.0
        self._at = at
        self.count += 1
        self._latest = (wall, round(percent, 2), reading.rss)
        self._points.append(self._latest)

    def so_far(self) -> Usage:
        """Return the cumulative usage."""
        return Usage(
            self._user,
            self._system,
            self._peak,
            self.count,
            tuple(self._points),
            self._latest,
        )

    def final(self, rusage: Any) -> Usage | None:
        """
        Return the usage at the end, None if the run was too short to be read.

        C{rusage} of the reaped process counts its CPU time to the end; its memory figure is
        never below the daemon's own and is left out.
        """
        if not self.count:
            return None
        if rusage is not None:
            self._user = max(self._user, rusage.ru_utime)
            self._system = max(self._system, rusage.ru_stime)
        return self.so_far()


class Sampled(Protocol):
    """A run that is read."""

    samples: Samples | None

    @property
    def pid(self) -> int | None:
        """Its process."""

    @property
    def running(self) -> bool:
        """Whether the process is still its own."""

    def tell(self, name: str, *arguments: Any) -> None:
        """Tell the observer."""


class Sampler:
    """Reads all monitored runs; C{in_thread} calls a function off the reactor thread."""

    def __init__(
        self,
        clock: Clock,
        in_thread: Callable[..., Deferred[Any]],
        read: Callable[[int], Reading | None] = read_tree,
    ) -> None:
        self._clock = clock
        self._in_thread = in_thread
        self._read = read
        self._heap: list[tuple[float, int, Sampled]] = []
        self._order = itertools.count()
        self._wake: IDelayedCall | None = None
        self._busy = False

    def add(self, run: Sampled) -> None:
        """Read C{run} at its interval while it runs."""
        if run.samples is not None:
            self._push(run, min(FIRST_AFTER, run.samples.interval))
            self._arm()

    def stop(self) -> None:
        """Read nothing any more."""
        self._heap.clear()
        if self._wake is not None and self._wake.active():
            self._wake.cancel()
        self._wake = None

    def _push(self, run: Sampled, delay: float) -> None:
        heapq.heappush(self._heap, (self._clock.seconds() + delay, next(self._order), run))

    def _arm(self) -> None:
        if self._wake is not None:
            if self._wake.active():
                self._wake.cancel()
            self._wake = None
        if self._heap and not self._busy:
            delay = max(0.0, self._heap[0][0] - self._clock.seconds())
            self._wake = self._clock.callLater(delay, self._sample)

    def _sample(self) -> None:
        self._wake = None
        until = self._clock.seconds() + TOGETHER
        due: list[tuple[Sampled, int]] = []
        while self._heap and self._heap[0][0] <= until:
            run = heapq.heappop(self._heap)[2]
            if run.running and run.pid is not None:
                due.append((run, run.pid))
        if not due:
            self._arm()
            return
        self._busy = True
        reading = self._in_thread(self._read_all, [pid for _, pid in due])
        reading.addCallback(self._took, [run for run, _ in due])
        reading.addErrback(_not_read)
        reading.addCallback(lambda _: self._done([run for run, _ in due]))

    def _read_all(self, pids: list[int]) -> list[Reading | None]:
        return [self._read(pid) for pid in pids]

    def _took(self, readings: list[Reading | None], runs: list[Sampled]) -> None:
        at, wall = self._clock.seconds(), self._clock.now()
        for run, reading in zip(runs, readings, strict=True):
            # A process reaped meanwhile may have been another one when it was read.
            if reading is not None and run.running and run.samples is not None:
                run.samples.add(reading, at, wall)
                run.tell("sampled", run.samples.so_far())

    def _done(self, runs: list[Sampled]) -> None:
        self._busy = False
        for run in runs:
            if run.running and run.samples is not None:
                self._push(run, run.samples.interval)
        self._arm()


def _not_read(failure: Failure) -> None:
    # Without a thread to spare a sample is left out; the log need not tell of each.
    if failure.check(OSError) is None:
        log_failure("reading what jobs use", failure)
