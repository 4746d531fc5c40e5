"""The time as commands without a reactor see it."""

from __future__ import annotations

import time


class HostTime:
    """This host's clocks, without timers."""

    seconds = staticmethod(time.monotonic)
    now = staticmethod(time.time)

    @staticmethod
    def awake_and_asleep() -> float:
        """Return seconds that also count suspended ones, where the system has such a clock."""
        clock_id = getattr(time, "CLOCK_BOOTTIME", None)
        return time.monotonic() if clock_id is None else time.clock_gettime(clock_id)
