"""Long work in short turns, so that nothing else of the daemon waits for a large document."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from twisted.internet.defer import Deferred

from cronstable.clock import Clock

T = TypeVar("T")
R = TypeVar("R")

SLICE = 0.004
"""Seconds of work in one reactor turn."""

BETWEEN_LOOKS = 32
"""Items after which the clock is looked at."""


def next_turn(clock: Clock, delay: float = 0.0) -> Deferred[None]:
    """Fire in the next turn of the reactor, or C{delay} seconds from now."""
    turn: Deferred[None] = Deferred()
    clock.callLater(delay, turn.callback, None)
    return turn


async def sliced(clock: Clock, items: Iterable[T], work: Callable[[T], R]) -> list[R]:
    """Return C{work} of each item, made in slices over as many turns as that takes."""
    made: list[R] = []
    until = clock.seconds() + SLICE
    for item in items:
        made.append(work(item))
        if len(made) % BETWEEN_LOOKS == 0 and clock.seconds() >= until:
            await next_turn(clock)
            until = clock.seconds() + SLICE
    return made
