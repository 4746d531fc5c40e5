"""Work that nobody waits for, or not for long; and who waits."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock
from cronstable.service import Waiters, background, first_of


class BackgroundTests(SynchronousTestCase):
    def test_failure_is_logged(self) -> None:
        """Work that fails says so in the log, and what was awaited ends all the same."""

        async def work() -> None:
            raise RuntimeError("broken")

        with self.assertLogs("cronstable", "ERROR") as logged:
            self.assertIsNone(self.successResultOf(background("the work", work())))
        self.assertIn("the work failed", logged.output[0])


class FirstOfTests(SynchronousTestCase):
    def test_work_ends(self) -> None:
        """It fires with the work, and leaves no timer."""
        clock = ManualClock()
        work: Deferred[None] = Deferred()
        first = first_of(clock, 2.0, work)
        self.assertNoResult(first)
        work.callback(None)
        self.successResultOf(first)
        self.assertEqual(clock.getDelayedCalls(), [])

    def test_work_takes_too_long(self) -> None:
        """It fires after its time; how the work ends later does not matter."""
        clock = ManualClock()
        work: Deferred[None] = Deferred()
        first = first_of(clock, 2.0, work)
        clock.advance(2)
        self.successResultOf(first)
        work.callback(None)


class WaitersTests(SynchronousTestCase):
    def test_told_together(self) -> None:
        """All who wait are told in order of asking, once; who asks while they are told is not."""
        waiters = Waiters()
        heard: list[str] = []
        waiters.wait().addCallback(lambda _: heard.append("first"))
        waiters.wait().addCallback(lambda _: heard.append("second"))
        waiters.wait().addCallback(lambda _: waiters.wait().addCallback(heard.append))
        self.assertTrue(waiters)
        waiters.tell()
        self.assertEqual(heard, ["first", "second"])
        waiters.tell()
        self.assertEqual(heard, ["first", "second", None])
        self.assertFalse(waiters)

    def test_nothing_to_wait_for(self) -> None:
        """Who has nothing to wait for any more is told at once."""
        waiters = Waiters()
        self.assertIsNone(self.successResultOf(waiters.wait(no_more=True)))
        self.assertFalse(waiters)
