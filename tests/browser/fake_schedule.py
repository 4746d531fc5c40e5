"""The fake daemon's answers about schedules; croniter works out the fires."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import Any
from zoneinfo import ZoneInfo

from croniter import croniter

from tests.browser.fake_data import FakeJob, Json, iso


def preview(expression: str, zone: str, limit: int) -> Json:
    """Answer /schedule/preview."""
    base: Json = {"expression": expression, "timezone": zone}
    if not croniter.is_valid(expression):
        return {**base, "valid": False, "error": f"not a schedule: {expression!r}"}
    steps = croniter(expression, datetime.now(ZoneInfo(zone)))
    lint = []
    if expression.startswith("*/7"):
        lint.append({"code": "uneven-step", "level": "warning", "message": "7 does not divide 60"})
    return {
        **base,
        "valid": True,
        "reboot": False,
        "normalized": expression,
        "never_fires": False,
        "description": f"As written: {expression}",
        "lint": lint,
        "fires": [steps.get_next(datetime).isoformat() for _ in range(limit)],
    }


def pressure(jobs: list[FakeJob], zone: str, now: float) -> Json:
    """Answer /schedule/pressure over a day."""
    grid = [[0] * 60 for _ in range(24)]
    for job in jobs:
        for at, _start in job.slots(now - 86400, now):
            moment = datetime.fromtimestamp(at, timezone.utc)
            grid[moment.hour][moment.minute] += 1
    by_minute = [sum(row[minute] for row in grid) for minute in range(60)]
    busiest = max(range(60), key=by_minute.__getitem__)
    return {
        "start": iso(now),
        "hours": 24,
        "timezone": zone,
        "jobs": len(jobs),
        "total_fires": sum(by_minute),
        "grid": grid,
        "by_hour": [sum(row) for row in grid],
        "by_minute_fires": by_minute,
        "by_minute_jobs": [min(count, len(jobs)) for count in by_minute],
        "busiest_minute": {"minute": busiest, "jobs": 7, "fires": by_minute[busiest]},
        "empty_minutes": [minute for minute in range(60) if not by_minute[minute]],
        "top_cells": [
            {"hour": 3, "minute": 0, "fires": grid[3][0], "jobs": ["sync", "mail-digest"]}
        ],
        "excluded": {"disabled": 1, "reboot": 0},
    }


def suggest(period: str, zone: str, now: float) -> Json:
    """Answer /schedule/suggest."""
    daily = period == "daily"
    first: Json = {
        "minute": 37,
        "expression": "37 4 * * *" if daily else "37 * * * *",
        "fires_in_window": 1,
    }
    return {
        "period": period,
        "timezone": zone,
        "based_on": {"jobs": 19, "start": iso(now), "hours": 24},
        **first,
        **({"hour": 4} if daily else {}),
        "busiest": {"minute": 0, "fires_in_window": 90},
        "alternatives": [
            {**first, "minute": 38, "expression": "38 * * * *"},
            {**first, "minute": 22, "expression": "22 * * * *"},
        ],
        "hash_hint": "H H * * *" if daily else "H * * * *",
    }


def why(job: FakeJob, at: str) -> Json:
    """Answer /schedule/why for a time whose weekday does not match."""
    zone = job.timezone or "UTC"
    moment = datetime.fromisoformat(at.replace("Z", "+00:00"))
    moment = (
        moment.replace(tzinfo=ZoneInfo(zone))
        if moment.tzinfo is None
        else moment.astimezone(ZoneInfo(zone))
    )
    values: list[tuple[str, int, str]] = [
        ("second", moment.second, "0"),
        ("minute", moment.minute, "any"),
        ("hour", moment.hour, "any"),
        ("day-of-month", moment.day, "any"),
        ("month", moment.month, "any"),
        ("day-of-week", moment.isoweekday() % 7, "Monday to Friday"),
        ("year", moment.year, "any"),
    ]
    checks: list[dict[str, Any]] = [
        {
            "field": field,
            "value": value,
            "label": moment.strftime("%A") if field == "day-of-week" else str(value),
            "allowed": allowed,
            "matched": field != "day-of-week",
        }
        for field, value, allowed in values
    ]
    return {
        "job": job.name,
        "enabled": job.enabled,
        "timezone": zone,
        "at": at,
        "at_in_zone": moment.isoformat(),
        "expression": job.schedule,
        "reboot": False,
        "description": "At 09:00, Monday to Friday",
        "matches": False,
        "checks": checks,
        "failed": ["day-of-week"],
        "notes": [],
        "previous_fire": iso(time.time() - 3600),
        "next_fire": iso(time.time() + 3600),
    }
