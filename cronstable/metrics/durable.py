"""
Counters that outlive the process: one record out, one record in.

docs/metrics.md, "Restarts", has the record's shape; what is damaged is skipped, field by field.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from typing import Any

from cronstable.config.values import JobConfig
from cronstable.metrics.counts import ZERO, Counts, JobCounts
from cronstable.state.instants import to_text

STATUSES = ("success", "failure", "cancelled", "skipped")
_SLICE = 500


def snapshot(counts: Counts, jobs: Collection[JobConfig], at: float) -> dict[str, Any]:
    """Return the record of all counters of C{jobs}, as they are at C{at} (epoch seconds)."""
    steps = snapshot_in_steps(counts, jobs, at)
    while True:
        try:
            next(steps)
        except StopIteration as over:
            record: dict[str, Any] = over.value
            return record


def snapshot_in_steps(
    counts: Counts, jobs: Collection[JobConfig], at: float
) -> Generator[None, None, dict[str, Any]]:
    """Return the same record in steps of a millisecond or two, for a reactor that is busy."""
    nothing = _job_record(ZERO, len(counts.buckets))
    shown: dict[str, Any] = {}
    for number, job in enumerate(tuple(jobs), 1):
        of = counts.read(job.name)
        shown[job.name] = nothing if of is ZERO else _job_record(of, len(counts.buckets))
        if number % _SLICE == 0:
            yield
    return {
        "at": to_text(at),
        "buckets": list(counts.buckets),
        "jobs": shown,
    }


def seed(counts: Counts, record: Mapping[str, Any]) -> int:
    """
    Add what an earlier process counted; return how many jobs got something.

    Only configured jobs are seeded; durations only where C{record} has the bounds in force.
    """
    jobs = record.get("jobs")
    if not isinstance(jobs, Mapping):
        return 0
    same_bounds = record.get("buckets") == list(counts.buckets)
    seeded = 0
    for name, kept in jobs.items():
        if not isinstance(kept, Mapping) or not isinstance(name, str):
            continue
        of = counts.write(name)
        if of is not None:
            _seed_job(of, kept)
            if same_bounds:
                _seed_durations(counts, of, kept)
            seeded += 1
    return seeded


def _job_record(of: JobCounts, bounds: int) -> dict[str, Any]:
    cumulative = []
    seen = 0
    for count in (of.durations or [0] * (bounds + 1))[:-1]:
        seen += count
        cumulative.append(seen)
    record = {
        "runs": {status: number for status in STATUSES if (number := getattr(of, status))},
        "retries": of.retries,
        "permanent_failures": of.permanent_failures,
        "start_failures": of.start_failures,
        "duration_sum": of.duration_sum,
        "duration_count": sum(of.durations or ()),
        "bucket_counts": cumulative,
        "last_success_time": of.last_success,
        "last_failure_time": of.last_failure,
        "cpu_user_sum": of.cpu_user,
        "cpu_system_sum": of.cpu_system,
        "cpu_count": of.cpu_count,
        "max_rss_observed": of.max_rss,
        "sla_breaches": dict(of.breaches or {}),
    }
    if of.memory_exceeded:
        record["memory_limit_exceeded"] = of.memory_exceeded
    return record


def _seed_job(of: JobCounts, kept: Mapping[str, Any]) -> None:
    runs = kept.get("runs")
    if isinstance(runs, Mapping):
        for status in STATUSES:
            setattr(of, status, getattr(of, status) + _count(runs.get(status)))
    of.retries += _count(kept.get("retries"))
    of.permanent_failures += _count(kept.get("permanent_failures"))
    of.start_failures += _count(kept.get("start_failures"))
    of.memory_exceeded += _count(kept.get("memory_limit_exceeded"))
    of.cpu_count += _count(kept.get("cpu_count"))
    of.cpu_user += _amount(kept.get("cpu_user_sum"))
    of.cpu_system += _amount(kept.get("cpu_system_sum"))
    of.max_rss = max(of.max_rss, _count(kept.get("max_rss_observed")))
    of.last_success = _later(of.last_success, kept.get("last_success_time"))
    of.last_failure = _later(of.last_failure, kept.get("last_failure_time"))
    breaches = kept.get("sla_breaches")
    if isinstance(breaches, Mapping):
        for check, number in breaches.items():
            if isinstance(check, str) and _count(number):
                of.breaches = of.breaches or {}
                of.breaches[check] = of.breaches.get(check, 0) + _count(number)


def _seed_durations(counts: Counts, of: JobCounts, kept: Mapping[str, Any]) -> None:
    """Add a histogram; one of which any part is damaged is left out whole."""
    cumulative, total = kept.get("bucket_counts"), kept.get("duration_count")
    if not isinstance(cumulative, list) or len(cumulative) != len(counts.buckets):
        return
    if not all(map(_is_count, (*cumulative, total))) or not _is_amount(kept.get("duration_sum")):
        return
    steps = [*cumulative, total]
    if steps != sorted(steps) or not total:
        return
    if of.durations is None:
        of.durations = [0] * len(steps)
    before = 0
    for index, seen in enumerate(steps):
        of.durations[index] += seen - before
        before = seen
    of.duration_sum += kept["duration_sum"]


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_amount(value: object) -> bool:
    # Below the limits of a float, so that what is added to it stays a number.
    return type(value) in (int, float) and 0 <= value < 1e300  # type: ignore[operator]


def _count(value: Any) -> int:
    """Return C{value} if it is a good count, else 0."""
    return value if _is_count(value) else 0


def _amount(value: Any) -> float:
    """Return C{value} if it is a good amount, else 0."""
    return value if _is_amount(value) else 0.0


def _later(known: float | None, value: Any) -> float | None:
    """Return the later of two instants, of which the second may be damaged."""
    if not _is_amount(value):
        return known
    return float(value) if known is None else max(known, float(value))
