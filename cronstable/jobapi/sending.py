"""Sending a large payload: read in parts as fast as the client takes them, and checked."""

from __future__ import annotations

import hashlib
import logging
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

from cronstable.jobapi.desk import Desk
from cronstable.state.store import Store

log = logging.getLogger("cronstable.jobapi")

PART = 1 << 20
"""Bytes that are read at once."""


@implementer(IPushProducer)
class Download:
    """
    Sends a payload after its headers.

    One whose bytes are not what its digest says, or that cannot be read to its end, is cut short,
    so that the client sees less than was announced.
    """

    def __init__(self, desk: Desk, request: Any, digest: str, size: int) -> None:
        self._desk = desk
        self._request = request
        self._digest = digest
        self._size = size
        self._sent = 0
        self._seen = hashlib.sha256()
        self._gone = False
        self._resumed: Deferred[None] | None = None

    async def run(self) -> None:
        """Send all of it; return early when the client has gone."""
        self._request.registerProducer(self, True)
        try:
            await self._send()
        finally:
            self._gone = True
            if self._request.channel is not None:
                self._request.unregisterProducer()

    def pauseProducing(self) -> None:  # noqa: N802 - the name is Twisted's
        """The client does not keep up."""
        if self._resumed is None:
            self._resumed = Deferred()

    def resumeProducing(self) -> None:  # noqa: N802 - the name is Twisted's
        """The client has room again."""
        resumed, self._resumed = self._resumed, None
        if resumed is not None:
            resumed.callback(None)

    def stopProducing(self) -> None:  # noqa: N802 - the name is Twisted's
        """The client has gone."""
        self._gone = True
        self.resumeProducing()

    async def _send(self) -> None:
        while self._sent < self._size and not self._gone:
            try:
                part = await self._desk.store.ask(self._next)
            except OSError as error:
                log.warning("state job API: artifact %s cannot be sent: %s", self._digest, error)
                self._request.abort()
                return
            self._request.write(part)
            self._sent += len(part)
            if self._resumed is not None:
                await self._resumed

    def _next(self, store: Store) -> bytes:
        """Return the next part, the last one only if all of them are what was asked for."""
        left = self._size - self._sent
        part = store.blobs.get_part(self._digest, self._sent, min(PART, left))
        self._seen.update(part)
        if not part or (len(part) == left and self._seen.hexdigest() != self._digest):
            raise OSError("its bytes are not what its name says")
        return part
