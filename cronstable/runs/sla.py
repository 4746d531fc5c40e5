"""
Lateness: three thresholds per job, judged once a minute, reported once per breach.

A breach latches until it is over; a paused or disabled job, or one that another node owns, is
not judged.  docs/reporting.md specifies the checks.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Literal

import attrs

from cronstable.clock import Clock
from cronstable.config.values import JobConfig
from cronstable.events import Bus
from cronstable.runs.jobset import JobSet
from cronstable.runs.record import RunFinished, RunRecord, RunStarted
from cronstable.runs.service import RunService

log = logging.getLogger("cronstable")

SlaCheck = Literal["maxTimeSinceSuccess", "lateAfter", "maxRuntime"]
CHECKS: tuple[SlaCheck, ...] = ("maxTimeSinceSuccess", "lateAfter", "maxRuntime")


@attrs.frozen
class Breach:
    """
    A threshold that is passed: since when (epoch seconds), what was seen at C{judged}, in seconds.
    """

    check: SlaCheck
    since: float
    observed: float
    threshold: int
    judged: float = 0.0


@attrs.frozen
class SlaBreached:
    """Published once when a breach begins."""

    job: JobConfig
    breach: Breach
    last_success_at: float | None


@attrs.frozen
class SlaRecovered:
    """Published when a breach is over."""

    job: str
    check: SlaCheck


class SlaWatch:
    """Judges the jobs that have an C{sla}."""

    def __init__(
        self,
        clock: Clock,
        runs: RunService,
        bus: Bus,
    ) -> None:
        self._clock = clock
        self._runs = runs
        self._bus = bus
        self._breaches: dict[tuple[str, SlaCheck], Breach] = {}
        self._watched: dict[str, float] = {}
        self._judged: set[str] = set()
        self._first_floor: float | None = clock.now()
        self.last_success: dict[str, float] = {}
        self._last_start: dict[str, float] = {}
        bus.subscribe(RunStarted, self._started)
        bus.subscribe(RunFinished, self._finished)

    def remember(self, records: Iterable[RunRecord]) -> None:
        """Take over when jobs last succeeded, from what an earlier process has recorded."""
        for record in records:
            if record.outcome == "success":
                known = self.last_success.get(record.job, 0.0)
                self.last_success[record.job] = max(known, record.finished_at)

    def judge(self, jobs: JobSet) -> None:
        """Judge every job with thresholds; publish what began and what is over."""
        now = self._clock.now()
        floor = now if self._first_floor is None else self._first_floor
        self._first_floor = None
        watched: dict[str, float] = {}
        for job in jobs.jobs.values():
            if not job.sla.any:
                continue
            if not job.enabled or self._runs.pause_of(job.name) is not None:
                continue
            if self._runs.gates.leadership.may_run(job) is not None:
                continue
            watched[job.name] = self._watched.get(job.name, floor)
            for check in CHECKS:
                self._judge(job, check, watched[job.name], now)
        for name, check in [key for key in self._breaches if key[0] not in watched]:
            del self._breaches[(name, check)]
        self._watched = watched
        self._judged = {name for name in self._judged | watched.keys() if name in jobs.jobs}
        for known in (self.last_success, self._last_start):
            for name in [name for name in known if name not in jobs.jobs]:
                del known[name]

    def breaches(self, job: str) -> tuple[Breach, ...]:
        """Return the breaches of C{job} that are latched."""
        return tuple(
            breach for check in CHECKS if (breach := self._breaches.get((job, check))) is not None
        )

    def late(self, job: JobConfig) -> Mapping[str, bool] | None:
        """
        Return for each threshold of C{job} whether it is passed.

        None until the job was judged for the first time; while it is not judged nothing is late.
        """
        if job.name not in self._judged:
            return None
        sla = job.sla
        limits = (sla.max_time_since_success, sla.late_after, sla.max_runtime)
        return {
            check: (job.name, check) in self._breaches
            for check, limit in zip(CHECKS, limits, strict=True)
            if limit
        }

    def _started(self, event: RunStarted) -> None:
        self._last_start[event.job.name] = event.started_at

    def _finished(self, event: RunFinished) -> None:
        record = event.run.record
        if record.outcome == "success":
            self.last_success[record.job] = record.finished_at

    def _judge(self, job: JobConfig, check: SlaCheck, watched: float, now: float) -> None:
        threshold, since = self._reference(job, check, watched, now)
        key = (job.name, check)
        if threshold is None or since is None or now - since <= threshold:
            if self._breaches.pop(key, None) is not None:
                log.info("Job %s: sla %s has recovered", job.name, check)
                self._bus.publish(SlaRecovered(job.name, check))
            return
        known = self._breaches.get(key)
        breach = Breach(check, now if known is None else known.since, now - since, threshold, now)
        self._breaches[key] = breach
        if known is None:
            log.warning(
                "Job %s: sla %s breached, %.0f s seen, %d s allowed",
                job.name,
                check,
                breach.observed,
                threshold,
            )
            self._bus.publish(SlaBreached(job, breach, self.last_success.get(job.name)))

    def _reference(
        self, job: JobConfig, check: SlaCheck, watched: float, now: float
    ) -> tuple[int | None, float | None]:
        if check == "maxTimeSinceSuccess":
            return job.sla.max_time_since_success, self.last_success.get(job.name, watched)
        if check == "lateAfter":
            return job.sla.late_after, self._unstarted_slot(job, watched, now)
        live = self._runs.live(job.name)
        oldest = min((run.started_mono for run in live), default=None)
        if oldest is None:
            return job.sla.max_runtime, None
        return job.sla.max_runtime, now - (self._clock.seconds() - oldest)

    def _unstarted_slot(self, job: JobConfig, watched: float, now: float) -> float | None:
        if job.schedule is None:
            return None
        slot = job.schedule.next(max(watched, self._last_start.get(job.name, 0.0)))
        return float(slot) if slot is not None and slot <= now else None
