"""Questions of those who only look."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock
from cronstable.config.sections_values import StateConfig
from cronstable.state.looks import ABREAST, Looks
from cronstable.state.service import READ_BOUND, StoreOff, StoreService
from cronstable.state.store import Store
from cronstable.state.workers import StoreHung, StoreSlow, Workers
from tests.state.support import NOW
from tests.web.served import FakeReactor
from tests.web.stored import HandWorkers


class AskingCase(SynchronousTestCase):
    """A store whose workers are in the test's hand."""

    def setUp(self) -> None:
        self.clock = ManualClock(NOW)
        self.reactor = FakeReactor(self.clock)
        self.pools: list[HandWorkers] = []

        def workers(reactor: Any, clock: Any, name: str, capacity: int) -> Workers:
            self.pools.append(HandWorkers(reactor, clock, name, capacity))
            return self.pools[-1]

        self.service = StoreService(self.reactor, self.clock, make_workers=workers)
        started = self.service.reconcile(StateConfig(self.mktemp(), fsync="never"))
        self.successResultOf(Deferred.fromCoroutine(started))
        self.looks = Looks(self.reactor, self.clock, self.service)

    def ask(self, about: object, answer: object = None) -> Deferred[Any]:
        """Ask a question that is answered with C{answer}."""
        return Deferred.fromCoroutine(self.looks.ask(about, lambda store: answer))

    def hang(self) -> HandWorkers:
        """Let the store hang."""
        self.pools[0].is_hung = True
        return self.pools[0]


class LooksTests(AskingCase):
    """Few at a time, and none twice that hangs."""

    def test_answer(self) -> None:
        """A question is answered with what it found out, or fails as it failed."""
        self.assertEqual(self.successResultOf(self.ask("a", 7)), 7)

        def fail(store: Store) -> None:
            raise KeyError("x")

        self.failureResultOf(Deferred.fromCoroutine(self.looks.ask("a", fail)), KeyError)

    def test_few_at_a_time(self) -> None:
        """Further questions wait for their turn, in order."""
        store = self.hang()
        asked = [self.ask(number, number) for number in range(ABREAST + 2)]
        self.assertEqual(len(store.held), ABREAST)
        store.release()
        self.reactor.hear()
        self.assertEqual([self.successResultOf(each) for each in asked], list(range(ABREAST + 2)))

    def test_no_turn(self) -> None:
        """Who gets no turn in time is told so, and has left the queue."""
        store = self.hang()
        asked = [self.ask(number) for number in range(ABREAST + 1)]
        self.clock.advance(READ_BOUND)
        for each in asked:
            self.failureResultOf(each, StoreSlow)
        store.release()
        self.reactor.hear()
        self.assertEqual(store.begun - 1, ABREAST)

    def test_overdue(self) -> None:
        """A question whose answer is overdue is refused until it has come; others are asked."""
        store = self.hang()
        self.failureResultOf(self._late("a"), StoreSlow)
        self.failureResultOf(self.ask("a"), StoreSlow)
        self.assertEqual(len(store.held), 1)
        self.assertNoResult(self.ask("b"))
        store.release()
        self.reactor.hear()
        self.successResultOf(self.ask("a"))

    def test_refused_by_the_store(self) -> None:
        """A question that never gets to a worker gives its place back, however often."""
        self.patch(self.pools[0], "run", lambda call: _failed(StoreHung("every worker hangs")))
        for _ in range(ABREAST * 2):
            self.failureResultOf(self.ask("a"), StoreHung)
        self.successResultOf(Deferred.fromCoroutine(self.service.reconcile(None)))
        for _ in range(ABREAST * 2):
            self.failureResultOf(self.ask("a"), StoreOff)

    def test_who_asked_goes_away(self) -> None:
        """Cancelling a question that waits leaves the queue; one in the store keeps its place."""
        from twisted.internet.defer import CancelledError

        store = self.hang()
        asked = [self.ask(number) for number in range(ABREAST + 1)]
        for each in reversed(asked):
            each.cancel()
            self.failureResultOf(each, CancelledError)
        waiting = self.ask("later", 1)
        self.assertNoResult(waiting)
        store.release()
        self.reactor.hear()
        self.assertEqual(self.successResultOf(waiting), 1)

    def _late(self, about: str) -> Deferred[Any]:
        asked = self.ask(about)
        self.clock.advance(READ_BOUND)
        return asked


class WhenWrittenTests(AskingCase):
    """Waiting for the writes of one key."""

    def test_all_of_a_key(self) -> None:
        """It fires when the last write of that key is done, whether it was written or failed."""
        store = self.hang()

        def fail(store: Store) -> None:
            raise OSError(28, "No space left on device")

        self.service.write("a", "run-record", lambda store: None)
        self.service.write("a", "run-record", fail)
        self.service.write("b", "run-record", lambda store: None)
        waiting = self.service.when_written("a", 5.0)
        self.assertNoResult(waiting)
        store.held.pop(0)()
        self.assertNoResult(waiting)
        store.release()
        self.successResultOf(waiting)

    def test_nothing_to_write(self) -> None:
        """It fires at once where nothing is asked for."""
        self.successResultOf(self.service.when_written("a", 5.0))

    def test_bound(self) -> None:
        """It fails when its time is over."""
        self.hang()
        self.service.write("a", "run-record", lambda store: None)
        waiting = self.service.when_written("a", 5.0)
        self.clock.advance(5.0)
        self.failureResultOf(waiting, StoreSlow)


def _failed(error: Exception) -> Deferred[Any]:
    refused: Deferred[Any] = Deferred()
    refused.errback(error)
    return refused
