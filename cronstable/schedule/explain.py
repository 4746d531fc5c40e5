"""
Why a schedule does or does not select a moment, field by field.

The answer has the shape of `GET /schedule/why`, documented in docs/schedules.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

from cronstable.schedule import fields, moments, words
from cronstable.schedule.calendar import shape_of
from cronstable.schedule.days import month_mask
from cronstable.schedule.expression import REBOOT, Expression
from cronstable.schedule.fields import ANY_DAY, ANY_WEEKDAY, DaysOfMonth, DaysOfWeek
from cronstable.schedule.lint import NOTE, Finding
from cronstable.schedule.prose import describe
from cronstable.schedule.times import values_of
from cronstable.schedule.timetable import Schedule, vixie_reading
from cronstable.schedule.zones import AnyZone


def why(
    name: str,
    schedule: Schedule,
    at: str,
    *,
    enabled: bool = True,
    paused: str | None = None,
) -> dict[str, Any]:
    """
    Whether a job's schedule selects a moment, which fields say no, and its nearest fires.

    `at` is ISO 8601; without an offset it is wall time in the job's zone. `paused` is the
    message of the note for a paused job. Raises BadTimestamp.
    """
    label, instant, kind = _moment(schedule.frame, at)
    checks = list(_checks(schedule.expression, label))
    failed = [check["field"] for check in checks if not check["matched"]]
    matches = schedule.test(label)
    answer = _head(name, schedule.frame, at, enabled)
    answer["at_in_zone"] = _in_zone(schedule.frame, label, instant, kind)
    answer["expression"] = schedule.text
    answer["reboot"] = False
    answer["description"] = describe(schedule)
    if schedule.hashed:
        answer["resolved"] = schedule.resolved
    answer["matches"] = matches
    answer["checks"] = checks
    answer["failed"] = failed
    notes = [*_day_note(schedule, label), *_clock_note(schedule, matches, kind)]
    answer["notes"] = _with_pause(notes, paused)
    answer["previous_fire"] = _fire(schedule, schedule.previous(instant))
    answer["next_fire"] = _fire(schedule, schedule.next(instant))
    return answer


def why_reboot(
    name: str, frame: AnyZone, at: str, *, enabled: bool = True, paused: str | None = None
) -> dict[str, Any]:
    """
    The same for a job that runs once per boot, which no moment selects. Raises BadTimestamp.
    """
    moments.parse_moment(at)
    answer = _head(name, frame, at, enabled)
    note = Finding(
        "reboot",
        NOTE,
        f"{REBOOT} runs when cronstable starts after a boot of the host; no moment selects it",
    )
    answer.update(
        expression=REBOOT,
        reboot=True,
        description=describe(REBOOT),
        matches=False,
        checks=[],
        failed=[],
        notes=_with_pause([note], paused),
        previous_fire=None,
        next_fire=None,
    )
    return answer


def _moment(frame: AnyZone, at: str) -> tuple[datetime, float, str]:
    moment = moments.parse_moment(at)
    offsets = frame.offsets
    if moment.tzinfo is None:
        placed = moments.place(offsets, moment)
        return moment, placed.instant, placed.kind
    instant = moments.instant_of(moment)
    offset = offsets.at(instant)
    label = (moment.astimezone(timezone.utc) + timedelta(seconds=offset)).replace(tzinfo=None)
    kind = moments.place(offsets, label).kind
    return label, instant, kind


def _head(name: str, frame: AnyZone, at: str, enabled: bool) -> dict[str, Any]:
    return {"job": name, "enabled": enabled, "timezone": frame.name, "at": at}


def _in_zone(frame: AnyZone, label: datetime, instant: float, kind: str) -> str:
    # A label in a gap is shown as it was asked for, with the offset that its fire is reckoned by.
    offset = frame.offsets.at(instant)
    if kind == "gap":
        offset = moments.place(frame.offsets, label).offset
    return label.replace(tzinfo=timezone(timedelta(seconds=offset))).isoformat()


def _fire(schedule: Schedule, fire: int | None) -> str | None:
    return None if fire is None else moments.iso_in(schedule.frame.offsets, fire)


def _with_pause(notes: list[Finding], paused: str | None) -> list[dict[str, str]]:
    if paused is not None:
        notes = [*notes, Finding("paused", NOTE, paused)]
    return [{"code": note.code, "level": note.level, "message": note.message} for note in notes]


def _checks(expression: Expression, label: datetime) -> Iterator[dict[str, Any]]:
    weekday = label.isoweekday() % 7
    shape = shape_of(label.year, label.month)
    by_date = month_mask(expression.of_month, ANY_WEEKDAY, False, shape) >> label.day - 1 & 1
    by_week = month_mask(ANY_DAY, expression.of_week, False, shape) >> label.day - 1 & 1
    yield _plain(fields.SECOND, expression.seconds, label.second)
    yield _plain(fields.MINUTE, expression.minutes, label.minute)
    yield _plain(fields.HOUR, expression.hours, label.hour)
    allowed = _dates(expression.of_month)
    yield _check(fields.DAY_OF_MONTH, label.day, str(label.day), allowed, bool(by_date))
    yield _plain(fields.MONTH, expression.months, label.month, words.month_name)
    allowed = _weekdays(expression.of_week)
    shown = words.weekday_name(weekday)
    yield _check(fields.DAY_OF_WEEK, weekday, shown, allowed, bool(by_week))
    yield _year(expression.years, label.year)


def _check(
    spec: fields.FieldSpec, value: int, label: str, allowed: str, matched: bool
) -> dict[str, Any]:
    return {
        "field": spec.label,
        "value": value,
        "label": label,
        "allowed": allowed,
        "matched": matched,
    }


def _plain(
    spec: fields.FieldSpec, mask: int, value: int, name: Callable[[int], str] = str
) -> dict[str, Any]:
    allowed = "any" if mask == spec.full else _listed(words.runs(values_of(mask), name))
    return _check(spec, value, name(value), allowed, bool(mask >> value & 1))


def _year(years: int | None, year: int) -> dict[str, Any]:
    if years is None:
        return _check(fields.YEAR, year, str(year), "any", True)
    low = fields.YEAR.low
    allowed = _listed(words.runs((low + at for at in values_of(years)), str))
    matched = low <= year <= fields.YEAR.high and bool(years >> year - low & 1)
    return _check(fields.YEAR, year, str(year), allowed, matched)


def _listed(parts: list[str]) -> str:
    return words.listed(parts) or "none"


def _dates(rule: DaysOfMonth) -> str:
    if rule.unrestricted:
        return "any"
    parts = words.runs(values_of(rule.days), str)
    parts += [f"the weekday nearest day {day} ({day}W)" for day in values_of(rule.near)]
    for distance in values_of(rule.before_last):
        if distance:
            days = words.plural(distance, "day")
            parts.append(f"{days} before the last day of the month (L-{distance})")
        else:
            parts.append("the last day of the month (L)")
    if rule.last_weekday:
        parts.append("the last weekday of the month (LW)")
    return _listed(parts)


def _weekdays(rule: DaysOfWeek) -> str:
    if rule.unrestricted:
        return "any"
    parts = words.runs(values_of(rule.days), words.weekday_name)
    for day in values_of(rule.last):
        parts.append(f"the last {words.weekday_name(day)} of the month (L{day})")
    for slot in values_of(rule.nth):
        day, nth = divmod(slot, 5)
        name = words.weekday_name(day)
        parts.append(f"the {words.ordinal(nth + 1)} {name} of the month ({day}#{nth + 1})")
    return _listed(parts)


def _day_note(schedule: Schedule, label: datetime) -> Iterator[Finding]:
    if vixie_reading(schedule).test(label) and not schedule.test(label):
        yield Finding(
            "day-fields-and-rule",
            NOTE,
            "one of the day fields selects this date, but both must. Classic cron would have run "
            "the job, since it takes either one",
        )


def _clock_note(schedule: Schedule, matches: bool, kind: str) -> Iterator[Finding]:
    if not matches or kind == "once":
        return
    if kind == "gap":
        message = (
            f"the clocks of {schedule.zone} skip this time; the run comes later by as much as "
            "they move"
        )
        yield Finding("dst-skipped-time", NOTE, message)
        return
    which = (
        "every hour is selected, so it runs both times"
        if schedule.hour_unrestricted
        else "it runs the first time only"
    )
    message = f"this time comes twice as the clocks of {schedule.zone} go back; {which}"
    yield Finding("dst-repeated-time", NOTE, message)
