"""
One field of a schedule: its range, its names, and its text read into bit masks.

docs/schedules.md describes the forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import attrs

from cronstable.schedule.errors import ScheduleError, short

MONTH_NAMES = (
    *("jan", "feb", "mar", "apr", "may", "jun"),
    *("jul", "aug", "sep", "oct", "nov", "dec"),
)
WEEKDAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@attrs.frozen(eq=False)
class FieldSpec:
    """
    What one column may hold: its label, its range, the end of a star, and its names.
    """

    label: str
    low: int
    high: int
    star_high: int
    allowed: str
    names: Mapping[str, int] = attrs.field(factory=dict)

    @property
    def full(self) -> int:
        """
        The mask of every value of a star.
        """
        return _run(self.low, self.star_high)


def _run(low: int, high: int) -> int:
    return ((1 << (high - low + 1)) - 1) << low


SECOND = FieldSpec("second", 0, 59, 59, "0-59")
MINUTE = FieldSpec("minute", 0, 59, 59, "0-59")
HOUR = FieldSpec("hour", 0, 23, 23, "0-23")
DAY_OF_MONTH = FieldSpec("day-of-month", 1, 31, 31, "1-31, L, L-1 to L-30, 1W to 31W, LW")
MONTH = FieldSpec(
    "month", 1, 12, 12, "1-12 or jan-dec", {name: at + 1 for at, name in enumerate(MONTH_NAMES)}
)
DAY_OF_WEEK = FieldSpec(
    "day-of-week",
    0,
    7,
    6,
    "0-7 or sun-sat, L0 to L7, d#1 to d#5",
    {name: at for at, name in enumerate(WEEKDAY_NAMES)},
)
YEAR = FieldSpec("year", 1970, 2099, 2099, "1970-2099")

FIELDS = (SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK, YEAR)
"""The seven fields in the order of a seven-column schedule."""


@attrs.frozen
class DaysOfMonth:
    """
    A day-of-month field: plain days, days before the last one, nearest weekdays, last weekday.

    Bit n of `days` and `near` is day n, bit n of `before_last` is the day n days before the last.
    """

    days: int
    before_last: int = 0
    near: int = 0
    last_weekday: bool = False

    @property
    def unrestricted(self) -> bool:
        """
        Whether the plain days alone cover every day.
        """
        return self.days == DAY_OF_MONTH.full


@attrs.frozen
class DaysOfWeek:
    """
    A day-of-week field: plain weekdays, last ones of the month, n-th ones of the month.

    Bit d is weekday d with Sunday 0; bit d * 5 + n - 1 of `nth` is the n-th weekday d.
    """

    days: int
    last: int = 0
    nth: int = 0

    @property
    def unrestricted(self) -> bool:
        """
        Whether the plain weekdays alone cover the week.
        """
        return self.days == DAY_OF_WEEK.full


ANY_DAY = DaysOfMonth(DAY_OF_MONTH.full)
ANY_WEEKDAY = DaysOfWeek(DAY_OF_WEEK.full)


def problem(spec: FieldSpec, item: str, reason: str, hint: str = "") -> ScheduleError:
    """
    The error for an item of a field, in the one shape that all of them have.
    """
    tail = f"; {hint}" if hint else ""
    return ScheduleError(
        f"{spec.label} field, item {short(item)!r}: {reason} (allowed: {spec.allowed}){tail}"
    )


def number(text: str) -> int | None:
    """
    The value of a run of at most nine ASCII digits, or None for any other text.
    """
    if text.isascii() and text.isdigit():
        return int(text) if len(text) < 10 else 10**9
    return None


@lru_cache(maxsize=4096)
def parse_plain(spec: FieldSpec, text: str) -> int:
    """
    The mask of a field that holds plain values only; raises ScheduleError.
    """
    mask = 0
    for item in _items(spec, text):
        mask |= _plain_item(spec, item)
    return mask


@lru_cache(maxsize=4096)
def parse_days_of_month(text: str) -> DaysOfMonth:
    """
    Read a day-of-month field; raises ScheduleError.
    """
    if text == "?":
        return ANY_DAY
    days = before_last = near = 0
    last_weekday = False
    for item in _items(DAY_OF_MONTH, text):
        lower = item.lower()
        if lower == "lw":
            last_weekday = True
        elif lower[:1] == "l":
            before_last |= 1 << _before_last(lower, item)
        elif "w" in lower:
            near |= 1 << _near(lower, item)
        else:
            days |= _plain_item(DAY_OF_MONTH, item)
    if days == DAY_OF_MONTH.full:
        return ANY_DAY
    return DaysOfMonth(days, before_last, near, last_weekday)


@lru_cache(maxsize=4096)
def parse_days_of_week(text: str) -> DaysOfWeek:
    """
    Read a day-of-week field, with 7 folded to Sunday; raises ScheduleError.
    """
    if text == "?":
        return ANY_WEEKDAY
    days = last = nth = 0
    for item in _items(DAY_OF_WEEK, text):
        lower = item.lower()
        if "#" in lower:
            nth |= _nth(lower, item)
        elif lower[:1] == "l":
            last |= _fold(_last_weekdays(lower, item))
        else:
            days |= _fold(_plain_item(DAY_OF_WEEK, item))
    if days == DAY_OF_WEEK.full:
        return ANY_WEEKDAY
    return DaysOfWeek(days, last, nth)


def _items(spec: FieldSpec, text: str) -> list[str]:
    items = text.split(",")
    for item in items:
        if not item:
            raise problem(spec, text, "an item of the list is empty")
        if not item.isascii():
            raise problem(spec, item, "holds a character that is not plain ASCII")
    return items


def _plain_item(spec: FieldSpec, item: str) -> int:
    body, slash, step_text = item.partition("/")
    if body == "*":
        low, high = spec.low, spec.star_high
    elif "-" in body:
        low_text, _, high_text = body.partition("-")
        low, high = _value(spec, low_text, item), _value(spec, high_text, item)
        if high == 0 and spec is DAY_OF_WEEK:
            high = 7
        if low > high:
            raise problem(
                spec, item, "a range runs upwards and does not wrap around", "write two ranges"
            )
    else:
        low = _value(spec, body, item)
        high = spec.star_high if slash else low
    if not slash:
        return _run(low, high)
    mask = 0
    for value in range(low, high + 1, _step(spec, low, step_text, item)):
        mask |= 1 << value
    return mask


def _step(spec: FieldSpec, low: int, text: str, item: str) -> int:
    step = number(text)
    if step is None or step == 0:
        raise problem(spec, item, "a step is one whole number from 1 on, after one '/'")
    if step > spec.high:
        raise problem(spec, item, f"the step {short(text)} is greater than {spec.high}")
    if low + step > spec.high:
        raise problem(spec, item, f"the step leaves the field at once: {low} + {step}")
    return step


def _value(spec: FieldSpec, text: str, item: str) -> int:
    value = number(text)
    if value is None:
        value = spec.names.get(text.lower())
    if value is None:
        raise _unreadable(spec, text, item)
    if not spec.low <= value <= spec.high:
        raise problem(spec, item, f"{short(text)} is out of range")
    return value


def _unreadable(spec: FieldSpec, text: str, item: str) -> ScheduleError:
    lower = item.lower()
    if "?" in item:
        reason = "'?' stands alone in a day field"
        return problem(spec, item, reason, "write '*' for every value")
    if "#" in item:
        return problem(spec, item, "'#' picks the n-th weekday", "it belongs in day-of-week")
    if spec is DAY_OF_WEEK and lower.endswith("l") and len(lower) > 1:
        return problem(spec, item, "the L comes first", f"write L{item[:-1]}")
    if "w" in lower and _looks_like_nearest(lower):
        return problem(spec, item, "'W' picks the nearest weekday", "it belongs in day-of-month")
    if not text:
        return problem(spec, item, "a value is missing")
    return problem(spec, item, f"{short(text)!r} is not a value of this field")


def _looks_like_nearest(lower: str) -> bool:
    return lower in ("w", "lw") or number(lower.replace("w", "", 1)) is not None


def _before_last(lower: str, item: str) -> int:
    if lower == "l":
        return 0
    distance = number(lower[2:]) if lower[1] == "-" else None
    if distance is None:
        hint = "the forms are L, L-n and LW"
        raise problem(DAY_OF_MONTH, item, "not a form of the last day", hint)
    if not 1 <= distance <= 30:
        raise problem(DAY_OF_MONTH, item, f"{short(item)} is out of range")
    return distance


def _near(lower: str, item: str) -> int:
    day = number(lower[:-1]) if lower[-1] == "w" else None
    if day is None:
        hint = "write one day before the W, as in 15W"
        raise problem(DAY_OF_MONTH, item, "not a form of the nearest weekday", hint)
    if not 1 <= day <= 31:
        raise problem(DAY_OF_MONTH, item, f"{short(lower[:-1])} is out of range")
    return day


def _nth(lower: str, item: str) -> int:
    day_text, _, nth_text = lower.partition("#")
    nth = number(nth_text)
    if nth is None or not 1 <= nth <= 5:
        raise problem(DAY_OF_WEEK, item, "a number from 1 to 5 follows the '#'")
    day = number(day_text)
    if day is None:
        day = DAY_OF_WEEK.names.get(day_text)
    if day is None or day > 7:
        raise problem(DAY_OF_WEEK, item, "one weekday comes before the '#'")
    return 1 << (day % 7 * 5 + nth - 1)


def _last_weekdays(lower: str, item: str) -> int:
    low_text, dash, high_text = lower[1:].partition("-")
    low = number(low_text)
    high = number(high_text) if dash else low
    if low is None or high is None:
        hint = "digits follow the L, as in L5 or L1-5"
        raise problem(DAY_OF_WEEK, item, "not a form of the last weekday", hint)
    if low > 7 or high > 7:
        raise problem(DAY_OF_WEEK, item, "a weekday is out of range")
    return _run(low, high) if low <= high else 0


def _fold(mask: int) -> int:
    return (mask | mask >> 7) & 0x7F
