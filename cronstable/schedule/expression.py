"""
The text of a schedule, read into the sets of values that its fields select.

docs/schedules.md describes the dialect.
"""

from __future__ import annotations

import re
from functools import lru_cache

import attrs

from cronstable.schedule import fields, hashed
from cronstable.schedule.days import Days, days_for
from cronstable.schedule.errors import ScheduleError, short
from cronstable.schedule.fields import DaysOfMonth, DaysOfWeek
from cronstable.schedule.times import Times, times_for

NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@hourly": "0 * * * *",
}
"""Names for whole schedules, and the five fields that each stands for."""

REBOOT = "@reboot"
"""The schedule of a job that runs once per boot; it has no timetable and is not parsed here."""

LONGEST_TEXT = 4096
"""The longest text that is read as a schedule, in characters."""

BLANKS = re.compile(r"[ \t\r\n\f\v]+")
"""What separates fields; any other white space is an error."""


@attrs.frozen(cache_hash=True)
class Expression:
    """
    What the fields of a schedule select; two texts that select the same compare equal.

    Bit v of a mask is the value v, except that bit 0 of `years` is 1970; `years` is None when
    any year will do. `either` is classic cron's rule for two restricted day fields.
    """

    seconds: int
    minutes: int
    hours: int
    of_month: DaysOfMonth
    months: int
    of_week: DaysOfWeek
    years: int | None
    either: bool = False
    times: Times = attrs.field(init=False, eq=False, repr=False)
    days: Days = attrs.field(init=False, eq=False, repr=False)

    @times.default
    def _times(self) -> Times:
        return times_for(self.hours, self.minutes, self.seconds)

    @days.default
    def _days(self) -> Days:
        return days_for(self.of_month, self.of_week, self.months, self.years, self.either)

    @property
    def hour_unrestricted(self) -> bool:
        """
        Whether every hour of the day is selected, so that the schedule follows real intervals.
        """
        return self.hours == fields.HOUR.full

    @property
    def both_days_restricted(self) -> bool:
        """
        Whether a date must satisfy both day fields.
        """
        return not (self.of_month.unrestricted or self.of_week.unrestricted)


@attrs.frozen
class Reading:
    """
    A schedule's text as read: collapsed, with hashed slots resolved, and what it selects.
    """

    text: str
    resolved: str
    columns: int
    expression: Expression


def collapse(text: str) -> str:
    """
    The text with its ends trimmed and each run of blanks made one; a nickname in lower case.
    """
    collapsed = BLANKS.sub(" ", text).strip(" ")
    return collapsed.lower() if collapsed[:1] == "@" else collapsed


def read(text: str, key: str | None) -> Reading:
    """
    Read a schedule; raises ScheduleError. `key` is what hashed slots depend on.
    """
    if len(text) > LONGEST_TEXT:
        raise ScheduleError(f"a schedule has at most {LONGEST_TEXT} characters, not {len(text)}")
    try:
        return _read_plain(text)
    except _NeedsKey:
        return _read_hashed(collapse(text), key)


class _NeedsKey(Exception):
    """
    The text holds a hashed slot, so that it cannot be read, or shared, without a key.
    """


@lru_cache(maxsize=8192)
def _read_plain(text: str) -> Reading:
    collapsed = collapse(text)
    columns = split(collapsed)
    if any(map(hashed.holds_slot, columns)):
        raise _NeedsKey
    return Reading(collapsed, collapsed, len(columns), _expression(tuple(columns)))


def _read_hashed(collapsed: str, key: str | None) -> Reading:
    columns = split(collapsed)
    specs = _specs(len(columns))
    resolved = [
        hashed.resolve(spec, text, key) if hashed.holds_slot(text) else text
        for spec, text in zip(specs, columns, strict=True)
    ]
    expression = _expression(tuple(resolved))
    return Reading(collapsed, " ".join(resolved), len(columns), expression)


def split(collapsed: str) -> list[str]:
    """
    The columns of a collapsed text, a nickname being replaced; raises ScheduleError.
    """
    if collapsed[:1] == "@":
        known = NICKNAMES.get(collapsed)
        if known is None:
            raise ScheduleError(_unknown_nickname(collapsed))
        collapsed = known
    columns = collapsed.split(" ") if collapsed else []
    if not 5 <= len(columns) <= 7:
        raise ScheduleError(
            f"{_count(len(columns))} in {short(collapsed, 120)!r}: a schedule has 5 (minute hour "
            "day-of-month month day-of-week), 6 (with a year) or 7 (a second in front, a year)"
        )
    if len(columns) == 6 and any("?" in column for column in columns):
        _check_quartz(columns)
    return columns


def _count(columns: int) -> str:
    return "no fields" if not columns else "1 field" if columns == 1 else f"{columns} fields"


def _unknown_nickname(text: str) -> str:
    if text == REBOOT:
        return f"{REBOOT} is not a timetable; it is accepted only where a job runs once per boot"
    known = ", ".join(NICKNAMES)
    return f"unknown nickname {short(text, 120)!r} (allowed: {known})"


def _check_quartz(columns: list[str]) -> None:
    try:
        _expression(tuple(columns))
    except ScheduleError as error:
        text = " ".join(columns)
        raise ScheduleError(
            f"{error}; six fields end with a year here; if the first one is meant as seconds "
            f"(Quartz order), append ' *': {short(text, 120) + ' *'!r}"
        ) from None


def _specs(columns: int) -> tuple[fields.FieldSpec, ...]:
    return fields.FIELDS if columns == 7 else fields.FIELDS[1 : columns + 1]


@lru_cache(maxsize=8192)
def _expression(columns: tuple[str, ...]) -> Expression:
    if len(columns) == 7:
        seconds = fields.parse_plain(fields.SECOND, columns[0])
        columns = columns[1:]
    else:
        seconds = 1
    year = columns[5] if len(columns) == 6 else "*"
    return Expression(
        seconds,
        fields.parse_plain(fields.MINUTE, columns[0]),
        fields.parse_plain(fields.HOUR, columns[1]),
        fields.parse_days_of_month(columns[2]),
        fields.parse_plain(fields.MONTH, columns[3]),
        fields.parse_days_of_week(columns[4]),
        None if year == "*" else fields.parse_plain(fields.YEAR, year) >> fields.YEAR.low,
    )
