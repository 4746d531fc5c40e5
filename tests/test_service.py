"""Services in order, and work that nobody waits for."""

from __future__ import annotations

from twisted.application.service import Service
from twisted.internet.defer import Deferred, fail
from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock
from cronstable.service import Sequence, background, first_of


class Step(Service):
    def __init__(self, name: str, told: list[str], start: object = None, stop: object = None):
        self.setName(name)
        self.told, self.start, self.stop = told, start, stop

    def startService(self) -> object:
        self.told.append(f"start {self.name}")
        return self.start

    def stopService(self) -> object:
        self.told.append(f"stop {self.name}")
        return self.stop


class SequenceTests(SynchronousTestCase):
    def test_order(self) -> None:
        """Each child starts once the one before it has started; they stop in reverse."""
        told: list[str] = []
        ready: Deferred[None] = Deferred()
        sequence = Sequence()
        Step("a", told, start=ready).setServiceParent(sequence)
        Step("b", told).setServiceParent(sequence)
        started = sequence.startService()
        self.assertEqual(told, ["start a"])
        ready.callback(None)
        self.successResultOf(started)
        self.successResultOf(sequence.stopService())
        self.assertEqual(told, ["start a", "start b", "stop b", "stop a"])

    def test_a_child_that_cannot_stop(self) -> None:
        """A child that fails to stop is logged and stops no other."""
        told: list[str] = []
        sequence = Sequence()
        Step("a", told).setServiceParent(sequence)
        Step("b", told, stop=fail(RuntimeError("stuck"))).setServiceParent(sequence)
        self.successResultOf(sequence.startService())
        with self.assertLogs("cronstable", "ERROR"):
            self.successResultOf(sequence.stopService())
        self.assertEqual(told[-2:], ["stop b", "stop a"])


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
