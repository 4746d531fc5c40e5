"""An API whose daemon has a store on the disk, with workers that answer at once or when told to."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from cronstable.clock import Clock
from cronstable.config.sections_values import StateConfig
from cronstable.config.values import JobConfig
from cronstable.state.looks import Looks
from cronstable.state.service import StoreService, store_of
from cronstable.state.store import Store
from cronstable.state.workers import Workers
from tests.web.api import Api

T = TypeVar("T")


class HandWorkers(Workers):
    """Workers without threads: each operation runs at once, or while C{hung} when released."""

    def __init__(self, reactor: Any, clock: Clock, name: str, capacity: int) -> None:
        super().__init__(reactor, clock, name, capacity)
        self.held: list[Callable[[], object]] = []
        self.is_hung = False
        self.begun = 0

    def run(self, call: Callable[[], T]) -> Deferred[T]:
        """Fire with what C{call} returns or raises."""
        done: Deferred[T] = Deferred()

        def work() -> None:
            self.begun += 1
            try:
                result: Any = call()
            except Exception:
                done.errback(Failure())
            else:
                done.callback(result)

        if self.is_hung:
            self.held.append(work)
        else:
            work()
        return done

    def release(self) -> None:
        """Let everything go on that hangs."""
        self.is_hung = False
        while self.held:
            self.held.pop(0)()


class StoredApi(Api):
    """A daemon with a store at C{path}, its API, and whoever asks."""

    def __init__(self, path: str, *jobs: JobConfig, start: bool = True, **sections: Any) -> None:
        super().__init__(*jobs, **sections)
        self.pools: list[HandWorkers] = []
        self.opened: list[Store] = []
        store = StoreService(self.reactor, self.clock, self._open, self._workers)
        self.house.store = store
        self.house.looks = Looks(self.reactor, self.clock, store)
        self.path = os.path.abspath(path)
        if start:
            self.reconcile(StateConfig(self.path, fsync="never"))

    def reconcile(self, config: StateConfig | None) -> None:
        """Put a C{state} section in force."""
        Deferred.fromCoroutine(self.house.store.reconcile(config))
        self.turns(5)

    @property
    def store(self) -> Store:
        """The store itself, to put something in."""
        return self.opened[-1]

    @property
    def bulk(self) -> HandWorkers:
        """The workers of everything but leases."""
        return self.pools[-3]

    def _open(self, config: StateConfig, clock: Clock) -> Store:
        store = store_of(config, clock)
        store.mounts = ""
        self.opened.append(store)
        return store

    def _workers(self, reactor: Any, clock: Clock, name: str, capacity: int) -> Workers:
        self.pools.append(HandWorkers(reactor, clock, name, capacity))
        return self.pools[-1]
