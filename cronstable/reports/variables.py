"""
What a report knows: the variables of its templates, and those of a shell reporter.

docs/reporting.md, "Variables", specifies names, types and when a value is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from cronstable.config.values import JobConfig, ResourceLimits
from cronstable.executors.interfaces import CapsReport
from cronstable.runs import rows
from cronstable.runs.record import FinishedRun, StreamText, Verification
from cronstable.state.instants import to_text

Variables = dict[str, Any]

STREAM_LIMIT = 16384
"""Characters of each stream that a shell reporter is given; the first ones are kept."""

_OUTPUT = ("stdout", "stderr", "fail_reason", "message", "environment", "verification")


def of_run(finished: FinishedRun, host: str) -> Variables:
    """Return the variables of a report on C{finished}."""
    record, job = finished.record, finished.job
    usage = record.usage if record.usage is not None and record.usage.samples > 0 else None
    return {
        **_of_job(job, host),
        "success": record.outcome == "success",
        "fail_reason": record.fail_reason,
        "stdout": None if record.start_failed else _text(finished.stdout),
        "stderr": None if record.start_failed else _text(finished.stderr),
        "exit_code": record.exit_code,
        "environment": None if finished.environment is None else dict(finished.environment),
        "started_at": instant(record.started_at),
        "run_id": finished.run_id,
        "cpu_seconds": usage and round(usage.cpu_user + usage.cpu_system, 6),
        "cpu_user_seconds": usage and usage.cpu_user,
        "cpu_system_seconds": usage and usage.cpu_system,
        "max_rss_bytes": usage and usage.max_rss,
        "verification": _verification(record.verification),
        "limits": _limits(job.limits, record.caps),
    }


def of_lateness(
    job: JobConfig,
    host: str,
    check: str,
    threshold: float,
    observed: float,
    last_success_at: float | None,
) -> Variables:
    """Return the variables of a report that C{job} missed C{check} of its C{sla}."""
    return {
        **_of_job(job, host),
        **dict.fromkeys(_RUN_FIELDS),
        "success": False,
        "fail_reason": f"sla: {check} breached",
        "environment": {"HOSTNAME": host, **dict(job.environment)},
        "sla_check": check,
        "threshold_seconds": threshold,
        "observed_seconds": observed,
        "last_success_at": instant(last_success_at),
    }


def of_event(event: str, host: str, details: Mapping[str, Any]) -> Variables:
    """Return the variables of a notification of C{event}; C{details} adds its own."""
    return {
        **dict.fromkeys(_RUN_FIELDS),
        "environment": {"HOSTNAME": host},
        "subject": "",
        "message": "",
        "name": "",
        **details,
        "event": event,
        "host": host,
        "success": False,
    }


def masked(variables: Variables, mask: Callable[[str], str]) -> Variables:
    """Return C{variables} with C{mask} applied to whatever a program has written or was given."""
    return {
        name: _masked(value, mask) if name in _OUTPUT else value
        for name, value in variables.items()
    }


def shell_variables(variables: Variables) -> dict[str, str]:
    """Return the C{CRONSTABLE_*} variables of a shell reporter; every one is always set."""
    stdout, stdout_cut = _beginning(variables.get("stdout"))
    stderr, stderr_cut = _beginning(variables.get("stderr"))
    limits = variables.get("limits") or {}
    late = variables.get("sla_check") is not None
    command = variables.get("command") or ""
    values: dict[str, Any] = {
        "FAIL_REASON": variables.get("fail_reason"),
        "FAILED": not variables["success"],
        "JOB_NAME": variables.get("name"),
        "JOB_COMMAND": command if isinstance(command, str) else " ".join(command),
        "JOB_SCHEDULE": variables.get("schedule"),
        "RETCODE": "None" if late else variables.get("exit_code"),
        "STDOUT": stdout,
        "STDERR": stderr,
        "STDOUT_TRUNCATED": stdout_cut,
        "STDERR_TRUNCATED": stderr_cut,
        "CPU_SECONDS": variables.get("cpu_seconds"),
        "MAX_RSS_BYTES": variables.get("max_rss_bytes"),
        "HOST": variables.get("host"),
        "RUN_ID": variables.get("run_id"),
        "STARTED_AT": variables.get("started_at"),
        "SLA_CHECK": variables.get("sla_check"),
        "SLA_THRESHOLD_SECONDS": variables.get("threshold_seconds"),
        "SLA_OBSERVED_SECONDS": variables.get("observed_seconds"),
        "LAST_SUCCESS_AT": variables.get("last_success_at"),
        "LIMITS_ENFORCED": limits.get("enforced"),
        "MEMORY_LIMIT_EXCEEDED": _memory_exceeded(limits),
    }
    if "event" in variables:
        values["EVENT"] = variables["event"]
        values["SUBJECT"] = variables["subject"]
        values["MESSAGE"] = variables["message"]
    return {f"CRONSTABLE_{name}": _environment_text(value) for name, value in values.items()}


def instant(seconds: float | None) -> str | None:
    """Return epoch seconds as ISO 8601 text in UTC, or None."""
    return None if seconds is None else to_text(seconds)


_RUN_FIELDS = (
    "fail_reason",
    "stdout",
    "stderr",
    "exit_code",
    "command",
    "shell",
    "environment",
    "schedule",
    "started_at",
    "run_id",
    "cpu_seconds",
    "cpu_user_seconds",
    "cpu_system_seconds",
    "max_rss_bytes",
    "verification",
    "limits",
)


def _of_job(job: JobConfig, host: str) -> Variables:
    return {
        "name": job.name,
        "command": job.command if isinstance(job.command, str) else list(job.command),
        "shell": job.shell,
        "schedule": job.schedule_text,
        "host": host,
    }


def _text(stream: StreamText | None) -> str | None:
    return None if stream is None else stream.text


def _verification(check: Verification | None) -> Variables | None:
    if check is None:
        return None
    return {
        **attrs.asdict(check, recurse=False),
        "started_at": instant(check.started_at),
        "finished_at": instant(check.finished_at),
        "limits": None,
    }


def _limits(limits: ResourceLimits, caps: CapsReport | None) -> Variables | None:
    if caps is None or not limits.any:
        return None
    return {**rows.limits(limits), **rows.caps(caps)}


def _memory_exceeded(limits: Mapping[str, Any]) -> bool | None:
    """Whether the memory cap ended the run; None where no such cap was in force."""
    if limits.get("memory_exceeded"):
        return True
    return False if limits.get("enforced") and limits.get("memory_bytes") is not None else None


def _masked(value: Any, mask: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {key: _masked(each, mask) for key, each in value.items()}
    return value


def _beginning(text: str | None) -> tuple[str, bool]:
    text = text or ""
    return text[:STREAM_LIMIT], len(text) > STREAM_LIMIT


def _environment_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value).replace("\0", "\N{REPLACEMENT CHARACTER}")
