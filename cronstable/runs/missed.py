"""
What a job owes for slots that passed: pure.

docs/catchup.md tells an operator how pauses, deadline, cap and policy go together.
"""

from __future__ import annotations

import math
import zlib
from collections import deque
from collections.abc import Sequence
from typing import Literal

import attrs

from cronstable.config.values import JobConfig
from cronstable.schedule import Schedule

Reason = Literal["paused", "deadline", "cap"]

LATEST_START = 70.0
"""Seconds after its slot by which a run has started: it may wait for its gates and for room."""


@attrs.frozen
class Stretch:
    """A stretch of time: its slots are those after C{after} and up to C{until}."""

    after: float
    until: float


@attrs.frozen
class Passed:
    """Slots that are not run: C{count} from C{first} to C{until}, and why."""

    first: int
    until: int
    count: int
    reason: Reason


@attrs.frozen
class Owed:
    """The verdict on the slots of some stretches, oldest first."""

    slots: tuple[int, ...] = ()
    """To be run, one after another."""
    passed: tuple[Passed, ...] = ()
    """Not to be run at all."""
    merged: tuple[Stretch, int] | None = None
    """From the first to the last slot that the newest one stands for, and how many they are."""

    @property
    def cut(self) -> int:
        """How many slots are beyond the cap."""
        return sum(each.count for each in self.passed if each.reason == "cap")


def owed(
    job: JobConfig,
    schedule: Schedule,
    stretches: Sequence[Stretch],
    now: float,
    pauses: Sequence[Stretch] = (),
) -> Owed:
    """
    Return what C{job} owes for ascending, disjoint C{stretches} of its C{schedule}.

    Slots within a pause first, then those older than the deadline, then policy and cap: run-once
    runs the newest, which stands for the others; run-all the newest C{catchupLimit}.
    """
    most = 1 if job.on_missed == "run-once" else job.catchup_limit
    passed: list[Passed] = []
    left = _without(stretches, pauses, schedule, passed)
    if job.starting_deadline is not None:
        too_old = Stretch(-math.inf, math.ceil(now - job.starting_deadline) - 1)
        left = _cut_out(left, too_old, "deadline", schedule, passed)
    kept: deque[int] = deque()
    rest: list[tuple[int, int, int]] = []
    for stretch in left:
        rest += _keep_newest(schedule, stretch, most, kept)
    rest += _shorten(kept, most)
    if job.on_missed == "run-once":
        return Owed(tuple(kept), tuple(passed), _in_one(rest))
    passed += [Passed(first, until, count, "cap") for first, until, count in rest]
    return Owed(tuple(kept), tuple(passed))


def before(schedule: Schedule, began: float) -> float:
    """Return after which instant slots count, that of a run begun at C{began} among them."""
    slot = schedule.previous(math.floor(began) + 1)
    return began if slot is None or began - slot > LATEST_START else slot - 1.0


def jitter(job: JobConfig) -> float:
    """Return the seconds by which this job's backfills start later, the same on every node."""
    spread = job.catchup_jitter * 1000
    return (
        zlib.crc32(job.name.encode("utf-8", "surrogateescape")) % spread / 1000 if spread else 0.0
    )


def _without(
    stretches: Sequence[Stretch],
    pauses: Sequence[Stretch],
    schedule: Schedule,
    passed: list[Passed],
) -> list[Stretch]:
    left = list(stretches)
    for pause in pauses:
        # A slot at the first second of a pause is in it, one at its last is not.
        inside = Stretch(math.ceil(pause.after) - 1, math.ceil(pause.until) - 1)
        left = _cut_out(left, inside, "paused", schedule, passed)
    return left


def _cut_out(
    stretches: Sequence[Stretch],
    part: Stretch,
    reason: Reason,
    schedule: Schedule,
    passed: list[Passed],
) -> list[Stretch]:
    """Return what is left of C{stretches} outside C{part}; enter the slots inside."""
    left = []
    for each in stretches:
        inside = Stretch(max(each.after, part.after), min(each.until, part.until))
        if inside.after >= inside.until:
            left.append(each)
            continue
        if schedule.count(inside.after, inside.until):
            passed.append(Passed(*_range(schedule, inside), reason))
        outside = Stretch(each.after, inside.after), Stretch(inside.until, each.until)
        left += [rest for rest in outside if rest.after < rest.until]
    return left


def _range(schedule: Schedule, stretch: Stretch) -> tuple[int, int, int]:
    first, last = schedule.next(stretch.after), schedule.previous(math.floor(stretch.until) + 1)
    assert first is not None and last is not None
    return first, last, schedule.count(first - 1, last)


def _keep_newest(
    schedule: Schedule, stretch: Stretch, most: int, kept: deque[int]
) -> list[tuple[int, int, int]]:
    """Keep the newest slots of a stretch, behind what is kept; return those before as a range."""
    newest: deque[int] = deque()
    slot = schedule.previous(math.floor(stretch.until) + 1)
    while slot is not None and slot > stretch.after and len(newest) < most:
        newest.appendleft(slot)
        slot = schedule.previous(slot)
    ranges = []
    if newest and slot is not None and slot > stretch.after:
        ranges = [*_shorten(kept, 0), _range(schedule, Stretch(stretch.after, slot))]
    kept.extend(newest)
    return ranges


def _shorten(kept: deque[int], most: int) -> list[tuple[int, int, int]]:
    cut = [kept.popleft() for _ in range(len(kept) - most)]
    return [(cut[0], cut[-1], len(cut))] if cut else []


def _in_one(ranges: Sequence[tuple[int, int, int]]) -> tuple[Stretch, int] | None:
    if not ranges:
        return None
    count = sum(each[2] for each in ranges)
    return Stretch(min(each[0] for each in ranges), max(each[1] for each in ranges)), count
