"""
What is counted per job: plain increments, made where the event is told.

Counters live as long as their job is configured; those of the newest process are added to what
an earlier one left (docs/metrics.md, "Restarts").
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from cronstable.config.values import JobConfig
from cronstable.events import Bus
from cronstable.runs import tables
from cronstable.runs.record import (
    GaveUp,
    JobSetChanged,
    RetryLaunched,
    RunFinished,
    RunRecord,
    RunSkipped,
)
from cronstable.runs.sla import SlaBreached

DEFAULT_BUCKETS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)


class JobCounts:
    """The counters of one job; C{durations} is None until a run was observed, not cumulative."""

    __slots__ = (
        "breaches",
        "cancelled",
        "cpu_count",
        "cpu_system",
        "cpu_user",
        "duration_sum",
        "durations",
        "failure",
        "last_failure",
        "last_success",
        "max_rss",
        "memory_exceeded",
        "permanent_failures",
        "retries",
        "skipped",
        "start_failures",
        "success",
    )

    def __init__(self) -> None:
        self.success = self.failure = self.cancelled = self.skipped = 0
        self.retries = self.permanent_failures = self.start_failures = 0
        self.durations: list[int] | None = None
        self.duration_sum = 0.0
        self.last_success: float | None = None
        self.last_failure: float | None = None
        self.cpu_count = 0
        self.cpu_user = self.cpu_system = 0.0
        self.max_rss = 0
        self.memory_exceeded = 0
        self.breaches: dict[str, int] | None = None


ZERO = JobCounts()
"""The counters of a job of which nothing was counted; never changed."""


class Counts:
    """The counters of all jobs, fed by events."""

    def __init__(
        self,
        find_job: Callable[[str], JobConfig | None],
        buckets: Sequence[float] = DEFAULT_BUCKETS,
    ) -> None:
        self._find_job = find_job
        self._by_job: dict[str, JobCounts] = {}
        self.buckets: tuple[float, ...] = tuple(map(float, buckets))

    def listen(self, bus: Bus) -> None:
        """Count what C{bus} tells of."""
        bus.subscribe(RunFinished, self.finished)
        bus.subscribe(RunSkipped, self.skipped)
        bus.subscribe(RetryLaunched, self.retried)
        bus.subscribe(GaveUp, self.gave_up)
        bus.subscribe(SlaBreached, lambda event: self.breached(event.job.name, event.breach.check))
        bus.subscribe(JobSetChanged, self.job_set_changed)

    def read(self, job: str) -> JobCounts:
        """Return the counters of C{job} to be read."""
        return self._by_job.get(job, ZERO)

    def write(self, job: str) -> JobCounts | None:
        """Return the counters of C{job} to be changed; None if it is not configured."""
        counts = self._by_job.get(job)
        if counts is None and self._find_job(job) is not None:
            counts = self._by_job[job] = JobCounts()
        return counts

    def configure(self, buckets: Sequence[float]) -> None:
        """Take new histogram bounds (none: the default ones); a change zeroes all histograms."""
        bounds = tuple(map(float, buckets or DEFAULT_BUCKETS))
        if bounds != self.buckets:
            self.buckets = bounds
            for counts in self._by_job.values():
                counts.durations, counts.duration_sum = None, 0.0

    # events

    def finished(self, event: RunFinished) -> None:
        """Count a run that entered the history."""
        record = event.run.record
        if record.cause is not None and record.cause not in tables.COUNTS:
            return
        outcome = record.outcome
        if outcome == "replaced" or outcome == "unknown":
            return
        counts = self._by_job.get(record.job) or self.write(record.job)
        if counts is None:
            return
        if outcome == "success":
            counts.success += 1
            counts.last_success = record.finished_at
        elif outcome == "failure":
            counts.failure += 1
            counts.last_failure = record.finished_at
            if record.start_failed:
                counts.start_failures += 1
        else:
            counts.cancelled += 1
        if record.duration is not None:
            self.observe(counts, record.duration)
        if record.usage is not None or record.caps is not None:
            _add_resources(counts, record)

    def skipped(self, event: RunSkipped) -> None:
        """Count a row that was written for a paused job."""
        counts = self.write(event.record.job)
        if counts is not None:
            counts.skipped += 1

    def retried(self, event: RetryLaunched) -> None:
        """Count a retry that was launched."""
        counts = self.write(event.job)
        if counts is not None:
            counts.retries += 1

    def gave_up(self, event: GaveUp) -> None:
        """Count a permanent failure."""
        counts = self.write(event.job)
        if counts is not None:
            counts.permanent_failures += 1

    def breached(self, job: str, check: str) -> None:
        """Count a breach of C{check} that began."""
        counts = self.write(job)
        if counts is not None:
            breaches = counts.breaches = counts.breaches or {}
            breaches[check] = breaches.get(check, 0) + 1

    def job_set_changed(self, event: JobSetChanged) -> None:
        """Forget the jobs that are gone."""
        for name in event.removed:
            self._by_job.pop(name, None)

    def observe(self, counts: JobCounts, seconds: float) -> None:
        """Enter a duration in a job's histogram."""
        if counts.durations is None:
            counts.durations = [0] * (len(self.buckets) + 1)
        counts.durations[bisect_left(self.buckets, seconds)] += 1
        counts.duration_sum += seconds


def _add_resources(counts: JobCounts, record: RunRecord) -> None:
    usage = record.usage
    if usage is not None and usage.samples > 0:
        counts.cpu_count += 1
        counts.cpu_user += usage.cpu_user
        counts.cpu_system += usage.cpu_system
        if usage.max_rss is not None and usage.max_rss > counts.max_rss:
            counts.max_rss = usage.max_rss
    if record.caps is not None and record.caps.memory_exceeded:
        counts.memory_exceeded += 1
