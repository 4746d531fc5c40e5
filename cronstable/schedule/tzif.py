"""
Time zone rules: a compiled zone file (RFC 9636) or a POSIX TZ text, as offsets over time.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from calendar import monthrange
from datetime import date

import attrs

from cronstable.schedule.calendar import DAY, FIRST_YEAR, LAST_YEAR

LONG_AGO = -(1 << 60)
FAR_AHEAD = 1 << 60
_EPOCH = date(1970, 1, 1).toordinal()


class BadZoneData(ValueError):
    """
    Bytes or a text that hold no usable zone rules.
    """


@attrs.frozen
class Offsets:
    """
    The offset from UTC, in seconds, from each of a list of instants on.

    Segment i lasts from `starts[i]` to `starts[i + 1]`; its wall clock runs from `firsts[i]`
    to `ends[i]` (exclusive). `covered[i]` is where the wall clock had got to before it: labels
    between `covered[i]` and `firsts[i]` are in a gap, labels the other way round are repeated.
    """

    starts: tuple[int, ...]
    offsets: tuple[int, ...]
    firsts: tuple[int, ...]
    ends: tuple[int, ...]
    covered: tuple[int, ...]

    def at(self, instant: float) -> int:
        """
        The offset in force at an instant.
        """
        return self.offsets[bisect_right(self.starts, instant) - 1]


def offsets_from(first: int, changes: list[tuple[int, int]]) -> Offsets:
    """
    The offsets that begin with `first` and change at (instant, offset) pairs in ascending order.
    """
    starts, offsets = [LONG_AGO], [first]
    for instant, offset in changes:
        if instant == starts[-1]:
            offsets[-1] = offset
        else:
            starts.append(instant)
            offsets.append(offset)
    kept = [at for at in range(len(starts)) if not at or offsets[at] != offsets[at - 1]]
    starts, offsets = [starts[at] for at in kept], [offsets[at] for at in kept]
    firsts = [start + offset for start, offset in zip(starts, offsets, strict=True)]
    ends = [start + offset for start, offset in zip([*starts[1:], FAR_AHEAD], offsets, strict=True)]
    covered = [LONG_AGO + first]
    for end in ends[:-1]:
        covered.append(max(covered[-1], end))
    return Offsets(tuple(starts), tuple(offsets), tuple(firsts), tuple(ends), tuple(covered))


def fixed(offset: int) -> Offsets:
    """
    One offset for ever.
    """
    return offsets_from(offset, [])


def parse_zone_file(data: bytes) -> Offsets:
    """
    The offsets of a compiled zone file until the last year a schedule can name.

    Raises BadZoneData for anything else, and for files that count leap seconds.
    """
    try:
        return _parse_zone_file(data)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise BadZoneData("the zone data is cut short or damaged") from error


def _parse_zone_file(data: bytes) -> Offsets:
    counts, body = _header(data, 0)
    if data[4:5] < b"2":
        first, changes, _ = _block(data, body, counts, 4)
        return offsets_from(first, changes)
    counts, body = _header(data, body + _block_size(counts, 4))
    first, changes, end = _block(data, body, counts, 8)
    footer = data[end:]
    if footer[:1] != b"\n" or b"\n" not in footer[1:]:
        raise BadZoneData("the zone data has no closing rule")
    rule = footer[1 : footer.index(b"\n", 1)].decode("ascii")
    if rule:
        changes = _continued(changes, parse_rule(rule))
        if not changes or changes[0][0] > LONG_AGO:
            return offsets_from(first, changes)
        return offsets_from(changes[0][1], changes[1:])
    return offsets_from(first, changes)


_Counts = tuple[int, int, int, int, int, int]


def _header(data: bytes, at: int) -> tuple[_Counts, int]:
    if data[at : at + 4] != b"TZif":
        raise BadZoneData("it is not a compiled time zone file")
    isut, isstd, leap, times, types, chars = struct.unpack_from(">6l", data, at + 20)
    if min(isut, isstd, leap, times, chars) < 0 or not 1 <= types <= 256 or times > 100_000:
        raise BadZoneData("the zone data is damaged")
    if leap:
        raise BadZoneData("it counts leap seconds, which the system clock does not")
    return (isut, isstd, leap, times, types, chars), at + 44


def _block_size(counts: _Counts, width: int) -> int:
    isut, isstd, leap, times, types, chars = counts
    return times * (width + 1) + types * 6 + chars + leap * (width + 4) + isstd + isut


def _block(
    data: bytes, at: int, counts: _Counts, width: int
) -> tuple[int, list[tuple[int, int]], int]:
    times, types = counts[3], counts[4]
    instants = struct.unpack_from(f">{times}{'l' if width == 4 else 'q'}", data, at)
    kinds = struct.unpack_from(f">{times}B", data, at + times * width)
    types_at = at + times * (width + 1)
    offsets = [struct.unpack_from(">l", data, types_at + 6 * kind)[0] for kind in range(types)]
    if any(abs(offset) >= DAY for offset in offsets):
        raise BadZoneData("the zone data holds an offset of a day or more")
    if list(instants) != sorted(instants):
        raise BadZoneData("the zone data is not in order of time")
    changes = [(instant, offsets[kind]) for instant, kind in zip(instants, kinds, strict=True)]
    return offsets[0], changes, at + _block_size(counts, width)


def _continued(changes: list[tuple[int, int]], rule: Rule) -> list[tuple[int, int]]:
    """
    The changes of a file, carried on by its closing rule; from the start when it has none.
    """
    if not changes:
        return [(LONG_AGO, rule.standard), *rule.changes(FIRST_YEAR - 1)]
    last = changes[-1][0]
    year = FIRST_YEAR - 1 + max(0, last // (366 * DAY))
    return [*changes, *(change for change in rule.changes(year) if change[0] > last)]


@attrs.frozen
class RuleDate:
    """
    The yearly moment of a change: a day rule and a wall-clock second of that day.

    `kind` is M for the given week and weekday of a month (week 5 is the last), J for a day from
    1 to 365 that leaves out 29 February, and empty for a day from 0 to 365 that counts it.
    """

    kind: str
    month: int
    week: int
    day: int
    second: int

    def in_year(self, year: int) -> int:
        """
        The moment in seconds from 1970 on the wall clock that is about to change.
        """
        january = _day_number(year, 1, 1)
        if self.kind == "M":
            day = self._weekday_of_month(year)
        elif self.kind == "J":
            leap = _day_number(year, 3, 1) - january == 60
            day = january + self.day - 1 + (leap and self.day >= 60)
        else:
            day = january + self.day
        return day * DAY + self.second

    def _weekday_of_month(self, year: int) -> int:
        start = _day_number(year, self.month, 1)
        length = monthrange(year, self.month)[1]
        # Day 0, 1970-01-01, was a Thursday.
        offset = (self.day - (start + 4)) % 7 + (self.week - 1) * 7
        return start + (offset if offset < length else offset - 7)


def _day_number(year: int, month: int, day: int) -> int:
    return date(year, month, day).toordinal() - _EPOCH


@attrs.frozen
class Rule:
    """
    A POSIX TZ rule: the standard offset and, where there is summer time, its offset and dates.
    """

    standard: int
    summer: int | None = None
    begins: RuleDate | None = None
    finishes: RuleDate | None = None

    def changes(self, first_year: int) -> list[tuple[int, int]]:
        """
        The (instant, offset) changes from a year on until a year after the calendar's end.
        """
        if self.summer is None or self.begins is None or self.finishes is None:
            return []
        found = []
        for year in range(first_year, LAST_YEAR + 2):
            found.append((self.begins.in_year(year) - self.standard, 1, self.summer))
            found.append((self.finishes.in_year(year) - self.summer, 0, self.standard))
        # Summer time all year round ends and begins at one instant: the beginning counts.
        return [(instant, offset) for instant, _, offset in sorted(found)]


_NAME = r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)"
_TIME = r"([+-]?[0-9]{1,3}(?::[0-9]{2}(?::[0-9]{2})?)?)"
_RULE = re.compile(f"{_NAME}{_TIME}(?:{_NAME}{_TIME}?(?:,([^,]+),([^,]+))?)?")
_DATE = re.compile(rf"(?:M([0-9]{{1,2}})\.([1-5])\.([0-6])|(J?)([0-9]{{1,3}}))(?:/{_TIME})?")


def parse_rule(text: str) -> Rule:
    """
    Read a POSIX TZ text such as `EST5EDT,M3.2.0,M11.1.0`; raises BadZoneData.
    """
    form = _RULE.fullmatch(text)
    if form is None:
        raise BadZoneData(f"not a time zone rule: {text!r}")
    standard = -_offset(form[1])
    if not re.match(f"{_NAME}{_TIME}{_NAME}", text):
        return Rule(standard)
    summer = standard + 3600 if form[2] is None else -_offset(form[2])
    begins, finishes = (form[3], form[4]) if form[3] else ("M3.2.0", "M11.1.0")
    return Rule(standard, summer, _parse_date(begins), _parse_date(finishes))


def _parse_date(text: str) -> RuleDate:
    form = _DATE.fullmatch(text)
    if form is None:
        raise BadZoneData(f"not a date of a time zone rule: {text!r}")
    second = 7200 if form[6] is None else _seconds(form[6])
    if form[1] is not None:
        if not 1 <= int(form[1]) <= 12:
            raise BadZoneData(f"not a month of a time zone rule: {text!r}")
        return RuleDate("M", int(form[1]), int(form[2]), int(form[3]), second)
    day = int(form[5])
    if day > 365 or (form[4] and not day):
        raise BadZoneData(f"not a day of a time zone rule: {text!r}")
    return RuleDate(form[4], 0, 0, day, second)


def _offset(text: str) -> int:
    offset = _seconds(text)
    if abs(offset) >= DAY:
        raise BadZoneData(f"an offset of a day or more: {text!r}")
    return offset


def _seconds(text: str) -> int:
    hours, _, rest = text.lstrip("+-").partition(":")
    minutes, _, seconds = rest.partition(":")
    total = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    return -total if text[0] == "-" else total
