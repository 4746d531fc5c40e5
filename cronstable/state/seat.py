"""
How daemons of one host find out that they share a store.

Each binds a socket whose abstract name stands for the directory of the store, for as long as it
uses that.  The kernel gives the name back when a process ends, however it does, and unlike a lock
this keeps no file open, so that the mount can be taken away.

docs/durability.md, "One daemon of a host", tells what is wrong with two.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall

from cronstable.clock import Clock
from cronstable.state.store import Store

log = logging.getLogger("cronstable.state")

TRY_AGAIN = 5.0
"""Seconds that another daemon, which may be about to end, has until it is told of."""


class Seat:
    """
    The place of the daemon of C{host} at a store; C{run} does something with that on a worker.

    Nothing depends on it: where it cannot be taken nobody is told.
    """

    def __init__(
        self, clock: Clock, run: Callable[[Callable[[Store], Any]], Deferred[Any]], host: str
    ) -> None:
        self._clock = clock
        self._run = run
        self._host = host
        self._name: socket.socket | None = None
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
        if self._name is not None:
            self._name.close()
            self._name = None

    def _try(self, store: Store) -> tuple[socket.socket | None, str]:
        return bound(store.tree.root, self._host), store.tree.root

    def _tried(self, found: tuple[socket.socket | None, str], last: bool) -> None:
        name, root = found
        if self._left:
            if name is not None:
                name.close()
        elif name is not None:
            self._name = name
        elif last:
            log.warning(
                "state: another daemon of %s uses the store at %s: each takes the other's runs and"
                " retries for its own; give one of them another deploymentId",
                self._host,
                root,
            )
        else:
            self._again = self._clock.callLater(TRY_AGAIN, self.take, True)


def bound(directory: str, host: str) -> socket.socket | None:
    """Return what stands for the use of C{directory}, None if another process has it."""
    if sys.platform != "linux":
        raise OSError(errno.EOPNOTSUPP, "this system has no abstract names")
    status = os.stat(directory)
    key = f"{host}\n{status.st_dev}\n{status.st_ino}".encode("utf-8", "surrogateescape")
    name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        name.bind(b"\0cronstable-store-" + hashlib.sha256(key).hexdigest().encode())
    except OSError as error:
        name.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise
    return name
