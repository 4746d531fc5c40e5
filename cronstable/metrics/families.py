"""
The families that have series per job, written straight to text.

A scrape of ten thousand jobs has some three hundred thousand lines, so each family turns a slice
of rows into lines in one go.  docs/metrics.md lists the families.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cronstable.config.values import JobConfig
from cronstable.metrics.counts import JobCounts
from cronstable.metrics.exposition import Kind, bound_text, escape, number
from cronstable.metrics.interfaces import JobFacts
from cronstable.runs.record import RunRecord

SLOT_RESULTS = ("ran", "skipped", "missed", "merged")
_PLACE = "\0"


class Row:
    """One job in one scrape; C{label} is the text C{job_name="..."}, escaped."""

    __slots__ = ("counts", "facts", "job", "label")

    def __init__(self, job: JobConfig, counts: JobCounts, facts: JobFacts) -> None:
        self.job = job
        self.counts = counts
        self.facts = facts
        self.label = f'job_name="{escape(job.name)}"'


Rows = Sequence[Row]
Writer = Callable[[Rows], str]
JobFamily = tuple[str, Kind, str, Writer]


def job_families(buckets: Sequence[float]) -> Iterator[JobFamily]:
    """
    Yield each family as its name, kind, help and what writes its lines for some rows.

    A writer returns nothing where no row has a sample.
    """
    yield (
        "cronstable_job_runs_total",
        "counter",
        "Finished runs by outcome; skipped ones were held back by a pause.",
        _runs,
    )
    for name, help_text, field in (
        ("retries_total", "Retries launched.", "retries"),
        ("permanent_failures_total", "Failures after the last retry.", "permanent_failures"),
        ("start_failures_total", "Runs whose command could not be started.", "start_failures"),
    ):
        yield f"cronstable_job_{name}", "counter", help_text, _counter(name, field)
    yield (
        "cronstable_job_duration_seconds",
        "histogram",
        "How long runs took.",
        _durations(buckets),
    )
    yield from _counted_values()
    yield from _configured()
    yield from _standing()
    yield from _last_run()
    yield from _limits()
    yield (
        "cronstable_slots_total",
        "counter",
        "Due slots by what became of them.",
        _slots,
    )


def _counted_values() -> Iterator[JobFamily]:
    yield _gauge(
        "last_success_timestamp_seconds",
        "When a run last succeeded.",
        lambda row: row.counts.last_success,
    )
    yield _gauge(
        "last_failure_timestamp_seconds",
        "When a run last failed.",
        lambda row: row.counts.last_failure,
    )
    yield (
        "cronstable_job_cpu_seconds_total",
        "counter",
        "CPU time of monitored runs.",
        _cpu,
    )
    yield _gauge(
        "peak_rss_bytes",
        "The most memory that a monitored run held.",
        lambda row: row.counts.max_rss or None,
    )
    yield (
        "cronstable_job_sla_breaches_total",
        "counter",
        "Breaches of the job's sla that began.",
        _breaches,
    )


def _configured() -> Iterator[JobFamily]:
    yield (
        "cronstable_job_info",
        "info",
        "What the configuration says of a job.",
        _info,
    )
    yield _gauge("enabled", "Whether the job is enabled.", lambda row: int(row.job.enabled))


def _standing() -> Iterator[JobFamily]:
    yield _gauge("paused", "Whether the job is paused.", lambda row: int(row.facts.paused))
    yield (
        "cronstable_job_late",
        "gauge",
        "Whether a check of the job's sla is breached.",
        _late,
    )
    yield _gauge("running", "Live runs of the job.", lambda row: row.facts.running)
    yield _gauge(
        "next_run_timestamp_seconds",
        "When the job is due next.",
        lambda row: row.facts.next_fire if row.job.enabled else None,
    )


def _last_run() -> Iterator[JobFamily]:
    yield _gauge(
        "last_run_timestamp_seconds", "When the newest row was written.", _of_row("finished_at")
    )
    yield _gauge("last_run_duration_seconds", "How long the newest run took.", _of_row("duration"))
    yield _gauge("last_run_exit_code", "How the newest run exited.", _of_row("exit_code"))
    yield _gauge(
        "last_run_success",
        "Whether the newest run that was not skipped succeeded.",
        lambda row: (
            None if row.facts.last_run is None else int(row.facts.last_run.outcome == "success")
        ),
    )
    yield _gauge("last_run_cpu_seconds", "CPU time of the newest run.", _last_cpu)
    yield _gauge("last_run_max_rss_bytes", "Most memory of the newest run.", _last_rss)


def _limits() -> Iterator[JobFamily]:
    yield _gauge("cpu_limit_cpus", "The job's cap in CPUs.", lambda row: row.job.limits.cpu)
    yield _gauge("memory_limit_bytes", "The job's cap in bytes.", lambda row: row.job.limits.memory)
    yield _gauge(
        "process_limit", "The job's cap in processes.", lambda row: row.job.limits.processes
    )
    yield (
        "cronstable_job_memory_limit_exceeded_total",
        "counter",
        "Runs that the memory cap ended.",
        _memory_exceeded,
    )
    yield _gauge(
        "last_run_limits_enforced", "Whether all caps were in force in the newest run.", _enforced
    )


def _gauge(name: str, help_text: str, read: Callable[[Row], float | None]) -> JobFamily:
    """Return a gauge of those rows for which C{read} returns a value."""
    start = f"cronstable_job_{name}{{"

    def write(rows: Rows) -> str:
        return "".join(
            [
                f"{start}{row.label}}} {value if type(value) is int else number(value)}\n"
                for row in rows
                if (value := read(row)) is not None
            ]
        )

    return f"cronstable_job_{name}", "gauge", help_text, write


def _counter(name: str, field: str) -> Writer:
    start = f"cronstable_job_{name}{{"

    def write(rows: Rows) -> str:
        return "".join([f"{start}{row.label}}} {getattr(row.counts, field)}\n" for row in rows])

    return write


def _runs(rows: Rows) -> str:
    start = "cronstable_job_runs_total{"
    lines = []
    for row in rows:
        head, counts = start + row.label, row.counts
        lines.append(
            f'{head},status="success"}} {counts.success}\n'
            f'{head},status="failure"}} {counts.failure}\n'
            f'{head},status="cancelled"}} {counts.cancelled}\n'
            f'{head},status="skipped"}} {counts.skipped}\n'
        )
    return "".join(lines)


def _durations(buckets: Sequence[float]) -> Writer:
    name = "cronstable_job_duration_seconds"
    ends = [f',le="{bound}"}} ' for bound in (*map(bound_text, buckets), "+Inf")]
    start = f"{name}_bucket{{"
    empty = "".join(f"{start}{_PLACE}{end}0\n" for end in ends)
    empty += f"{name}_sum{{{_PLACE}}} 0\n{name}_count{{{_PLACE}}} 0\n"

    def write(rows: Rows) -> str:
        return "".join([one(row) for row in rows])

    def one(row: Row) -> str:
        label, durations = row.label, row.counts.durations
        if durations is None:
            return empty.replace(_PLACE, label)
        head = start + label
        seen = 0
        lines = []
        for end, count in zip(ends, durations, strict=True):
            seen += count
            lines.append(f"{head}{end}{seen}\n")
        total = row.counts.duration_sum
        lines.append(f"{name}_sum{{{label}}} {total!r}\n{name}_count{{{label}}} {seen}\n")
        return "".join(lines)

    return write


def _cpu(rows: Rows) -> str:
    start = "cronstable_job_cpu_seconds_total{"
    return "".join(
        [
            f'{start}{row.label},mode="user"}} {row.counts.cpu_user!r}\n'
            f'{start}{row.label},mode="system"}} {row.counts.cpu_system!r}\n'
            for row in rows
            if row.counts.cpu_count
        ]
    )


def _breaches(rows: Rows) -> str:
    start = "cronstable_job_sla_breaches_total{"
    lines = []
    for row in rows:
        if row.facts.late is None:
            continue
        counted = row.counts.breaches or {}
        for check in sorted(row.facts.late):
            lines.append(f'{start}{row.label},check="{check}"}} {counted.get(check, 0)}\n')
    return "".join(lines)


def _late(rows: Rows) -> str:
    start = "cronstable_job_late{"
    return "".join(
        [
            f'{start}{row.label},check="{check}"}} {int(late)}\n'
            for row in rows
            if row.facts.late is not None
            for check, late in sorted(row.facts.late.items())
        ]
    )


def _info(rows: Rows) -> str:
    start = "cronstable_job_info{"
    return "".join(
        [
            f'{start}{row.label},schedule="{escape(row.job.schedule_text)}",'
            f'cluster_policy="{row.job.cluster_policy}"}} 1\n'
            for row in rows
        ]
    )


def _slots(rows: Rows) -> str:
    start = "cronstable_slots_total{"
    return "".join(
        [
            f'{start}{row.label},result="{result}"}} {row.facts.slots.get(result, 0)}\n'
            for row in rows
            if row.facts.slots
            for result in SLOT_RESULTS
        ]
    )


def _memory_exceeded(rows: Rows) -> str:
    start = "cronstable_job_memory_limit_exceeded_total{"
    return "".join(
        [
            f"{start}{row.label}}} {row.counts.memory_exceeded}\n"
            for row in rows
            if row.job.limits.memory is not None
        ]
    )


def _of_row(field: str) -> Callable[[Row], float | None]:
    def read(row: Row) -> float | None:
        value: float | None = getattr(row.facts.last_row, field, None)
        return value

    return read


def _last_cpu(row: Row) -> float | None:
    usage = _sampled(row.facts.last_row)
    return None if usage is None else usage[0]


def _last_rss(row: Row) -> float | None:
    usage = _sampled(row.facts.last_row)
    return None if usage is None else usage[1]


def _sampled(record: RunRecord | None) -> tuple[float, int | None] | None:
    """Return CPU seconds and memory of a run that was sampled."""
    if record is None or record.usage is None or record.usage.samples <= 0:
        return None
    usage = record.usage
    return round(usage.cpu_user + usage.cpu_system, 6), usage.max_rss


def _enforced(row: Row) -> float | None:
    record = row.facts.last_row
    if record is None or record.caps is None or not row.job.limits.any:
        return None
    return int(record.caps.enforced)
