"""
The days that a schedule selects, as a bit mask for each shape of a month.
"""

from __future__ import annotations

from functools import lru_cache

import attrs

from cronstable.schedule.calendar import (
    END_DAY,
    FIRST_YEAR,
    LAST_YEAR,
    MONTH_SHAPES,
    MONTH_STARTS,
    MONTHS,
    month_of,
    shape_first_weekday,
    shape_length,
)
from cronstable.schedule.fields import MONTH, DaysOfMonth, DaysOfWeek

_EVERY_WEEK = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28
_SATURDAY, _SUNDAY = 6, 0


def month_mask(of_month: DaysOfMonth, of_week: DaysOfWeek, either: bool, shape: int) -> int:
    """
    The selected days of a month of this shape; bit 0 is the first.

    Both fields must select a day; with `either`, one of them is enough.
    """
    all_days = (1 << shape_length(shape)) - 1
    by_date = all_days if of_month.unrestricted else _by_date(of_month, shape) & all_days
    by_week = all_days if of_week.unrestricted else _by_week(of_week, shape) & all_days
    return by_date | by_week if either else by_date & by_week


def nearest_weekday(day: int, shape: int) -> int:
    """
    The Monday-to-Friday day nearest to a day of the month, inside the same month.
    """
    weekday = (shape_first_weekday(shape) + day - 1) % 7
    if weekday == _SATURDAY:
        return day - 1 if day > 1 else 3
    if weekday == _SUNDAY:
        return day + 1 if day < shape_length(shape) else day - 2
    return day


def _by_date(rule: DaysOfMonth, shape: int) -> int:
    length = shape_length(shape)
    mask = rule.days >> 1
    if rule.last_weekday:
        mask |= 1 << nearest_weekday(length, shape) - 1
    for distance in _bits(rule.before_last):
        if distance < length:
            mask |= 1 << length - distance - 1
    for day in _bits(rule.near):
        if day <= length:
            mask |= 1 << nearest_weekday(day, shape) - 1
    return mask


def _by_week(rule: DaysOfWeek, shape: int) -> int:
    length, first = shape_length(shape), shape_first_weekday(shape)
    mask = 0
    for weekday in range(7):
        offset = (weekday - first) % 7
        if rule.days >> weekday & 1:
            mask |= _EVERY_WEEK << offset
        if rule.last >> weekday & 1:
            mask |= 1 << offset + (length - 1 - offset) // 7 * 7
        for nth in _bits(rule.nth >> weekday * 5 & 0x1F):
            mask |= 1 << offset + nth * 7
    return mask


def _bits(mask: int) -> list[int]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


@attrs.define(eq=False)
class Days:
    """
    Walks the days, counted from 1970, that two day fields, months and years select.
    """

    of_month: DaysOfMonth
    of_week: DaysOfWeek
    months: int
    years: int | None
    either: bool = False
    every: bool = attrs.field(init=False)
    never: bool = attrs.field(init=False)
    _masks: list[int] = attrs.field(init=False, factory=lambda: [-1] * 28)

    def __attrs_post_init__(self) -> None:
        self.every = (
            self.of_month.unrestricted
            and self.of_week.unrestricted
            and self.months == MONTH.full
            and self.years is None
        )
        self.never = not self.every and self.following(0) < 0

    def in_month(self, index: int) -> int:
        """
        The mask of selected days in a month counted from January 1970; bit 0 is the first.
        """
        if not self.months >> index % 12 + 1 & 1:
            return 0
        if self.years is not None and not self.years >> index // 12 & 1:
            return 0
        return self._shape_mask(MONTH_SHAPES[index])

    def _shape_mask(self, shape: int) -> int:
        mask = self._masks[shape]
        if mask < 0:
            mask = month_mask(self.of_month, self.of_week, self.either, shape)
            self._masks[shape] = mask
        return mask

    def following(self, day: int) -> int:
        """
        The first selected day that is not before `day` (0 or later); -1 for none.
        """
        if day >= END_DAY:
            return -1
        if self.every:
            return day
        index = month_of(day)
        start = MONTH_STARTS[index]
        mask = self.in_month(index) >> day - start
        if mask:
            return day + (mask & -mask).bit_length() - 1
        return self._first_after(index)

    def _first_after(self, index: int) -> int:
        months, years, shape_mask = self.months >> 1, self.years, self._shape_mask
        index += 1
        while index < MONTHS:
            year, month = divmod(index, 12)
            if years is not None and not years >> year & 1:
                left = years >> year
                if not left:
                    return -1
                index, month = (year + (left & -left).bit_length() - 1) * 12, 0
            ahead = months >> month
            if not ahead:
                index += 12 - month
                continue
            index += (ahead & -ahead).bit_length() - 1
            mask = shape_mask(MONTH_SHAPES[index])
            if mask:
                return MONTH_STARTS[index] + (mask & -mask).bit_length() - 1
            index += 1
        return -1

    def preceding(self, day: int) -> int:
        """
        The last selected day that is not after `day` (before END_DAY); -1 for none.
        """
        if day < 0:
            return -1
        if self.every:
            return day
        index = month_of(day)
        start = MONTH_STARTS[index]
        mask = self.in_month(index) & (2 << day - start) - 1
        if mask:
            return start + mask.bit_length() - 1
        return self._last_before(index)

    def _last_before(self, index: int) -> int:
        months, years, shape_mask = self.months >> 1, self.years, self._shape_mask
        index -= 1
        while index >= 0:
            year, month = divmod(index, 12)
            if years is not None and not years >> year & 1:
                left = years & (1 << year) - 1
                if not left:
                    return -1
                index, month = (left.bit_length() - 1) * 12 + 11, 11
            behind = months & (2 << month) - 1
            if not behind:
                index -= month + 1
                continue
            index -= month - behind.bit_length() + 1
            mask = shape_mask(MONTH_SHAPES[index])
            if mask:
                return MONTH_STARTS[index] + mask.bit_length() - 1
            index -= 1
        return -1

    def count(self, low: int, high: int) -> int:
        """
        How many days are selected from `low` on (0 or later) and before `high` (at most END_DAY).
        """
        if self.every or low >= high:
            return max(high - low, 0)
        found = 0
        for index in range(month_of(low), month_of(high - 1) + 1):
            start = MONTH_STARTS[index]
            mask = self.in_month(index) & (1 << high - start) - 1
            found += (mask >> max(low - start, 0)).bit_count()
        return found

    def selects(self, year: int, month: int, day: int, shape: int) -> bool:
        """
        Whether a date is selected; with no year column, in any year at all.
        """
        if not self.months >> month & 1:
            return False
        if self.years is not None and not self._allows_year(year):
            return False
        return bool(self._shape_mask(shape) >> day - 1 & 1)

    def _allows_year(self, year: int) -> bool:
        years = self.years or 0
        return FIRST_YEAR <= year <= LAST_YEAR and bool(years >> year - FIRST_YEAR & 1)


@lru_cache(maxsize=4096)
def days_for(
    of_month: DaysOfMonth,
    of_week: DaysOfWeek,
    months: int,
    years: int | None,
    either: bool = False,
) -> Days:
    """
    The shared walker for these fields.
    """
    return Days(of_month, of_week, months, years, either)
