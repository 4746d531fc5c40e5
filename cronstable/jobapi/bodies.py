"""
Request bodies: small ones kept, payloads put into the store as they come, others let pass.

docs/job-api.md, "Limits", tells jobs what may be sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from cronstable.jobapi.refusal import too_long
from cronstable.state.blobs import Incoming
from cronstable.state.store import Store

Ask = Callable[[Callable[[Store], object]], "Deferred[Any]"]

PIECE = 1 << 20
"""Bytes of a payload that are gathered before they go to the store."""

LET_PASS = 256 << 20
"""Bytes beyond its limit that a client may send before it is given up instead of answered."""


class Body:
    """
    A body that is kept up to C{limit} bytes (None = any), and of which nothing is kept beyond.

    With a C{limit} of 0 it is let pass: an answer is only read by clients that could send all.
    """

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.size = 0
        self._pieces: list[bytes] = []

    @property
    def over(self) -> bool:
        """Whether more came than may."""
        return self.limit is not None and self.size > self.limit

    @property
    def hopeless(self) -> bool:
        """Whether so much more came that nobody need wait for the rest."""
        return self.limit is not None and self.size > self.limit + LET_PASS

    def announce(self, length: int | None) -> None:
        """Learn how much will come, where that is known before."""

    def take(self, data: bytes) -> None:
        """Take the next piece."""
        self.size += len(data)
        if self.over:
            self._pieces.clear()
        else:
            self._pieces.append(data)

    def whole(self) -> bytes:
        """Return what has come; raises L{Refused} if it was too much."""
        if self.over:
            raise too_long(self.limit or 0)
        return b"".join(self._pieces)

    def lost(self) -> None:
        """The client has gone, or the request is over."""


class Payload(Body):
    """
    A payload on its way into the store.

    What comes faster than the store takes it makes the client wait: C{hold} is called with True
    and later with False.  A short one stays in memory and is L{whole}; a long one is L{incoming},
    and L{rest} what the store has not got yet, after L{ready}.
    """

    def __init__(self, limit: int | None, ask: Ask, hold: Callable[[bool], object]) -> None:
        super().__init__(limit)
        self.incoming: Incoming | None = None
        self._ask = ask
        self._hold = hold
        self._held = False
        self._gathered = 0
        self._writing: Deferred[Any] | None = None
        self._ready: Deferred[None] | None = None
        self._failure: Failure | None = None
        self._useless = False

    def announce(self, length: int | None) -> None:
        """Do not begin to keep what will be too much."""
        if length is not None and self.limit is not None and length > self.limit:
            self._useless = True

    def take(self, data: bytes) -> None:
        """Take the next piece."""
        self.size += len(data)
        if self.over or self._useless or self._failure is not None:
            self._pieces.clear()
            return
        self._pieces.append(data)
        self._gathered += len(data)
        if self._gathered >= PIECE and self._writing is None:
            self._write()
        elif self._gathered >= 2 * PIECE and not self._held:
            self._held = True
            self._hold(True)

    async def ready(self) -> None:
        """Wait until the store has taken what it was given; raises what went wrong there."""
        if self._writing is not None:
            self._ready = Deferred()
            await self._ready
        if self._failure is not None:
            self._failure.raiseException()

    def rest(self) -> bytes:
        """Return what came last and is not in the store."""
        return b"".join(self._pieces)

    def lost(self) -> None:
        """Leave nothing of a payload that will not be published."""
        self._useless = True
        self._pieces.clear()
        incoming, self.incoming = self.incoming, None
        if incoming is not None and self._writing is None:
            self._ask(lambda store: incoming.discard()).addErrback(lambda failure: None)

    def published(self) -> None:
        """The payload is in its place and no longer this object's concern."""
        self.incoming = None

    def _write(self) -> None:
        piece, incoming = self.rest(), self.incoming
        self._pieces.clear()
        self._gathered = 0
        begun: list[bool] = []

        def add(store: Store) -> Incoming:
            begun.append(True)
            more = _add(store, incoming, piece)
            if self._failure is not None:  # It took too long: nobody waits for it any more.
                more.discard()
            return more

        self._writing = self._ask(add)
        self._writing.addCallbacks(self._written, self._failed, errbackArgs=(begun,))

    def _written(self, incoming: Incoming) -> None:
        self._writing = None
        self.incoming = incoming
        if self._useless or self.over:
            self.lost()
        elif self._gathered >= PIECE:
            self._write()
        self._go_on()

    def _failed(self, failure: Failure, begun: list[bool]) -> None:
        self._writing = None
        self._failure = failure
        if begun:  # Whoever adds to it discards it.
            self.incoming = None
        self._pieces.clear()
        self._gathered = 0
        self._go_on()

    def _go_on(self) -> None:
        if self._held and self._gathered < 2 * PIECE:
            self._held = False
            self._hold(False)
        if self._ready is not None and self._writing is None:
            ready, self._ready = self._ready, None
            ready.callback(None)


def _add(store: Store, incoming: Incoming | None, piece: bytes) -> Incoming:
    incoming = incoming or store.blobs.incoming()
    try:
        incoming.add(piece)
    except BaseException:
        incoming.discard()
        raise
    return incoming
