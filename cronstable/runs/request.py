"""The one way in: a request to run something, and the ticket that tells what became of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import attrs
from twisted.internet.defer import Deferred

from cronstable.config.values import JobConfig
from cronstable.runs.record import Cause, RunRecord
from cronstable.runs.slotbook import SlotTicket

DecisionKind = Literal["started", "queued", "skipped", "deferred", "refused"]


@attrs.frozen
class RunRequest:
    """
    A wish that something runs.

    C{work} is the name of a job, or a workflow task's own definition.  C{slot} is the instant
    that the run stands for, in epoch seconds; C{ticket} is given by who owns that slot.
    C{origin} is opaque here and echoed back.  C{variables} go into the environment of the process,
    over the job's own; C{scope} is where the run keeps its state, None for the job's name.
    """

    work: str | JobConfig
    cause: Cause
    slot: int | None = None
    ticket: SlotTicket | None = None
    attempt: int = 0
    origin: Any = None
    who: str | None = None
    variables: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    scope: str | None = None

    @property
    def name(self) -> str:
        """The name of the job or task."""
        return self.work if isinstance(self.work, str) else self.work.name


@attrs.frozen
class Decision:
    """What became of a request; C{reason} is a stable word, C{detail} a sentence."""

    kind: DecisionKind
    reason: str | None = None
    detail: str | None = None
    ref: str | None = None


class Ticket:
    """Tells a requester, as soon as each is known, the decision and the end."""

    __slots__ = ("_end", "_waiting", "decision", "ended", "request")

    def __init__(self, request: RunRequest) -> None:
        self.request = request
        self.decision: Decision | None = None
        self.ended = False
        self._end: RunRecord | None = None
        self._waiting: list[tuple[bool, Deferred[Any]]] | None = None

    def when_decided(self) -> Deferred[Decision]:
        """Fire with the L{Decision}."""
        return self._when(False, self.decision is not None, self.decision)

    def when_ended(self) -> Deferred[RunRecord | None]:
        """Fire with the run's record, or None when the request led to no run."""
        return self._when(True, self.ended, self._end)

    def decide(self, decision: Decision) -> None:
        """State the decision, once; one that started nothing is the end as well."""
        if self.decision is not None:
            return
        self.decision = decision
        if self._waiting is not None:
            self._tell(False, decision)
        if decision.kind in ("skipped", "refused"):
            self.end(None)

    def end(self, record: RunRecord | None) -> None:
        """State the end, once."""
        if self.ended:
            return
        self.ended, self._end = True, record
        if self._waiting is not None:
            self._tell(True, record)

    def _when(self, end: bool, known: bool, value: Any) -> Deferred[Any]:
        waiter: Deferred[Any] = Deferred()
        if known:
            waiter.callback(value)
        else:
            self._waiting = self._waiting or []
            self._waiting.append((end, waiter))
        return waiter

    def _tell(self, end: bool, value: Any) -> None:
        assert self._waiting is not None
        told = [waiter for of_end, waiter in self._waiting if of_end is end]
        self._waiting = [each for each in self._waiting if each[0] is not end]
        for waiter in told:
            waiter.callback(value)


Requester = Callable[[RunRequest], Ticket]
