"""Finished runs for tests of reports."""

from __future__ import annotations

from typing import Any

from cronstable.config.values import JobConfig
from cronstable.executors.interfaces import Usage
from cronstable.runs.record import FinishedRun, RunRecord, StreamText
from tests.fakes import job

STARTED = 1_767_225_600.25
USAGE = Usage(cpu_user=0.5, cpu_system=0.25, max_rss=1048576, samples=3)


def text(content: str) -> StreamText:
    """Return a captured stream of which nothing was left out."""
    return StreamText(text=content, first=content)


def finished(
    outcome: str = "failure",
    *,
    of: JobConfig | None = None,
    stdout: str | None = None,
    stderr: str | None = "",
    environment: dict[str, str] | None = None,
    run_id: str | None = None,
    **record: Any,
) -> FinishedRun:
    """Return a finished run; C{record} are fields of its L{RunRecord}."""
    of = of or job()
    fields: dict[str, Any] = {
        "exit_code": 0 if outcome == "success" else 2,
        "fail_reason": None if outcome == "success" else "command exited with code 2",
        "started_at": STARTED,
        "duration": 1.5,
    }
    return FinishedRun(
        RunRecord(job=of.name, outcome=outcome, finished_at=STARTED + 1.5, **{**fields, **record}),
        of,
        None if stdout is None else text(stdout),
        None if stderr is None else text(stderr),
        environment,
        run_id,
    )
