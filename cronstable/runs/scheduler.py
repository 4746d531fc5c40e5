"""
The scheduler: one timer over the index; what is due is requested, in slices, and never waited for.

It reads the clock once per pass, sleeps at most 30 seconds at a time so that a stepped clock or
a suspended host is noticed, and enters each due slot in the slot book before anything else.

docs/architecture.md, "A due slot, step by step", tells what comes after it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from twisted.application.service import Service
from twisted.internet.interfaces import IDelayedCall

from cronstable.clock import Clock
from cronstable.runs.index import CORRECTION, Due, FireIndex, Gap
from cronstable.runs.jobset import JobSet
from cronstable.runs.request import Requester, RunRequest
from cronstable.runs.slotbook import SlotBook, SlotTicket
from cronstable.schedule import Schedule

log = logging.getLogger("cronstable")

LONGEST_SLEEP = 30.0
"""Seconds after which the clock is looked at even when nothing is due."""

SHORT_SLEEP = 1.0
"""Seconds that can be slept at once without being late; of more, most are slept first."""

SLICE = 0.004
"""Seconds of launches made in one reactor turn before others get theirs."""

AUDITED_PER_PASS = 200
"""Jobs whose slots one audit recounts."""


class Scheduler(Service):
    """Fires what is due."""

    def __init__(
        self,
        clock: Clock,
        book: SlotBook,
        request: Requester,
        missed: Callable[[Gap], bool] | None = None,
    ) -> None:
        self.index = FireIndex()
        self.last_pass: float | None = None
        """Monotonic seconds of the last completed pass."""
        self._clock = clock
        self._book = book
        self._request = request
        self._missed = missed
        self._wake: IDelayedCall | None = None
        self._taking: Iterator[Due | Gap] = iter(())
        self._backlog: deque[SlotTicket] = deque()
        self._waiting: set[SlotTicket] = set()
        self._handing: SlotTicket | None = None
        self._quiet = False
        self._offset = clock.now() - clock.seconds()
        self._gaps = 0
        self._audit = _Audit(self.index, book)

    def startService(self) -> None:
        """Start to fire; the set of jobs has been installed before."""
        super().startService()
        self.last_pass = self._clock.seconds()
        self._sleep()

    def stopService(self) -> None:
        """Fire nothing any more."""
        super().stopService()
        self.quiesce()

    def quiesce(self) -> None:
        """Stop to fire; what is due and not handed on yet is missed."""
        self._quiet = True
        self._cancel_wake()
        while self._backlog:
            self._backlog.popleft().missed("shutdown")
        self._waiting.clear()

    def install(self, jobs: JobSet, zones_changed: Sequence[str] = ()) -> None:
        """
        Take everything due under the old set from the index, then put C{jobs} in force.

        Jobs in a time zone whose rules have changed get their next fire anew.
        """
        now = self._clock.now()
        firing = self.running and not self._quiet
        if firing:
            self._take(now)
        seeded = self.index.install(jobs.jobs, now)
        if zones_changed:
            self.index.rezone(zones_changed, now)
        for name in seeded.never:
            log.warning("Job %s has a schedule that never fires again", name)
        self._audit.install()
        if firing:
            self._go_on()

    def owns(self, ticket: SlotTicket) -> bool:
        """Return whether C{ticket} still waits here to be handed to its lane."""
        return self._handing is ticket or ticket in self._waiting

    def audit(self) -> None:
        """Recount the slots of some jobs from their schedules; a difference is a fault."""
        if not self._quiet:
            self._audit.some(AUDITED_PER_PASS)

    def _pass(self) -> None:
        self._wake = None
        now = self._clock.now()
        self._notice_correction(now)
        self._taking = iter(self.index.due(now))
        self._gaps = 0
        self._slice()

    def _notice_correction(self, now: float) -> None:
        # Wall minus monotonic time grows over a suspend and drops when the clock is set back.
        offset = now - self._clock.seconds()
        if self._offset - offset < CORRECTION:
            self._offset = max(self._offset, offset)
            return
        log.warning("The clock was set back by hours; every schedule is indexed anew from now")
        self._offset = offset
        self.index.begin_epoch(now)
        self._audit.restart()

    def _slice(self) -> None:
        self._wake = None
        until = self._clock.seconds() + SLICE
        while self._backlog:
            self._hand_on(self._backlog.popleft())
            if self._clock.seconds() >= until:
                self._wake = self._clock.callLater(0, self._slice)
                return
        for each in self._taking:
            ticket = self._enter(each)
            if ticket is not None:
                self._hand_on(ticket)
            if self._clock.seconds() >= until:
                self._wake = self._clock.callLater(0, self._slice)
                return
        self._passed()

    def _passed(self) -> None:
        if self._gaps:
            log.warning(
                "The clock or this process stood still: the slots of %d job(s) have passed",
                self._gaps,
            )
            self._gaps = 0
        self.last_pass = self._clock.seconds()
        self._sleep()

    def _take(self, now: float) -> None:
        for source in (self._taking, self.index.due(now)):
            for each in source:
                ticket = self._enter(each)
                if ticket is not None:
                    self._backlog.append(ticket)
                    self._waiting.add(ticket)

    def _go_on(self) -> None:
        self._cancel_wake()
        if self._backlog:
            self._wake = self._clock.callLater(0, self._slice)
        else:
            self._passed()

    def _enter(self, each: Due | Gap) -> SlotTicket | None:
        if isinstance(each, Due):
            return self._book.open(each.job, each.epoch, each.slot, self)
        self._gaps += 1
        if self._missed is None or not self._missed(each):
            count = each.schedule.count(each.first - 1, each.until)
            self._book.gap(each.job, each.epoch, each.first, each.until, count, "delayed")
        return None

    def _hand_on(self, ticket: SlotTicket) -> None:
        self._waiting.discard(ticket)
        self._handing = ticket
        try:
            self._request(RunRequest(ticket.job, "scheduled", slot=ticket.slot, ticket=ticket))
        except Exception:
            log.exception("please report this as a bug (1)")
            if not ticket.closed:
                ticket.missed("error")
        self._handing = None

    def _sleep(self) -> None:
        self._cancel_wake()
        soonest = self.index.soonest()
        wait = LONGEST_SLEEP if soonest is None else soonest - self._clock.now()
        self._wake = self._clock.callLater(_part_of(wait), self._pass)

    def _cancel_wake(self) -> None:
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None


def _part_of(wait: float) -> float:
    """Return how much of C{wait} seconds to sleep at once."""
    if wait >= LONGEST_SLEEP:
        return LONGEST_SLEEP
    # Linux may end a sleep late by a thousandth of its length.
    return wait * 0.997 if wait > SHORT_SLEEP else max(wait, 0.0)


class _Audit:
    """Compares how many slots were opened with how many the schedule has, job by job in turn."""

    def __init__(self, index: FireIndex, book: SlotBook) -> None:
        self._index = index
        self._book = book
        self._marks: dict[str, tuple[Schedule, float, int, float]] = {}
        """Of each job its schedule, up to when it was counted, how many slots had been opened by
        then, and since when it is indexed."""
        self._turn: list[tuple[str, Schedule]] = []

    def restart(self) -> None:
        """Begin anew for every job: the clock was corrected."""
        self._marks = {}
        self.install()

    def install(self) -> None:
        """Begin anew for jobs whose schedule is new; the others go on from where they were."""
        marks = {}
        for name, schedule, since, _ in self._index.indexed():
            mark = self._marks.get(name)
            if mark is None or mark[0] != schedule or mark[3] != since:
                mark = (schedule, since, self._book.opened(name), since)
            marks[name] = mark
        self._marks = marks
        self._turn = []

    def some(self, most: int) -> None:
        """Recount up to C{most} jobs."""
        if not self._turn:
            self._turn = [(name, schedule) for name, schedule, _, _ in self._index.indexed()]
        for _ in range(min(most, len(self._turn))):
            name, schedule = self._turn.pop()
            self._recount(name, schedule, self._index.next_fire(name))

    def _recount(self, name: str, schedule: Schedule, pending: int | None) -> None:
        mark = self._marks.get(name)
        if mark is None or pending is None or mark[0] != schedule:
            return
        _, since, opened_before, indexed = mark
        opened = self._book.opened(name)
        through = pending - 1
        if through < since:
            return
        expected = schedule.count(since, through)
        self._marks[name] = (schedule, float(through), opened, indexed)
        if expected != opened - opened_before:
            self._book.fault(
                "job %s: its schedule has %d slots since %d, %d were entered",
                name,
                expected,
                int(since),
                opened - opened_before,
                count=abs(expected - opened + opened_before),
            )
