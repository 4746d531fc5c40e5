"""
Values as JSON: what docs/http-api.md calls Run, Stats, Pause, slot and the parts of a Job.

Pure: nothing here asks for the time or keeps anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cronstable.config.values import JobConfig, ResourceLimits, Sla
from cronstable.executors.cgroups import CapsSupport
from cronstable.executors.host import HostUse
from cronstable.executors.interfaces import Leftover, Usage
from cronstable.runs import rows
from cronstable.runs.pauses import Pause
from cronstable.runs.record import RunRecord
from cronstable.runs.retry import PendingRetry
from cronstable.runs.run import Run
from cronstable.runs.sla import Breach
from cronstable.runs.slotbook import SlotEntry, SlotTicket
from cronstable.runs.trends import Ran
from cronstable.schedule import Schedule, lint
from cronstable.state.instants import to_text

Json = dict[str, Any]

HISTORY = 20
"""Runs of which a job shows outcome and duration."""


def iso(instant: float | None) -> str | None:
    """Return an instant as ISO 8601 in UTC, microseconds where it has any."""
    return None if instant is None else to_text(instant)


def seconds(value: float | None) -> float | None:
    """Return a duration, to the microsecond."""
    return None if value is None else round(value, 6)


def run(
    record: RunRecord,
    limits: ResourceLimits | None = None,
    *,
    series: bool = False,
    detail: bool = False,
) -> Json:
    """
    Return a Run; C{limits} are the caps that the job has now.

    C{series} adds the resource samples, C{detail} what the reference does not tell: why it ran,
    for which slot, and who ended it, where this process knows.
    """
    shown: Json = {
        "outcome": record.outcome,
        "exit_code": record.exit_code,
        "started_at": iso(record.started_at),
        "finished_at": iso(record.finished_at),
        "duration": seconds(record.duration),
        "fail_reason": record.fail_reason,
        "skip_reason": record.skip_reason,
        "resources": None if record.usage is None else usage(record.usage, series),
    }
    if record.outcome != "skipped":
        shown["ranAt"] = shown["finished_at"]
    if detail and record.cause is not None:
        shown["ref"] = record.ref
        shown["cause"] = record.cause
        shown["slot"] = iso(record.slot)
        shown["attempt"] = record.attempt
        shown["ended_by"] = record.ended_by
        shown["ended_by_whom"] = record.ended_by_whom
    if record.overlong_lines:
        shown["overlong_lines"] = record.overlong_lines
    if record.leftovers:
        shown["leftovers"] = leftovers(record.leftovers)
    if record.verification is not None:
        shown["verification"] = rows.verification(record.verification)
    if record.caps is not None:
        shown["limits"] = {
            **rows.limits(limits or ResourceLimits()),
            **rows.caps(record.caps),
        }
    return shown


def usage(used: Usage, series: bool = False) -> Json:
    """Return the resources that a finished run used."""
    shown = rows.resources(used, series=False)
    if series:
        shown["series"] = used.series
    return shown


def leftovers(processes: Sequence[Leftover]) -> list[Json]:
    """Return the processes that hold a run's output open after its command has exited."""
    return [{"pid": each.pid, "command": each.command} for each in processes]


def host_use(use: HostUse) -> Json:
    """Return what a node has in use."""
    return {
        "cpu_percent": use.cpu_percent,
        "cpu_count": use.cpu_count,
        "mem_percent": use.mem_percent,
        "mem_used_bytes": use.mem_used,
        "mem_total_bytes": use.mem_total,
        "proc_rss_bytes": use.proc_rss,
        "proc_cpu_percent": use.proc_cpu_percent,
    }


def caps_support(support: CapsSupport) -> Json:
    """Return whether this host can cap what jobs use."""
    return {
        "available": support.available,
        "mechanism": support.mechanism,
        "resources": list(support.resources),
        "reason": support.reason,
        "hint": support.hint,
    }


def stats(records: Sequence[Ran]) -> Json:
    """Return the statistics of some runs; the C{last_} ones are of the newest finish."""
    count = dict.fromkeys(("success", "failure", "cancelled", "unknown"), 0)
    for record in records:
        if record.outcome in count:
            count[record.outcome] += 1
    decided = count["success"] + count["failure"]
    last = None
    for record in records:
        if last is None or record.finished_at >= last.finished_at:
            last = record
    shown: Json = {
        "total": len(records),
        **count,
        "success_rate": count["success"] / decided if decided else None,
    }
    durations = [each.duration for each in records if each.duration is not None]
    shown["avg_duration"] = _mean(durations)
    shown["min_duration"] = min(durations, default=None)
    shown["max_duration"] = max(durations, default=None)
    shown["last_duration"] = None if last is None else last.duration
    last_usage = None if last is None else last.usage
    used = [each.usage for each in records if each.usage is not None]
    cpu = [each.cpu_user + each.cpu_system for each in used]
    shown["avg_cpu_seconds"] = _mean(cpu)
    shown["max_cpu_seconds"] = max(cpu, default=None)
    shown["last_cpu_seconds"] = last_usage and last_usage.cpu_user + last_usage.cpu_system
    rss = [each.max_rss for each in used if each.max_rss is not None]
    shown["avg_rss_bytes"] = _mean(rss)
    shown["max_rss_bytes"] = max(rss, default=None)
    shown["last_rss_bytes"] = last_usage and last_usage.max_rss
    return shown


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def pause(pause: Pause | None) -> Json | None:
    """Return a Pause."""
    if pause is None:
        return None
    return {
        "since": iso(pause.since),
        "until": iso(pause.until),
        "note": pause.note,
        "by": pause.by,
        "channel": pause.channel,
    }


