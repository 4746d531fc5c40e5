"""
A quiet minute for a new job: where the fewest runs fall, far from the busiest moment.

The answer has the shape of `GET /schedule/suggest`, documented in docs/schedules.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cronstable.schedule import moments
from cronstable.schedule.pressure import Pressure
from cronstable.schedule.timetable import Schedule

PERIODS = ("hourly", "daily")
HOURS = 24
"""How far ahead a suggestion looks."""

_ALTERNATIVES = 2


class BadPeriod(ValueError):
    """
    A period for which nothing can be suggested.
    """


def check_period(period: str) -> None:
    """
    Raise BadPeriod unless the period is one of PERIODS.
    """
    if period not in PERIODS:
        raise BadPeriod(f"period must be 'hourly' or 'daily', got {period!r}")


def suggestion(tally: Pressure, period: str) -> dict[str, Any]:
    """
    A slot for a job of this period, from a tally over HOURS hours. Raises BadPeriod.
    """
    check_period(period)
    daily = period == "daily"
    slots = tally.cells if daily else tally.minute_fires()
    busiest = max(range(len(slots)), key=lambda at: (slots[at], -at))
    best, *others = _ranked(slots, busiest)[: _ALTERNATIVES + 1]
    return {
        "period": period,
        "timezone": tally.zone,
        "based_on": {
            "jobs": tally.jobs,
            "start": moments.iso(tally.start, 0),
            "hours": tally.hours,
        },
        **_slot(slots, best, daily),
        "busiest": {**_time(busiest, daily), "fires_in_window": slots[busiest]},
        "alternatives": [_slot(slots, other, daily) for other in others],
        "hash_hint": "H H * * *" if daily else "H * * * *",
    }


def suggest(
    jobs: Iterable[tuple[str, Schedule]], now: float, *, period: str = "hourly", zone: str = "UTC"
) -> dict[str, Any]:
    """
    A slot for a job of this period among these jobs. Raises UnknownZone, then BadPeriod.
    """
    tally = Pressure(now, HOURS, zone)
    check_period(period)
    for _ in tally.steps(jobs):
        pass
    return suggestion(tally, period)


def _ranked(slots: Sequence[int], busiest: int) -> list[int]:
    size = len(slots)

    def rank(at: int) -> tuple[int, int, int]:
        distance = abs(at - busiest)
        return slots[at], -min(distance, size - distance), at

    return sorted(range(size), key=rank)


def _time(slot: int, daily: bool) -> dict[str, int]:
    return {"hour": slot // 60, "minute": slot % 60} if daily else {"minute": slot}


def _slot(slots: Sequence[int], slot: int, daily: bool) -> dict[str, Any]:
    hour = str(slot // 60) if daily else "*"
    return {
        **_time(slot, daily),
        "expression": f"{slot % 60} {hour} * * *",
        "fires_in_window": slots[slot],
    }
