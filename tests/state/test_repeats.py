"""What is told of trouble that goes on."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock
from cronstable.state.repeats import Repeats


class RepeatsTests(SynchronousTestCase):
    """Each kind once a minute."""

    def setUp(self) -> None:
        self.clock = ManualClock(1_767_225_600.0)
        self.repeats = Repeats(self.clock)

    def test_once_a_minute(self) -> None:
        """What came in between is counted with the next line, and each kind by itself."""
        said = [self.repeats.again("full") for _ in range(3)]
        self.assertEqual(said, ["", None, None])
        self.assertEqual(self.repeats.again("broken"), "")
        self.clock.advance(59)
        self.assertIsNone(self.repeats.again("full"))
        self.clock.advance(1)
        self.assertEqual(self.repeats.again("full"), " (and 3 like it)")
        self.clock.advance(60)
        self.assertEqual(self.repeats.again("full"), "")

    def test_forgotten(self) -> None:
        """After an hour trouble is new, so that kinds do not pile up."""
        self.repeats.again("old")
        self.repeats.again("old")
        self.clock.advance(3600)
        self.repeats.again("new")
        self.assertEqual(self.repeats.again("old"), "")
