"""
Jobs that are due at exactly the same times.

The answer has the shape of `GET /schedule/duplicates`, documented in docs/schedules.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from cronstable.schedule.prose import describe
from cronstable.schedule.timetable import Schedule

Member = tuple[str, Schedule]


class Duplicates:
    """
    Finds the groups of two or more jobs with one schedule in one zone.
    """

    def __init__(self) -> None:
        self._jobs = 0
        self._groups: list[dict[str, Any]] = []

    def steps(self, jobs: Iterable[Member]) -> Iterator[None]:
        """
        Look at all jobs, pausing after each of them and after each group.
        """
        members: dict[Schedule, list[Member]] = {}
        for name, schedule in jobs:
            members.setdefault(schedule, []).append((name, schedule))
            self._jobs += 1
            yield
        for group in members.values():
            if len(group) > 1:
                self._groups.append(_group(group))
                yield

    def answer(self) -> dict[str, Any]:
        """
        The groups that were found, largest first.
        """
        self._groups.sort(key=lambda group: (-group["count"], group["expression"]))
        return {"jobs": self._jobs, "groups": self._groups}


def duplicates(jobs: Iterable[Member]) -> dict[str, Any]:
    """
    The groups of all jobs at once.
    """
    found = Duplicates()
    for _ in found.steps(jobs):
        pass
    return found.answer()


def _group(members: list[Member]) -> dict[str, Any]:
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
