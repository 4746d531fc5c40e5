"""
What can be wrong with a schedule or its time zone.
"""

from __future__ import annotations


def short(text: str, longest: int = 60) -> str:
    """
    The text, cut with an ellipsis where it is too long for a message.
    """
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


class ScheduleError(ValueError):
    """
    A schedule that cannot be used; the message names the field, the item and what is allowed.
    """


class UnknownZone(ScheduleError):
    """
    A time zone name that leads to no usable zone data.
    """

    def __init__(self, name: str, hint: str = "") -> None:
        super().__init__(f"unknown timezone: {short(name, 80)}{hint}")
        self.name = name

    def __reduce__(self) -> tuple[object, ...]:
        return (_unknown_zone, (self.name, str(self)))


class NoZoneData(ScheduleError):
    """
    The host has no time zone database at all, so that only UTC and local time can be used.
    """


def _unknown_zone(name: str, message: str) -> UnknownZone:
    error = UnknownZone(name)
    error.args = (message,)
    return error
