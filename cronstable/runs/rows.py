"""
Rows of the run ledger: how a finished run is spelled in the store, and read back.

Pure.  docs/store-format.md, "The ledger", specifies the fields.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from cronstable.config.values import ResourceLimits
from cronstable.executors.interfaces import CapsReport, Usage
from cronstable.runs.record import FinishedRun, RunRecord, Verification
from cronstable.state.instants import from_text, to_text

Row = dict[str, Any]

OUTCOMES = ("success", "failure", "cancelled", "skipped", "unknown")


def row_of(record: RunRecord, owed: bool = False) -> Row:
    """
    Return the row of a run; an C{owed} one has no finish, so that its slot is caught up with.
    """
    row: Row = {
        "outcome": record.outcome,
        "exit_code": record.exit_code,
        "started_at": _text(record.started_at),
        "duration": _rounded(record.duration),
        "fail_reason": record.fail_reason,
        "skip_reason": record.skip_reason,
        "resources": None if record.usage is None else resources(record.usage),
    }
    if owed:
        row["interruptedAt"] = to_text(record.finished_at)
    else:
        row["finished_at"] = to_text(record.finished_at)
        if record.outcome != "skipped":
            row["ranAt"] = row["finished_at"]
    if record.verification is not None:
        row["verification"] = verification(record.verification)
    if record.caps is not None:
        row["limits"] = caps(record.caps)
    if record.cause == "catchup":
        row["catchup"] = True
    return row


def leaves_retries(row: Mapping[str, Any]) -> bool:
    """Return whether a row is of a run that touches no pending retry: a backfill that failed."""
    return row.get("catchup") is True and row.get("outcome") != "success"


def interrupted(started_at: float, host: str, owed: bool) -> Row:
    """Return the row of a run of which no completion was recorded."""
    started = to_text(started_at)
    row: Row = {
        "outcome": "unknown",
        "exit_code": None,
        "started_at": None,
        "duration": None,
        "fail_reason": (
            f"run interrupted: no completion was recorded for the run started at {started} on"
            f" {host}. The server may have stopped or lost access to saved state before completion"
        ),
        "skip_reason": None,
        "resources": None,
    }
    if owed:
        row["interruptedAt"] = started
    else:
        row["finished_at"] = row["ranAt"] = started
    return row


def record_of(job: str, row: Mapping[str, Any]) -> RunRecord | None:
    """Return the run that a row tells of, None if it tells of none."""
    outcome = row.get("outcome")
    finished_at = from_text(row.get("finished_at")) or from_text(row.get("interruptedAt"))
    if outcome not in OUTCOMES or finished_at is None:
        return None
    code = row.get("exit_code")
    return RunRecord(
        job=job,
        outcome=outcome,
        finished_at=finished_at,
        exit_code=code if isinstance(code, int) and not isinstance(code, bool) else None,
        started_at=from_text(row.get("started_at")),
        duration=number(row.get("duration")),
        fail_reason=_maybe_text(row.get("fail_reason")),
        skip_reason=_maybe_text(row.get("skip_reason")),
        usage=_usage(row.get("resources")),
        verification=_check_of(row.get("verification")),
        caps=_limits_of(row.get("limits")),
        cause=None,
    )


def archive_of(run: FinishedRun, lines: list[dict[str, str]], redacted: bool) -> Row:
    """Return the row of a run's archived output; C{lines} as they are to be kept."""
    record = run.record
    streams = [each for each in (run.stdout, run.stderr) if each is not None]
    return {
        "finished_at": to_text(record.finished_at),
        "outcome": record.outcome,
        "exit_code": record.exit_code,
        "redacted": redacted,
        "dropped_lines": sum(each.discarded for each in streams),
        "lines": lines,
    }


def archive_lines(
    run: FinishedRun, mask: Callable[[str], str] = lambda text: text
) -> list[dict[str, str]]:
    """
    Return the kept lines of both streams as they came, masked, each with its newline.

    Where C{mask} leaves fewer lines of a stream than there were, later ones move up.
    """
    pieces: list[tuple[int, str, list[str]]] = []
    for name, stream in (("stderr", run.stderr), ("stdout", run.stdout)):
        if stream is None:
            continue
        lines, at, read = lines_of(mask(stream.text)), 0, 0
        for read, count in stream.order:
            pieces.append((read, name, lines[at : at + count]))
            at += count
        pieces.append((read, name, lines[at:]))
    pieces.sort(key=lambda piece: piece[0])
    return [{"stream": name, "line": line} for _, name, lines in pieces for line in lines]


