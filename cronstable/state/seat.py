"""
How daemons of one host find out that they share a store.

Each holds the lock of the lease C{daemon/HOST}, of which there is none, for as long as it uses the
store.  docs/durability.md, "One daemon of a host", tells what is wrong with two.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall

from cronstable.clock import Clock
from cronstable.state import names
from cronstable.state.files import Lock
from cronstable.state.leases import LOCK
from cronstable.state.store import Store

log = logging.getLogger("cronstable.state")

TRY_AGAIN = 5.0
"""Seconds that another daemon, which may be about to end, has until it is told of."""


class Seat:
    """
    The place of the daemon of C{host} at a store; C{run} does something with that on a worker.

    Nothing depends on it: where it cannot be taken, or locks mean nothing, nobody is told.
    """

    def __init__(
        self, clock: Clock, run: Callable[[Callable[[Store], Any]], Deferred[Any]], host: str
    ) -> None:
        self._clock = clock
        self._run = run
        self._host = host
        self._lock: Lock | None = None
        self._left = False
        self._again: IDelayedCall | None = None

    def take(self, last: bool = False) -> None:
        """Take the seat; if another daemon has it, even after a while, say so."""
        self._again = None
        self._run(self._try).addCallbacks(self._tried, lambda failure: None, (last,))

    def leave(self) -> None:
        """Let another have it."""
        self._left = True
        if self._again is not None:
            self._again.cancel()
            self._again = None
        lock, self._lock = self._lock, None
        if lock is not None:
            self._give(lock)

    def _try(self, store: Store) -> tuple[Lock | None, str]:
        path = store.tree.path("leases", names.token(f"daemon/{self._host}") + LOCK)
        return store.tree.try_lock(path), store.tree.root

    def _tried(self, found: tuple[Lock | None, str], last: bool) -> None:
        lock, root = found
        if self._left:
            if lock is not None:
                self._give(lock)
        elif lock is not None:
            self._lock = lock
        elif last:
            log.warning(
                "state: another daemon of %s uses the store at %s: each takes the other's runs and"
                " retries for its own; give one of them another deploymentId",
                self._host,
                root,
            )
        else:
            self._again = self._clock.callLater(TRY_AGAIN, self.take, True)

    def _give(self, lock: Lock) -> None:
        self._run(lambda store: lock.release()).addErrback(lambda failure: None)
