"""
Catch-up: slots that passed while the daemon was away, or asleep, are run late.

A window is a stretch of slots that one job owes, with tickets in the slot book for those that are
to be run.  One window of a job is served at a time: a checkpoint is opened in the store, the
job's jitter passes, each slot is launched when the job is idle, the checkpoint is closed.  What
stops it (a pause, another owner, a shutdown) leaves the checkpoint open, and the next start goes
on from there.  docs/catchup.md tells an operator.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from twisted.internet.defer import Deferred

from cronstable.clock import Clock
from cronstable.config.values import JobConfig
from cronstable.events import Bus
from cronstable.runs import checkpoints, missed
from cronstable.runs.checkpoints import Saved
from cronstable.runs.debts import Debt, Window, outside
from cronstable.runs.gates import Judged
from cronstable.runs.index import INLINE, Gap
from cronstable.runs.missed import Stretch
from cronstable.runs.pauses import Pause
from cronstable.runs.record import RunStarted
from cronstable.runs.request import Requester, RunRequest
from cronstable.runs.slotbook import SlotBook, SlotTicket
from cronstable.service import background
from cronstable.state import streams
from cronstable.state.service import StoreService

log = logging.getLogger("cronstable")

EPOCH = -2
"""Slots from before this process are of none of its epochs."""

MOST_WINDOWS = 100
"""Gaps of one job that may wait; beyond that the oldest but one is dropped."""

LIVE_FIRST = 0.5
"""Seconds that a window waits at least, so that what is due at the same moment goes first."""

ASK_AGAIN = 60.0
"""Seconds after which a node that may not serve what is owed looks again."""

NO_MORE = ("disabled", "policy")
"""Reasons for which a job owes nothing any more, also for what was stopped part-way."""


class CatchUp:
    """Serves the windows of all jobs, each job's in order."""

    def __init__(
        self,
        clock: Clock,
        store: StoreService,
        book: SlotBook,
        request: Requester,
        find: Callable[[str], JobConfig | None],
        when_idle: Callable[[str], Deferred[None]],
        bus: Bus,
        may_run: Callable[[JobConfig], Judged],
    ) -> None:
        self._clock = clock
        self._store = store
        self._book = book
        self._request = request
        self._find = find
        self._when_idle = when_idle
        self._may_run = may_run
        self._began = clock.now(), clock.seconds()
        self._debts: dict[str, Debt] = {}
        self._newest: dict[str, float] = {}
        self._last_start: dict[str, tuple[float, int | None]] = {}
        self._cut: dict[str, float] = {}
        self._decided: set[str] = set()
        self._not_ours: set[str] = set()
        self._deciding = True
        self._stopping = False
        self._sleeping: dict[str, Deferred[None]] = {}
        self.next_slot: Callable[[str], int | None] = lambda name: None
        """Tells the soonest slot of a job that the scheduler has not given out."""
        bus.subscribe(RunStarted, self._started)

    def wants(self, job: JobConfig | None) -> bool:
        """Return whether slots of C{job} that pass are caught up with."""
        return (
            job is not None
            and job.on_missed != "skip"
            and job.schedule is not None
            and self._store.configured
        )

    def gap(self, gap: Gap, job: JobConfig, pause: Pause | None) -> None:
        """Slots passed while this process stood still: owe them."""
        # A clock that was unset at the start may jump over runs of an earlier process.
        whole = Stretch(gap.first - 1.0, float(gap.until))
        debt = self._debts.get(job.name)
        unknown = Stretch(max(whole.after, self._newest.get(job.name, 0.0)), whole.until)
        noted = [] if debt is None else debt.jumped(whole)
        if debt is not None and debt.unseen is not None:
            debt.unseen = Stretch(whole.until, debt.unseen.until)
        owed = checkpoints.joined([unknown, *noted])
        pauses = () if pause is None else (Stretch(pause.since, pause.until),)
        for each in outside(owed, whole):
            count = gap.schedule.count(each.after, each.until)
            if count:
                first, last = int(each.after) + 1, int(each.until)
                self._book.gap(job.name, gap.epoch, first, last, count, "known")
        self._owe(job, gap.epoch, owed, pauses)

    # a new start

    def undecided(self, jobs: Iterable[JobConfig]) -> list[JobConfig]:
        """Return the jobs of this node of which it is not known what they owe from before."""
        return [
            job
            for job in jobs
            if job.enabled
            and job.name not in self._decided
            and (self._deciding or job.name in self._not_ours)
            and self._is_ours(job)
        ]

    def may_owe(self, job: JobConfig) -> bool:
        """Return whether a row in the ledger could hide what C{job} owes from before."""
        return self._deciding and job.name not in self._decided and self._is_ours(job)

    def decide(self, job: JobConfig, saved: Saved, until: float) -> None:
        """Owe what C{job} missed before this process, up to C{until}; once per process."""
        self._decided.add(job.name)
        if saved.newest is not None:
            self._newest[job.name] = saved.newest
        if saved.ahead:
            log.warning(
                "Job %s: %d run(s) in the ledger are hours ahead of the clock and do not count",
                job.name,
                saved.ahead,
            )
        now = self._clock.now()
        ahead = saved.beyond(now)
        if ahead:
            self._debts.setdefault(job.name, Debt()).ahead = ahead
        owed = saved.owed_once if job.on_missed == "run-once" else saved.owed
        stretches = owed(until, now) or self._first_ever(job, saved, until)
        owes = self._owe(job, EPOCH, stretches, saved.pauses, first=True)
        if not owes and not self._begin(job.name) and saved.open is not None:
            self._write(job.name, checkpoints.closed(now))

    def each_minute(self) -> None:
        """Forget what was noted beforehand and has been seen to, or lived through, since."""
        for name, debt in tuple(self._debts.items()):
            over = debt.lived_through(self._lived())
            if debt.unseen is not None and (self.next_slot(name) or math.inf) > debt.unseen.until:
                debt.unseen, over = None, True
            if over and not debt.served:
                self._note(name, debt)
                if not debt.kept:
                    del self._debts[name]

    def ran(self, name: str) -> None:
        """A run of C{name} has ended: what was fired as usual up to now is not owed."""
        debt = self._debts.get(name)
        if debt is not None and debt.ahead:
            debt.lived_through(self._lived())
            self._note(name, debt)

    def _lived(self) -> float:
        """Return up to when slots were fired as usual; a clock that jumped has skipped some."""
        now, seconds = self._began
        return min(self._clock.now(), now + self._clock.seconds() - seconds)

    def interrupted(self, job: str, began: float) -> None:
        """A crash cut a run of C{job} that is owed; its row may not be in the store yet."""
        self._cut.setdefault(job, began)

    def _first_ever(self, job: JobConfig, saved: Saved, until: float) -> list[Stretch]:
        """Owe what began with a run that was cut, of a job of which none has ever finished."""
        began = saved.cut if saved.cut is not None else self._cut.get(job.name)
        if began is None or saved.newest is not None or saved.open is not None:
            return []
        assert job.schedule is not None
        after = missed.before(job.schedule, began)
        return [Stretch(after, until)] if after < until else []

    def is_through_with(self, job: JobConfig | None) -> bool:
        """Return whether this node may say that C{job} owes nothing, whatever was noted."""
        return (
            job is not None and not (job.enabled and self.wants(job)) and self._may_run(job) is None
        )

    def close_left(self, job: JobConfig | None) -> None:
        """An earlier process left a checkpoint of C{job} open; close it if nothing is owed."""
        if job is not None and self.is_through_with(job) and job.name not in self._debts:
            self._write(job.name, checkpoints.closed(self._clock.now()))

    def decide_nothing(self, name: str) -> None:
        """C{name} owes nothing from before, as far as could be found out."""
        self._decided.add(name)
        self._begin(name)

    def all_decided(self, jobs: Iterable[JobConfig]) -> None:
        """
        What jobs owe from before this process is known: a job that is new owes nothing.

        Those of C{jobs} that this node may not run now are decided when it may.
        """
        if not self._deciding:
            return
        self._deciding = False
        self._not_ours = {
            job.name
            for job in jobs
            if job.enabled and self.wants(job) and job.name not in self._decided
        }
        waiting = ((name, debt) for name, debt in self._debts.items() if debt.windows)
        for name in [name for name, debt in waiting if not debt.served]:
            self._begin(name)

    def _is_ours(self, job: JobConfig) -> bool:
        return self.wants(job) and self._may_run(job) is None

    # life

    def stop(self) -> None:
        """Launch nothing any more; what is owed stays owed in the store."""
        self._stopping = True
        for waiting in tuple(self._sleeping.values()):
            waiting.callback(None)
        for debt in self._debts.values():
            for window in debt.windows:
                _close(window, "shutdown")

    def outlasted(self, name: str, finished_at: float) -> None:
        """
        A run of C{name} has ended: say what its row would hide.

        After a stop began those are the slots that nobody fires any more, and those that were
        dropped unfired; after a sleep those that the scheduler has not noticed yet.
        """
        job = self._find(name)
        if job is None or not job.enabled or not self._is_ours(job) or self.undecided([job]):
            return
        unfired = self._dropped(name) if self._stopping else []
        coming = self.next_slot(name)
        if coming is not None and coming <= finished_at - (0 if self._stopping else INLINE):
            unfired.append(coming)
        if not unfired:
            return
        debt, hidden = (
            self._debts.setdefault(name, Debt()),
            Stretch(min(unfired) - 1.0, finished_at),
        )
        if self._stopping:
            debt.left.append(hidden)
        else:
            debt.unseen = hidden
        self._note(name, debt)

    def _dropped(self, name: str) -> list[int]:
        return [
            each.slot
            for each in self._book.entries(name)
            if each.reason == "shutdown" and each.epoch >= 0
        ]

    def owns(self, ticket: SlotTicket) -> bool:
        """Return whether C{ticket} waits here to be launched."""
        debt = self._debts.get(ticket.job)
        return debt is not None and any(ticket in window.tickets for window in debt.windows)

    def keep_only(self, jobs: Mapping[str, JobConfig]) -> None:
        """Forget what is remembered of jobs that are gone, or owe nothing any more."""
        for known in (self._last_start, self._newest):
            for name in [name for name in known if name not in jobs]:
                del known[name]
        stopped = [name for name, debt in self._debts.items() if not debt.windows]
        for name in stopped:
            if self.is_through_with(jobs.get(name)):
                del self._debts[name]
                self._write(name, checkpoints.closed(self._clock.now()))

    def _started(self, event: RunStarted) -> None:
        if event.job.on_missed == "run-once":
            self._last_start[event.job.name] = (event.started_at, event.slot)

    def _owe(
        self,
        job: JobConfig,
        epoch: int,
        stretches: Sequence[Stretch],
        pauses: Sequence[Stretch],
        first: bool = False,
    ) -> bool:
        assert job.schedule is not None
        verdict = missed.owed(job, job.schedule, stretches, self._clock.now(), pauses)
        self._enter(job, epoch, verdict)
        if not verdict.slots:
            return False
        log.info("catch-up: replaying %d missed run(s) for %s", len(verdict.slots), job.name)
        tickets = [self._book.open(job.name, epoch, slot, self) for slot in verdict.slots]
        window = Window(list(stretches), deque(tickets))
        window.through(verdict.slots[0] - 1)
        self._add(job.name, window, first)
        return True

    def _enter(self, job: JobConfig, epoch: int, verdict: missed.Owed) -> None:
        name = job.name
        for each in verdict.passed:
            self._book.gap(name, epoch, each.first, each.until, each.count, each.reason)
        if verdict.cut:
            log.warning(
                "catch-up: %d missed run(s) of %s are beyond its catchupLimit of %d and are not"
                " run",
                verdict.cut,
                name,
                job.catchup_limit,
            )
        if verdict.merged is not None:
            merged, count = verdict.merged
            first, last, into = int(merged.after), int(merged.until), verdict.slots[-1]
            self._book.merged_range(name, epoch, first, last, count, into)

    def _add(self, name: str, window: Window, first: bool) -> None:
        debt = self._debts.setdefault(name, Debt())
        if len(debt.windows) >= MOST_WINDOWS:
            log.warning("catch-up: too many gaps of %s wait; the oldest is dropped", name)
            dropped = debt.windows[1]
            debt.windows.remove(dropped)
            _close(dropped, "cap")
        if first:
            debt.windows.appendleft(window)
        else:
            debt.windows.append(window)
        if name in self._decided or not self._deciding:
            self._begin(name)

    def _begin(self, name: str) -> bool:
        """Serve what C{name} owes, if it owes anything."""
        debt = self._debts.get(name)
        if debt is None:
            return False
        job = self._find(name)
        if job is not None and self._is_ours(job):
            # At once, before the row of any later run: that would move the mark that counts.
            self._note(name, debt)
        if not debt.served:
            debt.served = True
            background(f"catching up with job {name}", self._serve(name, debt))
        return True

    async def _serve(self, name: str, debt: Debt) -> None:
        reason = "error"
        try:
            while debt.windows:
                refused = await self._is_refused(name, debt)
                if refused is not None:
                    reason = refused
                    break
                await self._window(name, debt, debt.windows[0])
        finally:
            for window in debt.windows:
                _close(window, reason)
            debt.served = False
            if not self._stopping:
                self._over(name, debt, reason)

    def _over(self, name: str, debt: Debt, reason: str) -> None:
        if debt.windows and reason in NO_MORE:
            debt.forgive()
            self._write(name, checkpoints.closed(self._clock.now()))
        debt.windows.clear()
        if not debt.kept:
            del self._debts[name]

    async def _is_refused(self, name: str, debt: Debt) -> str | None:
        """Wait until this node is the owner and the store knows; return why all is to be left."""
        while True:
            if self._stopping:
                return "shutdown"
            job = self._find(name)
            if job is None or not self.wants(job):
                return "removed" if job is None else "policy"
            no = self._may_run(job)
            if no is not None and not no.transient:
                return no.reason
            if no is None:
                noted = debt.noted or self._note(name, debt)
                debt.noted = None
                if await noted:
                    return "shutdown" if self._stopping else None
            await self._sleep(name, ASK_AGAIN)

    async def _window(self, name: str, debt: Debt, window: Window) -> None:
        job = self._find(name)
        await self._sleep(name, LIVE_FIRST + (0.0 if job is None else missed.jitter(job)))
        stopped: str | None = None
        while window.tickets and not self._stopping and stopped is None:
            stopped = await self._slot(name, debt, window)
        if self._stopping and window.tickets:
            return
        debt.windows.remove(window)
        if stopped in NO_MORE:
            debt.forgive()
        elif stopped is not None:
            log.info("catch-up: %s is stopped (%s); the next start goes on with it", name, stopped)
            debt.left += window.stretches
        _close(window, stopped or "error")
        self._note(name, debt)

    async def _slot(self, name: str, debt: Debt, window: Window) -> str | None:
        """Launch the oldest slot of C{window}; return why the whole window is to be left."""
        await self._when_idle(name)
        if self._stopping:
            return None
        job = self._find(name)
        if job is None:
            return "removed"
        if not job.enabled:
            return "disabled"
        if not self.wants(job):
            return "policy"
        ticket = window.tickets[0]
        if job.on_missed == "run-once" and self._satisfied(window, ticket):
            return None
        asked = self._request(RunRequest(name, "catchup", slot=ticket.slot, ticket=ticket))
        decision = await asked.when_decided()
        if decision.kind == "deferred":
            if not ticket.closed:
                ticket.owner = self
            return None if decision.reason == "overlap" else str(decision.reason)
        record = await asked.when_ended()
        if record is not None and record.ended_by == "shutdown":
            return None
        window.tickets.popleft()
        window.through(ticket.slot)
        if window.tickets:
            self._note(name, debt)
        return None

    def _satisfied(self, window: Window, ticket: SlotTicket) -> bool:
        """Close the ticket of a run-once window if the job has been started since its slot."""
        started = self._last_start.get(ticket.job)
        if started is None or started[0] <= ticket.slot:
            return False
        window.tickets.popleft()
        ticket.merged(int(started[0]) if started[1] is None else started[1])
        return True

    def _sleep(self, name: str, seconds: float) -> Deferred[None]:
        waiting: Deferred[None] = Deferred()
        if self._stopping:
            waiting.callback(None)
            return waiting
        timer = self._clock.callLater(seconds, lambda: waiting.callback(None))
        self._sleeping[name] = waiting

        def awake(_: object) -> None:
            self._sleeping.pop(name, None)
            if timer.active():
                timer.cancel()

        return waiting.addCallback(awake)

    def _note(self, name: str, debt: Debt) -> Deferred[bool]:
        stretches, now = debt.stretches(), self._clock.now()
        record = checkpoints.opened(stretches, now) if stretches else checkpoints.closed(now)
        debt.noted = self._write(name, record)
        return debt.noted

    def _write(self, name: str, record: checkpoints.Record) -> Deferred[bool]:
        stream = streams.catchup(name)
        return self._store.append(name, "checkpoint", stream, record, streams.CATCHUP_KEEP)


def _close(window: Window, reason: str) -> None:
    for ticket in window.tickets:
        if not ticket.closed:
            ticket.missed(reason)
