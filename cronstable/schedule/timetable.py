"""
A schedule in its time zone: when it fires, and what counts as the same schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from math import ceil, floor

import attrs

from cronstable.schedule import search, zones
from cronstable.schedule.calendar import DAY, END_LABEL, shape_of
from cronstable.schedule.expression import Expression, read, split

_SLACK = 2 * DAY


@attrs.frozen(eq=False, repr=False)
class Schedule:
    """
    When a job is due. Made by `parse`; equal to any schedule with the same sets in the same zone.

    Instants are seconds from the epoch; fires are whole seconds. A schedule without a zone
    works on wall-clock labels, written as if they were UTC.
    """

    text: str
    resolved: str
    seconds_level: bool
    expression: Expression
    frame: zones.AnyZone

    @property
    def hashed(self) -> bool:
        """
        Whether the text holds hashed slots.
        """
        return self.text != self.resolved

    @property
    def zone(self) -> str | None:
        """
        The name of the time zone, `local` for the host's clock, None for bare labels.
        """
        return self.frame.name

    @property
    def never(self) -> bool:
        """
        Whether no date that the fields allow exists, so that there is no fire at any time.
        """
        return self.expression.days.never

    @property
    def hour_unrestricted(self) -> bool:
        """
        Whether every hour is selected, so that a repeated hour is served in both its legs.
        """
        return self.expression.hour_unrestricted

    def next(self, after: float) -> int | None:
        """
        The first fire strictly after an instant; None when none is left.
        """
        if self.expression.days.never:
            return None
        return search.next_instant(self.expression, self.frame.offsets, floor(after) + 1)

    def previous(self, before: float) -> int | None:
        """
        The last fire strictly before an instant; None when there is none since 1970.
        """
        if self.expression.days.never:
            return None
        return search.previous_instant(self.expression, self.frame.offsets, ceil(before) - 1)

    def occurrences(self, after: float, until: float | None = None) -> Iterator[int]:
        """
        The fires strictly after one instant and not after another, ascending.
        """
        if self.expression.days.never:
            return iter(())
        end = END_LABEL + _SLACK if until is None else floor(until) + 1
        return search.instants(self.expression, self.frame.offsets, floor(after) + 1, end)

    def count(self, after: float, until: float) -> int:
        """
        How many fires there are strictly after one instant and not after another.
        """
        if self.expression.days.never:
            return 0
        return search.count(self.expression, self.frame.offsets, floor(after) + 1, floor(until) + 1)

    def test(self, label: datetime) -> bool:
        """
        Whether the fields match this wall-clock label; its zone and microseconds are ignored.
        """
        second = label.hour * 3600 + label.minute * 60 + label.second
        if not self.expression.times.selects(second):
            return False
        shape = shape_of(label.year, label.month)
        return self.expression.days.selects(label.year, label.month, label.day, shape)

    def matches(self, instant: float) -> bool:
        """
        Whether the slot that holds an instant is a fire: its second for a schedule with a
        seconds column, else its whole wall-clock minute.
        """
        slot = floor(instant)
        if not self.seconds_level:
            slot -= (slot + self.frame.offsets.at(slot)) % 60
        return self.next(slot - 1) == slot

    def offset(self, instant: float) -> int:
        """
        The zone's offset from UTC at an instant, in seconds.
        """
        return self.frame.offsets.at(instant)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schedule):
            return NotImplemented
        return self.frame.name == other.frame.name and self.expression == other.expression

    def __hash__(self) -> int:
        return hash((self.expression, self.frame.name))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Schedule {self.resolved!r} {self.frame.name or 'naive'}>"

    def __reduce__(self) -> tuple[Callable[..., Schedule], tuple[object, ...]]:
        local = self.frame is zones.LOCAL
        zone = None if local else self.frame.name
        return _restored, (self.text, self.resolved, self.expression.either, zone, local)


def parse(
    text: str, *, key: str | None = None, zone: str | None = "UTC", local: bool = False
) -> Schedule:
    """
    Read a schedule for an IANA zone, for the host's local clock, or (neither) for bare labels.

    `key` is what hashed slots depend on. Raises ScheduleError, and UnknownZone for the zone.
    """
    reading = read(text, key)
    frame = _frame(zone, local)
    return Schedule(reading.text, reading.resolved, reading.columns == 7, reading.expression, frame)


def vixie_reading(schedule: Schedule) -> Schedule:
    """
    The schedule as classic cron would take it: the same one wherever the meaning is the same.

    Classic cron fires when either day field matches, unless one of them begins with a star.
    """
    expression = schedule.expression
    columns = split(schedule.resolved)
    day_of_month, day_of_week = (columns[3], columns[5]) if len(columns) == 7 else columns[2:5:2]
    if day_of_month[:1] in "*?" or day_of_week[:1] in "*?":
        return schedule
    if expression.of_month.unrestricted and expression.of_week.unrestricted:
        return schedule
    return attrs.evolve(schedule, expression=attrs.evolve(expression, either=True))


def _frame(zone: str | None, local: bool) -> zones.AnyZone:
    if local:
        return zones.LOCAL
    return zones.NAIVE if zone is None else zones.zone_named(zone)


def _restored(text: str, resolved: str, either: bool, zone: str | None, local: bool) -> Schedule:
    schedule = parse(resolved, zone=zone, local=local)
    if either:
        schedule = vixie_reading(schedule)
    return attrs.evolve(schedule, text=text)
