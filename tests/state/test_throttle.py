"""The token bucket over a store's operations."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock
from cronstable.state.throttle import Throttle


class ThrottleTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = ManualClock()

    def test_unlimited(self) -> None:
        """A rate of 0 holds nothing back."""
        throttle = Throttle(self.clock, 0)
        self.assertEqual([throttle.wait() for _ in range(1000)], [0.0] * 1000)
        self.assertEqual((throttle.throttled, throttle.waited), (0, 0.0))

    def test_burst(self) -> None:
        """A second's worth goes at once, the rest in its turn."""
        throttle = Throttle(self.clock, 4)
        self.assertEqual([throttle.wait() for _ in range(7)], [0, 0, 0, 0, 0.25, 0.5, 0.75])
        self.assertEqual((throttle.throttled, throttle.waited), (3, 1.5))

    def test_refill(self) -> None:
        """Tokens come back with time, no more than a second's worth."""
        throttle = Throttle(self.clock, 4)
        for _ in range(4):
            throttle.wait()
        self.clock.advance(0.5)
        self.assertEqual([throttle.wait() for _ in range(3)], [0, 0, 0.25])
        self.clock.advance(1000)
        self.assertEqual([throttle.wait() for _ in range(5)], [0, 0, 0, 0, 0.25])

    def test_rate_over_time(self) -> None:
        """However fast they are asked for, operations keep to the rate."""
        throttle = Throttle(self.clock, 10)
        ends = [self.clock.seconds() + throttle.wait() for _ in range(100)]
        self.assertAlmostEqual(max(ends) - self.clock.seconds(), 9.0)

    def test_slow_rate(self) -> None:
        """A rate below one a second lets one through at once."""
        throttle = Throttle(self.clock, 0.5)
        self.assertEqual([throttle.wait() for _ in range(3)], [0, 2, 4])
