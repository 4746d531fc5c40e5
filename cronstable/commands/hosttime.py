"""The time as commands without a reactor see it."""

from __future__ import annotations

import time

from cronstable import platform


class HostTime:
    """This host's clocks, without timers."""

    seconds = staticmethod(time.monotonic)
    now = staticmethod(time.time)
    awake_and_asleep = staticmethod(platform.seconds_since_boot)
