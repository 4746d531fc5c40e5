"""
What a daemon remembers beyond its own life, wired: ledger, in-flight records, retries, pauses,
boot markers, catch-up.

Everything here is without effect when no store is configured.  When a store comes up, what it
says is taken over in a fixed order: history, interrupted runs, pauses, retries, missed slots.
docs/durability.md tells an operator what is promised.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from cronstable.clock import Clock
from cronstable.config.values import JobConfig
from cronstable.identity import Identity
from cronstable.platform import BootIdentity
from cronstable.runs import checkpoints
from cronstable.runs.bootmarks import BootMarks
from cronstable.runs.catchup import EPOCH, CatchUp
from cronstable.runs.checkpoints import Saved
from cronstable.runs.digests import Digests
from cronstable.runs.gates import Claim, Judge, Judged, No
from cronstable.runs.index import FireIndex, Gap
from cronstable.runs.inflight import Inflight
from cronstable.runs.ledger import Ledger
from cronstable.runs.pauses import Pause
from cronstable.runs.pausestore import PauseStore
from cronstable.runs.reading import Open, for_each
from cronstable.runs.record import FinishedRun, RunRecord
from cronstable.runs.request import RunRequest
from cronstable.runs.retrystore import RetryStore
from cronstable.service import background
from cronstable.state import streams
from cronstable.state.errors import TROUBLE
from cronstable.state.service import StoreService
from cronstable.state.workers import StoreSlow

if TYPE_CHECKING:
    from cronstable.runs.run import Run
    from cronstable.runs.service import RunService

log = logging.getLogger("cronstable.state")


class Memory:
    """The durable side of the runs of one daemon."""

    def __init__(
        self,
        clock: Clock,
        identity: Identity,
        store: StoreService,
        boots: Mapping[str, BootIdentity],
        start_time: Callable[[int], float | None],
    ) -> None:
        digests = Digests()
        self._clock = clock
        self._store = store
        self._digests = digests
        self._began: float | None = None
        self._to_restore: Open | None = None
        self._to_reconcile: Open | None = None
        self._to_rearm: Open | None = None
        self._to_close: Open | None = None
        self._jobs: frozenset[str] = frozenset()
        self._to_pause = Open()
        """Jobs whose pauses are to be read though all else is known."""
        self._known: set[str] = set()
        """Jobs whose verdicts in the ledger are in the history."""
        self.settled = False
        """Whether everything that the store says is known."""
        self._taking_over = False
        self.ledger = Ledger(store)
        self.inflight = Inflight(clock, identity, store, digests, start_time)
        self.boot_marks = BootMarks(clock, identity, store, boots, digests, self.inflight.survivor)
        self.retries = RetryStore(clock, identity, store, digests, self.boot_marks.covers)
        self.pauses = PauseStore(clock, identity, store)
        self.catchup: CatchUp | None = None

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What a launch takes in the store, in the order of the table."""
        return self.retries, self.boot_marks

    def serve(self, runs: RunService) -> None:
        """Take part in the life of C{runs}."""
        self._runs = runs
        runs.retries.journal = self.retries
        self.catchup = CatchUp(
            self._clock,
            self._store,
            runs.book,
            runs.request,
            lambda name: runs.jobs.find(name),
            runs.when_idle,
            runs.bus,
            lambda job: runs.gates.leadership.may_run(job),
        )
        self.ledger.waits = self._may_hide
        self.ledger.gave_up = self._nothing_missed

    def fired_by(self, index: FireIndex) -> None:
        """Know the slots that C{index} has not given out."""
        assert self.catchup is not None
        self.catchup.next_slot = index.next_fire

    def installed(self, jobs: Mapping[str, JobConfig]) -> None:
        """Another set of jobs is in force; from the first one on, due slots are fired."""
        if self._began is None:
            self._began = self._clock.now()
        came = [name for name in jobs if name not in self._jobs]
        self._jobs = frozenset(jobs)
        if came and self.settled and self._store.on:
            # One of them may have been here before, and paused.
            self._to_pause.update(Open.of(came))
            background("reading the pauses of new jobs", self._try_to_read_pauses(self._to_pause))
        for keeper in (self._digests, self.inflight, self.pauses, self.catchup):
            if keeper is not None:
                keeper.keep_only(jobs)
        # The history forgets a job that goes; should it come back, the ledger is to be asked.
        self._known.intersection_update(jobs)

    # what runs tell

    def started(self, run: Run) -> None:
        """A run has launched."""
        self.inflight.opened(run.job, run.pid, run.started_at)
        if run.job.reboot and run.ticket.request.cause == "manual":
            self.boot_marks.stands_for_boot(run.job)

    def finished(self, run: FinishedRun) -> None:
        """A run has ended and is in the history."""
        if self.catchup is not None and run.record.ended_by != "shutdown":
            self.catchup.ran(run.record.job)
            self.catchup.outlasted(run.record.job, run.record.finished_at)
        self.ledger.finished(run)

    def skipped(self, record: RunRecord) -> None:
        """A paused job's slot has left a row in the history."""
        self.ledger.skipped(record, self._runs.jobs.find(record.job))

    def left(self, run: Run, others: Iterable[Run]) -> None:
        """A run is over; C{others} of its job live still, oldest first."""
        for other in others:
            if other.pid is not None:
                self.inflight.passed_on(run.started_at, other.job, other.pid, other.started_at)
                return
        self.inflight.closed(run.job.name)

    def paused(self, job: str, pause: Pause) -> None:
        """A job was paused."""
        self.pauses.paused(job, pause)

    def resumed(self, job: str, by: str, channel: str) -> None:
        """A job was resumed."""
        self.pauses.resumed(job, by, channel)

    def missed(self, gap: Gap, job: JobConfig | None) -> bool:
        """Take over slots that passed, if they are to be caught up with."""
        if job is None or self.catchup is None or not self.catchup.wants(job):
            return False
        self.catchup.gap(gap, job, self._runs.pause_of(job.name))
        return True

    def last_succeeded(self, remembered: Judge) -> Judge:
        """
        Return the depends-on-past gate that asks the ledger where memory may not know enough.
        """
        return _DependsOnPast(self, remembered)

    def remembers_all(self, job: str) -> bool:
        """Return whether the ledger of C{job} tells nothing that memory does not."""
        if not self._store.configured:
            return True
        view = self._store.view
        return job in self._known and view is not None and view.topology != "shared"

    def cannot_tell(self) -> bool:
        """Return whether a gate that the store does not answer has to say no."""
        return self._store.fail_closed

    async def learn_verdict(self, job: str) -> None:
        """Take over the newest verdict in the ledger; raises OSError."""
        saved = await self.ledger.last_verdict(job)
        known = self._runs.history.last_verdict(job)
        if saved is not None and (known is None or saved.finished_at > known.finished_at):
            self._runs.history.note_verdict(saved)
        if self._runs.jobs.find(job) is not None:
            self._known.add(job)

    # when a store comes up

    async def take_over(self) -> None:
        """
        Take over what the store says; a part that the store does not answer for is asked again.

        Called when a store has been started, and each minute until all of it is known.
        """
        if not self._store.on or self._taking_over:
            return
        self._taking_over = True
        try:
            await self._recall()
        except TROUBLE as error:
            log.warning("state: what was saved cannot be read yet: %s", error)
        finally:
            self._taking_over = False

    async def each_minute(self) -> None:
        """Ask for what is not known yet, and for pauses that other nodes have made."""
        if not self._store.on:
            return
        if self.catchup is not None:
            self.catchup.each_minute()
        if not self.settled or self._undecided():
            await self.take_over()
            return
        view = self._store.view
        if view is not None and view.topology == "shared":
            self._to_pause.update(Open.of(self._runs.jobs.jobs))
        await self._try_to_read_pauses(self._to_pause)

    def store_changed(self) -> None:
        """Another store is in force: what it says about interrupted runs is news."""
        self.settled = False
        self._to_reconcile = self._to_rearm = self._to_close = None

    def stop(self) -> None:
        """Catch up with nothing any more."""
        if self.catchup is not None:
            self.catchup.stop()

    async def _recall(self) -> None:
        jobs = self._runs.jobs.jobs
        if self._to_restore is None:
            self._to_restore = Open.of(jobs)
        if self._to_reconcile is None:
            self._to_reconcile, self._to_rearm, self._to_close = Open.of(jobs), None, None
        trouble: Exception | None = None
        for step in (
            self._restore,
            self._reconcile,
            self._read_all_pauses,
            self._rearm,
            self._catch_up,
            self._close_left,
        ):
            try:
                await step()
            except StoreSlow:
                raise
            except TROUBLE as error:
                # One job whose records cannot be read is no reason to forget the others.
                trouble = trouble or error
            except Exception:
                log.exception("state: taking over what was saved failed in part")
        if trouble is not None:
            raise trouble
        # Another store may have come into force meanwhile; then all is to be asked again.
        self.settled = self._to_reconcile is not None

    async def _restore(self) -> None:
        runs, names = self._runs, self._to_restore
        if not names:
            return
        asked = tuple(names)
        try:
            count = await self.ledger.rehydrate(names, runs.history)
        finally:
            runs.revision += 1
            read = [name for name in asked if name not in names]
            self._known.update(name for name in read if runs.jobs.find(name) is not None)
            self._enter_missed(read)
        log.info("state: rehydrated run history for %d job(s)", count)

    async def _reconcile(self) -> None:
        if self._to_reconcile:
            find = self._runs.jobs.find
            await self.inflight.reconcile(self._to_reconcile, find, self._interrupted)

    async def _rearm(self) -> None:
        runs = self._runs
        if self._to_rearm is None:
            self._to_rearm = await self.retries.saved(runs.jobs.jobs)
        await self.retries.rearm(
            self._to_rearm, runs.jobs.find, runs.history.last_run, runs.retries
        )

    async def _catch_up(self) -> None:
        catchup = self.catchup
        assert catchup is not None
        now, wanted = self._clock.now(), {job.name: job for job in self._undecided()}

        def found(name: str, saved: Saved) -> None:
            catchup.decide(wanted[name], saved, self._began or now)
            self.ledger.release(name)

        await for_each(
            self._store,
            Open.of(wanted),
            lambda store, name: checkpoints.read(store, name, now),
            found,
        )
        catchup.all_decided(self._runs.jobs.jobs.values())

    async def _close_left(self) -> None:
        """Close what earlier processes left open of jobs that owe nothing any more."""
        catchup, find = self.catchup, self._runs.jobs.find
        assert catchup is not None
        if self._to_close is None:
            prefix = streams.catchup("")
            noted = await self._store.ask(lambda store: store.streams(prefix).names)
            names = (name[len(prefix) :] for name in noted)
            self._to_close = Open.of(name for name in names if catchup.is_through_with(find(name)))

        def found(name: str, opened: checkpoints.Record | None) -> None:
            if opened is not None:
                catchup.close_left(find(name))

        await for_each(self._store, self._to_close, checkpoints.newest_open, found)

    def _undecided(self) -> list[JobConfig]:
        """Return the jobs of which it is still to be found out what they missed."""
        if self.catchup is None:
            return []
        return self.catchup.undecided(self._runs.jobs.jobs.values())

    def _may_hide(self, job: JobConfig) -> bool:
        return self.catchup is not None and self.catchup.may_owe(job)

    def _nothing_missed(self, job: str) -> None:
        if self.catchup is not None:
            self.catchup.decide_nothing(job)
        self.ledger.release(job)

    def _enter_missed(self, names: Iterable[str]) -> None:
        """Enter the slots that passed before this process and are not caught up with."""
        began = self._began or self._clock.now()
        for name in names:
            job = self._runs.jobs.find(name)
            schedule = None if job is None else job.schedule
            if job is None or schedule is None or not job.enabled or job.on_missed != "skip":
                continue
            last = [r.finished_at for r in self._runs.history.runs(job.name)]
            before = max((each for each in last if each <= began), default=None)
            if before is None or (first := schedule.next(before)) is None or first > began:
                continue
            until = schedule.previous(began + 1)
            count = schedule.count(before, began)
            self._runs.book.gap(job.name, EPOCH, first, until or first, count, "down")

    def _interrupted(self, job: str, started_at: float, host: str, owed: bool) -> None:
        record = self.ledger.interrupted(job, started_at, host, owed)
        if record is not None:
            self._runs.history.add_interrupted(record)
            self._runs.revision += 1
        if owed and self.catchup is not None:
            self.catchup.interrupted(job, started_at)

    async def _read_all_pauses(self) -> None:
        await self._read_pauses(Open.of(self._runs.jobs.jobs))

    async def _try_to_read_pauses(self, names: Open) -> None:
        try:
            await self._read_pauses(names)
        except TROUBLE as error:
            log.warning("state: pauses cannot be read: %s", error)

    async def _read_pauses(self, names: Open) -> None:
        def found(name: str, pause: Pause | None) -> None:
            if self._runs.jobs.find(name) is not None:
                self._runs.take_pause(name, pause)

        await self.pauses.read(names, found)


