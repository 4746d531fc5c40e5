"""
What a schedule that somebody is about to write would do.

The answer has the shape of `GET /schedule/preview`, documented in docs/schedules.md.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from cronstable.schedule import moments
from cronstable.schedule.errors import ScheduleError
from cronstable.schedule.expression import REBOOT
from cronstable.schedule.lint import Finding, lint
from cronstable.schedule.prose import describe
from cronstable.schedule.timetable import parse
from cronstable.schedule.zones import zone_named

LIMITS = (1, 60)
"""The fewest and the most fires that a preview shows."""


def preview(
    text: str, now: float, *, zone: str = "UTC", limit: int = 12, seed: str | None = None
) -> dict[str, Any]:
    """
    A schedule's description, next fires and findings, or why it cannot be read.

    `limit` is clamped to LIMITS; `seed` is the key of hashed slots. Raises UnknownZone.
    """
    zone_named(zone)
    answer: dict[str, Any] = {"expression": text.strip(), "timezone": zone}
    if seed is not None:
        answer["seed"] = seed
    if text.strip() == REBOOT:
        return answer | {
            "valid": True,
            "reboot": True,
            "description": describe(REBOOT),
            "fires": [],
            "never_fires": False,
            "lint": [],
        }
    try:
        schedule = parse(text, key=seed or None, zone=zone)
    except ScheduleError as error:
        return answer | {"valid": False, "error": str(error)}
    count = min(max(limit, LIMITS[0]), LIMITS[1])
    offsets = schedule.frame.offsets
    fires = [moments.iso_in(offsets, fire) for fire in islice(schedule.occurrences(now), count)]
    answer |= {
        "valid": True,
        "reboot": False,
        "normalized": schedule.text,
        "description": describe(schedule),
        "fires": fires,
        "never_fires": not fires,
        "lint": [as_json(finding) for finding in lint(schedule, now)],
    }
    if schedule.hashed:
        answer["resolved"] = schedule.resolved
    return answer


def as_json(finding: Finding) -> dict[str, str]:
    """
    A finding as the API shows it.
    """
    return {"code": finding.code, "level": finding.level, "message": finding.message}
