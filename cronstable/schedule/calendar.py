"""
The proleptic calendar that schedules are matched against, as tables of months.

A month has one of 28 shapes: its length (28 to 31 days) and the weekday of its first day.
Days are counted from 1970-01-01, months from January 1970; both end with the year 2099.
"""

from __future__ import annotations

from bisect import bisect_right
from calendar import monthrange

FIRST_YEAR = 1970
LAST_YEAR = 2099
MONTHS = (LAST_YEAR - FIRST_YEAR + 1) * 12
DAY = 86400


def shape_of(year: int, month: int) -> int:
    """
    The shape of a month of any year.
    """
    monday_first, length = monthrange(year, month)
    return (length - 28) * 7 + (monday_first + 1) % 7


def shape_length(shape: int) -> int:
    """
    How many days a month of this shape has.
    """
    return 28 + shape // 7


def _tables() -> tuple[tuple[int, ...], bytes]:
    starts, shapes, day = [], bytearray(), 0
    for index in range(MONTHS):
        shape = shape_of(FIRST_YEAR + index // 12, index % 12 + 1)
        starts.append(day)
        shapes.append(shape)
        day += shape_length(shape)
    starts.append(day)
    return tuple(starts), bytes(shapes)


MONTH_STARTS, MONTH_SHAPES = _tables()
"""The first day of each month (and the day after the last), and each month's shape."""

END_DAY = MONTH_STARTS[-1]
"""The day after the last one that a schedule can name."""

END_LABEL = END_DAY * DAY
"""The first wall-clock second, counted from 1970, that is past every schedule."""


def month_of(day: int) -> int:
    """
    The month, counted from January 1970, that holds a day from 0 to END_DAY - 1.
    """
    return bisect_right(MONTH_STARTS, day) - 1


def shape_first_weekday(shape: int) -> int:
    """
    The weekday of the first of the month; Sunday is 0.
    """
    return shape % 7
