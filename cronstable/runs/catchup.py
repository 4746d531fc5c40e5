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
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
from twisted.internet.defer import Deferred

from cronstable.clock import Clock
from cronstable.config.values import JobConfig
from cronstable.events import Bus
from cronstable.runs import missed
from cronstable.runs.index import Gap
from cronstable.runs.record import RunStarted
from cronstable.runs.request import Decision, Requester, RunRequest
from cronstable.runs.slotbook import SlotBook, SlotTicket
from cronstable.service import background
from cronstable.state import folds, streams
from cronstable.state.instants import from_text, to_text
from cronstable.state.service import StoreService
from cronstable.state.store import Store

log = logging.getLogger("cronstable")

EPOCH = -2
"""Slots from before this process are of none of its epochs."""

MOST_WINDOWS = 100


@attrs.define(eq=False)
class Window:
    """A stretch of owed slots: the watermark they were worked out from, and their tickets."""

    watermark: float | None
    tickets: deque[SlotTicket]


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
    ) -> None:
        self._clock = clock
        self._store = store
        self._book = book
        self._request = request
        self._find = find
        self._when_idle = when_idle
        self._windows: dict[str, deque[Window]] = {}
        self._last_start: dict[str, tuple[float, int | None]] = {}
        self._stopping = False
        self._sleeping: dict[str, Deferred[None]] = {}
        bus.subscribe(RunStarted, self._started)

    def wants(self, job: JobConfig | None) -> bool:
        """Return whether slots of C{job} that pass are caught up with."""
        return (
            job is not None
            and job.on_missed != "skip"
            and job.schedule is not None
            and self._store.configured
        )

    def gap(self, gap: Gap, job: JobConfig) -> None:
        """Slots passed while this process stood still: owe them."""
        slots = gap.schedule.occurrences(gap.first - 1, gap.until)
        self._owe(job, gap.epoch, float(gap.first) - 1, slots)

    async def at_start(self, jobs: Iterable[JobConfig], until: float) -> None:
        """
        Owe what passed before this process: slots after each watermark, up to C{until}.

        Raises OSError if the store does not answer in time; nothing is owed twice when it is
        asked again.
        """
        wanted = {job.name: job for job in jobs if job.enabled and self.wants(job)}
        now = self._clock.now()
        marks = await self._store.ask(lambda store: _watermarks(store, tuple(wanted), now))
        for name, (watermark, is_open, ahead) in marks.items():
            job = wanted[name]
            if ahead:
                log.warning(
                    "Job %s: %d run(s) in the ledger are hours ahead of the clock and do not count",
                    name,
                    ahead,
                )
            if watermark is None or job.schedule is None:
                continue
            slots = job.schedule.occurrences(watermark, until)
            if not self._owe(job, EPOCH, watermark, slots) and is_open:
                self._checkpoint(name, "close", None)

    def stop(self) -> None:
        """Launch nothing any more; what is owed stays owed in the store."""
        self._stopping = True
        for waiting in tuple(self._sleeping.values()):
            if not waiting.called:
                waiting.callback(None)
        for windows in self._windows.values():
            for window in windows:
                _close(window, "shutdown")

    def owns(self, ticket: SlotTicket) -> bool:
        """Return whether C{ticket} waits here to be launched."""
        return any(ticket in window.tickets for window in self._windows.get(ticket.job, ()))

    def _started(self, event: RunStarted) -> None:
        self._last_start[event.job.name] = (event.started_at, event.slot)

    def _owe(self, job: JobConfig, epoch: int, watermark: float, slots: Iterable[int]) -> bool:
        verdict = missed.owed(job, slots, self._clock.now())
        self._enter(job.name, epoch, verdict)
        if not verdict.slots:
            return False
        log.info("catch-up: replaying %d missed run(s) for %s", len(verdict.slots), job.name)
        tickets = [self._book.open(job.name, epoch, slot, self) for slot in verdict.slots]
        self._add(job.name, Window(watermark, deque(tickets)))
        return True

    def _enter(self, name: str, epoch: int, verdict: missed.Owed) -> None:
        for passed, reason in ((verdict.too_late, "deadline"), (verdict.cut, "cap")):
            if passed is not None:
                self._book.gap(name, epoch, passed.first, passed.until, passed.count, reason)
        if verdict.cut is not None:
            log.warning(
                "catch-up: %d missed run(s) of %s are beyond its catchupLimit and are not run",
                verdict.cut.count,
                name,
            )
        if verdict.merged is not None:
            into = verdict.slots[-1]
            merged = verdict.merged
            self._book.merged_range(name, epoch, merged.first, merged.until, merged.count, into)

    def _add(self, name: str, window: Window) -> None:
        windows = self._windows.get(name)
        if windows is not None:
            windows.append(window)
            if len(windows) > MOST_WINDOWS:
                log.warning("catch-up: too many gaps of %s wait; the oldest is dropped", name)
                dropped = windows[1]
                windows.remove(dropped)
                _close(dropped, "cap")
            return
        self._windows[name] = deque([window])
        background(f"catching up with job {name}", self._serve(name))

    async def _serve(self, name: str) -> None:
        windows = self._windows[name]
        try:
            while windows and not self._stopping:
                await self._window(name, windows[0])
                windows.popleft()
        finally:
            for window in windows:
                _close(window, "shutdown" if self._stopping else "error")
            del self._windows[name]

    async def _window(self, name: str, window: Window) -> None:
        await self._checkpoint(name, "open", window.watermark)
        job = self._find(name)
        if job is not None:
            await self._sleep(name, missed.jitter(job))
        while window.tickets and not self._stopping:
            stopped = await self._slot(name, window)
            if stopped is not None:
                _close(window, stopped)
                return
        if not self._stopping:
            await self._checkpoint(name, "close", None)

    async def _slot(self, name: str, window: Window) -> str | None:
        """Launch the oldest slot of C{window}; return why the whole window is to be left."""
        await self._when_idle(name)
        ticket = window.tickets[0]
        job = self._find(name)
        if self._stopping:
            return "shutdown"
        if job is None or not job.enabled:
            return "removed" if job is None else "disabled"
        if job.on_missed == "run-once" and self._satisfied(ticket):
            return None
        request = RunRequest(name, "catchup", slot=ticket.slot, ticket=ticket)
        asked = self._request(request)
        decision: Decision = await asked.when_decided()
        if decision.kind == "deferred":
            ticket.owner = self
            return None if decision.reason == "overlap" else str(decision.reason)
        window.tickets.popleft()
        await asked.when_ended()
        return None

    def _satisfied(self, ticket: SlotTicket) -> bool:
        """Close the ticket of a run-once window if the job has been started since its slot."""
        started = self._last_start.get(ticket.job)
        if started is None or started[0] <= ticket.slot:
            return False
        self._windows[ticket.job][0].tickets.popleft()
        ticket.merged(int(started[0]) if started[1] is None else started[1])
        return True

    def _sleep(self, name: str, seconds: float) -> Deferred[None]:
        waiting: Deferred[None] = Deferred()
        if not seconds:
            waiting.callback(None)
            return waiting

        def over() -> None:
            if not waiting.called:
                waiting.callback(None)

        timer = self._clock.callLater(seconds, over)
        self._sleeping[name] = waiting

        def awake(_: Any) -> None:
            self._sleeping.pop(name, None)
            if timer.active():
                timer.cancel()

        return waiting.addCallback(awake)

    def _checkpoint(self, name: str, kind: str, watermark: float | None) -> Deferred[bool]:
        record = {
            "kind": kind,
            "watermark": "" if watermark is None else to_text(watermark),
            "at": to_text(self._clock.now()),
        }
        stream = streams.catchup(name)
        return self._store.write(
            name,
            "checkpoint",
            lambda store: store.records.append(stream, record, keep=streams.CATCHUP_KEEP),
        )


def _close(window: Window, reason: str) -> None:
    while window.tickets:
        ticket = window.tickets.popleft()
        if not ticket.closed:
            ticket.missed(reason)


def _watermarks(
    store: Store, names: tuple[str, ...], now: float
) -> dict[str, tuple[float | None, bool, int]]:
    found = {}
    for name in names:
        mark = folds.watermark(store.records.read(streams.runs(name), strict=True), now)
        checkpoint: Mapping[str, Any] | None = store.records.latest(streams.catchup(name))
        is_open = checkpoint is not None and checkpoint.get("kind") == "open"
        watermark = mark.instant
        if is_open and checkpoint is not None:
            opened_at = from_text(checkpoint.get("watermark"))
            if opened_at is not None and (watermark is None or opened_at < watermark):
                watermark = opened_at
        if watermark is not None or is_open:
            found[name] = (watermark, is_open, mark.ahead)
    return found
