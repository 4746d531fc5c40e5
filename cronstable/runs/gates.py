"""
What a gate may answer, and the gates that every daemon has.

A judgement changes nothing and answers None (go on) or a L{No}.  A claim takes something and
answers a hold or a L{No}.  Either may answer later, with a Deferred.

docs/admission.md lists the gates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import attrs
from twisted.internet.defer import Deferred

from cronstable.clock import Clock
from cronstable.config.values import JobConfig
from cronstable.runs.history import History
from cronstable.runs.pauses import Pauses
from cronstable.runs.record import Cause
from cronstable.runs.request import RunRequest
from cronstable.runs.retry import RetrySequence


@attrs.frozen
class No:
    """A gate's refusal: a stable word, a sentence, and whether asking again may help."""

    reason: str
    detail: str | None = None
    transient: bool = True


Judged = No | None
Judge = Callable[[RunRequest, JobConfig], "Judged | Deferred[Judged]"]


class Hold(Protocol):
    """Something taken for a run; exactly one of its methods is called, once."""

    def release(self) -> object:
        """The run has ended: give it back."""

    def undo(self) -> object:
        """The run never happened: put everything as it was."""


class Claim(Protocol):
    """A gate that takes something for the run."""

    name: str
    causes: frozenset[Cause]

    def claim(self, request: RunRequest, job: JobConfig) -> Hold | No | Deferred[Hold | No]:
        """Take what the run needs; None of it when the answer is a L{No}."""


@runtime_checkable
class DecidesLate(Protocol):
    """A judgement that says itself what follows when its answer is not there in time."""

    def late(self, request: RunRequest, job: JobConfig) -> Judged:
        """Return the judgement to go on with."""


@runtime_checkable
class ClaimsLate(Protocol):
    """A claim that says itself what follows when its answer is not there in time."""

    def late(self, request: RunRequest, job: JobConfig) -> Hold | No:
        """Return what to go on with; the answer that is outstanding goes to L{came_late}."""

    def came_late(self, answer: Hold | No, request: RunRequest, job: JobConfig) -> object:
        """Take the answer that came after L{late} was asked."""


class Leadership(Protocol):
    """Answers whether this node may run a job now."""

    def may_run(self, job: JobConfig) -> Judged:
        """Return None when it may, else why not."""


class Solo:
    """A node without a cluster: it may run everything."""

    def may_run(self, job: JobConfig) -> Judged:
        """Return None: nobody else could run the job."""
        return None


class StandIn:
    """
    Stands where a configured election cannot be asked: jobs that only an elected node may run
    do not run here, the others do.
    """

    def may_run(self, job: JobConfig) -> Judged:
        """Refuse C{Leader} jobs, for as long as no election can be asked."""
        if job.cluster_policy == "Leader":
            return No("no-leader", "no election backend is running")
        return None


LiveRuns = Callable[[str], Sequence[object]]


class JobGates:
    """The judgements that need nothing but this process's own memory."""

    def __init__(
        self,
        clock: Clock,
        pauses: Pauses,
        history: History,
        leadership: Leadership,
        live: LiveRuns,
    ) -> None:
        self._clock = clock
        self._pauses = pauses
        self._history = history
        self._live = live
        self.leadership = leadership
        self.draining = False

    def table(self) -> dict[str, Judge]:
        """Return the gates by the names that the admission table uses."""
        return {
            "draining": self._draining,
            "configured": lambda request, job: None,
            "enabled": self._enabled,
            "sequence": self._sequence,
            "paused": self._paused,
            "leadership": self._leadership,
            "last-succeeded": self._last_succeeded,
            "overlap": self._overlap,
        }

    def _draining(self, request: RunRequest, job: JobConfig) -> Judged:
        return No("shutdown", "the daemon is shutting down") if self.draining else None

    def _enabled(self, request: RunRequest, job: JobConfig) -> Judged:
        return None if job.enabled else No("disabled", "the job is disabled", transient=False)

    def _sequence(self, request: RunRequest, job: JobConfig) -> Judged:
        sequence = request.origin
        if isinstance(sequence, RetrySequence) and sequence.ended:
            return No("superseded", "the retry sequence has ended", transient=False)
        return None

    def _paused(self, request: RunRequest, job: JobConfig) -> Judged:
        pause = self._pauses.of(job.name, self._clock.now())
        return None if pause is None else No("paused", pause.note or "the job is paused")

    def _leadership(self, request: RunRequest, job: JobConfig) -> Judged:
        return self.leadership.may_run(job)

    def _last_succeeded(self, request: RunRequest, job: JobConfig) -> Judged:
        if not job.only_if_last_succeeded:
            return None
        if job.concurrency_policy != "Replace" and self._live(job.name):
            return No("last-run-unfinished", "an earlier run has not succeeded yet")
        verdict = self._history.last_verdict(job.name)
        if verdict is not None and verdict.outcome == "failure":
            return No("last-run-failed", "the newest finished run failed")
        return None

    def _overlap(self, request: RunRequest, job: JobConfig) -> Judged:
        # What was missed waits for an idle moment whatever the policy: it must replace nothing.
        if job.concurrency_policy != "Forbid" and request.cause != "catchup":
            return None
        live = self._live(job.name)
        if not live:
            return None
        return No("overlap", f"run {getattr(live[0], 'ref', '?')} is still live")
