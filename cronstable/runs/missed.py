"""
What a job owes for slots that passed: pure.

docs/catchup.md tells an operator how deadline, cap and policy go together.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterable

import attrs

from cronstable.config.values import JobConfig


@attrs.frozen
class Passed:
    """Slots that are not run: C{count} from C{first} to C{until}."""

    first: int
    until: int
    count: int


@attrs.frozen
class Owed:
    """The verdict on the slots of one window, oldest first."""

    slots: tuple[int, ...] = ()
    """To be run, one after another."""
    too_late: Passed | None = None
    """Older than the starting deadline."""
    cut: Passed | None = None
    """Beyond the cap."""
    merged: Passed | None = None
    """Stood for by the one that is run."""


def owed(job: JobConfig, slots: Iterable[int], now: float) -> Owed:
    """
    Return what C{job} owes of C{slots} (ascending): the deadline first, then policy and cap.

    run-once runs the newest, which stands for the others; run-all the newest C{catchupLimit}.
    """
    oldest = None if job.starting_deadline is None else now - job.starting_deadline
    too_late, cut = _Count(), _Count()
    most = 1 if job.on_missed == "run-once" else job.catchup_limit
    kept: deque[int] = deque()
    for slot in slots:
        if oldest is not None and slot < oldest:
            too_late.add(slot)
            continue
        kept.append(slot)
        if len(kept) > most:
            cut.add(kept.popleft())
    merged = job.on_missed == "run-once"
    return Owed(
        tuple(kept),
        too_late.passed(),
        None if merged else cut.passed(),
        cut.passed() if merged else None,
    )


def jitter(job: JobConfig) -> float:
    """Return the seconds by which this job's backfills start later, the same on every node."""
    spread = job.catchup_jitter * 1000
    return (
        zlib.crc32(job.name.encode("utf-8", "surrogateescape")) % spread / 1000 if spread else 0.0
    )


class _Count:
    def __init__(self) -> None:
        self._first: int | None = None
        self._until = 0
        self._count = 0

    def add(self, slot: int) -> None:
        self._first = slot if self._first is None else self._first
        self._until = slot
        self._count += 1

    def passed(self) -> Passed | None:
        return None if self._first is None else Passed(self._first, self._until, self._count)
