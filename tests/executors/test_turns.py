"""Work in slices."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock
from cronstable.executors.turns import Turns


class TurnsTests(SynchronousTestCase):
    """Much work at once."""

    def setUp(self) -> None:
        self.clock = ManualClock()
        self.turns = Turns(self.clock, budget=0.005)
        self.done: list[int] = []

    def work(self, number: int, cost: float = 0.002) -> None:
        self.done.append(number)
        # Time passes without the reactor having a turn.
        self.clock.rightNow += cost

    def test_little(self) -> None:
        """A single piece of work is done at once, again and again."""
        for number in range(3):
            self.assertTrue(self.turns.do(self.work, number))
            self.clock.advance(1)
        self.assertEqual(self.done, [0, 1, 2])

    def test_much(self) -> None:
        """What exceeds the budget waits for its turn, in order."""
        turns = []
        later = self.clock.callLater

        def counting(delay: float, call: Any) -> Any:
            turns.append(len(self.done))
            return later(delay, call)

        self.patch(self.clock, "callLater", counting)
        now = [self.turns.do(self.work, number) for number in range(10)]
        self.assertEqual(now, [True] * 3 + [False] * 7)
        self.assertEqual((self.done, len(self.turns)), ([0, 1, 2], 7))
        self.clock.advance(0)
        self.assertEqual(self.done, list(range(10)))
        self.assertEqual(turns, [3, 6, 9])
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_long(self) -> None:
        """Work that alone exceeds the budget makes the next wait."""
        self.turns.do(self.work, 0, 1.0)
        self.assertFalse(self.turns.do(self.work, 1))
        self.clock.advance(0)
        self.clock.advance(0.1)
        self.assertTrue(self.turns.do(self.work, 2))

    def test_failure(self) -> None:
        """Postponed work that fails is logged and stops nothing."""
        self.turns.do(self.work, 0, 1.0)
        self.turns.do(self.work, 1)
        self.turns.do(lambda: 1 / 0)
        self.turns.do(self.work, 2)
        with self.assertLogs("cronstable", "ERROR"):
            self.clock.pump([0, 0])
        self.assertEqual(self.done, [0, 1, 2])

    def test_stop(self) -> None:
        """What waits is dropped."""
        for number in range(5):
            self.turns.do(self.work, number)
        self.turns.stop()
        self.assertEqual((len(self.turns), self.clock.getDelayedCalls()), (0, []))
