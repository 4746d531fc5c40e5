"""Tests for measuring how late the reactor is."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock
from cronstable.metrics.exposition import text_of
from cronstable.metrics.lag import LagProbe


class LagProbeTests(SynchronousTestCase):
    """Measurements while something happens."""

    def setUp(self) -> None:
        self.clock = ManualClock()
        self.probe = LagProbe(self.clock)

    def text(self) -> str:
        """Return the family as text."""
        return "".join(text_of(family, False) for family in self.probe.families())

    def test_idle(self) -> None:
        """An idle daemon is never woken, and nothing is told before the first measurement."""
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertEqual(self.text(), "")

    def test_one_measurement(self) -> None:
        """A touch measures once; the daemon is then left alone."""
        self.probe.touch("event")
        self.clock.advance(0.28)
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertIn('le="0.025"} 0\n', self.text())
        self.assertIn('le="0.05"} 1\n', self.text())
        self.assertIn("_count 1\n", self.text())

    def test_goes_on(self) -> None:
        """While touches go on so do measurements, one timer at a time."""
        self.probe.touch()
        for _ in range(8):
            self.probe.touch()
            self.clock.advance(0.25)
            self.assertLessEqual(len(self.clock.getDelayedCalls()), 1)
        self.clock.advance(0.25)
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertIn("_count 9\n", self.text())

    def test_stop(self) -> None:
        """Stopped, it leaves no timer."""
        self.probe.touch()
        self.probe.stop()
        self.probe.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])
