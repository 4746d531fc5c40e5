"""
A lane per job: one launch of the job at a time.

Gates may take time, so requests for one job are served one after another, from the first gate
until the run is registered.  Under Replace a newer request takes over an older one that still
waits; under Forbid a scheduled one that finds another waiting is skipped.

docs/runs.md tells users.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from twisted.internet.defer import Deferred

from cronstable.config.values import JobConfig
from cronstable.runs import tables
from cronstable.runs.request import Decision, Ticket
from cronstable.runs.run import Run
from cronstable.runs.slotbook import SlotTicket
from cronstable.service import Waiters, log_failure

Serve = Callable[["Lane", Ticket], Coroutine[Any, Any, None]]

MERGEABLE = frozenset({"scheduled", "boot", "retry"})


class Lane:
    """The requests that wait for one job, and its live runs."""

    def __init__(
        self,
        name: str,
        serve: Serve,
        find: Callable[[str], JobConfig | None],
        quiet: Callable[[Lane], object],
    ) -> None:
        self.name = name
        self._quiet = quiet
        self.live: list[Run] = []
        self.current: Ticket | None = None
        self._serve = serve
        self._find = find
        self._waiting: deque[Ticket] = deque()
        self._idle = Waiters()
        self._no_live = Waiters()

    def submit(self, ticket: Ticket) -> None:
        """Serve C{ticket} now, or when the requests before it are done."""
        slot = ticket.request.ticket
        if slot is not None:
            slot.owner = self
        if self.current is None and not self._waiting:
            self._take(ticket)
        elif self._may_wait(ticket):
            self._waiting.append(ticket)

    def owns(self, slot: SlotTicket) -> bool:
        """Return whether a request or a launching run here will close C{slot}."""
        if self.current is not None and self.current.request.ticket is slot:
            return True
        if any(ticket.request.ticket is slot for ticket in self._waiting):
            return True
        return any(run.slot is slot for run in self.live)

    @property
    def busy(self) -> bool:
        """Whether anything is being admitted, waits, or runs."""
        return self.current is not None or bool(self._waiting) or bool(self.live)

    def drop_waiting(self, reason: str) -> None:
        """Close what waits as missed for C{reason}; what is being admitted asks its gates again."""
        while self._waiting:
            ticket = self._waiting.popleft()
            close_missed(ticket, reason)

    def add(self, run: Run) -> None:
        """Register a run as live."""
        self.live.append(run)

    def remove(self, run: Run) -> None:
        """A run has ended."""
        self.live.remove(run)
        if not self.live:
            self._no_live.tell()
            self._tell_idle()

    def when_no_live(self) -> Deferred[None]:
        """Fire when no run of the job is live."""
        return self._no_live.wait(not self.live)

    def when_idle(self) -> Deferred[None]:
        """Fire when nothing of the job runs, waits or is being admitted."""
        return self._idle.wait(not self.busy)

    def _may_wait(self, ticket: Ticket) -> bool:
        job = self._find(self.name)
        policy = "Allow" if job is None else job.concurrency_policy
        if policy == "Replace":
            self._merge_older(ticket)
        elif policy == "Forbid" and ticket.request.cause == "scheduled" and self._waiting:
            slot = ticket.request.ticket
            if slot is not None:
                slot.skipped("overlap")
            ticket.decide(Decision("skipped", "overlap", "another request is waiting"))
            return False
        return True

    def _merge_older(self, newer: Ticket) -> None:
        kept: deque[Ticket] = deque()
        for older in self._waiting:
            if older.request.cause not in MERGEABLE:
                kept.append(older)
                continue
            close_merged(older, newer)
        self._waiting = kept

    def _take(self, ticket: Ticket) -> None:
        self.current = ticket
        served = Deferred.fromCoroutine(self._serve(self, ticket))
        served.addErrback(self._served_badly, ticket)
        if served.called and not served.paused:
            self._done()
        else:
            served.addCallback(self._next)

    def _served_badly(self, failure: Any, ticket: Ticket) -> None:
        log_failure(f"admitting job {self.name}", failure)
        close_missed(ticket, "error")

    def _next(self, _: object) -> None:
        self._done()
        while self._waiting and self.current is None:
            self._take(self._waiting.popleft())

    def _done(self) -> None:
        self.current = None
        self._tell_idle()

    def _tell_idle(self) -> None:
        if not self.busy:
            self._idle.tell()
            self._quiet(self)


def close_merged(ticket: Ticket, newer: Ticket) -> None:
    """Close a request for which C{newer} stands."""
    slot = ticket.request.ticket
    if slot is not None and not slot.closed:
        into = newer.request.slot
        slot.merged(slot.slot if into is None else into)
    ticket.decide(Decision("skipped", "merged", "a newer request stands for this one"))


def close_missed(ticket: Ticket, reason: str) -> None:
    """Close a request that will not be served."""
    slot = ticket.request.ticket
    if slot is not None and not slot.closed:
        slot.missed(reason)
    refused = ticket.request.cause in tables.ANSWERED
    ticket.decide(Decision("refused" if refused else "skipped", reason))
