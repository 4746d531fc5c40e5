"""
Metric counters that survive a restart: snapshots in the store, at most one each 15 seconds.

docs/metrics.md, "Restarts", tells what may be lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator, Mapping
from typing import Any

from cronstable.clock import Clock
from cronstable.events import Bus
from cronstable.metrics.registry import Registry
from cronstable.runs.record import RunFinished
from cronstable.state import streams
from cronstable.state.errors import TROUBLE
from cronstable.state.instants import to_text
from cronstable.state.service import StoreService

log = logging.getLogger("cronstable.state")

BETWEEN = 15.0
"""Seconds between two snapshots, at least."""

SLICE = 0.004
"""Seconds that a snapshot of many jobs may take of one reactor turn."""


class CounterSnapshots:
    """Seeds the registry once per process, then writes it behind the runs."""

    def __init__(
        self,
        clock: Clock,
        host: str,
        store: StoreService,
        registry: Registry,
        jobs: Callable[[], Collection[str]],
        bus: Bus,
    ) -> None:
        self._clock = clock
        self._host = host
        self._store = store
        self._registry = registry
        self._jobs = jobs
        self._seeded = False
        self._last: float | None = None
        bus.subscribe(RunFinished, self._run_finished)

    async def seed(self) -> None:
        """
        Add the newest snapshot of this host to what has been counted, once per process.

        A store that does not answer is asked again by the next call; nothing is written before.
        """
        if self._seeded or not self._store.on:
            return
        stream = streams.counters(self._host)
        try:
            newest = await self._store.ask(lambda store: store.records.latest(stream))
        except TROUBLE as error:
            log.warning("state: Prometheus counters cannot be read yet: %s", error)
            return
        if self._seeded:
            return
        self._seeded = True
        if newest is not None:
            count = self._seed_from(newest)
            log.info("state: rehydrated Prometheus counters for %d job(s)", count)

    def write(self) -> None:
        """Write a snapshot now, whenever the last one was."""
        if not self._seeded or not self._store.on:
            return
        self._last = self._clock.seconds()
        self._append(self._registry.snapshot())

    def _append(self, snapshot: Mapping[str, Any]) -> None:
        record = {**snapshot, "at": to_text(self._clock.now())}
        key, stream = f"counters of {self._host}", streams.counters(self._host)
        self._store.append(key, "counters", stream, record, streams.COUNTERS_KEEP)

    def _seed_from(self, snapshot: Mapping[str, Any]) -> int:
        jobs = snapshot.get("jobs")
        known = set(self._jobs())
        kept = {n: c for n, c in jobs.items() if n in known} if isinstance(jobs, Mapping) else {}
        self._registry.seed({**snapshot, "jobs": kept})
        return len(kept)

    def _run_finished(self, event: RunFinished) -> None:
        last = self._last
        if not self._seeded or not self._store.on:
            return
        if last is None or self._clock.seconds() - last >= BETWEEN:
            self._last = self._clock.seconds()
            self._in_steps(self._registry.snapshot_in_steps())

    def _in_steps(self, steps: Generator[None, None, dict[str, Any]]) -> None:
        until = self._clock.seconds() + SLICE
        try:
            while self._clock.seconds() < until:
                next(steps)
        except StopIteration as over:
            self._append(over.value)
        else:
            self._clock.callLater(0, self._in_steps, steps)
