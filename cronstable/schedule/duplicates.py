"""
Jobs that are due at exactly the same times.

The answer has the shape of `GET /schedule/duplicates`, documented in docs/schedules.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from cronstable.schedule.prose import describe
from cronstable.schedule.timetable import Schedule


def duplicates(jobs: Iterable[tuple[str, Schedule]]) -> dict[str, Any]:
    """
    The groups of two or more jobs with one schedule in one zone, largest first.
    """
    members: dict[Schedule, list[tuple[str, Schedule]]] = {}
    total = 0
    for name, schedule in jobs:
        members.setdefault(schedule, []).append((name, schedule))
        total += 1
    groups = [_group(group) for group in members.values() if len(group) > 1]
    groups.sort(key=lambda group: (-group["count"], group["expression"]))
    return {"jobs": total, "groups": groups}


def _group(members: list[tuple[str, Schedule]]) -> dict[str, Any]:
    texts = Counter(schedule.text for _, schedule in members)
    common = texts.most_common(1)[0][0]
    spelled_so = next(schedule for _, schedule in members if schedule.text == common)
    return {
        "expression": common,
        "description": describe(spelled_so),
        "timezone": spelled_so.zone,
        "count": len(members),
        "jobs": sorted(name for name, _ in members),
    }
