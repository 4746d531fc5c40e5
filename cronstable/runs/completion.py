"""
The end of a run: one literal sequence of direct calls.

One time stamp; history; retry; holds; lane; then the event for the faces, and last the reports.
Each step is tried even when the one before it failed, so that a run never stays live for it.
docs/runs.md lists the sequence.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from twisted.internet.defer import Deferred, succeed

from cronstable.clock import Clock
from cronstable.events import Bus
from cronstable.executors.interfaces import Ended
from cronstable.runs import tables
from cronstable.runs.admission import release
from cronstable.runs.history import History
from cronstable.runs.record import (
    EndedBy,
    FinishedRun,
    GaveUp,
    Outcome,
    RunFinished,
    RunRecord,
    Verification,
)
from cronstable.runs.retry import Retries
from cronstable.runs.run import Run
from cronstable.runs.verdict import exit_code, fail_reason

log = logging.getLogger("cronstable")

CUT = "cut by shutdown"


class Reporter(Protocol):
    """Sends the reports of one hook."""

    def report(self, hook: str, finished: FinishedRun) -> Deferred[None]:
        """Fire when every report of C{hook} was sent, given up, or met its bound."""


class NoReporter:
    """Reports nothing, at once."""

    def report(self, hook: str, finished: FinishedRun) -> Deferred[None]:
        """Fire at once."""
        return succeed(None)


class Completion:
    """Ends runs."""

    def __init__(
        self,
        clock: Clock,
        history: History,
        retries: Retries,
        bus: Bus,
        reporter: Reporter,
        leave_lane: Callable[[Run], None],
    ) -> None:
        self._clock = clock
        self._history = history
        self._retries = retries
        self._bus = bus
        self._leave_lane = leave_lane
        self.reporter = reporter
        self.remember: Callable[[FinishedRun], object] = lambda finished: None
        """Appends a finished run to what outlives the daemon."""
        self.stopping = False

    def complete(self, run: Run, ended: Ended, verification: Verification | None) -> None:
        """Record C{run}, whose process and check are over, and tell whoever should hear."""
        cause = run.ticket.request.cause
        finished = self._finished(run, ended, verification)
        record = finished.record
        run.state = "ended"
        if record.outcome == "replaced":
            log.info("Job %s was replaced by a newer instance", record.job)
        else:
            _log_end(record, finished)
        counts = record.outcome != "replaced"
        armed = False
        if counts and cause in tables.WRITES_HISTORY:
            self._try(self._history.add, record)
            self._try(self.remember, finished)
            armed = bool(self._try(self._settle_retries, run, record))
        self._try(release, run.holds)
        self._try(self._leave_lane, run)
        self._bus.publish(RunFinished(finished))
        if counts and cause in tables.REPORTS:
            self._try(self._report, run, finished, armed)
        run.ticket.end(record)

    def verdict(self, run: Run, ended: Ended) -> str | None:
        """Return why the command failed, or None; asked before a check is run."""
        return fail_reason(run.job, ended, run.captured.stdout, run.captured.stderr)

    def _finished(self, run: Run, ended: Ended, check: Verification | None) -> FinishedRun:
        reason = self.verdict(run, ended)
        if reason is None and check is not None and check.outcome == "failure":
            reason = f"verification failed: {check.fail_reason}"
        outcome, ended_by, reason = _outcome(run, ended, reason)
        now = self._clock.now()
        request = run.ticket.request
        stdout, stderr = run.captured.stdout, run.captured.stderr
        record = RunRecord(
            job=run.job.name,
            outcome=outcome,
            finished_at=max(now, run.started_at),
            exit_code=exit_code(ended),
            started_at=run.started_at,
            duration=max(self._clock.seconds() - run.started_mono, 0.0),
            fail_reason=reason,
            usage=ended.usage,
            verification=check,
            caps=ended.caps,
            cause=request.cause,
            slot=request.slot,
            attempt=request.attempt,
            ref=run.ref,
            ended_by=ended_by,
            ended_by_whom=run.whom,
            leftovers=ended.leftovers,
            start_failed=ended.cause == "not-started",
            overlong_lines=sum(each.overlong for each in (stdout, stderr) if each is not None),
        )
        given = run.given
        return FinishedRun(record, run.job, stdout, stderr, run.env, given.run_id, given.secrets)

    def _settle_retries(self, run: Run, record: RunRecord) -> bool:
        if record.outcome == "failure" and not self.stopping:
            return self._retries.failed(run.job, run.sequence)
        if record.outcome in ("success", "cancelled") and record.ended_by != "shutdown":
            reason = "succeeded" if record.outcome == "success" else "cancelled"
            self._retries.settled(record.job, run.sequence, reason)
        return False

    def _report(self, run: Run, finished: FinishedRun, armed: bool) -> None:
        record = finished.record
        if record.outcome == "success":
            self.reporter.report("onSuccess", finished)
            return
        if record.outcome != "failure" or self.stopping:
            return
        reported = self.reporter.report("onFailure", finished)
        sequence = run.sequence
        if armed and sequence is not None:
            attempt = sequence.count
            reported.addBoth(lambda _: self._retries.reported(sequence, attempt))
        else:
            self._bus.publish(GaveUp(record.job))
            reported.addBoth(lambda _: self.reporter.report("onPermanentFailure", finished))

    def _try(self, step: Callable[..., object], *arguments: object) -> object:
        try:
            return step(*arguments)
        except Exception:
            log.exception("please report this as a bug (6)")
            return None


def _outcome(run: Run, ended: Ended, reason: str | None) -> tuple[Outcome, EndedBy, str | None]:
    if run.intent == "replaced":
        return "replaced", "replaced", reason
    if run.intent == "cancel":
        return "cancelled", "cancel", reason or "cancelled"
    if run.intent == "shutdown":
        return "cancelled", "shutdown", CUT
    ended_by: EndedBy = "itself"
    if ended.cause == "timeout":
        ended_by = "timeout"
    elif ended.caps is not None and ended.caps.memory_exceeded:
        ended_by = "memory-limit"
    return ("success" if reason is None else "failure"), ended_by, reason


def _log_end(record: RunRecord, finished: FinishedRun) -> None:
    log.info(
        "Job %s exit code %s; has stdout: %s, has stderr: %s; fail_reason: %s",
        record.job,
        record.exit_code,
        _lower(finished.stdout is not None and finished.stdout.produced),
        _lower(finished.stderr is not None and finished.stderr.produced),
        record.fail_reason,
    )


def _lower(value: bool) -> str:
    return "true" if value else "false"
