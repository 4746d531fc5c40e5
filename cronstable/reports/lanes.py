"""
Deliveries in bounded numbers, so that one dead destination holds up nobody else.

A lane is a destination.  Within all lanes together and within each only so many deliveries are
under way; the others wait in order, and free places go to the lanes in turn.

docs/reporting.md, "How hard it tries", tells users the numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Protocol

import attrs
from twisted.internet.defer import Deferred


class Delivery(Protocol):
    """One thing to deliver."""

    @property
    def lane(self) -> Hashable:
        """Return the destination."""

    @property
    def size(self) -> int:
        """Return how many characters it keeps in memory while it waits."""

    def start(self) -> Deferred[None]:
        """Deliver; the Deferred never fails."""

    def drop(self, why: str) -> None:
        """Give it up before it has begun."""


@attrs.define
class _Lane:
    running: int = 0
    waiting: deque[Delivery] = attrs.field(factory=deque)


class Lanes:
    """
    Starts deliveries.

    @param at_once: how many are under way in all.
    @param per_lane: how many are under way towards one destination.
    @param most_waiting: how many may wait.
    @param most_held: how many characters those may hold.
    """

    def __init__(
        self,
        at_once: int = 40,
        per_lane: int = 8,
        most_waiting: int = 1000,
        most_held: int = 64 * 1024 * 1024,
    ) -> None:
        self._at_once = at_once
        self._per_lane = per_lane
        self._most_waiting = most_waiting
        self._most_held = most_held
        self._lanes: dict[Hashable, _Lane] = {}
        self._held = 0
        self._starting = False
        self.running = 0
        self.waiting = 0

    def submit(self, delivery: Delivery) -> bool:
        """Start C{delivery} now or in its turn; return False when there is no room to wait."""
        lane = self._lanes.setdefault(delivery.lane, _Lane())
        if not lane.waiting and self._room(lane):
            self._start(lane, delivery)
            return True
        full = self.waiting >= self._most_waiting
        if full or (self.waiting and self._held + delivery.size > self._most_held):
            return False
        lane.waiting.append(delivery)
        self.waiting += 1
        self._held += delivery.size
        return True

    def drop_waiting(self) -> list[Delivery]:
        """Forget the deliveries that wait, and return them."""
        dropped = [delivery for lane in self._lanes.values() for delivery in lane.waiting]
        for key, lane in list(self._lanes.items()):
            lane.waiting.clear()
            if not lane.running:
                del self._lanes[key]
        self.waiting = self._held = 0
        return dropped

    def _room(self, lane: _Lane) -> bool:
        return self.running < self._at_once and lane.running < self._per_lane

    def _start(self, lane: _Lane, delivery: Delivery) -> None:
        key = delivery.lane
        self._lanes[key] = self._lanes.pop(key, lane)
        lane.running += 1
        self.running += 1
        delivery.start().addBoth(self._over, key, lane)

    def _over(self, _: object, key: Hashable, lane: _Lane) -> None:
        lane.running -= 1
        self.running -= 1
        if not lane.running and not lane.waiting:
            self._lanes.pop(key, None)
        if self._starting:
            return
        self._starting = True
        try:
            while self._start_next():
                pass
        finally:
            self._starting = False

    def _start_next(self) -> bool:
        """Start what is next in the first lane with room; a lane that starts one goes last."""
        if not self.waiting:
            return False
        for lane in self._lanes.values():
            if lane.waiting and self._room(lane):
                delivery = lane.waiting.popleft()
                self.waiting -= 1
                self._held -= delivery.size
                self._start(lane, delivery)
                return True
        return False
