"""Clocks."""

from __future__ import annotations

import time

from twisted.internet import reactor
from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock, SystemClock, use_monotonic_timers


class ManualClockTests(SynchronousTestCase):
    def test_step(self) -> None:
        """A step moves the wall clock alone."""
        clock = ManualClock(1000.0)
        clock.step(-500)
        self.assertEqual((clock.now(), clock.seconds(), clock.awake_and_asleep()), (500, 0, 0))

    def test_suspend(self) -> None:
        """A suspended host's wall clock and boot time go on, its timers do not."""
        clock = ManualClock(1000.0)
        called: list[int] = []
        clock.callLater(5, called.append, 1)
        clock.suspend(60)
        self.assertEqual((clock.now(), clock.seconds(), clock.awake_and_asleep()), (1060, 0, 60))
        self.assertEqual(called, [])
        clock.advance(5)
        self.assertEqual(called, [1])


class SystemClockTests(SynchronousTestCase):
    def test_reads_the_system(self) -> None:
        """Wall and monotonic time are the system's; boot time never lags behind."""
        clock = SystemClock(reactor)
        self.assertLess(abs(clock.now() - time.time()), 5)
        self.assertLess(abs(clock.seconds() - time.monotonic()), 5)
        before = clock.seconds()
        self.assertGreaterEqual(clock.awake_and_asleep(), before)

    def test_monotonic_timers(self) -> None:
        """The reactor's timers can be put on the monotonic clock."""

        class Reactor:
            seconds = staticmethod(time.time)

        made = Reactor()
        use_monotonic_timers(made)
        self.assertIs(made.seconds, time.monotonic)
