"""
The runs room's service: it wires lanes, admission, launches, completion; decides nothing.

docs/architecture.md, "A due slot, step by step", tells how they go together.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from twisted.application.service import Service
from twisted.internet.defer import Deferred, DeferredList

from cronstable.agenda import Agenda
from cronstable.clock import Clock
from cronstable.config.values import JobConfig
from cronstable.events import Bus
from cronstable.executors.interfaces import Ended, IExecutor
from cronstable.identity import Identity
from cronstable.runs import tables
from cronstable.runs.admission import Admission, Admitted, Denied, undo
from cronstable.runs.capture import Captures
from cronstable.runs.completion import Completion, NoReporter, Reporter
from cronstable.runs.environment import RunEnvironment
from cronstable.runs.gates import Claim, JobGates, Judge, Leadership, Solo
from cronstable.runs.history import History
from cronstable.runs.jobset import JobSet
from cronstable.runs.lane import Lane, close_merged, close_missed
from cronstable.runs.launcher import Launcher
from cronstable.runs.memory import Memory
from cronstable.runs.pauses import Pause, Pauses
from cronstable.runs.record import (
    PauseChanged,
    RunRecord,
    RunSkipped,
    RunStarted,
    Verification,
)
from cronstable.runs.request import Decision, RunRequest, Ticket
from cronstable.runs.retry import PendingRetry, Retries, sequence_of
from cronstable.runs.run import Run
from cronstable.runs.slotbook import SlotBook
from cronstable.service import Waiters

log = logging.getLogger("cronstable")


class RunService(Service):
    """
    Runs jobs on request.

    Its read side (C{jobs}, C{live}, C{history}, C{pending_retry}, C{pause_of}, C{revision}) is
    what pages and metrics use; C{request} is the only thing that starts a process.
    """

    def __init__(
        self,
        clock: Clock,
        identity: Identity,
        executor: IExecutor,
        bus: Bus,
        captures: Captures,
        base_environment: Mapping[str, str],
        *,
        reporter: Reporter | None = None,
        leadership: Leadership | None = None,
        judgements: Mapping[str, Judge] | None = None,
        claims: Sequence[Claim] = (),
        memory: Memory | None = None,
        environment: RunEnvironment | None = None,
    ) -> None:
        self.jobs = JobSet()
        self.book = SlotBook()
        self.history = History()
        self.pauses = Pauses()
        self.bus = bus
        self.revision = 0
        self._clock = clock
        self._lanes: dict[str, Lane] = {}
        self._leaving: dict[str, JobConfig] = {}
        self._drained = Waiters()
        self._completing = 0
        self._agenda = Agenda(clock)
        self.retries = Retries(clock, self._agenda, bus)
        self.retries.request = self.request
        self.retries.known = lambda name: self.jobs.find(name) is not None
        self.retries.goes_on = lambda sequence: any(
            run.sequence is sequence for run in self.live(sequence.job)
        )
        self.gates = JobGates(clock, self.pauses, self.history, leadership or Solo(), self.live)
        self._admission = Admission(
            clock,
            self._find,
            {**self.gates.table(), **_durable(memory, self.gates), **(judgements or {})},
            (*(memory.claims if memory is not None else ()), *claims),
        )
        self._completion = Completion(
            clock, self.history, self.retries, bus, reporter or NoReporter(), self._leave
        )
        self._launcher = Launcher(
            clock, identity, executor, captures, base_environment, environment
        )
        self._memory = memory
        if memory is not None:
            memory.serve(self)
            self._completion.remember = memory.finished

    # what others ask for

    def request(self, request: RunRequest) -> Ticket:
        """Answer at once with a ticket; what becomes of the request is told there."""
        ticket = Ticket(request)
        self._lane(request.name).submit(ticket)
        return ticket

    def start_now(self, name: str, who: str | None = None) -> Ticket:
        """Start a job because somebody asked."""
        return self.request(RunRequest(name, "manual", who=who))

    def cancel(self, name: str, who: str | None = None) -> tuple[int, Deferred[None]]:
        """
        Tell every live run of C{name} to stop.

        Return how many there were, and a Deferred that fires when all of them have ended.
        """
        runs = self.live(name)
        for run in runs:
            self._launcher.stop(run, "cancel", who)
        ends = DeferredList([run.ticket.when_ended() for run in runs])
        return len(runs), ends.addCallback(lambda _: None)

    def pause(self, name: str, pause: Pause) -> None:
        """Hold back the scheduled runs of C{name}."""
        self.take_pause(name, pause)
        if self._memory is not None:
            self._memory.paused(name, pause)

    def resume(self, name: str, by: str = "api", channel: str = "api") -> None:
        """Let C{name} run again; what was deferred for the pause is asked again at once."""
        self.pauses.lift(name)
        self._pause_changed(name, False)
        if self._memory is not None:
            self._memory.resumed(name, by, channel)

    def take_pause(self, name: str, pause: Pause | None) -> None:
        """Put a pause in force, or lift it, without noting that anywhere."""
        if pause is None:
            if self.pauses.lift(name):
                self._pause_changed(name, False)
        elif not pause.same_as(self.pauses.of(name, self._clock.now())):
            self.pauses.put(name, pause)
            self._pause_changed(name, True)

    def expire_pauses(self) -> None:
        """Let jobs whose pause has run out be asked for again."""
        for name in self.pauses.expire(self._clock.now()):
            self._pause_changed(name, False)

    # what pages and metrics read

    def job(self, name: str) -> JobConfig | None:
        """Return the job called C{name}: a configured one, or a removed one that still runs."""
        return self.jobs.find(name) or self._leaving.get(name)

    def shown(self) -> tuple[JobConfig, ...]:
        """Return the configured jobs in their order, then the removed ones that still run."""
        return (*self.jobs.jobs.values(), *self._leaving.values())

    def live(self, name: str) -> tuple[Run, ...]:
        """Return the runs of C{name} that are not recorded yet, oldest launch first."""
        lane = self._lanes.get(name)
        return () if lane is None else tuple(lane.live)

    def pending_retry(self, name: str) -> PendingRetry | None:
        """Return the armed retry of C{name}."""
        return self.retries.pending(name)

    def pause_of(self, name: str) -> Pause | None:
        """Return the pause of C{name} in force now."""
        return self.pauses.of(name, self._clock.now())

    def when_idle(self, name: str) -> Deferred[None]:
        """Fire when nothing of C{name} runs, waits or is being admitted."""
        return self._lane(name).when_idle()

    # a new set of jobs

    def install(self, jobs: JobSet) -> None:
        """Put C{jobs} in force; runs of removed jobs finish and are recorded, then forgotten."""
        removed = {name: job for name, job in self.jobs.jobs.items() if name not in jobs.jobs}
        self._leaving.update(removed)
        self.jobs = jobs
        self.book.size_for(len(jobs.jobs))
        self.revision += 1
        for name in tuple(self._leaving):
            if name in jobs.jobs:
                del self._leaving[name]
        for name in removed:
            if self.retries.pending(name) is not None:
                log.warning("Job %s is gone; its pending retry is dropped", name)
            self.retries.end(name, "job-removed")
            self.pauses.lift(name)
            self._launcher.forget(name)
            self._forget_if_gone(name)
        if self._memory is not None:
            self._memory.installed(jobs.jobs)

    # stopping

    def quiesce(self) -> None:
        """Launch nothing any more; what waits is closed as missed."""
        self.gates.draining = True
        self._completion.stopping = True
        self._admission.hurry()
        self.retries.quiesce()
        for lane in tuple(self._lanes.values()):
            lane.drop_waiting("shutdown")

    def when_drained(self) -> Deferred[None]:
        """Fire when nothing is being admitted, and every run is over and handed to reports."""
        waiter = self._drained.wait()
        self._tell_drained()
        return waiter

    def cut(self) -> None:
        """End every live run: they are recorded as cut by shutdown."""
        for lane in tuple(self._lanes.values()):
            for run in tuple(lane.live):
                self._launcher.stop(run, "shutdown")

    def stopService(self) -> None:
        """Drop the timers."""
        super().stopService()
        self._agenda.stop()

    # one request at a time

    async def _serve(self, lane: Lane, ticket: Ticket) -> None:
        request = ticket.request
        answer = await self._admission.admit(request)
        if isinstance(answer, Denied):
            self._deny(ticket, answer)
            return
        try:
            again = await self._clear(lane, request)
        except BaseException:
            undo(answer.holds)
            raise
        if isinstance(again, Denied):
            undo(answer.holds)
            self._deny(ticket, again)
            return
        run = self._launcher.make(self, again.job, ticket, answer.holds)
        lane.add(run)
        self.revision += 1
        log.info("Starting job %s", run.job.name)
        if await self._launcher.outfit.give(run):
            self._launcher.launch(run)
        else:
            self.finished(run, Ended("withdrawn"))

    async def _clear(self, lane: Lane, request: RunRequest) -> Admitted | Denied:
        """End what the run replaces, and ask the gates again after every wait."""
        again = self._admission.again(request)
        while isinstance(again, Admitted) and self._replaces(again.job, request, lane):
            for run in tuple(lane.live):
                self._launcher.stop(run, "replaced")
            await lane.when_no_live()
            again = self._admission.again(request)
        return again

    def _replaces(self, job: JobConfig, request: RunRequest, lane: Lane) -> bool:
        return job.concurrency_policy == "Replace" and request.cause != "task" and bool(lane.live)

    def _deny(self, ticket: Ticket, denied: Denied) -> None:
        request, no = ticket.request, denied.no
        slot = request.ticket
        if denied.answer == "defer":
            ticket.decide(Decision("deferred", no.reason, no.detail))
            return
        if slot is not None and not slot.closed:
            (slot.missed if denied.answer == "miss" else slot.skipped)(no.reason)
        if denied.answer == "row":
            self._skipped_row(request)
        elif request.cause == "scheduled":
            log.info("Job %s: slot skipped (%s)", request.name, no.detail or no.reason)
        if denied.answer == "refuse":
            ticket.decide(Decision("refused", no.reason, no.detail))
        else:
            ticket.decide(Decision("skipped", no.reason, no.detail))

    def _skipped_row(self, request: RunRequest) -> None:
        record = RunRecord(
            job=request.name,
            outcome="skipped",
            finished_at=self._clock.now(),
            skip_reason="paused",
            cause=request.cause,
            slot=request.slot,
        )
        self.history.add(record)
        self.revision += 1
        if self._memory is not None:
            self._memory.skipped(record)
        self.bus.publish(RunSkipped(record))

    # RunKeeper

    def still_wanted(self, run: Run) -> bool:
        """Ask the gates that need no wait once more."""
        return isinstance(self._admission.again(run.ticket.request, registered=True), Admitted)

    def launched(self, run: Run) -> None:
        """The process exists: the slot has run, and the retry sequence is settled."""
        self._has_launched(run)
        log.info("Job %s spawned", run.job.name)
        request = run.ticket.request
        assert run.pid is not None
        if self._memory is not None:
            self._memory.started(run)
        self.bus.publish(
            RunStarted(
                run.job,
                run.ref,
                run.pid,
                run.started_at,
                request.cause,
                request.slot,
                request.attempt,
            )
        )

    def finished(self, run: Run, ended: Ended) -> None:
        """The process is over: check its work if that is wanted, then complete the run."""
        run.captured.close()
        self.revision += 1
        if ended.cause == "withdrawn" or (ended.cause == "cancelled" and run.pid is None):
            self._withdraw(run)
            return
        if ended.cause == "not-started":
            log.error("Job %s could not start: %s", run.job.name, ended.reason)
            self._has_launched(run)
        if self._wants_check(run, ended):
            self._launcher.check(run, lambda found: self._complete(run, ended, found))
        else:
            self._complete(run, ended, None)

    def _complete(self, run: Run, ended: Ended, check: Verification | None) -> None:
        self._launcher.outfit.take_back(run)
        # The lane is left before the reports begin, and a drain has to see these.
        self._completing += 1
        try:
            self._completion.complete(run, ended, check)
        finally:
            self._completing -= 1
            self._tell_drained()

    def _has_launched(self, run: Run) -> None:
        request = run.ticket.request
        if run.slot is not None and not run.slot.closed:
            run.slot.ran(run.started_at)
        if request.cause in tables.BEGINS_SEQUENCE:
            # The slot of a boot run is of no schedule: its retries stand for none.
            slot = None if request.cause == "boot" else request.slot
            run.sequence = self.retries.begin(run.job, slot)
        elif (sequence := sequence_of(request)) is not None:
            run.sequence = sequence
        elif request.cause in tables.USES_SEQUENCE:
            run.sequence = self.retries.current(run.job.name)
        run.ticket.decide(Decision("started", ref=run.ref))

    def _withdraw(self, run: Run) -> None:
        """End a run that has had no process, and that will not get one."""
        self._launcher.outfit.take_back(run)
        undo(run.holds)
        self._close_unstarted(run)
        self._leave(run)
        run.ticket.end(None)

    def _close_unstarted(self, run: Run) -> None:
        ticket = run.ticket
        newer = self._lane(run.job.name).current
        denied = self._admission.again(ticket.request, registered=True)
        if run.intent == "cancel":
            self.retries.settled(run.job.name, sequence_of(ticket.request), "cancelled")
        if run.intent == "replaced" and newer is not None and newer is not ticket:
            close_merged(ticket, newer)
        elif isinstance(denied, Denied):
            self._deny(ticket, denied)
        else:
            close_missed(ticket, "shutdown" if run.intent == "shutdown" else "cancelled")
        if ticket.decision is not None:
            log.info("Job %s was not started (%s)", run.job.name, ticket.decision.reason)

    def _wants_check(self, run: Run, ended: Ended) -> bool:
        return (
            run.job.verify is not None
            and run.intent is None
            and ended.cause == "exited"
            and self._completion.verdict(run, ended) is None
        )

    # small helpers

    def _leave(self, run: Run) -> None:
        self.revision += 1
        lane = self._lanes[run.job.name]
        if self._memory is not None:
            self._memory.left(run, [other for other in lane.live if other is not run])
        lane.remove(run)

    def _quiet(self, lane: Lane) -> None:
        self._tell_drained()
        if self.jobs.find(lane.name) is None:
            self._forget_if_gone(lane.name)

    def _lane(self, name: str) -> Lane:
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = Lane(name, self._serve, self._find, self._quiet)
        return lane

    def _find(self, name: str) -> JobConfig | None:
        return self.jobs.find(name)

    def _forget_if_gone(self, name: str) -> None:
        lane = self._lanes.get(name)
        if self.jobs.find(name) is not None or (lane is not None and lane.busy):
            return
        self._lanes.pop(name, None)
        self._leaving.pop(name, None)
        self.history.forget(name)
        self.book.forget(name)

    def _pause_changed(self, name: str, paused: bool) -> None:
        self.revision += 1
        if not paused:
            self.retries.nudge(name)
        self.bus.publish(PauseChanged(name, paused))

    def _tell_drained(self) -> None:
        if not self._drained or self._completing:
            return
        if not any(lane.busy for lane in self._lanes.values()):
            self._drained.tell()


def _durable(memory: Memory | None, gates: JobGates) -> dict[str, Judge]:
    if memory is None:
        return {}
    return {"last-succeeded": memory.last_succeeded(gates.table()["last-succeeded"])}
