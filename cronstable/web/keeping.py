"""What is costly to find out, made once for everybody and good for a while after it was made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from twisted.internet.defer import Deferred

from cronstable.clock import Clock
from cronstable.web.sharing import Make, Once

T = TypeVar("T")


class Kept(Generic[T]):
    """
    Something that C{make} makes, while it is in force.

    C{mark} is what it depends on: it is made anew for another mark, and when C{good_for}, given
    the seconds that making it took, says that its time is over.
    """

    def __init__(self, clock: Clock, make: Make[T], good_for: Callable[[float], float]) -> None:
        self._clock = clock
        self._make = make
        self._good_for = good_for
        self._mark: object = None
        self._made: _Timed[T] | None = None

    def get(self, mark: object) -> Deferred[T]:
        """Fire with it."""
        made = self._made
        if made is None or self._mark is not mark or self._clock.seconds() >= made.good_until:
            self._mark = mark
            made = self._made = _Timed(self._clock, self._make, self._good_for)
        return made.once.get()


class _Timed(Generic[T]):
    """One making; C{good_until} is known when it is over."""

    def __init__(self, clock: Clock, make: Make[T], good_for: Callable[[float], float]) -> None:
        self.good_until = float("inf")
        self.once = Once(self._timed)
        self._clock = clock
        self._make = make
        self._good_for = good_for

    async def _timed(self) -> T:
        began = self._clock.seconds()
        try:
            return await self._make()
        finally:
            now = self._clock.seconds()
            self.good_until = now + self._good_for(now - began)
