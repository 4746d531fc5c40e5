"""
Boot runs: each C{@reboot} job once, in the first pass of a daemon's life.

One that is deferred is owed until it runs; a start by hand counts as the boot run.
"""

from __future__ import annotations

import logging

from cronstable.clock import Clock
from cronstable.events import Bus
from cronstable.runs.jobset import JobSet
from cronstable.runs.record import RunStarted
from cronstable.runs.request import Decision, Requester, RunRequest
from cronstable.runs.slotbook import SlotBook, SlotTicket

log = logging.getLogger("cronstable")

EPOCH = -1
"""Boot slots are of no schedule, so they have an epoch of their own."""


class BootRuns:
    """The boot runs that are still owed: requested at the start, asked again when deferred."""

    def __init__(self, clock: Clock, book: SlotBook, request: Requester, bus: Bus) -> None:
        self._clock = clock
        self._book = book
        self._request = request
        self._owed: dict[str, SlotTicket] = {}
        bus.subscribe(RunStarted, self._started)

    def begin(self, jobs: JobSet) -> None:
        """Request the boot run of each enabled C{@reboot} job, in configuration order."""
        slot = int(self._clock.now())
        for name, job in jobs.jobs.items():
            if job.reboot and job.enabled:
                self._ask(name, self._book.open(name, EPOCH, slot, self))

    def ask_again(self) -> None:
        """Request again what was deferred."""
        owed, self._owed = self._owed, {}
        for name, ticket in owed.items():
            self._ask(name, ticket)

    def stop(self) -> None:
        """Close what is still owed as missed."""
        owed, self._owed = self._owed, {}
        for ticket in owed.values():
            ticket.missed("shutdown")

    def owed(self, job: str) -> bool:
        """Return whether C{job}'s boot run is deferred."""
        return job in self._owed

    def _started(self, event: RunStarted) -> None:
        ticket = self._owed.pop(event.job.name, None)
        if ticket is not None:
            ticket.ran(event.started_at)

    def owns(self, ticket: SlotTicket) -> bool:
        """Return whether C{ticket} is deferred here."""
        return self._owed.get(ticket.job) is ticket

    def _ask(self, name: str, ticket: SlotTicket) -> None:
        answer = self._request(RunRequest(name, "boot", slot=ticket.slot, ticket=ticket))
        answer.when_decided().addCallback(self._decided, name, ticket)

    def _decided(self, decision: Decision, name: str, ticket: SlotTicket) -> None:
        if decision.kind == "deferred":
            ticket.owner = self
            self._owed[name] = ticket
            log.info("Job %s (@reboot) is deferred (%s)", name, decision.reason)
