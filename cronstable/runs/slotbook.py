"""
The slot book: where a schedule meets its consequence.

Each due slot of each enabled job is opened once and ends as exactly one of ran, skipped, missed
or merged.  An open slot always has an owner that can say that it still holds it; one that has
none, one that is closed twice, and one that an audit finds was never opened are unaccounted.
docs/slots.md specifies the results and reasons.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Iterator
from typing import Literal, Protocol

import attrs

log = logging.getLogger("cronstable")

Result = Literal["ran", "skipped", "missed", "merged"]

KEPT_IN_ALL = 100_000
"""Closed slots that are kept of all jobs together."""

KEPT_PER_JOB = (16, 1500)
"""The same of each job, at least and at most."""


class SlotOwner(Protocol):
    """Who will close a slot."""

    def owns(self, ticket: SlotTicket) -> bool:
        """Return whether this owner still means to close C{ticket}."""


@attrs.frozen
class SlotEntry:
    """One closed slot (or C{count} of them, up to C{until}); instants in epoch seconds."""

    job: str
    epoch: int
    slot: int
    result: Result
    reason: str | None = None
    started_at: float | None = None
    into: int | None = None
    until: int | None = None
    count: int = 1


class SlotTicket:
    """An open slot; exactly one of its closing methods is called, once."""

    __slots__ = ("_book", "closed", "epoch", "job", "owner", "slot")

    def __init__(self, book: SlotBook, job: str, epoch: int, slot: int, owner: SlotOwner) -> None:
        self._book = book
        self.job = job
        self.epoch = epoch
        self.slot = slot
        self.owner = owner
        self.closed = False

    def ran(self, started_at: float) -> None:
        """The slot's run has started, or failed to."""
        self._book.close(self, "ran", started_at=started_at)

    def skipped(self, reason: str) -> None:
        """A gate said no."""
        self._book.close(self, "skipped", reason=reason)

    def missed(self, reason: str) -> None:
        """Nothing could be decided in time."""
        self._book.close(self, "missed", reason=reason)

    def merged(self, into: int) -> None:
        """The run of slot C{into} stands for this one as well."""
        self._book.close(self, "merged", into=into)


class SlotBook:
    """Open slots, a bounded memory of closed ones, and counts that agree with both."""

    def __init__(self) -> None:
        self.totals: dict[str, Counter[str]] = {}
        self.faults = 0
        self.revision = 0
        self._open: dict[tuple[str, int, int], SlotTicket] = {}
        self._closed: dict[str, deque[SlotEntry]] = {}
        self._opened: Counter[str] = Counter()
        self._kept_per_job = KEPT_PER_JOB[1]

    def size_for(self, jobs: int) -> None:
        """Bound what each of C{jobs} jobs may keep, so that all together stay bounded."""
        low, high = KEPT_PER_JOB
        self._kept_per_job = max(low, min(high, KEPT_IN_ALL // max(jobs, 1)))

    def open(self, job: str, epoch: int, slot: int, owner: SlotOwner) -> SlotTicket:
        """Open a due slot; a slot that is open already is a fault and its ticket is returned."""
        key = (job, epoch, slot)
        known = self._open.get(key)
        if known is not None:
            self._fault("slot %d of job %s was opened twice", slot, job)
            return known
        ticket = SlotTicket(self, job, epoch, slot, owner)
        self._open[key] = ticket
        self._count(job, epoch, 1)
        return ticket

    def close(
        self,
        ticket: SlotTicket,
        result: Result,
        *,
        reason: str | None = None,
        started_at: float | None = None,
        into: int | None = None,
    ) -> None:
        """Close C{ticket}; a second close is a fault and changes nothing else."""
        if ticket.closed:
            self._fault("slot %d of job %s was closed twice", ticket.slot, ticket.job)
            return
        ticket.closed = True
        del self._open[(ticket.job, ticket.epoch, ticket.slot)]
        self._keep(
            SlotEntry(ticket.job, ticket.epoch, ticket.slot, result, reason, started_at, into)
        )

    def gap(self, job: str, epoch: int, first: int, until: int, count: int, reason: str) -> None:
        """Enter C{count} slots from C{first} to C{until} as one missed range."""
        if count:
            self._count(job, epoch, count)
            self._keep(SlotEntry(job, epoch, first, "missed", reason, None, None, until, count))

    def merged_range(
        self, job: str, epoch: int, first: int, until: int, count: int, into: int
    ) -> None:
        """Enter C{count} slots from C{first} to C{until} for which the run of C{into} stands."""
        if count:
            self._count(job, epoch, count)
            self._keep(SlotEntry(job, epoch, first, "merged", None, None, into, until, count))

    def opened(self, job: str) -> int:
        """Return how many slots of C{job}'s schedule were opened or entered as a range."""
        return self._opened[job]

    def fault(self, message: str, *arguments: object, count: int = 1) -> None:
        """Count C{count} unaccounted slots that an audit found, and say so."""
        self._fault(message, *arguments, count=count)

    def unaccounted(self) -> int:
        """Return faults so far plus open slots that nobody owns; always 0 in a sound daemon."""
        return self.faults + sum(1 for ticket in self._open.values() if not _owned(ticket))

    def open_slots(self) -> Iterator[SlotTicket]:
        """Iterate over the open slots, oldest opening first."""
        return iter(tuple(self._open.values()))

    def entries(self, job: str) -> tuple[SlotEntry, ...]:
        """Return what is kept of the closed slots of C{job}, oldest closing first."""
        return tuple(self._closed.get(job, ()))

    def jobs(self) -> tuple[str, ...]:
        """Return the names of jobs with closed slots."""
        return tuple(self._closed)

    def forget(self, job: str) -> None:
        """Drop what is kept of a removed job, when nothing of it is open."""
        self._closed.pop(job, None)
        self._opened.pop(job, None)
        self.totals.pop(job, None)

    def _count(self, job: str, epoch: int, count: int) -> None:
        if epoch >= 0:
            self._opened[job] += count

    def _keep(self, entry: SlotEntry) -> None:
        self.revision += 1
        totals = self.totals.get(entry.job)
        if totals is None:
            totals = self.totals[entry.job] = Counter()
        totals[entry.result] += entry.count
        kept = self._closed.get(entry.job)
        if kept is None:
            kept = self._closed[entry.job] = deque()
        kept.append(entry)
        while len(kept) > self._kept_per_job:
            kept.popleft()

    def _fault(self, message: str, *arguments: object, count: int = 1) -> None:
        self.faults += count
        log.error("slot book: " + message, *arguments)


def _owned(ticket: SlotTicket) -> bool:
    return ticket.owner.owns(ticket)
