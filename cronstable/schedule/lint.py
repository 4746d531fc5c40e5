"""
What is legal in a schedule and may still surprise; docs/schedules.md lists the codes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from datetime import datetime, timezone

import attrs

from cronstable.schedule import fields, words
from cronstable.schedule.calendar import DAY
from cronstable.schedule.expression import Expression, split
from cronstable.schedule.fields import DaysOfMonth, FieldSpec
from cronstable.schedule.search import labels
from cronstable.schedule.times import values_of
from cronstable.schedule.timetable import Schedule, vixie_reading

WARNING = "warning"
NOTE = "note"

_LOOK_AHEAD = 366 * DAY
_MOST_CLOCK_NOTES = 2
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_STEP = re.compile(r"[*hH]/([0-9]+)")
_CYCLES = {
    fields.SECOND: (60, "second"),
    fields.MINUTE: (60, "minute"),
    fields.HOUR: (24, "hour"),
    fields.MONTH: (12, "month"),
    fields.DAY_OF_WEEK: (7, "day"),
}


@attrs.frozen
class Finding:
    """
    One remark on a schedule: a stable code, `warning` or `note`, and a sentence.
    """

    code: str
    level: str
    message: str


def lint(schedule: Schedule, now: float) -> tuple[Finding, ...]:
    """
    What a reader should know of a schedule, seen from an instant; in a fixed order.
    """
    return tuple(_findings(schedule, now))


def _findings(schedule: Schedule, now: float) -> Iterator[Finding]:
    expression = schedule.expression
    if schedule.hashed:
        yield _hashed(schedule)
    never = schedule.next(now) is None
    if never:
        yield _never(schedule)
    yield from _day_fields(schedule, now)
    yield from _steps(schedule)
    if not never:
        yield from _months(expression)
        yield from _clock_changes(schedule, now)


def _hashed(schedule: Schedule) -> Finding:
    return Finding(
        "hashed-slot",
        NOTE,
        f"H resolves to '{schedule.resolved}', from the job's name: it stays so for as long as "
        "the name does",
    )


def _never(schedule: Schedule) -> Finding:
    years = schedule.expression.years
    if years is not None and not schedule.never:
        last = fields.YEAR.low + years.bit_length() - 1
        reason = f"the last year it names is {last}" if last < 2099 else "its last date has passed"
    elif schedule.never:
        reason = "no date satisfies its day, month and year fields"
    else:
        reason = "its last date before the end of 2099 has passed"
    return Finding("never-fires", WARNING, f"it will never run: {reason}")


def _day_fields(schedule: Schedule, now: float) -> Iterator[Finding]:
    classic = vixie_reading(schedule)
    ours = _when(schedule, now)
    if schedule.expression.both_days_restricted:
        both = "a date must satisfy both day-of-month and day-of-week"
        if classic is schedule:
            message = f"{both}, as in classic cron where a day field begins with a star"
        else:
            message = (
                f"{both} (next run: {ours}); classic cron takes a date that satisfies either one "
                f"(it would next run: {_when(classic, now)})"
            )
        yield Finding("day-fields-both-restricted", WARNING, message)
    elif classic is not schedule:
        yield Finding(
            "classic-cron-differs",
            WARNING,
            f"a day field that lists all its values counts as '*' here (next run: {ours}); "
            f"classic cron then runs on every day (it would next run: {_when(classic, now)})",
        )


def _when(schedule: Schedule, now: float) -> str:
    fire = schedule.next(now)
    if fire is None:
        return "never"
    label = fire + schedule.offset(fire)
    return datetime.fromtimestamp(label, timezone.utc).strftime("%Y-%m-%d %H:%M")


def _steps(schedule: Schedule) -> Iterator[Finding]:
    columns = split(schedule.text)
    specs = fields.FIELDS if len(columns) == 7 else fields.FIELDS[1:]
    for spec, column in zip(specs, columns, strict=False):
        for item in column.split(","):
            form = _STEP.fullmatch(item)
            if form is not None and int(form[1]) > 1:
                yield from _step(spec, item, int(form[1]))


def _step(spec: FieldSpec, item: str, step: int) -> Iterator[Finding]:
    if spec is fields.DAY_OF_MONTH:
        yield Finding(
            "uneven-step",
            NOTE,
            f"'{item}' in the day-of-month field begins anew in each month, so the distance "
            "across a month's end varies",
        )
        return
    size, unit = _CYCLES.get(spec, (step, ""))
    if size % step:
        short = words.plural(size % step, unit)
        yield Finding(
            "uneven-step",
            WARNING,
            f"'{item}' in the {spec.label} field is uneven: {step} does not divide {size}, and "
            f"where the field begins anew the gap is only {short}",
        )


def _months(expression: Expression) -> Iterator[Finding]:
    rule = expression.of_month
    if rule.unrestricted or rule.last_weekday or rule.before_last & 1:
        return
    selected = values_of(expression.months)
    missed = [month for month in selected if not _reaches(rule, _LONGEST[month - 1])]
    if missed:
        names = words.listed([words.month_name(month) for month in missed])
        is_short = "is too short" if len(missed) == 1 else "are too short"
        yield Finding(
            "skipped-months",
            WARNING,
            f"{names} {is_short} for {_earliest(rule)} and will be skipped",
        )
    if 2 in selected and 2 not in missed and not _reaches(rule, 28):
        yield Finding(
            "leap-day-only",
            NOTE,
            "it runs in February only in leap years, when the month has 29 days",
        )


def _reaches(rule: DaysOfMonth, length: int) -> bool:
    """
    Whether the earliest date, or the shortest way back from the end, exists in such a month.
    """
    dates = rule.days | rule.near
    if dates and (dates & -dates).bit_length() - 1 <= length:
        return True
    back = rule.before_last
    return bool(back) and (back & -back).bit_length() - 1 < length


def _earliest(rule: DaysOfMonth) -> str:
    parts = []
    dates, back = rule.days | rule.near, rule.before_last
    if dates:
        parts.append(f"day {(dates & -dates).bit_length() - 1}")
    if back:
        parts.append(f"L-{(back & -back).bit_length() - 1}")
    return " or ".join(parts)


def _clock_changes(schedule: Schedule, now: float) -> Iterator[Finding]:
    if schedule.hour_unrestricted:
        return
    offsets = schedule.frame.offsets
    found = 0
    until = bisect_right(offsets.starts, now + _LOOK_AHEAD)
    for at in range(bisect_right(offsets.starts, now), until):
        if found == _MOST_CLOCK_NOTES:
            return
        first, covered = offsets.firsts[at], offsets.covered[at]
        low, high = min(first, covered), max(first, covered)
        label = next(labels(schedule.expression, low, high), None)
        if label is None:
            continue
        found += 1
        yield _skipped(schedule, label) if first > covered else _repeated(schedule, label)


def _skipped(schedule: Schedule, label: int) -> Finding:
    day, clock = _label(label)
    return Finding(
        "dst-skipped-time",
        NOTE,
        f"on {day} the clocks of {schedule.zone} go forward past {clock}; that run is not lost, "
        "it comes later by as much as the clocks move",
    )


def _repeated(schedule: Schedule, label: int) -> Finding:
    day, clock = _label(label)
    return Finding(
        "dst-repeated-time",
        NOTE,
        f"on {day} the clocks of {schedule.zone} go back and {clock} comes twice; it runs the "
        "first time only",
    )


def _label(label: int) -> tuple[str, str]:
    moment = datetime.fromtimestamp(label, timezone.utc)
    return moment.strftime("%Y-%m-%d"), moment.strftime("%H:%M")
