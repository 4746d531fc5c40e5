"""
Numbers, days and months in words, for every text that explains a schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def listed(parts: Sequence[str]) -> str:
    """
    The parts as `a`, `a and b` or `a, b and c`.
    """
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def runs(values: Iterable[int], name: Callable[[int], str], between: str = "-") -> list[str]:
    """
    Ascending values by name, with three or more in a row written as the first and the last.
    """
    found: list[list[int]] = []
    for value in values:
        if found and value == found[-1][-1] + 1:
            found[-1].append(value)
        else:
            found.append([value])
    parts = []
    for run in found:
        if len(run) > 2:
            parts.append(f"{name(run[0])}{between}{name(run[-1])}")
        else:
            parts.extend(map(name, run))
    return parts


def ordinal(number: int) -> str:
    """
    The number as `1st`, `2nd`, `3rd`, `4th` and so on.
    """
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def two_digits(number: int) -> str:
    """
    The number with a leading zero below ten.
    """
    return f"{number:02d}"


def month_name(number: int) -> str:
    """
    The name of month 1 to 12.
    """
    return MONTHS[number - 1]


def weekday_name(number: int) -> str:
    """
    The name of weekday 0 to 6; Sunday is 0.
    """
    return WEEKDAYS[number]


def plural(count: int, noun: str) -> str:
    """
    The count and the noun, with an s unless the count is one.
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
