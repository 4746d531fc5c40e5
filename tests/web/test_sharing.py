"""What is made once for all who ask."""

from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock
from cronstable.web.sharing import Once, Shared


class Workshop:
    """Makes numbered documents when told to."""

    def __init__(self) -> None:
        self.begun: list[Deferred[str]] = []

    async def make(self) -> str:
        self.begun.append(Deferred())
        return await self.begun[-1]


class OnceTests(SynchronousTestCase):
    def test_made_once(self) -> None:
        """Nothing is made before it is wanted, and only one thing for all who want it."""
        shop = Workshop()
        once = Once(shop.make)
        self.assertEqual(shop.begun, [])
        first, second = once.get(), once.get()
        shop.begun[0].callback("made")
        self.assertEqual([self.successResultOf(each) for each in (first, second)], ["made"] * 2)
        self.assertEqual(self.successResultOf(once.get()), "made")
        self.assertEqual(len(shop.begun), 1)

    def test_leaving(self) -> None:
        """One who goes away does not take it from the others."""
        shop = Workshop()
        once = Once(shop.make)
        first, second = once.get(), once.get()
        first.cancel()
        self.failureResultOf(first, CancelledError)
        shop.begun[0].callback("made")
        self.assertEqual(self.successResultOf(second), "made")

    def test_failure(self) -> None:
        """A failure is told to everybody who waits; the next one has it tried again."""
        shop = Workshop()
        once = Once(shop.make)
        waiting = [once.get(), once.get()]
        shop.begun[0].errback(ZeroDivisionError())
        for each in waiting:
            self.failureResultOf(each, ZeroDivisionError)
        again = once.get()
        shop.begun[1].callback("made")
        self.assertEqual(self.successResultOf(again), "made")


class SharedTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = ManualClock()
        self.state = 1
        self.shop = Workshop()
        self.shared = Shared(self.clock, lambda: self.state, self.shop.make)

    def test_good_for_a_second(self) -> None:
        """A document is good for a second if nothing changes."""
        asked = self.shared.get()
        self.shop.begun[0].callback("first")
        self.assertEqual(self.successResultOf(asked), "first")
        self.clock.advance(0.9)
        self.assertEqual(self.successResultOf(self.shared.get()), "first")
        self.clock.advance(0.1)
        self.assertNoResult(self.shared.get())
        self.assertEqual(len(self.shop.begun), 2)

    def test_change(self) -> None:
        """After a change the next document is a new one."""
        self.shared.get()
        self.shop.begun[0].callback("first")
        self.state = 2
        asked = self.shared.get()
        self.shop.begun[1].callback("second")
        self.assertEqual(self.successResultOf(asked), "second")
        self.clock.advance(0.5)
        self.assertEqual(self.successResultOf(self.shared.get()), "second")

    def test_change_while_one_is_made(self) -> None:
        """Who asks after a change waits for a document begun after it; one is made at a time."""
        before = self.shared.get()
        self.state = 2
        after = [self.shared.get(), self.shared.get()]
        self.assertEqual(len(self.shop.begun), 1)
        self.shop.begun[0].callback("first")
        self.assertEqual(self.successResultOf(before), "first")
        self.assertEqual(len(self.shop.begun), 2)
        self.shop.begun[1].callback("second")
        self.assertEqual([self.successResultOf(each) for each in after], ["second", "second"])

    def test_failure(self) -> None:
        """After a failure the document is tried again, without a change."""
        asked = self.shared.get()
        self.shop.begun[0].errback(ZeroDivisionError())
        self.failureResultOf(asked, ZeroDivisionError)
        again = self.shared.get()
        self.shop.begun[1].callback("made")
        self.assertEqual(self.successResultOf(again), "made")
