"""
What keeps a store tidy: a manifest at each start and every six hours; a collection in the first
minutes of a process, then once a day.

docs/durability.md, "Cleaning up", tells an operator.
"""

from __future__ import annotations

import logging

from cronstable.clock import Clock
from cronstable.state import streams
from cronstable.state.errors import TROUBLE
from cronstable.state.gc import collect
from cronstable.state.manifests import Names, manifest
from cronstable.state.service import StoreService

log = logging.getLogger("cronstable.state")

MANIFEST_EVERY = 6 * 3600.0
"""Seconds between two manifests."""

COLLECT_EVERY = 24 * 3600.0
"""Seconds between two collections."""

COLLECT_BOUND = 3600.0
"""Seconds that a collection may take."""


class Upkeep:
    """Writes manifests and collects garbage, in the background."""

    def __init__(self, clock: Clock, host: str, store: StoreService) -> None:
        self._clock = clock
        self._host = host
        self._store = store
        self._manifest_at: float | None = None
        self._collect_at = clock.seconds()

    def begin(self, names: Names, job_set_id: str) -> None:
        """A store has come up: say what this node uses."""
        self._manifest(names, job_set_id)

    async def each_minute(self, names: Names, job_set_id: str) -> None:
        """Do what is due."""
        if not self._store.on:
            return
        now = self._clock.seconds()
        if self._manifest_at is not None and now - self._manifest_at >= MANIFEST_EVERY:
            self._manifest(names, job_set_id)
        if now >= self._collect_at:
            self._collect_at = now + COLLECT_EVERY
            await self._collect(names)

    def _manifest(self, names: Names, job_set_id: str) -> None:
        self._manifest_at = self._clock.seconds()
        record = manifest(job_set_id, self._host, names, self._clock.now())
        key, stream = f"manifests of {self._host}", streams.manifests(self._host)
        self._store.append(key, "manifest", stream, record, streams.MANIFEST_KEEP)

    async def _collect(self, names: Names) -> None:
        config = self._store.config
        if config is None or config.gc_grace <= 0:
            return
        grace = float(config.gc_grace)
        try:
            done = await self._store.ask(
                lambda store: collect(store, names, grace), bound=COLLECT_BOUND
            )
        except TROUBLE as error:
            log.warning("state: garbage collection failed: %s", error)
            return
        if done.deferred is not None:
            log.info("state: garbage collection deferred: %s", done.deferred)
        else:
            log.info("state: garbage collected: %s", done)
