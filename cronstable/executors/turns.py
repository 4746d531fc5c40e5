"""Work done at once while there is little of it, and in slices when there is much."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IDelayedCall

from cronstable.clock import Clock

log = logging.getLogger("cronstable")


class Turns:
    """
    Calls in order, C{budget} seconds of them in one reactor turn; others get theirs in between.
    """

    def __init__(self, clock: Clock, budget: float = 0.005) -> None:
        self._clock = clock
        self.budget = budget
        self._since = self._until = float("-inf")
        self._waiting: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._wake: IDelayedCall | None = None

    def __len__(self) -> int:
        """Return how many calls wait for their turn."""
        return len(self._waiting)

    def do(self, work: Callable[..., object], *arguments: Any) -> bool:
        """Make the call now, or after those that wait; return whether it was made now."""
        if not self._waiting:
            now = self._clock.seconds()
            if now - self._until > self.budget:
                self._since = now
            if now - self._since < self.budget:
                work(*arguments)
                self._until = self._clock.seconds()
                return True
        self._waiting.append((work, arguments))
        self._arm()
        return False

    def stop(self) -> None:
        """Drop what waits."""
        self._waiting.clear()
        if self._wake is not None and self._wake.active():
            self._wake.cancel()
        self._wake = None

    def _arm(self) -> None:
        if self._wake is None:
            self._wake = self._clock.callLater(0, self._drain)

    def _drain(self) -> None:
        self._wake = None
        self._since = self._clock.seconds()
        end = self._since + self.budget
        while self._waiting:
            work, arguments = self._waiting.popleft()
            try:
                work(*arguments)
            except Exception:
                log.exception("postponed work failed")
            self._until = self._clock.seconds()
            if self._until >= end:
                break
        if self._waiting:
            self._arm()