class _DependsOnPast:
    """The depends-on-past gate of a daemon with a store."""

    def __init__(self, memory: Memory, remembered: Judge) -> None:
        self._memory = memory
        self._remembered = remembered

    def __call__(self, request: RunRequest, job: JobConfig) -> Judged | Deferred[Judged]:
        """Judge by memory and ledger, whichever knows the newer run."""
        if not job.only_if_last_succeeded or self._memory.remembers_all(job.name):
            return self._remembered(request, job)
        return Deferred.fromCoroutine(self._ask(request, job))

    def late(self, request: RunRequest, job: JobConfig) -> Judged:
        """Judge without the ledger, as C{state.onStoreUnavailable} says."""
        return self._without_ledger(request, job, "the ledger does not answer in time")

    async def _ask(self, request: RunRequest, job: JobConfig) -> Judged:
        try:
            await self._memory.learn_verdict(job.name)
        except TROUBLE as error:
            return self._without_ledger(request, job, f"the ledger cannot be read: {error}")
        return self._by_memory(request, job)

    def _without_ledger(self, request: RunRequest, job: JobConfig, why: str) -> Judged:
        if self._memory.cannot_tell():
            return No("store", why)
        return self._by_memory(request, job)

    def _by_memory(self, request: RunRequest, job: JobConfig) -> Judged:
        judged = self._remembered(request, job)
        assert not isinstance(judged, Deferred), "what memory knows needs no wait"
        return judged