def retry(pending: PendingRetry) -> Json:
    """Return an armed retry."""
    return {
        "attempt": pending.attempt,
        "maxAttempts": pending.maximum,
        "nextRetryAt": iso(pending.not_before),
        "delaySeconds": pending.delay,
    }


def sla(thresholds: Sla, breaches: Sequence[Breach], now: float) -> Json:
    """Return how a job stands with its thresholds; what a breach observed grows with C{now}."""
    keys = {
        "maxTimeSinceSuccessSeconds": thresholds.max_time_since_success,
        "lateAfterSeconds": thresholds.late_after,
        "maxRuntimeSeconds": thresholds.max_runtime,
    }
    return {
        "thresholds": {key: value for key, value in keys.items() if value is not None},
        "state": "late" if breaches else "ok",
        "breaches": [
            {
                "check": breach.check,
                "since": iso(breach.since),
                "observed_seconds": round(breach.observed + max(now - breach.judged, 0.0), 6),
                "threshold_seconds": breach.threshold,
            }
            for breach in breaches
        ],
    }


def job_definition(job: JobConfig) -> Json:
    """Return what a Job shows of its definition alone."""
    shown: Json = {
        "name": job.name,
        "enabled": job.enabled,
        "schedule": job.schedule_text,
        "command": job.command_text,
        "captureStdout": job.capture_stdout,
        "captureStderr": job.capture_stderr,
        "utc": job.utc,
        "timezone": job.timezone,
    }
    if job.schedule is not None and job.schedule.hashed:
        shown["schedule_resolved"] = job.schedule.resolved
    if job.concurrency_scope == "cluster":
        shown["concurrencyScope"] = "cluster"
        shown["slot"] = {"held": False, "holder": None, "refs": 0}
    if job.priority != "normal":
        shown["priority"] = job.priority
    if job.pool is not None:
        shown["pool"] = {
            "name": job.pool.name,
            "slots": job.pool.slots,
            "priority": job.pool.priority,
            "queueUnavailable": True,
        }
    if job.limits.any:
        shown["limits"] = rows.limits(job.limits)
    return shown


def findings(schedule: Schedule, now: float) -> list[Json]:
    """Return what a reader should know of a schedule."""
    return [
        {"code": each.code, "level": each.level, "message": each.message}
        for each in lint(schedule, now)
    ]


def job_past(runs: Sequence[RunRecord], last: RunRecord | None, limits: ResourceLimits) -> Json:
    """Return what a Job shows of its finished runs."""
    return {
        "last_run": None if last is None else run(last, limits),
        "history": [
            {"outcome": each.outcome, "duration": seconds(each.duration)}
            for each in runs[-HISTORY:]
        ],
    }


def live_instances(live: Iterable[Run]) -> list[Json]:
    """Return each live run: where it stands, and who holds its output open."""
    return [
        {
            "ref": each.ref,
            "pid": each.pid,
            "started_at": iso(each.started_at),
            "state": each.state,
            "cause": each.ticket.request.cause,
            "slot": iso(each.ticket.request.slot),
            "attempt": each.ticket.request.attempt,
            "output_held_by": leftovers(each.held),
        }
        for each in live
    ]


def running_resources(live: Iterable[Run]) -> Json | None:
    """Return what the sampled live runs of a job use together, None when none is sampled."""
    used = [each.usage for each in live if each.usage is not None]
    if not used:
        return None
    latest = [each.latest for each in used if each.latest is not None]
    return {
        "cpu_percent": round(sum(point[1] for point in latest), 2),
        "cpu_seconds": round(sum(each.cpu_user + each.cpu_system for each in used), 6),
        "rss_bytes": sum(point[2] for point in latest),
        "instances": len(used),
    }


def live_resources(live: Run) -> Json:
    """Return the samples of one live run, the newest of them as C{current}."""
    used = live.usage
    current = None
    if used is not None and used.latest is not None:
        current = {
            "cpu_seconds": round(used.cpu_user + used.cpu_system, 6),
            "cpu_percent": used.latest[1],
            "rss_bytes": used.latest[2],
        }
    return {
        "started_at": iso(live.started_at),
        "pid": live.pid,
        "current": current,
        "series": [] if used is None else used.series,
    }


def open_slot(ticket: SlotTicket) -> Json:
    """Return a slot whose consequence is not known yet."""
    return {
        "job": ticket.job,
        "slot": iso(ticket.slot),
        "result": "open",
        "reason": None,
        "started_at": None,
        "into": None,
    }


def closed_slot(entry: SlotEntry) -> Json:
    """Return a closed slot, or a range of them with its end and count."""
    shown: Json = {
        "job": entry.job,
        "slot": iso(entry.slot),
        "result": entry.result,
        "reason": entry.reason,
        "started_at": iso(entry.started_at),
        "into": iso(entry.into),
    }
    if entry.until is not None:
        shown["until"] = iso(entry.until)
        shown["count"] = entry.count
    return shown
