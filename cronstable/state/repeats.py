"""Trouble that goes on is told once a minute, with the number of times in between."""

from __future__ import annotations

from collections.abc import Hashable

from cronstable.clock import Clock

REPEAT_AFTER = 60.0
"""Seconds in which one kind of trouble is told once."""

FORGET_AFTER = 3600.0
"""Seconds after which it counts as new."""


class Repeats:
    """What was told last of each kind of trouble, and how often it came since."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: dict[Hashable, tuple[float, int]] = {}

    def again(self, kind: Hashable) -> str | None:
        """Return what to add to a line about C{kind} that is to be told now, None to be quiet."""
        now = self._clock.seconds()
        last, quiet = self._told.get(kind, (float("-inf"), 0))
        if now - last < REPEAT_AFTER:
            self._told[kind] = (last, quiet + 1)
            return None
        self._told = {
            each: told for each, told in self._told.items() if now - told[0] < FORGET_AFTER
        }
        self._told[kind] = (now, 0)
        return f" (and {quiet} like it)" if quiet else ""
