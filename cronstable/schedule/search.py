"""
The search for fires: first on wall-clock labels, then on instants through a zone's offsets.

A label is a wall-clock second counted from 1970 as if the clock had no zone; an instant is a
real second from the epoch. The rules for gaps and repeated labels are in docs/schedules.md.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from heapq import merge

from cronstable.schedule.calendar import DAY, END_LABEL
from cronstable.schedule.expression import Expression
from cronstable.schedule.tzif import Offsets

NO_LABEL = 1 << 59
"""What `next_label` answers when no label is left."""

# No offset is further from UTC than this, so a label's instants lie within it.
_WIDEST = 26 * 3600


def next_label(expression: Expression, label: int) -> int:
    """
    The first matching label that is not before `label`; NO_LABEL for none.
    """
    day, second = divmod(label, DAY) if label > 0 else (0, 0)
    days, times = expression.days, expression.times
    found = days.following(day)
    if found == day:
        time = times.following(second)
        if time >= 0:
            return day * DAY + time
        found = days.following(day + 1)
    return found * DAY + times.first if found >= 0 else NO_LABEL


def previous_label(expression: Expression, label: int) -> int:
    """
    The last matching label that is not after `label`; -1 for none.
    """
    if label < 0:
        return -1
    day, second = divmod(label if label < END_LABEL else END_LABEL - 1, DAY)
    days, times = expression.days, expression.times
    found = days.preceding(day)
    if found == day:
        time = times.preceding(second)
        if time >= 0:
            return day * DAY + time
        found = days.preceding(day - 1)
    return found * DAY + times.last if found >= 0 else -1


def labels(expression: Expression, low: int, high: int) -> Iterator[int]:
    """
    The matching labels from `low` on and before `high`, ascending.
    """
    low, high = max(low, 0), min(high, END_LABEL)
    if low >= high:
        return
    first, last = low // DAY, (high - 1) // DAY
    times = expression.times
    day = expression.days.following(first)
    while 0 <= day <= last:
        start = day * DAY
        for time in times.between(low - start, high - start):
            yield start + time
        day = expression.days.following(day + 1)


def next_instant(expression: Expression, offsets: Offsets, instant: int) -> int | None:
    """
    The first fire that is not before a whole second; None when none is left.
    """
    starts = offsets.starts
    straight = expression.hour_unrestricted
    last = len(starts) - 1
    at = bisect_right(starts, instant) - 1
    while True:
        offset, first, covered = offsets.offsets[at], offsets.firsts[at], offsets.covered[at]
        shifted = None
        if first > covered and instant < starts[at] + first - covered:
            before = offsets.offsets[at - 1]
            label = next_label(expression, max(instant + before, covered))
            if label < first:
                shifted = label - before
        low = instant + offset
        if low < covered and not straight:
            low = covered
        label = next_label(expression, low)
        if label < offsets.ends[at]:
            own = label - offset
            if label == NO_LABEL:
                return shifted
            return own if shifted is None or own < shifted else shifted
        if shifted is not None:
            return shifted
        if at == last:
            return None
        at += 1
        if not straight or offsets.firsts[at] >= offsets.covered[at]:
            at = max(at, bisect_right(starts, label - _WIDEST) - 1)
        instant = starts[at]


def previous_instant(expression: Expression, offsets: Offsets, instant: int) -> int | None:
    """
    The last fire that is not after a whole second; None when there is none.
    """
    starts = offsets.starts
    straight = expression.hour_unrestricted
    at = bisect_right(starts, instant) - 1
    while True:
        offset, first, covered = offsets.offsets[at], offsets.firsts[at], offsets.covered[at]
        own: int | None = None
        shifted: int | None = None
        label = previous_label(expression, instant + offset)
        if label >= 0 and label >= (first if straight or first > covered else covered):
            own = label - offset
        if first > covered and at:
            before = offsets.offsets[at - 1]
            moved = previous_label(expression, min(instant + before, first - 1))
            if moved >= 0 and moved >= covered:
                shifted = moved - before
        if own is not None and (shifted is None or own >= shifted):
            return own
        if shifted is not None:
            return shifted
        if not at or (label < 0 and first >= covered):
            return None
        at -= 1
        if first >= covered:
            at = min(at, bisect_right(starts, label + _WIDEST) - 1)
        instant = starts[at + 1] - 1


def instants(expression: Expression, offsets: Offsets, low: int, high: int) -> Iterator[int]:
    """
    The fires from the instant `low` on and before `high`, ascending, each once.
    """
    starts = offsets.starts
    straight = expression.hour_unrestricted
    at = bisect_right(starts, low) - 1
    while at < len(starts) and starts[at] < high:
        offset, first, covered = offsets.offsets[at], offsets.firsts[at], offsets.covered[at]
        begin = low + offset if straight else max(low + offset, covered)
        end = min(high + offset, offsets.ends[at])
        if first > covered and low < starts[at] + first - covered:
            before = offsets.offsets[at - 1]
            early = labels(expression, max(low + before, covered), min(high + before, first))
            yield from _united(
                (label - before for label in early),
                (label - offset for label in labels(expression, begin, end)),
            )
        else:
            for label in labels(expression, begin, end):
                yield label - offset
        at += 1
        if at < len(starts):
            low = starts[at]


def count(expression: Expression, offsets: Offsets, low: int, high: int) -> int:
    """
    How many fires there are from the instant `low` on and before `high`, without visiting them.
    """
    starts = offsets.starts
    straight = expression.hour_unrestricted
    found = 0
    for at in range(bisect_right(starts, low) - 1, len(starts)):
        if starts[at] >= high:
            break
        low = max(low, starts[at])
        offset, first, covered = offsets.offsets[at], offsets.firsts[at], offsets.covered[at]
        end = min(high, offsets.ends[at] - offset)
        if low < (shifted := min(end, starts[at] + first - covered)):
            # Labels of a gap may fall upon others here; there are few of either.
            found += sum(1 for _ in instants(expression, offsets, low, shifted))
            low = shifted
        begin = low + offset if straight else max(low + offset, covered)
        found += _count_labels(expression, begin, end + offset)
    return found


def _count_labels(expression: Expression, low: int, high: int) -> int:
    low, high = max(low, 0), min(high, END_LABEL)
    if low >= high:
        return 0
    days, times = expression.days, expression.times
    (first, begin), (last, end) = divmod(low, DAY), divmod(high, DAY)
    found = days.count(first, last) * times.total
    if days.following(first) == first:
        found -= times.before(begin)
    if end and days.following(last) == last:
        found += times.before(end)
    return found


def _united(left: Iterator[int], right: Iterator[int]) -> Iterator[int]:
    last = None
    for instant in merge(left, right):
        if instant != last:
            yield instant
            last = instant
