"""
The times of day that a schedule selects, as tables of the next and the last allowed value.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import attrs

_NONE = 255


@lru_cache(maxsize=4096)
def _tables(mask: int, size: int) -> tuple[bytes, bytes]:
    up, down = bytearray(size + 1), bytearray(size + 1)
    up[size] = down[size] = nearest = _NONE
    for value in range(size - 1, -1, -1):
        if mask >> value & 1:
            nearest = value
        up[value] = nearest
    nearest = _NONE
    for value in range(size):
        if mask >> value & 1:
            nearest = value
        down[value] = nearest
    return bytes(up), bytes(down)


def _below(mask: int, value: int) -> int:
    return (mask & (1 << value) - 1).bit_count()


def values_of(mask: int) -> tuple[int, ...]:
    """
    The numbers of the set bits, ascending.
    """
    return tuple(value for value in range(mask.bit_length()) if mask >> value & 1)


@attrs.define(eq=False)
class Times:
    """
    Walks the seconds of a day that hours, minutes and seconds select; none of them is empty.
    """

    hours: int
    minutes: int
    seconds: int
    first: int = attrs.field(init=False)
    last: int = attrs.field(init=False)
    total: int = attrs.field(init=False)
    _up: tuple[bytes, bytes, bytes] = attrs.field(init=False)
    _down: tuple[bytes, bytes, bytes] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        tables = (_tables(self.hours, 24), _tables(self.minutes, 60), _tables(self.seconds, 60))
        self._up = (tables[0][0], tables[1][0], tables[2][0])
        self._down = (tables[0][1], tables[1][1], tables[2][1])
        self.first = self._up[0][0] * 3600 + self._up[1][0] * 60 + self._up[2][0]
        self.last = self._down[0][23] * 3600 + self._down[1][59] * 60 + self._down[2][59]
        self.total = self.hours.bit_count() * self.minutes.bit_count() * self.seconds.bit_count()

    def following(self, second: int) -> int:
        """
        The first selected second of the day that is not before `second` (0-86399); -1 for none.
        """
        hours, minutes, seconds = self._up
        hour = second // 3600
        minute = second // 60 % 60
        if hours[hour] == hour:
            if minutes[minute] == minute:
                found = seconds[second % 60]
                if found != _NONE:
                    return hour * 3600 + minute * 60 + found
            found = minutes[minute + 1]
            if found != _NONE:
                return hour * 3600 + found * 60 + seconds[0]
        found = hours[hour + 1]
        if found == _NONE:
            return -1
        return found * 3600 + minutes[0] * 60 + seconds[0]

    def preceding(self, second: int) -> int:
        """
        The last selected second of the day that is not after `second` (0-86399); -1 for none.
        """
        hours, minutes, seconds = self._down
        hour = second // 3600
        minute = second // 60 % 60
        if hours[hour] == hour:
            if minutes[minute] == minute:
                found = seconds[second % 60]
                if found != _NONE:
                    return hour * 3600 + minute * 60 + found
            found = minutes[minute - 1] if minute else _NONE
            if found != _NONE:
                return hour * 3600 + found * 60 + seconds[59]
        found = hours[hour - 1] if hour else _NONE
        if found == _NONE:
            return -1
        return found * 3600 + minutes[59] * 60 + seconds[59]

    def between(self, low: int, high: int) -> Iterator[int]:
        """
        The selected seconds of the day from `low` on and before `high`, ascending.
        """
        minutes, seconds = values_of(self.minutes), values_of(self.seconds)
        whole = low <= 0 and high >= 86400
        for hour in values_of(self.hours):
            for minute in minutes:
                start = hour * 3600 + minute * 60
                if whole or (low <= start and start + 60 <= high):
                    for second in seconds:
                        yield start + second
                elif start >= high:
                    return
                elif start + 60 > low:
                    yield from (start + at for at in seconds if low <= start + at < high)

    def before(self, second: int) -> int:
        """
        How many seconds of the day are selected before `second` (0-86399).
        """
        minute, second = divmod(second, 60)
        hour, minute = divmod(minute, 60)
        in_minute = self.seconds.bit_count()
        found = _below(self.hours, hour) * self.minutes.bit_count() * in_minute
        if self.hours >> hour & 1:
            found += _below(self.minutes, minute) * in_minute
            if self.minutes >> minute & 1:
                found += _below(self.seconds, second)
        return found

    def selects(self, second: int) -> bool:
        """
        Whether a second of the day is selected.
        """
        minute = second // 60
        return bool(
            self.seconds >> second % 60
            & self.minutes >> minute % 60
            & self.hours >> minute // 60
            & 1
        )


@lru_cache(maxsize=4096)
def times_for(hours: int, minutes: int, seconds: int) -> Times:
    """
    The shared walker for these fields.
    """
    return Times(hours, minutes, seconds)
