"""Tests for spaced attempts."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock
from cronstable.reports.attempts import attempts
from cronstable.reports.trouble import ReportFailed


class AttemptsTests(SynchronousTestCase):
    """Again after transient trouble, within one bound."""

    def setUp(self) -> None:
        self.clock = ManualClock()
        self.at: list[tuple[float, float]] = []

    def begin(
        self, outcomes: list[ReportFailed | None], within: float = 60.0, takes: float = 0.0
    ) -> Deferred[None]:
        """Attempt what ends as C{outcomes} say, each time after C{takes} seconds."""

        async def attempt(left: float) -> None:
            self.at.append((self.clock.seconds(), left))
            if takes:
                done: Deferred[None] = Deferred()
                self.clock.callLater(min(takes, left), done.callback, None)
                await done
            outcome = outcomes.pop(0)
            if outcome is not None:
                raise outcome

        return Deferred.fromCoroutine(attempts(self.clock, "x", within, attempt))

    def test_success(self) -> None:
        """One good attempt is enough."""
        self.assertIsNone(self.successResultOf(self.begin([None])))
        self.assertEqual(self.at, [(0.0, 60.0)])

    def test_spaced(self) -> None:
        """Transient trouble is met with two more attempts, after 2 and 6 seconds."""
        trouble = ReportFailed("t", transient=True)
        done = self.begin([trouble, trouble, None])
        self.clock.pump([2.0, 6.0])
        self.assertIsNone(self.successResultOf(done))
        self.assertEqual(self.at, [(0.0, 60.0), (2.0, 58.0), (8.0, 52.0)])

    def test_gives_up(self) -> None:
        """After three attempts the last trouble is the answer."""
        done = self.begin([ReportFailed(str(n), transient=True) for n in range(3)])
        self.clock.pump([2.0, 6.0, 100.0])
        self.assertEqual(str(self.failureResultOf(done, ReportFailed).value), "2")
        self.assertEqual(len(self.at), 3)

    def test_permanent(self) -> None:
        """Other trouble ends it at once."""
        self.failureResultOf(self.begin([ReportFailed("no")]), ReportFailed)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_bound(self) -> None:
        """No attempt begins that the bound leaves no time for."""
        trouble = ReportFailed("t", transient=True)
        done = self.begin([trouble] * 3, within=25.0, takes=20.0)
        self.clock.pump([20.0, 2.0])
        self.assertEqual(self.at[-1], (22.0, 3.0))
        self.clock.pump([3.0])
        self.failureResultOf(done, ReportFailed)
        self.assertEqual(len(self.at), 2)

    def test_cancel(self) -> None:
        """Cancelled while it waits, nothing is left behind."""
        done = self.begin([ReportFailed("t", transient=True), None])
        done.cancel()
        self.failureResultOf(done)
        self.assertEqual(self.clock.getDelayedCalls(), [])
