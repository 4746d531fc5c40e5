"""
One run's life: it listens to its executor, and says once how it ended.

docs/runs.md tells users of it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Literal, Protocol

from zope.interface import implementer

from cronstable.config.values import JobConfig
from cronstable.executors.interfaces import Ended, IObserver, Leftover, Usage
from cronstable.runs.capture import Capture
from cronstable.runs.environment import NOTHING, Prepared
from cronstable.runs.record import EndedBy
from cronstable.runs.request import Ticket
from cronstable.runs.retry import RetrySequence
from cronstable.runs.slotbook import SlotTicket

log = logging.getLogger("cronstable")

State = Literal["launching", "running", "exited", "verifying", "ended"]


class RunKeeper(Protocol):
    """Who keeps the runs: told of each step that others depend on."""

    def still_wanted(self, run: Run) -> bool:
        """Return whether a run that waited for room should still start."""

    def launched(self, run: Run) -> None:
        """The run's process exists, or could not be started."""

    def finished(self, run: Run, ended: Ended) -> None:
        """The run's process has ended and its output is complete."""


@implementer(IObserver)
class Run:
    """
    A run from its launch to its end.

    C{started_at} is wall time and C{started_mono} monotonic, both of the launch.  C{intent} is
    the first stated reason for which somebody ended the run; it wins over how the process ended.
    """

    __slots__ = (
        "_keeper",
        "captured",
        "env",
        "given",
        "held",
        "holds",
        "intent",
        "job",
        "pid",
        "ref",
        "sequence",
        "slot",
        "started_at",
        "started_mono",
        "state",
        "ticket",
        "usage",
        "verification_ref",
        "whom",
    )

    def __init__(
        self,
        keeper: RunKeeper,
        ref: str,
        job: JobConfig,
        ticket: Ticket,
        holds: tuple[Any, ...],
        captured: Capture,
        started_at: float,
        started_mono: float,
    ) -> None:
        self._keeper = keeper
        self.ref = ref
        self.job = job
        self.ticket = ticket
        self.holds = holds
        self.captured = captured
        self.started_at = started_at
        self.started_mono = started_mono
        self.slot: SlotTicket | None = ticket.request.ticket
        self.state: State = "launching"
        self.pid: int | None = None
        self.sequence: RetrySequence | None = None
        self.intent: EndedBy | None = None
        self.whom: str | None = None
        self.held: tuple[Leftover, ...] = ()
        self.usage: Usage | None = None
        self.env: Mapping[str, str] | None = None
        self.given: Prepared = NOTHING
        self.verification_ref: str | None = None

    def intend(self, intent: EndedBy, whom: str | None = None) -> bool:
        """State why the run is being ended; return False when a reason stands already."""
        if self.intent is not None:
            return False
        self.intent, self.whom = intent, whom
        return True

    def wanted(self) -> bool:
        """Return whether the run should still start, asked when it had to wait for room."""
        return self.intent is None and self._keeper.still_wanted(self)

    def notice(self, kind: str, detail: str) -> None:
        """Log what an operator matches on."""
        log_notice(self.job, kind, detail)

    def started(self, pid: int) -> None:
        """The process exists."""
        self.pid = pid
        self.state = "running"
        self._keeper.launched(self)

    def output(self, stream: str, data: bytes) -> None:
        """Keep what the process wrote."""
        self.captured.feed(stream, data)

    def exited(self, status: int | None) -> None:
        """The main process was reaped; output may still be open."""
        self.state = "exited"

    def held_open(self, leftovers: tuple[Leftover, ...]) -> None:
        """Others still hold the run's output: say so once, and show it."""
        self.held = leftovers
        log.warning(
            "Job %s: exited, but its output is held open by %s",
            self.job.name,
            ", ".join(f"pid {each.pid} ({each.command})" for each in leftovers)
            or "a process that cannot be seen",
        )

    def sampled(self, usage: Usage) -> None:
        """Keep the newest resource sample."""
        self.usage = usage

    def ended(self, ended: Ended) -> None:
        """Nothing more will come from the executor."""
        self._keeper.finished(self, ended)


def log_notice(job: JobConfig, kind: str, detail: str) -> None:
    """Log what an executor noticed about a run of C{job}, in the words that operators match."""
    if kind == "timeout":
        log.info(
            "Job %s exceeded its executionTimeout of %g seconds, cancelling it...",
            job.name,
            job.execution_timeout,
        )
    elif kind == "killing":
        log.warning(
            "Job %s did not gracefully terminate after %s seconds, killing it...", job.name, detail
        )
    elif kind == "unsignalled":
        log.warning("Job %s: could not signal its process %s", job.name, detail)
    elif kind == "uncapped":
        # Said once per load, and in the record of each run.
        log.debug("Job %s: its resource limits are not enforced: %s", job.name, detail)
    else:
        log.info("Job %s: %s", job.name, detail or kind)
