"""
How many runs fall on each minute of the day: the pressure that schedules put on a host.

The answer has the shape of `GET /schedule/pressure`, documented in docs/schedules.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import floor
from typing import Any

import attrs

from cronstable.schedule import moments
from cronstable.schedule.timetable import Schedule
from cronstable.schedule.zones import zone_named

HOURS = (1, 168)
"""The shortest and the longest window."""

MINUTES = 1440
_MOST_CELLS = 6
_MOST_NAMES = 10
_MOST_KNOWN = 1000


class Pressure:
    """
    Counts the fires of one schedule after another in a window, by wall-clock minute of a zone.

    The window begins with the first whole minute after `start` and lasts a number of hours,
    clamped to HOURS. Each `add` takes a few milliseconds at most, so that a caller can do other
    things between two of them.
    """

    def __init__(self, start: float, hours: int = 24, zone: str = "UTC") -> None:
        self.start = start
        self.hours = min(max(hours, HOURS[0]), HOURS[1])
        self.zone = zone
        self.jobs = 0
        self.cells = [0] * MINUTES
        self.minute_jobs = [0] * 60
        self._names: list[list[str]] = [[] for _ in range(MINUTES)]
        self._offsets = zone_named(zone).offsets
        self._first = floor(start / 60) * 60 + 60
        self._end = self._first + self.hours * 3600
        self._known: dict[Schedule, Counter[int]] = {}

    def add(self, name: str, schedule: Schedule) -> None:
        """
        Count the fires of a job.
        """
        self.jobs += 1
        counted = self._known.get(schedule)
        if counted is None:
            counted = self._count(schedule)
            if len(self._known) < _MOST_KNOWN:
                self._known[schedule] = counted
        for cell, fires in counted.items():
            self.cells[cell] += fires
            if len(self._names[cell]) < _MOST_NAMES:
                self._names[cell].append(name)
        for minute in {cell % 60 for cell in counted}:
            self.minute_jobs[minute] += 1

    def steps(self, jobs: Iterable[tuple[str, Schedule]]) -> Iterator[None]:
        """
        Add all jobs, pausing after each of them.
        """
        for name, schedule in jobs:
            self.add(name, schedule)
            yield

    def minute_fires(self) -> list[int]:
        """
        The fires on each minute of the hour.
        """
        return [sum(self.cells[minute::60]) for minute in range(60)]

    def answer(self, *, disabled: int = 0, reboot: int = 0) -> dict[str, Any]:
        """
        What was counted, with how many jobs were left out as disabled or without a timetable.
        """
        by_minute = self.minute_fires()
        busiest = max(range(60), key=lambda at: (self.minute_jobs[at], by_minute[at], -at))
        return {
            "start": moments.iso(self.start, 0),
            "hours": self.hours,
            "timezone": self.zone,
            "jobs": self.jobs,
            "total_fires": sum(self.cells),
            "grid": [self.cells[hour * 60 : hour * 60 + 60] for hour in range(24)],
            "by_minute_fires": by_minute,
            "by_minute_jobs": list(self.minute_jobs),
            "by_hour": [sum(self.cells[hour * 60 : hour * 60 + 60]) for hour in range(24)],
            "busiest_minute": {
                "minute": busiest,
                "jobs": self.minute_jobs[busiest],
                "fires": by_minute[busiest],
            },
            "empty_minutes": [at for at, fires in enumerate(by_minute) if not fires],
            "top_cells": self._top_cells(),
            "excluded": {"disabled": disabled, "reboot": reboot},
        }

    def _top_cells(self) -> list[dict[str, Any]]:
        used = [cell for cell in range(MINUTES) if self.cells[cell]]
        used.sort(key=lambda cell: -self.cells[cell])
        return [
            {
                "hour": cell // 60,
                "minute": cell % 60,
                "fires": self.cells[cell],
                "jobs": list(self._names[cell]),
            }
            for cell in used[:_MOST_CELLS]
        ]

    def _count(self, schedule: Schedule) -> Counter[int]:
        if not _on_whole_minutes(schedule, self._first, self._end):
            return self._cells(schedule)
        # A minute that is selected is selected with each of its seconds.
        per_minute = bin(schedule.expression.seconds).count("1")
        at_zero = attrs.evolve(schedule, expression=attrs.evolve(schedule.expression, seconds=1))
        return Counter(
            {cell: minutes * per_minute for cell, minutes in self._cells(at_zero).items()}
        )

    def _cells(self, schedule: Schedule) -> Counter[int]:
        """
        The fires in the window, by minute of the day.
        """
        counted: Counter[int] = Counter()
        starts = [at for at in self._offsets.starts if self._first < at < self._end]
        for begin, end in pairwise([self._first, *starts, self._end]):
            offset = self._offsets.at(begin)
            fires = schedule.occurrences(begin - 1, end - 1)
            counted.update((fire + offset) // 60 % MINUTES for fire in fires)
        return counted


def _on_whole_minutes(schedule: Schedule, low: int, high: int) -> bool:
    """
    Whether the zone's clock shows the same second of the minute as UTC does, all the time.
    """
    offsets = schedule.frame.offsets
    seen = {offsets.at(low)}
    seen.update(
        offset
        for start, offset in zip(offsets.starts, offsets.offsets, strict=True)
        if low < start < high
    )
    return all(offset % 60 == 0 for offset in seen)


def pressure(
    jobs: Iterable[tuple[str, Schedule]],
    now: float,
    *,
    hours: int = 24,
    zone: str = "UTC",
    disabled: int = 0,
    reboot: int = 0,
) -> dict[str, Any]:
    """
    The pressure of all jobs at once. Raises UnknownZone.
    """
    tally = Pressure(now, hours, zone)
    for _ in tally.steps(jobs):
        pass
    return tally.answer(disabled=disabled, reboot=reboot)
