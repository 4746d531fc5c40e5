"""A token bucket over the operations of a store (C{state.maxOpsPerSecond})."""

from __future__ import annotations

from cronstable.clock import Clock


class Throttle:
    """At most C{rate} operations a second, a second's worth at once; 0 = no limit."""

    def __init__(self, clock: Clock, rate: float) -> None:
        self.throttled = 0
        self.waited = 0.0
        self._clock = clock
        self._rate = rate
        self._tokens = max(rate, 1.0)
        self._at = clock.seconds()

    def wait(self) -> float:
        """Take one token and return the seconds to wait before the operation."""
        if not self._rate:
            return 0.0
        now = self._clock.seconds()
        most = max(self._rate, 1.0)
        self._tokens = min(most, self._tokens + (now - self._at) * self._rate)
        self._at = now
        self._tokens -= 1.0
        if self._tokens >= 0.0:
            return 0.0
        wait = -self._tokens / self._rate
        self.throttled += 1
        self.waited += wait
        return wait
