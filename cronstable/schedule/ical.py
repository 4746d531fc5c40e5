"""
The coming fires as an iCalendar document (RFC 5545); docs/schedules.md says what it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from hashlib import sha256
from itertools import islice
from math import ceil

import attrs

from cronstable.schedule.prose import describe
from cronstable.schedule.timetable import Schedule

DAYS = (1, 60)
LIMITS = (1, 1000)
"""The bounds of the days ahead, and of the entries per job."""

_LONGEST_LINE = 75
_LINES_AT_ONCE = 1000
_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f]")
_SHORTEST, _LONGEST = 5, 24 * 60


@attrs.frozen
class Entry:
    """
    A job in a calendar: its name, its schedule and, if known, its mean run time in seconds.
    """

    name: str
    schedule: Schedule
    runtime: float | None = None


def calendar_parts(
    entries: Iterable[Entry],
    now: float,
    *,
    version: str,
    days: int = 14,
    limit: int = 100,
    job: str | None = None,
) -> Iterator[str]:
    """
    The document in parts of a millisecond or two, so that a caller can pause between them.

    `job` names the one job that it is about, if it is. Fires after `now` and before `days` later
    are shown, `limit` at most per entry; both are clamped to DAYS and LIMITS. Entries come by name.
    """
    days = min(max(days, DAYS[0]), DAYS[1])
    limit = min(max(limit, LIMITS[0]), LIMITS[1])
    yield _lines(_head(version, job))
    for entry in sorted(entries, key=lambda entry: entry.name):
        lines = _events(entry, now, now + days * 86400, limit)
        while some := list(islice(lines, _LINES_AT_ONCE)):
            yield _lines(some)
    yield _lines(["END:VCALENDAR"])


def _head(version: str, job: str | None) -> list[str]:
    title = "cronstable" if job is None else f"cronstable: {job}"
    return [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        f"PRODID:-//cronstable//{version}//EN",
        "CALSCALE:GREGORIAN",
        "METHOD:PUBLISH",
        f"X-WR-CALNAME:{escape(title)}",
        "REFRESH-INTERVAL;VALUE=DURATION:PT1H",
        "X-PUBLISHED-TTL:PT1H",
    ]


def _events(entry: Entry, now: float, until: float, limit: int) -> Iterator[str]:
    fires = list(islice(entry.schedule.occurrences(now, ceil(until) - 1), limit + 1))
    name = escape(entry.name)
    digest = sha256(entry.name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    details = [
        f"DURATION:PT{_minutes(entry.runtime)}M",
        f"SUMMARY:{name}",
        f"DESCRIPTION:{escape(_description(entry))}",
        "STATUS:CONFIRMED",
        "TRANSP:TRANSPARENT",
        "END:VEVENT",
    ]
    stamp = _utc(now)
    for fire in fires[:limit]:
        yield "BEGIN:VEVENT"
        yield f"UID:{digest}-{_utc(fire)}@cronstable"
        yield f"DTSTAMP:{stamp}"
        yield f"DTSTART:{_utc(fire)}"
        yield from details
    if len(fires) > limit:
        yield f"X-CRONSTABLE-TRUNCATED;CAP={limit}:{name}"


def _description(entry: Entry) -> str:
    parts = [
        f"Schedule: {entry.schedule.text}",
        describe(entry.schedule),
        f"Timezone: {entry.schedule.zone}",
    ]
    if entry.runtime is not None:
        parts.append(f"Typical runtime: {_duration(entry.runtime)}")
    return "\n".join(parts)


def _minutes(runtime: float | None) -> int:
    return min(max(ceil((runtime or 0) / 60), _SHORTEST), _LONGEST)


def _duration(seconds: float) -> str:
    whole = max(round(seconds), 0)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    parts = [f"{hours}h" if hours else "", f"{minutes}m" if minutes else ""]
    if rest or not whole:
        parts.append(f"{rest}s")
    return " ".join(part for part in parts if part)


def _utc(instant: float) -> str:
    return datetime.fromtimestamp(int(instant), timezone.utc).strftime("%Y%m%dT%H%M%SZ")


def escape(text: str) -> str:
    """
    The text as a TEXT value: special characters escaped, control characters left out.
    """
    text = text.encode("utf-8", "replace").decode("utf-8")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for plain, escaped in (("\\", "\\\\"), (";", "\\;"), (",", "\\,"), ("\n", "\\n")):
        text = text.replace(plain, escaped)
    return _CONTROLS.sub("", text)


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{fold(line)}\r\n" for line in lines)


def fold(line: str) -> str:
    """
    The line broken into pieces of at most 75 octets in UTF-8, no character being split.
    """
    if len(line.encode()) <= _LONGEST_LINE:
        return line
    pieces, piece, size = [], "", 0
    for character in line:
        octets = len(character.encode())
        if size + octets > _LONGEST_LINE:
            pieces.append(piece)
            piece, size = " ", 1
        piece += character
        size += octets
    return "\r\n".join([*pieces, piece])
