"""
Questions that people and programs ask of the store, kept from taking it away from the jobs.

Pages are asked for as often as anybody likes.  Only a few of their questions are in the store at
the same time, and one that the store has not answered in time is not asked again before it has.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from twisted.internet import defer

from cronstable.clock import Clock
from cronstable.state.service import READ_BOUND, StoreService
from cronstable.state.store import Store
from cronstable.state.workers import StoreSlow

T = TypeVar("T")

ABREAST = 3
"""Questions in the store at the same time, of its sixteen workers."""


class Looks:
    """Asks on behalf of those who look at the store from outside."""

    def __init__(self, reactor: Any, clock: Clock, store: StoreService) -> None:
        self._reactor = reactor
        self._clock = clock
        self._store = store
        self._places = defer.DeferredSemaphore(ABREAST)
        self._overdue: set[Hashable] = set()

    async def ask(self, about: Hashable, question: Callable[[Store], T]) -> T:
        """
        Return what C{question} finds out; C{about} is equal for equal questions.

        Raises what the question raises, L{StoreSlow} if it has no turn or no answer in time,
        and OSError if there is no store to ask.
        """
        if about in self._overdue:
            raise StoreSlow("an earlier question is still without an answer")
        turn = self._places.acquire()
        timer = self._clock.callLater(READ_BOUND, turn.cancel)
        try:
            await turn
        except defer.CancelledError:
            if timer.active():
                raise  # Whoever asked has gone.
            raise StoreSlow(f"no turn within {READ_BOUND:g} s") from None
        finally:
            if timer.active():
                timer.cancel()
        return await self._in_turn(about, question)

    async def _in_turn(self, about: Hashable, question: Callable[[Store], T]) -> T:
        look = _Look(question, lambda: self._reactor.callFromThread(self._over, about))
        try:
            # It changes nothing, and must run to tell that its place is free again.
            return await self._store.ask(look, late=True)
        except StoreSlow:
            if not look.ended:
                self._overdue.add(about)
            raise
        except OSError:
            if not look.begun:
                # It never will be: the store refused it before it got to a worker.
                self._over(about)
            raise

    def _over(self, about: Hashable) -> None:
        self._overdue.discard(about)
        self._places.release()


class _Look:
    """A question that knows how far it got, whoever still waits for its answer."""

    def __init__(self, question: Callable[[Store], Any], over: Callable[[], object]) -> None:
        self._question = question
        self._tell = over
        self.begun = False
        self.ended = False

    def __call__(self, store: Store) -> Any:
        self.begun = True
        try:
            return self._question(store)
        finally:
            self.ended = True
            self._tell()
