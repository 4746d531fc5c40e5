"""How late the reactor is, measured only while something happens."""

from __future__ import annotations

from bisect import bisect_left

from twisted.internet.interfaces import IDelayedCall

from cronstable.clock import Clock
from cronstable.metrics.exposition import Family, histogram_samples

BOUNDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
INTERVAL = 0.25
"""Seconds for which the timer is set whose lateness is measured."""


class LagProbe:
    """
    Measures by how much a timer of a quarter of a second is late.

    It measures from a L{touch} on, and again while touches go on: an idle daemon is not woken.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timer: IDelayedCall | None = None
        self._touched = False
        self._due = 0.0
        self._counts = [0] * (len(BOUNDS) + 1)
        self._sum = 0.0

    def touch(self, *event: object) -> None:
        """Say that something is going on; costs next to nothing while a measurement is on."""
        self._touched = True
        if self._timer is None:
            self._arm()

    def stop(self) -> None:
        """Measure no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def families(self) -> tuple[Family, ...]:
        """Return the distribution so far, nothing before the first measurement."""
        samples = histogram_samples(BOUNDS, self._counts, self._sum) if any(self._counts) else ()
        return (
            Family(
                "cronstable_reactor_lag_seconds",
                "histogram",
                "How late timers were while the daemon was active.",
                samples,
            ),
        )

    def _arm(self) -> None:
        self._touched = False
        self._due = self._clock.seconds() + INTERVAL
        self._timer = self._clock.callLater(INTERVAL, self._measure)

    def _measure(self) -> None:
        self._timer = None
        late = max(self._clock.seconds() - self._due, 0.0)
        self._counts[bisect_left(BOUNDS, late)] += 1
        self._sum += late
        if self._touched:
            self._arm()
