"""What is done once a minute."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.chores import Chores
from cronstable.clock import ManualClock


class ChoresTests(SynchronousTestCase):
    def test_once_a_minute(self) -> None:
        """Each chore is done once in each minute, away from the full one."""
        clock = ManualClock(1_767_225_600.0)
        done: list[float] = []
        chores = Chores(clock, [lambda: done.append(clock.now() % 60)])
        chores.startService()
        for _ in range(240):
            clock.advance(1)
        self.assertEqual(len(done), 4)
        self.assertTrue(all(20 < second < 45 for second in done))

    def test_failing_chore(self) -> None:
        """A chore that raises is logged and stops no other, now or later."""
        clock = ManualClock()
        done: list[int] = []

        def broken() -> None:
            raise RuntimeError("broken")

        chores = Chores(clock, [broken, lambda: done.append(1)])
        chores.startService()
        with self.assertLogs("cronstable", "ERROR"):
            clock.advance(60)
            clock.advance(60)
        self.assertEqual(done, [1, 1])

    def test_stop(self) -> None:
        """A stopped service has no timer left."""
        clock = ManualClock()
        chores = Chores(clock, [])
        chores.startService()
        chores.stopService()
        self.assertEqual(clock.getDelayedCalls(), [])
