"""
What jobs owe: windows of slots that wait to be run, and stretches that wait for another start.

docs/catchup.md tells an operator how they come about.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import attrs
from twisted.internet.defer import Deferred

from cronstable.runs import checkpoints
from cronstable.runs.missed import Stretch
from cronstable.runs.slotbook import SlotTicket


@attrs.define(eq=False)
class Window:
    """Slots that are owed: where they lie, and the tickets of those that are still to be run."""

    stretches: list[Stretch]
    tickets: deque[SlotTicket]

    def through(self, slot: int) -> None:
        """Owe nothing up to C{slot} any more."""
        self.stretches = [
            Stretch(max(each.after, slot), each.until)
            for each in self.stretches
            if each.until > slot
        ]


@attrs.define(eq=False)
class Debt:
    """All that one job owes."""

    windows: deque[Window] = attrs.field(factory=deque)
    left: list[Stretch] = attrs.field(factory=list)
    """What was stopped part-way; the next start goes on with it."""
    ahead: list[Stretch] = attrs.field(factory=list)
    """What an earlier process has noted beyond the clock: one of the two clocks is wrong."""
    unseen: Stretch | None = None
    """What a sleep has skipped and the scheduler has not noticed yet."""
    noted: Deferred[bool] | None = None
    """Whether the store has been told of all this."""
    served: bool = False

    def stretches(self) -> list[Stretch]:
        """Return every stretch that is owed."""
        waiting = (each for window in self.windows for each in window.stretches)
        unseen = () if self.unseen is None else (self.unseen,)
        return checkpoints.joined((*self.left, *self.ahead, *unseen, *waiting))

    @property
    def kept(self) -> bool:
        """Whether something is left to another start."""
        return bool(self.left or self.ahead or self.unseen)

    def forgive(self) -> None:
        """Leave nothing to another start."""
        self.left.clear()
        self.ahead.clear()

    def jumped(self, over: Stretch) -> list[Stretch]:
        """Return what was ahead of the clock and has passed in its jump C{over} some time."""
        passed = [Stretch(max(e.after, over.after), min(e.until, over.until)) for e in self.ahead]
        self.ahead = [Stretch(max(e.after, over.until), e.until) for e in self.ahead]
        self.ahead = checkpoints.joined(self.ahead)
        return checkpoints.joined(passed)

    def lived_through(self, until: float) -> bool:
        """Slots have been fired as usual up to C{until}; return whether that ends a stretch."""
        before = len(self.ahead)
        rest = (Stretch(max(each.after, until), each.until) for each in self.ahead)
        self.ahead = checkpoints.joined(rest)
        return len(self.ahead) < before


def outside(stretches: Sequence[Stretch], whole: Stretch) -> list[Stretch]:
    """Return what of C{whole} is in none of C{stretches}, which are ascending and disjoint."""
    ends = [whole.after, *(each.until for each in stretches)]
    starts = [*(each.after for each in stretches), whole.until]
    return [Stretch(a, b) for a, b in zip(ends, starts, strict=True) if a < b]
