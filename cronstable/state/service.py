"""
The store as a service: the synchronous core behind Deferreds, on threads of its own.

Without a C{state} section there is no store: C{on} is False, nothing is written and every question
fails with L{StoreOff}.  docs/durability.md tells an operator what is promised.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import attrs
from twisted.application.service import Service
from twisted.internet.defer import Deferred, fail, succeed

from cronstable.clock import Clock
from cronstable.config.sections_values import StateConfig
from cronstable.state.encoding import portable_data
from cronstable.state.errors import NotPortable
from cronstable.state.seat import Seat
from cronstable.state.stats import LockCount, OpCount
from cronstable.state.store import Store, StoreSettings, View, open_store
from cronstable.state.streams import LEAST_RUNS
from cronstable.state.throttle import Throttle
from cronstable.state.workers import StoreSlow, Workers, within
from cronstable.state.writes import MOST_AT_ONCE, Kind, Operation, Writes

log = logging.getLogger("cronstable.state")

T = TypeVar("T")

BULK_WORKERS = 16
"""Threads for everything but leases."""

LEASE_WORKERS = 8
"""Threads that renew leases and give them back."""

HUNT_WORKERS = 8
"""Threads that look for free leases, which may take long: no renewal waits behind them."""

READ_BOUND = 10.0
"""Seconds that a question on the way of a launch may take."""

FLUSH_BOUND = 5.0
"""Seconds that pending writes get when a store is closed."""


class StoreOff(OSError):
    """No store is configured, or it could not be started."""


@attrs.frozen
class Lane:
    """How busy one set of workers is."""

    inflight: int
    capacity: int
    peak: int


class Opened:
    """One store that a configuration names, with its threads and its queue of writes."""

    def __init__(
        self,
        reactor: Any,
        clock: Clock,
        config: StateConfig,
        make: MakeStore,
        make_workers: MakeWorkers,
        host: str | None,
    ) -> None:
        self.config = config
        self.store = make(config, clock)
        self.view: View | None = None
        self.failed = False
        """Whether an attempt to start the store has failed, and none has succeeded."""
        self.bulk = make_workers(reactor, clock, "store", BULK_WORKERS)
        self.leases = make_workers(reactor, clock, "lease", LEASE_WORKERS)
        self.hunts = make_workers(reactor, clock, "hunt", HUNT_WORKERS)
        self.throttle = Throttle(clock, config.max_ops_per_second)
        self._clock = clock
        at_once = 1 if config.max_ops_per_second else MOST_AT_ONCE
        self.writes = Writes(clock, self.run, BULK_WORKERS // 2, at_once)
        self.seat: Seat | None = None
        if host is not None:
            self.seat = Seat(clock, lambda do: self.bulk.run(lambda: do(self.store)), host)

    def run(self, operation: Callable[[Store], T]) -> Deferred[T]:
        """Run an operation on a bulk worker, no faster than the configuration allows."""
        wait = self.throttle.wait()
        if not wait:
            return self.bulk.run(lambda: operation(self.store))
        later: Deferred[T] = Deferred()
        self._clock.callLater(
            wait, lambda: self.bulk.run(lambda: operation(self.store)).chainDeferred(later)
        )
        return later

    def stop(self) -> None:
        """Let the threads end."""
        self.writes.stop()
        if self.seat is not None:
            self.seat.leave()
        self.bulk.stop()
        self.leases.stop()
        self.hunts.stop()


MakeStore = Callable[[StateConfig, Clock], Store]
MakeWorkers = Callable[[Any, Clock, str, int], Workers]


def store_of(config: StateConfig, clock: Clock) -> Store:
    """Return the store that C{config} names, on the system's own files."""
    return open_store(StoreSettings.of(config), clock)


