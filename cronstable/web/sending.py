"""
Large bodies, sent piece by piece as fast as a client takes them.

What is still to be sent is not copied into the connection, and need not even exist yet.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IPushProducer
from twisted.python.failure import Failure
from zope.interface import implementer

from cronstable.clock import Clock
from cronstable.web.requests import ApiRequest
from cronstable.web.slices import SLICE, next_turn

log = logging.getLogger("cronstable")

T = TypeVar("T")

STUCK = 60.0
"""Seconds for which a client may take nothing before it is cut off."""


async def stepped(clock: Clock, steps: Iterable[T]) -> list[T]:
    """Return what C{steps} yields; each step may take a while, so the clock is asked after it."""
    made: list[T] = []
    until = clock.seconds() + SLICE
    for each in steps:
        made.append(each)
        if clock.seconds() >= until:
            await next_turn(clock)
            until = clock.seconds() + SLICE
    return made


def send(
    request: ApiRequest,
    clock: Clock,
    pieces: Iterable[bytes],
    content_type: str,
    size: int | None = None,
) -> Deferred[bytes]:
    """
    Answer with C{pieces}, C{size} bytes in all if that is known, and the operator's headers.

    Each piece is asked for when the client has taken those before it.  What is returned is for a
    handler to return once it has set headers of its own.
    """
    request.setResponseCode(200)
    request.front.dress(request)
    request.setHeader("Content-Type", content_type)
    if size is not None:
        request.setHeader("Content-Length", str(size))
    if request.method == b"HEAD":
        return succeed(b"")
    sender = Sender(request, clock, pieces)
    # Not within this turn: the caller has headers to set.
    sender.begin()
    return sender.done


@implementer(IPushProducer)
class Sender:
    """Sends one body; C{done} fires at its end, and is cancelled when the client goes away."""

    def __init__(self, request: ApiRequest, clock: Clock, pieces: Iterable[bytes]) -> None:
        self._request = request
        self._clock = clock
        self._pieces = iter(pieces)
        self._paused = False
        self._turn: IDelayedCall | None = None
        self._stuck: IDelayedCall | None = None
        self._open = True
        self.done: Deferred[bytes] = Deferred(lambda _: self._close())

    def begin(self) -> None:
        """Send the first piece in the next turn."""
        self._request.registerProducer(self, True)
        self._turn = self._clock.callLater(0, self._work)

    def pauseProducing(self) -> None:  # noqa: N802 - the name is Twisted's
        """Send nothing until told to go on."""
        if self._open and not self._paused:
            self._paused = True
            self._stuck = self._clock.callLater(STUCK, self._cut)

    def resumeProducing(self) -> None:  # noqa: N802 - the name is Twisted's
        """Go on."""
        if self._open and self._paused:
            self._paused = False
            self._cancel()
            self._work()

    def stopProducing(self) -> None:  # noqa: N802 - the name is Twisted's
        """The connection is lost; C{done} is cancelled for that as well."""

    def _work(self) -> None:
        self._turn = None
        until = self._clock.seconds() + SLICE
        while self._open and not self._paused:
            try:
                piece = next(self._pieces, None)
            except Exception:
                self._fail(Failure())
                return
            if piece is None:
                self._end()
                return
            self._request.write(piece)
            if self._clock.seconds() >= until:
                self._turn = self._clock.callLater(0, self._work)
                return

    def _end(self) -> None:
        self._close()
        self._request.unregisterProducer()
        self.done.callback(b"")

    def _fail(self, failure: Failure) -> None:
        # The answer has begun, so that its status cannot change any more: it is broken off.
        log.error("please report this as a bug (4)", exc_info=failure.value)
        self._abort()

    def _cut(self) -> None:
        self._stuck = None
        log.info("web: a client took nothing of its answer for long and is cut off")
        self._abort()

    def _abort(self) -> None:
        self._close()
        transport: Any = self._request.channel.transport
        transport.abortConnection()

    def _close(self) -> None:
        self._open = False
        self._cancel()

    def _cancel(self) -> None:
        for call in (self._turn, self._stuck):
            if call is not None and call.active():
                call.cancel()
        self._turn = self._stuck = None
