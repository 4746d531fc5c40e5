"""What is costly to make: made once for everybody who asks at the same time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from cronstable.clock import Clock

T = TypeVar("T")

Make = Callable[[], Coroutine[Any, Any, T]]

SHARED = 1.0
"""Seconds for which a document is good while nothing that it shows has changed here."""


class Once(Generic[T]):
    """
    Something that C{make} makes in as many turns as it needs, once it is wanted.

    A failure is told to those who wait; whoever asks after that has it tried again.
    """

    def __init__(self, make: Make[T]) -> None:
        self._make = make
        self._waiting: list[Deferred[T]] = []
        self._begun = False
        self._made: list[T] = []

    def get(self) -> Deferred[T]:
        """Fire with it; who goes away meanwhile does not stop the others."""
        waiter = self.wait()
        if not self._begun:
            self.begin()
        return waiter

    def wait(self) -> Deferred[T]:
        """Fire with it, once somebody has begun to make it."""
        waiter: Deferred[T] = Deferred()
        if self._made:
            waiter.callback(self._made[0])
        else:
            self._waiting.append(waiter)
        return waiter

    def begin(self) -> Deferred[None]:
        """Make it; fire when it is made, or could not be."""
        self._begun = True
        return Deferred.fromCoroutine(self._make()).addCallbacks(self._done, self._failed)

    def _done(self, made: T) -> None:
        self._made.append(made)
        for waiter in self._taken():
            waiter.callback(made)

    def _failed(self, failure: Failure) -> None:
        self._begun = False
        for waiter in self._taken():
            waiter.errback(failure)

    def _taken(self) -> list[Deferred[T]]:
        taken, self._waiting = self._waiting, []
        return taken


class Shared(Generic[T]):
    """
    One document, made anew when it is not good any more; one at a time is being made.

    C{state} returns something that differs once anything has changed that the document must not
    be late with.  What is handed out is no older than a second, and was begun in the state that
    was in force when it was asked for, or in a later one.
    """

    def __init__(self, clock: Clock, state: Callable[[], object], make: Make[T]) -> None:
        self._clock = clock
        self._state = state
        self._make = make
        self._good: tuple[object, Once[T]] | None = None
        self._busy = False
        self._next: Once[T] | None = None

    def get(self) -> Deferred[T]:
        """Fire with the document."""
        if self._good is not None and self._good[0] == self._state():
            return self._good[1].get()
        if self._next is None:
            self._next = Once(self._make)
        waiter = self._next.wait()
        if not self._busy:
            self._begin_next()
        return waiter

    def _begin_next(self) -> None:
        document, self._next = self._next, None
        if document is not None:
            self._good = good = (self._state(), document)
            self._busy = True
            document.begin().addCallback(lambda _: self._over(good))

    def _over(self, good: tuple[object, Once[T]]) -> None:
        self._busy = False
        self._clock.callLater(SHARED, self._drop, good)
        self._begin_next()

    def _drop(self, good: tuple[object, Once[T]]) -> None:
        if self._good is good:
            self._good = None
