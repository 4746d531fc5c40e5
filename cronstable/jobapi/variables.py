"""
The variables that tell a process where the job API is and which run it belongs to.

docs/job-api.md, "Variables", lists them.
"""

from __future__ import annotations

from cronstable.jobapi.client import CACERT, URL
from cronstable.runs.environment import RunFacts
from cronstable.state.instants import to_text

_WITHOUT_SLOT = frozenset({"manual", "boot", "task"})


def scheduled_at(run: RunFacts) -> str:
    """Return the slot that C{run} stands for, in ISO 8601; empty for a run without one."""
    if run.slot is None or run.cause in _WITHOUT_SLOT:
        return ""
    return to_text(run.slot)


def variables(run: RunFacts, run_id: str, host: str, url: str, ca: str | None) -> dict[str, str]:
    """Return the variables of C{run}, but for its token."""
    given = {
        URL: url,
        "CRONSTABLE_RUN_ID": run_id,
        "CRONSTABLE_JOB_NAME": run.job.name,
        "CRONSTABLE_ATTEMPT": str(run.attempt),
        "CRONSTABLE_SCHEDULED_AT": scheduled_at(run),
        "CRONSTABLE_HOST": host,
    }
    if ca:
        given[CACERT] = ca
    return given