class StoreService(Service):
    """
    The durable store of a daemon, or none.

    C{when_up} is awaited after each successful start of a backend.  With the name of its C{host} a
    daemon finds out whether another one of it uses the same store.
    """

    def __init__(
        self,
        reactor: Any,
        clock: Clock,
        make: MakeStore = store_of,
        make_workers: MakeWorkers = Workers,
        host: str | None = None,
    ) -> None:
        self.when_up: Callable[[], Awaitable[object]] = _nothing
        self._reactor = reactor
        self._clock = clock
        self._make = make
        self._make_workers = make_workers
        self._host = host
        self._opened: Opened | None = None
        self._starting = False
        self._retention_told = False
        self._dropped_before: Counter[str] = Counter()
        self._left: WeakKeyDictionary[Store, Workers] = WeakKeyDictionary()
        """The workers for leases of stores that are not in force any more."""

    # what others ask

    @property
    def configured(self) -> bool:
        """Whether a C{state} section is in force."""
        return self._opened is not None

    @property
    def on(self) -> bool:
        """Whether a store is configured and has been started."""
        return self._opened is not None and self._opened.view is not None

    @property
    def config(self) -> StateConfig | None:
        """The section in force."""
        return None if self._opened is None else self._opened.config

    @property
    def view(self) -> View | None:
        """What the started store is."""
        return None if self._opened is None else self._opened.view

    @property
    def fail_closed(self) -> bool:
        """Whether gates say no while the store cannot answer."""
        config = self.config
        return config is not None and config.on_store_unavailable == "fail-closed"

    def ask(
        self, question: Callable[[Store], T], bound: float = READ_BOUND, *, late: bool = False
    ) -> Deferred[T]:
        """
        Fire with what C{question} finds out, or fail within C{bound} seconds.

        What has not begun by then is not done, unless it may be C{late}: it may change something,
        and nobody would know.
        """
        opened = self._opened
        if opened is None or opened.view is None:
            return fail(StoreOff("no store is running"))
        until = self._clock.seconds() + bound

        def in_time(store: Store) -> T:
            if not late and self._clock.seconds() >= until:
                raise StoreSlow(f"not begun within {bound:g} s")
            return question(store)

        return within(self._clock, bound, opened.run(in_time))

    def write(self, key: str, kind: Kind, operation: Operation, size: int = 0) -> Deferred[bool]:
        """
        Write after everything asked for C{key} before; fire with whether it was written.

        What is asked for while the store starts for the first time waits for it.  A store that
        could not be started takes no writes: they are counted as dropped.  C{size} is the bytes
        that the write keeps in memory.
        """
        opened = self._opened
        if opened is None:
            return succeed(False)
        if opened.failed:
            opened.writes.dropped[kind] += 1
            return succeed(False)
        return opened.writes.add(key, kind, operation, size)

    def append(
        self, key: str, kind: Kind, stream: str, record: Mapping[str, Any], keep: int | None
    ) -> Deferred[bool]:
        """L{write} one record to the end of C{stream}, of which about C{keep} stay (None = all)."""

        def write(store: Store) -> object:
            try:
                return store.records.append(stream, record, keep=keep)
            except NotPortable:
                # Bytes of a path, a host or an environment need not be text; the row counts.
                return store.records.append(stream, portable_data(record), keep=keep)

        return self.write(key, kind, write)

    def withdraw(self, key: str, kind: Kind) -> bool:
        """Take back the newest write of C{kind} for C{key} that has not been started."""
        return self._opened is not None and self._opened.writes.withdraw(key, kind)

    def when_written(self, key: str, bound: float) -> Deferred[None]:
        """Fire when all writes asked for C{key} so far are done; fail after C{bound} seconds."""
        opened = self._opened
        if opened is None:
            return succeed(None)
        return within(self._clock, bound, opened.writes.when_written(key))

    def lease(self, operation: Callable[[Store], T], of: Store | None = None) -> Deferred[T]:
        """
        Run a lease operation on workers of its own, never limited in rate.

        C{of} is the store that the lease was taken from, which need not be in force any more.
        """
        left = None if of is None else self._left.get(of)
        if of is not None and left is not None:
            return left.run(lambda: operation(of))
        opened = self._opened
        if opened is None or opened.view is None:
            return fail(StoreOff("no store is running"))
        return opened.leases.run(lambda: operation(opened.store))

    def hunt(self, search: Callable[[Store], T]) -> Deferred[T]:
        """Look for a free lease, as L{lease} does, but on workers apart from those that renew."""
        opened = self._opened
        if opened is None or opened.view is None:
            return fail(StoreOff("no store is running"))
        return opened.hunts.run(lambda: search(opened.store))

    # what pages and metrics read

    @property
    def dropped(self) -> Counter[str]:
        """How many writes of each kind were dropped since the start of this process."""
        now = self._opened.writes.dropped if self._opened is not None else Counter()
        return self._dropped_before + now

    @property
    def ops(self) -> dict[str, OpCount]:
        """How often the store did what."""
        return {} if self._opened is None else self._opened.store.stats.ops

    @property
    def locks(self) -> LockCount:
        """How often locks were taken."""
        return LockCount() if self._opened is None else self._opened.store.stats.locks

    @property
    def throttled(self) -> tuple[int, float]:
        """How many operations were held back, and for how many seconds in all."""
        if self._opened is None:
            return 0, 0.0
        return self._opened.throttle.throttled, self._opened.throttle.waited

    @property
    def lanes(self) -> dict[str, Lane]:
        """How busy the workers are."""
        if self._opened is None:
            return {}
        pools = {"bulk": self._opened.bulk, "lease": self._opened.leases}
        return {name: Lane(p.inflight, p.capacity, p.peak) for name, p in pools.items()}

    @property
    def pending(self) -> int:
        """How many writes wait or are under way."""
        return 0 if self._opened is None else self._opened.writes.pending

    # life

    def keeps(self, config: StateConfig | None) -> bool:
        """Return whether the store that is open stays in force under a C{state} section."""
        opened = self._opened
        if opened is None or config is None:
            return opened is None and config is None
        return _opened_with(opened.config) == _opened_with(config)

    async def reconcile(self, config: StateConfig | None) -> None:
        """Put a C{state} section in force; a store that changes writes out its queue first."""
        opened = self._opened
        if self.keeps(config):
            if opened is not None and config is not None:
                opened.config = config
                self._say_retention(config)
            return
        if opened is not None:
            await self.close()
        if config is not None:
            self._opened = Opened(
                self._reactor, self._clock, config, self._make, self._make_workers, self._host
            )
            await self.try_to_start()

    async def try_to_start(self) -> None:
        """Start a configured store that is not up; a failure is an ERROR and is tried again."""
        opened = self._opened
        if opened is None or opened.view is not None or self._starting:
            return
        self._starting = True
        try:
            started = opened.bulk.run(opened.store.start)
            view = await within(self._clock, READ_BOUND, started)
        except Exception as error:
            log.error("state: failed to start: %s", error)
            opened.failed = True
            opened.writes.fail_held("the store could not be started")
            return
        finally:
            self._starting = False
        if self._opened is not opened:
            return
        opened.view, opened.failed = view, False
        if opened.seat is not None:
            opened.seat.take()
        self._say_retention(opened.config)
        opened.writes.open()
        await self.when_up()

    def _say_retention(self, config: StateConfig) -> None:
        if 0 < config.max_runs_per_job < LEAST_RUNS and not self._retention_told:
            self._retention_told = True
            log.warning(
                "state: maxRunsPerJob is %d; %d rows of each job are kept instead, so that two"
                " that were written out of order do not cost the newer one",
                config.max_runs_per_job,
                LEAST_RUNS,
            )

    async def flush(self, bound: float = FLUSH_BOUND) -> None:
        """Write what is pending, for C{bound} seconds at most."""
        opened = self._opened
        if opened is None or not opened.writes.pending:
            return
        if opened.view is None:
            opened.writes.fail_held("the store was not started in time")
            return
        log.info("Flushing %d pending state write(s)", opened.writes.pending)
        try:
            await within(self._clock, bound, opened.writes.when_empty())
        except OSError:
            log.warning("state: %d write(s) could not be flushed", opened.writes.pending)

    async def close(self) -> None:
        """Flush, and forget the store."""
        opened = self._opened
        if opened is None:
            return
        await self.flush()
        log.info("Stopping state backend")
        self._dropped_before += opened.writes.dropped
        self._opened = None
        opened.stop()
        self._left[opened.store] = opened.leases


def _opened_with(config: StateConfig) -> tuple[StoreSettings, float]:
    """Return what of a section cannot change while a store is open."""
    return StoreSettings.of(config), config.max_ops_per_second


async def _nothing() -> None:
    return None
