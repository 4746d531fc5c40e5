"""
A schedule as a sentence; docs/schedules.md shows examples.
"""

from __future__ import annotations

from cronstable.schedule import fields, words
from cronstable.schedule.errors import ScheduleError
from cronstable.schedule.expression import REBOOT, Expression
from cronstable.schedule.fields import DaysOfMonth, DaysOfWeek
from cronstable.schedule.times import values_of
from cronstable.schedule.timetable import Schedule, parse

_NICKNAMES = {
    "@hourly": "Every hour, on the hour",
    "@daily": "Every day at midnight",
    "@weekly": "Every Sunday at midnight",
    "@monthly": "On the 1st of every month at midnight",
    "@yearly": "Every 1 January at midnight",
    "@annually": "Every 1 January at midnight",
}
_REBOOT = "Once, when cronstable starts (@reboot)"
_HASHED = " (H slots hashed from the job name)"
_ALL_SIXTY = fields.MINUTE.full


def describe(schedule: Schedule | str) -> str:
    """
    A schedule, or the text of one, in words; a text that cannot be read is named as it is.
    """
    if isinstance(schedule, str):
        if schedule == REBOOT:
            return _REBOOT
        try:
            schedule = parse(schedule)
        except ScheduleError:
            return f"Custom schedule: {schedule}"
    nickname = _NICKNAMES.get(schedule.text)
    if nickname is not None:
        return nickname
    expression = schedule.expression
    if not _selected(expression.of_month) or not _selected(expression.of_week):
        return f"Custom schedule: {schedule.text}"
    return ", ".join(_parts(expression)) + (_HASHED if schedule.hashed else "")


def _selected(rule: DaysOfMonth | DaysOfWeek) -> bool:
    if isinstance(rule, DaysOfMonth):
        return bool(rule.days or rule.before_last or rule.near or rule.last_weekday)
    return bool(rule.days or rule.last or rule.nth)


def _parts(expression: Expression) -> list[str]:
    by_the_second = expression.seconds != 1
    all_day = expression.hours == fields.HOUR.full and expression.minutes == _ALL_SIXTY
    if by_the_second and all_day:
        parts, every_day = [_seconds(expression.seconds)], ""
    else:
        parts = [_clock(expression.hours, expression.minutes)]
        every_day = "" if expression.months != fields.MONTH.full else "every day"
    parts.append(_days(expression) or every_day)
    if expression.months != fields.MONTH.full:
        months = words.runs(values_of(expression.months), words.month_name, " to ")
        parts.append(f"in {words.listed(months)}")
    if expression.years is not None:
        years = [fields.YEAR.low + at for at in values_of(expression.years)]
        parts.append(f"in {words.listed(words.runs(years, str, ' to '))}")
    if by_the_second and not all_day:
        parts.append(_within_minute(expression.seconds))
    return [part for part in parts if part]


def step_of(mask: int, size: int) -> int | None:
    """
    The n of a mask that holds 0, n, 2n and so on up to a size that n divides; else None.
    """
    values = values_of(mask)
    if len(values) < 2 or values[0] != 0:
        return None
    step = values[1]
    return step if size % step == 0 and values == tuple(range(0, size, step)) else None


def _seconds(mask: int) -> str:
    step = step_of(mask, 60)
    if step is not None:
        return "Every second" if step == 1 else f"Every {step} seconds"
    values = words.runs(values_of(mask), words.two_digits)
    return f"At second{_s(mask)} {', '.join(values)} of every minute"


def _within_minute(mask: int) -> str:
    step = step_of(mask, 60)
    if step is not None:
        return "every second" if step == 1 else f"every {step} seconds"
    return f"at second{_s(mask)} {', '.join(words.runs(values_of(mask), words.two_digits))}"


def _s(mask: int) -> str:
    return "" if len(values_of(mask)) == 1 else "s"


def _clock(hours: int, minutes: int) -> str:
    minute_values, hour_values = values_of(minutes), values_of(hours)
    if hours == fields.HOUR.full:
        return _past_every_hour(minutes)
    first = words.two_digits(minute_values[0])
    if len(minute_values) == 1:
        step = step_of(hours, 24)
        if step is not None:
            return f"At :{first} every {step} hours"
        if len(hour_values) < 4:
            return f"At {words.listed([f'{hour:02d}:{first}' for hour in hour_values])}"
    hour_runs = ", ".join(words.runs(hour_values, words.two_digits))
    return f"At {_minutes(minutes)} past hour{_s(hours)} {hour_runs}"


def _past_every_hour(minutes: int) -> str:
    step = step_of(minutes, 60)
    if step is not None:
        return "Every minute" if step == 1 else f"Every {step} minutes"
    values = values_of(minutes)
    if len(values) == 1:
        return f"Every hour at :{values[0]:02d}"
    return f"At {_minutes(minutes)} past every hour"


def _minutes(mask: int) -> str:
    if mask == _ALL_SIXTY:
        return "every minute"
    return f"minute{_s(mask)} {', '.join(words.runs(values_of(mask), words.two_digits))}"


def _days(expression: Expression) -> str:
    of_month, of_week = expression.of_month, expression.of_week
    weekdays = "" if of_week.unrestricted else words.listed(_weekdays(of_week))
    if of_month.unrestricted:
        return f"on {weekdays}" if weekdays else ""
    dates = _dates(of_month, bare=bool(weekdays))
    if not weekdays:
        return f"on {dates}"
    joint = "or on" if expression.either else "and only on"
    return f"on {dates}, {joint} {weekdays}"


def _dates(rule: DaysOfMonth, bare: bool) -> str:
    plain = words.runs(values_of(rule.days), words.ordinal, " to ")
    forms = [f"the weekday nearest the {words.ordinal(day)}" for day in values_of(rule.near)]
    forms.extend(map(_before_last, values_of(rule.before_last)))
    if rule.last_weekday:
        forms.append("the last weekday of the month")
    if forms:
        return words.listed([*(f"the {day}" for day in plain), *forms])
    return f"the {words.listed(plain)}{'' if bare else ' of the month'}"


def _before_last(distance: int) -> str:
    if distance == 0:
        return "the last day of the month"
    if distance == 1:
        return "the day before the last day of the month"
    return f"{distance} days before the last day of the month"


def _weekdays(rule: DaysOfWeek) -> list[str]:
    parts = words.runs(values_of(rule.days), words.weekday_name, " to ")
    for day in values_of(rule.last):
        parts.append(f"the last {words.weekday_name(day)} of the month")
    for slot in values_of(rule.nth):
        day, nth = divmod(slot, 5)
        parts.append(f"the {words.ordinal(nth + 1)} {words.weekday_name(day)} of the month")
    return parts
