"""
The runs that a page can list: the newest of each job, in the order they were observed.

docs/runs.md, "History", tells users what they see.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from cronstable.runs.record import RunRecord
from cronstable.state.folds import AHEAD
from cronstable.state.instants import to_text

KEPT = 50
"""Finished runs that are kept of each job."""


class History:
    """At most L{KEPT} finished runs of each job, and which of them is the latest."""

    def __init__(self) -> None:
        self.revision = 0
        """Grows with every change."""
        self._rings: dict[str, deque[RunRecord]] = {}
        self._added: dict[str, int] = {}
        self._last: dict[str, RunRecord] = {}
        self._last_run: dict[str, RunRecord] = {}
        self._last_verdict: dict[str, RunRecord] = {}
        self._last_success: dict[str, RunRecord] = {}

    def add(self, record: RunRecord) -> None:
        """
        Enter a finished run; the latest is the one with the newest finish, ties to the later.

        A finish that is hours ahead of this one does not count: the clock was wrong then.
        """
        self._add(record, AHEAD)

    def _add(self, record: RunRecord, ahead: float) -> None:
        ring = self._rings.get(record.job)
        if ring is None:
            ring = self._rings[record.job] = deque(maxlen=KEPT)
        ring.append(record)
        self.revision += 1
        self._added[record.job] = self._added.get(record.job, 0) + 1
        _enter(self._last, record, ahead)
        if record.outcome != "skipped":
            _enter(self._last_run, record, ahead)
        if record.outcome in ("success", "failure"):
            _enter(self._last_verdict, record, ahead)
        if record.outcome == "success":
            _enter(self._last_success, record, ahead)

    def note_verdict(self, record: RunRecord) -> None:
        """Let a verdict of another node stand as the newest, without listing it."""
        self._last_verdict[record.job] = record

    def add_interrupted(self, record: RunRecord) -> None:
        """
        Enter a run that a crash of this node cut: it is the latest, whatever its instant.
        """
        self._add(record, math.inf)
        self._last[record.job] = record

    def restore(self, job: str, records: Sequence[RunRecord]) -> None:
        """Put what an earlier process recorded before what this one has, oldest first."""
        ours = self.runs(job)
        # What was written and read again is rounded to microseconds.
        known = {(each.outcome, to_text(each.finished_at)) for each in ours}
        self.forget(job)
        for record in records:
            if not known or (record.outcome, to_text(record.finished_at)) not in known:
                self.add(record)
        for record in ours:
            self.add(record)

    def runs(self, job: str) -> tuple[RunRecord, ...]:
        """Return the kept runs of C{job}, oldest observed first."""
        return tuple(self._rings.get(job, ()))

    def added(self, job: str) -> int:
        """Return how many runs of C{job} were entered; another number means other runs."""
        return self._added.get(job, 0)

    def last(self, job: str) -> RunRecord | None:
        """Return the run of C{job} with the newest finish, skipped rows included."""
        return self._last.get(job)

    def last_run(self, job: str) -> RunRecord | None:
        """Return the run of C{job} with the newest finish, rows of a pause left out."""
        return self._last_run.get(job)

    def last_verdict(self, job: str) -> RunRecord | None:
        """Return the newest success or failure of C{job}; other outcomes say nothing."""
        return self._last_verdict.get(job)

    def last_success(self, job: str) -> RunRecord | None:
        """Return the newest success of C{job}."""
        return self._last_success.get(job)

    def forget(self, job: str) -> None:
        """Drop all that is kept of C{job}."""
        self.revision += 1
        self._rings.pop(job, None)
        self._added.pop(job, None)
        for kept in (self._last, self._last_run, self._last_verdict, self._last_success):
            kept.pop(job, None)


def _enter(latest: dict[str, RunRecord], record: RunRecord, ahead: float) -> None:
    """Let C{record} be its job's latest unless that finished after it, within C{ahead} seconds."""
    known = latest.get(record.job)
    if known is None or not 0 < known.finished_at - record.finished_at <= ahead:
        latest[record.job] = record
