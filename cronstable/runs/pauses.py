"""Pauses: a job that an operator holds back for a while."""

from __future__ import annotations

import attrs

LONGEST = 30 * 86400.0
"""Seconds that a pause may last."""


@attrs.frozen
class Pause:
    """A pause in force; C{since} and C{until} in epoch seconds."""

    since: float
    until: float
    note: str = ""
    by: str = ""
    channel: str = "api"

    def same_as(self, other: Pause | None) -> bool:
        """Return whether this is C{other}, whose instants may have been written and read."""
        return (
            other is not None
            and abs(self.since - other.since) < 0.001
            and abs(self.until - other.until) < 0.001
        )


class Pauses:
    """The pauses of this process, by job name; one that has run out is as good as gone."""

    def __init__(self) -> None:
        self._pauses: dict[str, Pause] = {}

    def put(self, job: str, pause: Pause) -> None:
        """Pause C{job}, replacing a pause in force."""
        self._pauses[job] = pause

    def lift(self, job: str) -> bool:
        """End the pause of C{job}; return whether there was one."""
        return self._pauses.pop(job, None) is not None

    def of(self, job: str, now: float) -> Pause | None:
        """Return the pause of C{job} in force at C{now}."""
        if not self._pauses:
            return None
        pause = self._pauses.get(job)
        return pause if pause is not None and pause.until > now else None

    def expire(self, now: float) -> tuple[str, ...]:
        """Forget pauses that have run out at C{now}; return their jobs."""
        over = tuple(job for job, pause in self._pauses.items() if pause.until <= now)
        for job in over:
            del self._pauses[job]
        return over

    def count(self, now: float) -> int:
        """Return how many jobs are paused at C{now}."""
        return sum(1 for pause in self._pauses.values() if pause.until > now)
