"""A world with a store: what one life of a daemon leaves, the next one finds."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from typing import Any, cast

import attrs
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from cronstable.clock import Clock, ManualClock
from cronstable.config.sections_values import StateConfig
from cronstable.config.values import JobConfig
from cronstable.identity import Identity
from cronstable.platform import BootIdentity
from cronstable.runs.index import Gap
from cronstable.runs.memory import Memory
from cronstable.runs.record import RunStarted
from cronstable.state.faults import FaultyFiles
from cronstable.state.files import Files
from cronstable.state.memory import MemoryFiles
from cronstable.state.service import StoreService
from cronstable.state.store import Store, StoreSettings, open_store
from cronstable.state.workers import Workers
from tests.runs.world import World

# Warnings are asserted where they matter; elsewhere they are part of what is tried.
logging.getLogger("cronstable.state").addHandler(logging.NullHandler())
logging.getLogger("cronstable").addHandler(logging.NullHandler())

STATE = StateConfig(path="/state")


class InlineWorkers:
    """Does the work at once, or, while C{stuck}, when C{go_on} is called."""

    def __init__(self, reactor: object, clock: Clock, name: str, capacity: int) -> None:
        self.capacity = capacity
        self.peak = self.inflight = self.hung = 0
        self.stuck = False
        self._waiting: list[tuple[Deferred[Any], Callable[[], Any]]] = []

    def run(self, call: Callable[[], Any]) -> Deferred[Any]:
        done: Deferred[Any] = Deferred()
        self._waiting.append((done, call))
        if not self.stuck:
            self.go_on()
        return done

    def go_on(self, most: int = 1_000_000) -> None:
        """Do what waits, up to C{most} pieces of it."""
        waiting, self._waiting = self._waiting[:most], self._waiting[most:]
        for done, call in waiting:
            try:
                result: Any = call()
            except Exception:
                result = Failure()
            done.callback(result)

    def stop(self) -> None:
        pass


@attrs.define
class Host:
    """What outlives a daemon: its disk, its clock, its processes, its boot."""

    now: float
    files: MemoryFiles = attrs.field(init=False)
    boot_id: str = "boot-1"
    container: int = 1
    name: str = "node-a"
    alive: dict[int, float] = attrs.field(factory=dict)
    """When each process that still lives was started."""

    def __attrs_post_init__(self) -> None:
        self.files = MemoryFiles(lambda: self.now)


class DurableWorld(World):
    """One life of a daemon with a store on a host."""

    def __init__(
        self,
        host: Host,
        *jobs: JobConfig,
        state: StateConfig = STATE,
        up: bool = True,
        **wiring: Any,
    ) -> None:
        clock = ManualClock(host.now)
        self.host = host
        self.faults = FaultyFiles(host.files)
        self.workers: list[InlineWorkers] = []
        self.identity = Identity(host.name, host.name, 4711, secrets.token_hex(16))
        self.store = StoreService(None, clock, self._make_store, self._make_workers)
        self.memory = Memory(
            clock,
            self.identity,
            self.store,
            {
                "host": BootIdentity(host.boot_id, None),
                "container": BootIdentity(f"{host.boot_id}/{host.container}", None),
            },
            lambda pid: host.alive.get(pid),
        )
        self.store.when_up = self.memory.take_over
        self.cut_at: float | None = None
        self.slots: list[tuple[str, int | None, str]] = []
        super().__init__(host.now, *jobs, clock=clock, memory=self.memory, **wiring)
        self.memory.fired_by(self.scheduler.index)
        self.bus.subscribe(RunStarted, self._note)
        if up:
            self.start(state)

    def start(self, state: StateConfig = STATE) -> None:
        """Start the store, then run what is owed for this boot."""
        self.use(state)
        self.boot.begin(self.runs.jobs)

    def use(self, state: StateConfig | None) -> None:
        """Put a C{state} section in force."""
        self.memory.store_changed()
        Deferred.fromCoroutine(self.store.reconcile(state))

    def minute(self) -> None:
        """Do what a daemon does once a minute."""
        self.boot.ask_again()
        self.runs.expire_pauses()
        Deferred.fromCoroutine(self.store.try_to_start())
        Deferred.fromCoroutine(self.memory.each_minute())

    def missed(self, gap: Gap) -> bool:
        return self.memory.missed(gap, self.runs.jobs.find(gap.job))

    def kill(self) -> Host:
        """End this life at once; what it had written is there."""
        host = self.host
        host.now = self.clock.now()
        host.files = host.files.process_death()
        return host

    def stop(self, drain: float = 60.0) -> Host:
        """Stop as a signal does: what runs may end for C{drain} seconds and is cut then."""
        self.scheduler.stopService()
        self.boot.stop()
        self.memory.stop()
        self.runs.quiesce()
        drained = self.runs.when_drained()
        self.run(drain)
        if not drained.called:
            self.cut_at = self.clock.now()
            self.runs.cut()
            self.run(drain)
        self.runs.stopService()
        Deferred.fromCoroutine(self.store.close())
        self.host.now = self.clock.now()
        return self.host

    def records(self, stream: str) -> list[dict[str, Any]]:  # type: ignore[override]
        """Return what is in a stream of the store."""
        return self.saved().records.read(stream)

    def saved(self) -> Store:
        """Return the store as another process would open it."""
        return open_store(StoreSettings("/state"), self.clock, files=self.host.files)

    def append(self, stream: str, *records: dict[str, Any]) -> None:
        """Write records as another process would."""
        for record in records:
            self.saved().records.append(stream, record)

    def stick(self) -> None:
        """Let every operation of the store hang from now on."""
        for workers in self.workers:
            workers.stuck = True

    def unstick(self) -> None:
        """Let what hangs go on."""
        for workers in self.workers:
            workers.stuck = False
            workers.go_on()

    def starts(self, name: str) -> list[tuple[int | None, str]]:
        """Return (slot, cause) of each start of a job, in order."""
        return [(slot, cause) for job, slot, cause in self.slots if job == name]

    def _note(self, event: RunStarted) -> None:
        self.slots.append((event.job.name, event.slot, event.cause))

    def _make_store(self, config: StateConfig, clock: Clock) -> Store:
        settings = StoreSettings(config.path, config.deployment_id, config.topology, config.fsync)
        store = open_store(settings, clock, files=cast(Files, self.faults))
        store.mounts = ""
        return store

    def _make_workers(self, reactor: Any, clock: Clock, name: str, capacity: int) -> Workers:
        workers = InlineWorkers(reactor, clock, name, capacity)
        self.workers.append(workers)
        return cast(Workers, workers)


def kinds(records: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return (kind, reason) of retry records, in order."""
    return [(each["kind"], each.get("reason"), each.get("attempt")) for each in records]