def lines_of(text: str) -> list[str]:
    """Return the lines of C{text}, each with its newline; nothing else ends one."""
    whole = [line + "\n" for line in text.split("\n")]
    last = whole.pop()[:-1]
    return [*whole, last] if last else whole


def _text(instant: float | None) -> str | None:
    return None if instant is None else to_text(instant)


def resources(usage: Usage, series: bool = True) -> Row:
    """Return the resources that a run used; the C{series} of samples if there are any."""
    row: Row = {
        "cpu_user_seconds": usage.cpu_user,
        "cpu_system_seconds": usage.cpu_system,
        "cpu_total_seconds": _rounded(usage.cpu_user + usage.cpu_system),
        "max_rss_bytes": usage.max_rss,
        "samples": usage.samples,
    }
    if series and usage.series:
        row["series"] = [list(point) for point in usage.series]
    return row


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    user, system = number(value.get("cpu_user_seconds")), number(value.get("cpu_system_seconds"))
    rss, samples = number(value.get("max_rss_bytes")), number(value.get("samples"))
    return Usage(
        user or 0.0,
        system or 0.0,
        None if rss is None else int(rss),
        int(samples or 0),
        _series(value.get("series")),
    )


def _series(value: Any) -> tuple[tuple[float, float, int], ...]:
    points = []
    for point in value if isinstance(value, list) else ():
        if isinstance(point, list) and len(point) == 3:
            at, percent, rss = (number(part) for part in point)
            if at is not None and percent is not None and rss is not None:
                points.append((at, percent, int(rss)))
    return tuple(points)


def verification(check: Verification) -> Row:
    """Return how a verification check went."""
    return {
        "outcome": check.outcome,
        "exit_code": check.exit_code,
        "fail_reason": check.fail_reason,
        "started_at": to_text(check.started_at),
        "finished_at": to_text(check.finished_at),
        "duration": _rounded(check.duration),
        "stdout": check.stdout,
        "stderr": check.stderr,
        "stdout_discarded": check.stdout_discarded,
        "stderr_discarded": check.stderr_discarded,
        "output_truncated": check.output_truncated,
        "limits": None,
    }


def _check_of(value: Any) -> Verification | None:
    if not isinstance(value, dict):
        return None
    started, finished = from_text(value.get("started_at")), from_text(value.get("finished_at"))
    if started is None or finished is None or value.get("outcome") not in ("success", "failure"):
        return None
    code = value.get("exit_code")
    return Verification(
        outcome=value["outcome"],
        exit_code=code if isinstance(code, int) else None,
        fail_reason=_maybe_text(value.get("fail_reason")),
        started_at=started,
        finished_at=finished,
        duration=number(value.get("duration")) or 0.0,
        stdout=_maybe_text(value.get("stdout")) or "",
        stderr=_maybe_text(value.get("stderr")) or "",
        stdout_discarded=int(number(value.get("stdout_discarded")) or 0),
        stderr_discarded=int(number(value.get("stderr_discarded")) or 0),
        output_truncated=value.get("output_truncated") is True,
    )


def limits(configured: ResourceLimits) -> Row:
    """Return the caps that a job is configured with."""
    return {
        "cpu": configured.cpu,
        "memory_bytes": configured.memory,
        "processes": configured.processes,
        "required": configured.required,
    }


def caps(report: CapsReport) -> Row:
    """Return what the caps of a run did."""
    return {
        "enforced": report.enforced,
        "mechanism": report.mechanism,
        "unenforced": list(report.unenforced),
        "reason": report.reason,
        "refused": report.refused,
        "memory_exceeded": report.memory_exceeded,
        "process_limit_hits": report.process_limit_hits if report.enforced else None,
        "peak_memory_bytes": report.peak_memory,
        "cpu_throttled_seconds": report.cpu_throttled,
    }


def _limits_of(value: Any) -> CapsReport | None:
    if not isinstance(value, dict):
        return None
    peak = number(value.get("peak_memory_bytes"))
    names = value.get("unenforced")
    return CapsReport(
        enforced=value.get("enforced") is True,
        mechanism=_maybe_text(value.get("mechanism")),
        unenforced=tuple(map(str, names)) if isinstance(names, list) else (),
        reason=_maybe_text(value.get("reason")),
        refused=value.get("refused") is True,
        memory_exceeded=value.get("memory_exceeded") is True,
        process_limit_hits=int(number(value.get("process_limit_hits")) or 0),
        peak_memory=None if peak is None else int(peak),
        cpu_throttled=number(value.get("cpu_throttled_seconds")),
    )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)


def number(value: Any) -> float | None:
    """Return a finite number, None for anything else that a foreign or damaged row may hold."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _maybe_text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
