"""
What a daemon remembers beyond its own life, wired: ledger, in-flight records, retries, pauses,
boot markers, catch-up.

Everything here is without effect when no store is configured.  When a store comes up, what it
says is taken over in a fixed order: history, interrupted runs, pauses, retries, missed slots.
docs/durability.md tells an operator what is promised.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from cronstable.clock import Clock
from cronstable.config.values import JobConfig
from cronstable.identity import Identity
from cronstable.platform import BootIdentity
from cronstable.runs.bootmarks import BootMarks
from cronstable.runs.catchup import CatchUp
from cronstable.runs.digests import Digests
from cronstable.runs.gates import Claim, Judge, Judged, No
from cronstable.runs.index import Gap
from cronstable.runs.inflight import Inflight
from cronstable.runs.ledger import Ledger
from cronstable.runs.pauses import Pause
from cronstable.runs.pausestore import PauseStore
from cronstable.runs.record import FinishedRun, RunRecord
from cronstable.runs.request import RunRequest
from cronstable.runs.retrystore import RetryStore
from cronstable.state.errors import TROUBLE
from cronstable.state.service import StoreService

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
        boot: BootIdentity,
        start_time: Callable[[int], float | None],
    ) -> None:
        digests = Digests()
        self._clock = clock
        self._store = store
        self._began = clock.now()
        self._history_is_back = False
        self._missed_are_known = False
        self.ledger = Ledger(store)
        self.inflight = Inflight(clock, identity, store, digests, start_time)
        self.boot_marks = BootMarks(clock, identity, store, boot, digests, self.inflight.survivor)
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
        )

    # what runs tell

    def started(self, run: Run, first: bool) -> None:
        """A run has launched, the C{first} live one of its job or not."""
        if first:
            self.inflight.opened(run.job, run.pid, run.started_at)

    def finished(self, run: FinishedRun) -> None:
        """A run has ended and is in the history."""
        self.ledger.finished(run)

    def skipped(self, record: RunRecord) -> None:
        """A paused job's slot has left a row in the history."""
        self.ledger.skipped(record)

    def no_run_left(self, job: str) -> None:
        """The last live run of C{job} has ended."""
        self.inflight.closed(job)

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
        self.catchup.gap(gap, job)
        return True

    def last_succeeded(self, remembered: Judge) -> Judge:
        """
        Return the depends-on-past gate that asks the ledger where memory may not know enough.

        Memory knows enough when no other node writes and what was saved has been read.
        """

        def judge(request: RunRequest, job: JobConfig) -> Judged | Deferred[Judged]:
            if not job.only_if_last_succeeded or not self._store.configured:
                return remembered(request, job)
            view = self._store.view
            if self._history_is_back and view is not None and view.topology != "shared":
                return remembered(request, job)
            return Deferred.fromCoroutine(self._ask_ledger(remembered, request, job))

        return judge

    async def _ask_ledger(self, remembered: Judge, request: RunRequest, job: JobConfig) -> Judged:
        try:
            saved = await self.ledger.last_verdict(job.name)
        except TROUBLE as error:
            if self._store.fail_closed:
                return No("store", f"the ledger cannot be read: {error}")
        else:
            known = self._runs.history.last_verdict(job.name)
            if saved is not None and (known is None or saved.finished_at > known.finished_at):
                self._runs.history.note_verdict(saved)
        answer = remembered(request, job)
        return answer if not isinstance(answer, Deferred) else await answer

    # when a store comes up

    async def take_over(self) -> None:
        """
        Take over what the store says; a part that the store does not answer for is asked again.

        Called when a store has been started, and each minute until all of it is known.
        """
        if not self._store.on:
            return
        try:
            await self._recall()
        except TROUBLE as error:
            log.warning("state: what was saved cannot be read yet: %s", error)

    @property
    def settled(self) -> bool:
        """Whether there is nothing left to take over."""
        return not self._store.configured or self._missed_are_known

    async def each_minute(self) -> None:
        """Ask for what is not known yet, and for pauses that other nodes have made."""
        if not self._store.on:
            return
        if not self.settled:
            await self.take_over()
            return
        view = self._store.view
        if view is not None and view.topology == "shared":
            try:
                await self._read_pauses()
            except TROUBLE as error:
                log.warning("state: pauses cannot be read: %s", error)

    def store_changed(self) -> None:
        """Another store is in force: what it says about interrupted runs is news."""
        self._missed_are_known = False

    def stop(self) -> None:
        """Catch up with nothing any more."""
        if self.catchup is not None:
            self.catchup.stop()

    async def _recall(self) -> None:
        runs, jobs = self._runs, self._runs.jobs.jobs
        if not self._history_is_back:
            count = await self.ledger.rehydrate(jobs, runs.history)
            self._history_is_back = True
            runs.revision += 1
            log.info("state: rehydrated run history for %d job(s)", count)
        await self.inflight.reconcile(jobs, lambda name: bool(runs.live(name)), self._interrupted)
        await self._read_pauses()
        await self.retries.rearm(jobs, self._is_busy, runs.retries)
        if self.catchup is not None and not self._missed_are_known:
            await self.catchup.at_start(jobs.values(), self._began)
        self._missed_are_known = True

    def _interrupted(self, job: str, started_at: float, host: str, owed: bool) -> None:
        record = self.ledger.interrupted(job, started_at, host, owed)
        if record is not None:
            self._runs.history.add_interrupted(record)
            self._runs.revision += 1

    def _is_busy(self, name: str) -> bool:
        return bool(self._runs.live(name)) or self._runs.retries.current(name) is not None

    async def _read_pauses(self) -> None:
        jobs = self._runs.jobs.jobs
        for name, pause in (await self.pauses.read(jobs)).items():
            self._runs.take_pause(name, pause)
