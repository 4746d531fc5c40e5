"""
The next-fire index: which slots are due, told once each.

Pure: it is given the time and answers what is due.  Jobs that are due at the same instant come
out in configuration order.  A slot that was given out cannot come again within its epoch.
docs/catchup.md, "When slots count as missed", tells what becomes of those that are late.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping

import attrs

from cronstable.config.values import JobConfig
from cronstable.schedule import Schedule

INLINE = 10.0
"""Seconds of lateness within which every slot in between still fires."""

CORRECTION = 3 * 3600.0
"""A clock set back by this many seconds or more is a correction: every schedule begins anew."""


@attrs.frozen
class Due:
    """A slot to fire now."""

    job: str
    epoch: int
    slot: int


@attrs.frozen
class Gap:
    """Slots that a long delay skipped: from C{first} to C{until}, both included."""

    job: str
    epoch: int
    first: int
    until: int
    schedule: Schedule


class _Entry:
    __slots__ = ("alive", "name", "order", "pending", "schedule", "since")

    def __init__(self, name: str, order: int, schedule: Schedule, since: float) -> None:
        self.name = name
        self.order = order
        self.schedule = schedule
        self.since = since
        self.pending: int | None = None
        self.alive = True


@attrs.frozen
class Reseeded:
    """What a new set of jobs or a corrected clock did to the index."""

    never: tuple[str, ...]
    """Newly indexed jobs whose schedule never fires again."""


class FireIndex:
    """The soonest coming fire of each enabled, scheduled job."""

    def __init__(self) -> None:
        self.epoch = 0
        self._entries: dict[str, _Entry] = {}
        self._buckets: dict[int, list[_Entry]] = {}
        self._instants: list[int] = []
        self._given: dict[str, int] = {}

    def install(self, jobs: Mapping[str, JobConfig], now: float) -> Reseeded:
        """
        Index C{jobs}; one whose schedule is unchanged keeps its pending fire, a new or changed
        one fires strictly after C{now}, and after what was given out of its name before.
        """
        old, self._entries = self._entries, {}
        added: list[_Entry] = []
        for order, (name, job) in enumerate(jobs.items()):
            if not job.enabled or job.schedule is None:
                continue
            entry = old.pop(name, None)
            if entry is not None and _same(entry.schedule, job.schedule):
                entry.order, entry.schedule = order, job.schedule
            else:
                if entry is not None:
                    entry.alive = False
                entry = _Entry(name, order, job.schedule, max(now, self._given.get(name, now)))
                added.append(entry)
            self._entries[name] = entry
        for gone in old.values():
            gone.alive = False
        self._given = {
            name: slot
            for name, slot in self._given.items()
            if name in self._entries or slot > now - CORRECTION
        }
        return Reseeded(self._seed(added))

    def begin_epoch(self, now: float) -> None:
        """Seed everything anew from C{now}, in a new epoch: the clock was corrected."""
        self.epoch += 1
        self._buckets.clear()
        self._instants.clear()
        self._given.clear()
        for entry in self._entries.values():
            entry.since = now
        self._seed(self._entries.values())

    def rezone(self, zones: Iterable[str], now: float) -> None:
        """The rules of C{zones} have changed: work out the pending fires of their jobs anew."""
        changed = frozenset(zones)
        moved = [entry for entry in self._entries.values() if entry.schedule.zone in changed]
        for entry in moved:
            entry.since = max(now, self._given.get(entry.name, now))
        self._seed(moved)

    def soonest(self) -> int | None:
        """Return the instant of the soonest coming fire."""
        while self._instants:
            instant = self._instants[0]
            if any(_pending_at(entry, instant) for entry in self._buckets[instant]):
                return instant
            del self._buckets[heapq.heappop(self._instants)]
        return None

    def due(self, now: float) -> Iterable[Due | Gap]:
        """
        Give out what is due at C{now}, one slot at a time; a caller may stop between two.

        A slot is taken from the index when it is given out.  Several late slots of one job come
        in time order, each job's in its turn.
        """
        while True:
            instant = self.soonest()
            if instant is None or instant > now:
                return
            bucket = self._buckets[instant]
            bucket.sort(key=_by_order, reverse=True)
            memo: dict[tuple[int, int], int | None] = {}
            late = now - instant >= INLINE
            while bucket:
                entry = bucket.pop()
                if not _pending_at(entry, instant):
                    continue
                if late:
                    yield from self._late(entry, instant, now)
                    continue
                key = _timetable(entry.schedule)
                following = memo[key] if key in memo else entry.schedule.next(instant)
                memo[key] = following
                self._put(entry, following)
                self._given[entry.name] = instant
                yield Due(entry.name, self.epoch, instant)

    def next_fire(self, job: str) -> int | None:
        """Return the pending fire of C{job}, in epoch seconds."""
        entry = self._entries.get(job)
        return None if entry is None else entry.pending

    def indexed(self) -> Iterable[tuple[str, Schedule, float, int | None]]:
        """Iterate over (job, schedule, indexed since, pending fire)."""
        for entry in self._entries.values():
            yield entry.name, entry.schedule, entry.since, entry.pending

    def _late(self, entry: _Entry, instant: int, now: float) -> Iterable[Due | Gap]:
        current = current_slot(entry.schedule, now)
        fires = current is not None and current >= instant
        self._put(entry, entry.schedule.next(now))
        self._given[entry.name] = int(now)
        if not fires:
            yield Gap(entry.name, self.epoch, instant, int(now), entry.schedule)
            return
        assert current is not None
        if current > instant:
            yield Gap(entry.name, self.epoch, instant, current - 1, entry.schedule)
        yield Due(entry.name, self.epoch, current)

    def _seed(self, entries: Iterable[_Entry]) -> tuple[str, ...]:
        never = []
        memo: dict[tuple[int, int, float], int | None] = {}
        for entry in entries:
            key = (*_timetable(entry.schedule), entry.since)
            if key not in memo:
                memo[key] = entry.schedule.next(entry.since)
            self._put(entry, memo[key])
            if memo[key] is None:
                never.append(entry.name)
        return tuple(never)

    def _put(self, entry: _Entry, instant: int | None) -> None:
        entry.pending = instant
        if instant is None:
            return
        bucket = self._buckets.get(instant)
        if bucket is None:
            self._buckets[instant] = [entry]
            heapq.heappush(self._instants, instant)
        else:
            bucket.append(entry)


def current_slot(schedule: Schedule, now: float) -> int | None:
    """Return the slot that is under way at C{now} (its minute, or its second), if it is a fire."""
    slot = int(now)
    if not schedule.seconds_level:
        slot -= (slot + schedule.offset(slot)) % 60
    return slot if schedule.matches(slot) else None


def _timetable(schedule: Schedule) -> tuple[int, int]:
    return id(schedule.expression), id(schedule.frame)


def _same(one: Schedule, other: Schedule) -> bool:
    return one is other or one == other


def _pending_at(entry: _Entry, instant: int) -> bool:
    return entry.alive and entry.pending == instant


def _by_order(entry: _Entry) -> int:
    return entry.order
