"""
What this host, or the slice of it that a control group leaves us, has in use.

Reading blocks for a moment, so it is for a thread.  docs/http-api.md, "The node", tells users
what the numbers mean.
"""

from __future__ import annotations

import contextlib
import math
import os
from pathlib import Path

import attrs

from cronstable.clock import Clock


@attrs.frozen
class HostUse:
    """
    One reading: percentages over the time since the reading before, bytes now.

    C{proc_} values are of this process; its CPU percentage may exceed 100.
    """

    cpu_percent: float
    cpu_count: int
    mem_percent: float
    mem_used: int
    mem_total: int
    proc_rss: int | None = None
    proc_cpu_percent: float | None = None


@attrs.frozen
class _Counters:
    """Seconds that were used until C{at}, by the host or slice and by this process."""

    at: float
    busy: float
    own: float


class HostReader:
    """Reads what is in use; each user of percentages needs a reader of its own."""

    def __init__(
        self, clock: Clock, proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")
    ) -> None:
        self._clock = clock
        self._slice = Slice.find(proc, groups)
        self._before = self._counters()

    def read(self) -> HostUse:
        """Return what is in use; raises OSError or a psutil error where the host tells nothing."""
        import psutil

        memory = psutil.virtual_memory()
        total, used = int(memory.total), int(memory.total - memory.available)
        limit = self._slice.memory_limit
        if limit is not None and limit < total:
            total, used = limit, min(self._slice.memory_used(), limit)
        cpus = self._cpus()
        before, now = self._before, self._counters()
        elapsed = now.at - before.at
        busy = own = 0.0
        if elapsed > 0:
            self._before = now
            busy = 100.0 * (now.busy - before.busy) / (elapsed * cpus)
            own = 100.0 * (now.own - before.own) / elapsed
        return HostUse(
            cpu_percent=round(min(max(busy, 0.0), 100.0), 1),
            cpu_count=max(1, math.ceil(cpus)),
            mem_percent=round(100.0 * used / total, 1) if total else 0.0,
            mem_used=used,
            mem_total=total,
            proc_rss=int(psutil.Process().memory_info().rss),
            proc_cpu_percent=round(max(own, 0.0), 1),
        )

    def _cpus(self) -> float:
        host = os.cpu_count() or 1
        limit = self._slice.cpu_limit
        return host if limit is None else min(limit, host)

    def _counters(self) -> _Counters:
        import psutil

        busy = self._slice.cpu_used()
        if busy is None:
            times = psutil.cpu_times()
            # Guest time is part of user time already.
            busy = (
                times.user
                + times.system
                + sum(getattr(times, name, 0.0) for name in ("nice", "irq", "softirq", "steal"))
            )
        own = os.times()
        return _Counters(self._clock.seconds(), busy, own.user + own.system)


@attrs.frozen
class Slice:
    """The limits of the control groups that this process is in; None = none is set."""

    cpu_limit: float | None = None
    memory_limit: int | None = None
    _cpu_group: Path | None = None
    _memory_group: Path | None = None

    @classmethod
    def find(cls, proc: Path, groups: Path) -> Slice:
        """Return the tightest limits from this process's group (cgroup v2) upwards."""
        cpu: tuple[float, Path] | None = None
        memory: tuple[int, Path] | None = None
        for group in _own_groups(proc, groups):
            cpus = _cpu_max(group)
            if cpus is not None and (cpu is None or cpus < cpu[0]):
                cpu = cpus, group
            size = _number(group / "memory.max")
            if size is not None and (memory is None or size < memory[0]):
                memory = size, group
        return cls(cpu and cpu[0], memory and memory[0], cpu and cpu[1], memory and memory[1])

    def cpu_used(self) -> float | None:
        """Return the CPU seconds that the group with the limit has used."""
        if self._cpu_group is None:
            return None
        used = _stat(self._cpu_group / "cpu.stat").get("usage_usec")
        return None if used is None else used / 1e6

    def memory_used(self) -> int:
        """Return the bytes in use by the group with the limit, caches that can go left out."""
        assert self._memory_group is not None
        current = _number(self._memory_group / "memory.current") or 0
        cache = _stat(self._memory_group / "memory.stat").get("inactive_file", 0)
        return max(current - cache, 0)


def _own_groups(proc: Path, groups: Path) -> list[Path]:
    try:
        lines = (proc / "self/cgroup").read_text().splitlines()
    except OSError:
        return []
    own = next((line[3:] for line in lines if line.startswith("0::")), None)
    if own is None:
        return []
    found = [groups]
    for part in Path(own.lstrip("/")).parts:
        if part == "..":
            break
        found.append(found[-1] / part)
    return found


def _cpu_max(group: Path) -> float | None:
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = (group / "cpu.max").read_text().split()
        if quota != "max":
            return int(quota) / int(period)
    return None


def _number(path: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        return int(path.read_text())
    return None


def _stat(path: Path) -> dict[str, int]:
    found = {}
    with contextlib.suppress(OSError, ValueError):
        for line in path.read_text().splitlines():
            name, _, value = line.partition(" ")
            found[name] = int(value)
    return found
