"""Pauses of one process."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.runs.pauses import Pause, Pauses


class PausesTests(SynchronousTestCase):
    """A pause lasts up to its end, which is not in it."""

    def setUp(self) -> None:
        self.pauses = Pauses()
        self.pause = Pause(100.0, 200.0)
        self.pauses.put("a", self.pause)

    def test_in_force(self) -> None:
        """It is in force until its end, for its own job."""
        self.assertIs(self.pauses.of("a", 199.9), self.pause)
        self.assertIs(self.pauses.of("a", 200.0), None)
        self.assertIs(self.pauses.of("b", 150.0), None)
        self.assertEqual([self.pauses.count(at) for at in (199.9, 200.0)], [1, 0])

    def test_expire(self) -> None:
        """One that has run out is told once, and then forgotten."""
        self.assertEqual(self.pauses.expire(199.9), ())
        self.assertEqual(self.pauses.expire(200.0), ("a",))
        self.assertEqual(self.pauses.expire(200.0), ())

    def test_lift(self) -> None:
        """Lifting says whether there was one."""
        self.assertTrue(self.pauses.lift("a"))
        self.assertFalse(self.pauses.lift("a"))

    def test_written_and_read(self) -> None:
        """Instants that lost what a text cannot hold are the same ones, others are not."""
        self.assertTrue(self.pause.same_as(Pause(100.0002, 199.9998, "noted")))
        self.assertFalse(self.pause.same_as(Pause(100.1, 200.0)))
        self.assertFalse(self.pause.same_as(Pause(100.0, 200.1)))
        self.assertFalse(self.pause.same_as(None))
