"""Many calls, one timer."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.agenda import Agenda
from cronstable.clock import ManualClock


class AgendaTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = ManualClock()
        self.agenda = Agenda(self.clock)
        self.made: list[str] = []

    def test_order(self) -> None:
        """Calls are made in the order in which they are due, each once."""
        for name, delay in (("c", 3.0), ("a", 1.0), ("b", 2.0)):
            self.agenda.after(delay, self.made.append, name)
        self.clock.pump([1.0, 1.0, 1.0, 1.0])
        self.assertEqual(self.made, ["a", "b", "c"])

    def test_one_timer(self) -> None:
        """However many calls wait, the clock has one."""
        for delay in range(100):
            self.agenda.after(float(delay + 1), self.made.append, "x")
        self.assertEqual(len(self.clock.getDelayedCalls()), 1)

    def test_cancel(self) -> None:
        """A cancelled call is not made; cancelling twice is harmless."""
        appointment = self.agenda.after(1.0, self.made.append, "a")
        appointment.cancel()
        appointment.cancel()
        self.assertFalse(appointment.active)
        self.clock.advance(2)
        self.assertEqual(self.made, [])

    def test_a_call_that_raises(self) -> None:
        """A call that raises is logged and stops no other."""

        def broken() -> None:
            raise RuntimeError("broken")

        self.agenda.after(1.0, broken)
        self.agenda.after(1.0, self.made.append, "b")
        with self.assertLogs("cronstable", "ERROR"):
            self.clock.advance(1)
        self.assertEqual(self.made, ["b"])

    def test_a_call_that_adds_one(self) -> None:
        """A call may make another appointment."""
        self.agenda.after(1.0, lambda: self.agenda.after(1.0, self.made.append, "later"))
        self.clock.pump([1.0, 1.0])
        self.assertEqual(self.made, ["later"])

    def test_stop(self) -> None:
        """Nothing is called after a stop, and no timer is left."""
        self.agenda.after(1.0, self.made.append, "a")
        self.agenda.stop()
        self.clock.advance(2)
        self.assertEqual((self.made, self.clock.getDelayedCalls()), ([], []))

    def test_slices(self) -> None:
        """Calls that take long are spread over turns."""

        def slow(name: str) -> None:
            self.clock.rightNow += 0.004
            self.made.append(name)

        for name in "abcdef":
            self.agenda.after(1.0, slow, name)
        self.clock.rightNow += 1.0
        self.agenda._run()
        self.assertEqual(self.made, ["a", "b"])
        self.clock.pump([0.0, 0.0, 0.0])
        self.assertEqual("".join(self.made), "abcdef")
