"""
Random schedules that come with their meaning, which is worked out without any schedule code.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import date, datetime, timedelta
from random import Random

import attrs

from cronstable.schedule.fields import MONTH_NAMES, WEEKDAY_NAMES

DateTest = Callable[[date], bool]


@attrs.frozen
class Sample:
    """
    The text of a schedule, and what it means.
    """

    text: str
    columns: tuple[str, ...]
    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    months: frozenset[int]
    years: frozenset[int] | None
    on_date: DateTest

    @property
    def hour_unrestricted(self) -> bool:
        """
        Whether all hours are selected.
        """
        return len(self.hours) == 24

    def selects(self, day: date) -> bool:
        """
        Whether a date is selected by all four date fields.
        """
        if self.years is not None and day.year not in self.years:
            return False
        return day.month in self.months and self.on_date(day)

    def labels(self, day: date) -> list[datetime]:
        """
        The selected wall-clock labels of a date.
        """
        if not self.selects(day):
            return []
        return [
            datetime(day.year, day.month, day.day, hour, minute, second)
            for hour in sorted(self.hours)
            for minute in sorted(self.minutes)
            for second in sorted(self.seconds)
        ]


def plain_item(
    random: Random, low: int, high: int, names: tuple[str, ...] = ()
) -> tuple[str, set[int]]:
    """
    A value, a range or a stepped range inside bounds, and the values it stands for.
    """
    first = random.randint(low, high)
    last = random.randint(first, high)
    shape = random.randrange(5)
    if shape == 0:
        return "*", set(range(low, high + 1))
    if shape == 1:
        text = (
            names[first - low]
            if names and random.random() < 0.5
            else f"{first:0{random.randint(1, 2)}d}"
        )
        return text, {first}
    if last == 0:
        # A weekday range that ends with 0 ends with 7.
        return "0", {0}
    if shape == 2:
        return f"{first}-{last}", set(range(first, last + 1))
    if first == high:
        return str(first), {first}
    step = random.randint(1, high - first)
    if shape == 3:
        return f"{first}-{last}/{step}", set(range(first, last + 1, step))
    return f"{first}/{step}", set(range(first, high + 1, step))


def plain_field(
    random: Random, low: int, high: int, names: tuple[str, ...] = (), star: float = 0.4
) -> tuple[str, frozenset[int]]:
    """
    A field of one to three plain items.
    """
    if random.random() < star:
        return "*", frozenset(range(low, high + 1))
    texts, values = [], set()
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        text, found = plain_item(random, low, high, names)
        texts.append(text)
        values |= found
    return ",".join(texts), frozenset(values)


def last_day(day: date) -> int:
    """
    How many days the month of a date has.
    """
    return monthrange(day.year, day.month)[1]


def _nearest(day: date, wanted: int) -> bool:
    if wanted > last_day(day):
        return False
    target = day.replace(day=wanted)
    near = sorted(
        (abs((other - target).days), other)
        for other in (target + timedelta(days=shift) for shift in range(-3, 4))
        if other.month == target.month and other.weekday() < 5
    )
    return near[0][1] == day


def day_of_month(random: Random, forms: bool) -> tuple[str, DateTest]:
    """
    A day-of-month field and its meaning; `forms` brings in L, L-n, nW and LW.
    """
    text, values = plain_field(random, 1, 31)
    if len(values) == 31 or not forms or random.random() < 0.5:
        return text, lambda day: day.day in values or len(values) == 31
    number = random.randint(1, 30)
    form, test = random.choice(
        [
            ("L", lambda day: day.day == last_day(day)),
            (f"L-{number}", lambda day: day.day == last_day(day) - number),
            (f"{number}W", lambda day: _nearest(day, number)),
            ("LW", lambda day: _nearest(day, last_day(day))),
        ]
    )
    if random.random() < 0.5:
        return form, test
    return f"{text},{form}", lambda day: day.day in values or test(day)


def weekday(day: date) -> int:
    """
    The weekday of a date; Sunday is 0.
    """
    return day.isoweekday() % 7


def day_of_week(random: Random, forms: bool) -> tuple[str, DateTest]:
    """
    A day-of-week field and its meaning; `forms` brings in d#n and Ld.
    """
    text, values = plain_field(random, 0, 6, WEEKDAY_NAMES)
    if len(values) == 7 or not forms or random.random() < 0.5:
        return text, lambda day: weekday(day) in values
    wanted, nth = random.randint(0, 6), random.randint(1, 5)
    form, test = random.choice(
        [
            (f"{wanted}#{nth}", lambda day: weekday(day) == wanted and (day.day + 6) // 7 == nth),
            (f"L{wanted}", lambda day: weekday(day) == wanted and day.day > last_day(day) - 7),
        ]
    )
    if random.random() < 0.5:
        return form, test
    return f"{text},{form}", lambda day: weekday(day) in values or test(day)


def sample(
    random: Random, *, forms: bool = True, seconds: float = 0.2, years: float = 0.1
) -> Sample:
    """
    A random schedule of five, six or seven columns.
    """
    second_text, second_values = plain_field(random, 0, 59, star=0.0)
    minute_text, minute_values = plain_field(random, 0, 59)
    hour_text, hour_values = plain_field(random, 0, 23)
    date_text, date_test = day_of_month(random, forms)
    month_text, month_values = plain_field(random, 1, 12, MONTH_NAMES, star=0.7)
    week_text, week_test = day_of_week(random, forms)
    columns = [minute_text, hour_text, date_text, month_text, week_text]
    year_values = None
    by_the_second = random.random() < seconds
    if by_the_second:
        columns = [second_text, *columns, "*"]
    elif random.random() < years:
        first = random.randint(2000, 2059)
        columns = [*columns, f"{first}-{first + 40}/4"]
        year_values = frozenset(range(first, first + 41, 4))
    return Sample(
        " ".join(columns),
        tuple(columns),
        second_values if by_the_second else frozenset({0}),
        minute_values,
        hour_values,
        month_values,
        year_values,
        lambda day: date_test(day) and week_test(day),
    )
