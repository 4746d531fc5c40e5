"""
What is remembered of a run: immutable values that history, ledger, reports and pages share.

Instants are epoch seconds (UTC), durations seconds.  docs/runs.md specifies the outcomes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from cronstable.config.values import JobConfig
from cronstable.executors.interfaces import CapsReport, Leftover, Usage

Outcome = Literal["success", "failure", "cancelled", "skipped", "unknown", "replaced"]
Cause = Literal["scheduled", "boot", "retry", "catchup", "manual", "task"]
EndedBy = Literal["itself", "timeout", "cancel", "shutdown", "replaced", "memory-limit"]

START_FAILED = 127
TIMED_OUT = -100


@attrs.frozen
class StreamText:
    """The kept part of one captured stream, with exact counts of what was dropped."""

    text: str
    """First and last lines; a marker line between them says how many were discarded."""
    discarded: int = 0
    """Lines left out between the kept ones."""
    overlong: int = 0
    """Lines dropped whole because they passed maxLineLength."""
    first: str = ""
    """The text before the marker (all of it when nothing was discarded)."""
    order: tuple[tuple[int, int], ...] = ()
    """Of which read of the run's output how many lines are, one read after another."""

    @property
    def produced(self) -> bool:
        """Whether the stream counts as written to."""
        return bool(self.text) or self.discarded > 0


@attrs.frozen
class Verification:
    """How a verification check went."""

    outcome: Literal["success", "failure"]
    exit_code: int | None
    fail_reason: str | None
    started_at: float
    finished_at: float
    duration: float
    stdout: str = ""
    stderr: str = ""
    stdout_discarded: int = 0
    stderr_discarded: int = 0
    output_truncated: bool = False


@attrs.frozen
class RunRecord:
    """One finished (or skipped) run, as listings show it."""

    job: str
    outcome: Outcome
    finished_at: float
    exit_code: int | None = None
    started_at: float | None = None
    duration: float | None = None
    fail_reason: str | None = None
    skip_reason: str | None = None
    usage: Usage | None = None
    verification: Verification | None = None
    caps: CapsReport | None = None
    cause: Cause | None = "scheduled"
    """None for a run read from the ledger, whose rows do not tell it, nor what follows here."""
    slot: int | None = None
    attempt: int = 0
    ref: str | None = None
    """The reference of the attempt; None for a run that never reached an executor."""
    ended_by: EndedBy = "itself"
    ended_by_whom: str | None = None
    """Who asked for a cancel, when someone did."""
    leftovers: tuple[Leftover, ...] = ()
    overlong_lines: int = 0
    start_failed: bool = False
    """Whether no process ever ran (exit code 127); a command may also exit 127 by itself."""


@attrs.frozen
class FinishedRun:
    """A record with what only reports and archives need."""

    record: RunRecord
    job: JobConfig
    """The definition that the run was launched with."""
    stdout: StreamText | None
    """None when the stream was not captured."""
    stderr: StreamText | None
    environment: Mapping[str, str] | None = attrs.field(default=None, repr=False)
    """The whole environment of the child; None when the configuration adds nothing to it."""
    run_id: str | None = None
    secrets: tuple[str, ...] = attrs.field(default=(), repr=False)
    """Values that the run was given and that nothing may show."""


@attrs.frozen
class RunStarted:
    """Published when a run's process exists."""

    job: JobConfig
    ref: str
    pid: int
    started_at: float
    cause: Cause
    slot: int | None
    attempt: int


@attrs.frozen
class RunFinished:
    """Published at the end of the completion sequence, after everything is recorded."""

    run: FinishedRun


@attrs.frozen
class RunSkipped:
    """Published when a paused job's slot leaves a C{skipped} row in the history."""

    record: RunRecord


@attrs.frozen
class RetryScheduled:
    """Published when a failed run's retry is armed; instants in epoch seconds."""

    job: str
    attempt: int
    not_before: float
    delay: float


@attrs.frozen
class RetryLaunched:
    """Published when an armed retry starts its process."""

    job: str
    attempt: int


@attrs.frozen
class GaveUp:
    """Published when onPermanentFailure applies: no retry is left."""

    job: str


@attrs.frozen
class PauseChanged:
    """Published when a job is paused or resumed."""

    job: str
    paused: bool


@attrs.frozen
class JobSetChanged:
    """Published after a new set of jobs is in force."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
