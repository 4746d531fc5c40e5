"""
Large bodies, sent piece by piece as fast as clients take them.

What is still to be sent is not copied into the connection, and need not even exist yet.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable
from typing import TypeVar

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
    """Do what L{Sending.answer} does, for pieces that exist already and cost next to nothing."""
    return Sending(clock).answer(request, pieces, content_type, size)


class Sending:
    """The bodies under way; all together they get a few milliseconds of each reactor turn."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._ready: deque[Sender] = deque()
        self._turn: IDelayedCall | None = None

    def answer(
        self,
        request: ApiRequest,
        pieces: Iterable[bytes],
        content_type: str,
        size: int | None = None,
    ) -> Deferred[bytes]:
        """
        Answer with C{pieces}, C{size} bytes in all if that is known, and the operator's headers.

        Each piece is asked for when the client has taken those before it, the first one in the
        next turn.  What is returned is for a handler to return once it has set its own headers.
        """
        request.setResponseCode(200)
        request.front.dress(request)
        request.setHeader("Content-Type", content_type)
        if size is not None:
            request.setHeader("Content-Length", str(size))
        if request.method == b"HEAD":
            return succeed(b"")
        return Sender(self, request, pieces).done

    def ready(self, sender: Sender) -> None:
        """Give C{sender} its share of the next turns."""
        self._ready.append(sender)
        if self._turn is None:
            self._turn = self.clock.callLater(0, self._work)

    def _work(self) -> None:
        self._turn = None
        until = self.clock.seconds() + SLICE
        for _ in range(len(self._ready)):
            sender = self._ready.popleft()
            if sender.work(until):
                self._ready.append(sender)
            if self.clock.seconds() >= until:
                break
        if self._ready and self._turn is None:
            self._turn = self.clock.callLater(0, self._work)


@implementer(IPushProducer)
class Sender:
    """Sends one body; C{done} fires at its end, and is cancelled when the client goes away."""

    def __init__(self, sending: Sending, request: ApiRequest, pieces: Iterable[bytes]) -> None:
        self._sending = sending
        self._request = request
        self._pieces = iter(pieces)
        self._paused = False
        self._queued = False
        self._open = True
        self._stuck: IDelayedCall | None = None
        self.done: Deferred[bytes] = Deferred(lambda _: self._close())
        request.registerProducer(self, True)
        self._go_on()

    def pauseProducing(self) -> None:  # noqa: N802 - the name is Twisted's
        """Send nothing until told to go on."""
        if self._open and not self._paused:
            self._paused = True
            self._stuck = self._sending.clock.callLater(STUCK, self._cut)

    def resumeProducing(self) -> None:  # noqa: N802 - the name is Twisted's
        """Go on."""
        if self._open and self._paused:
            self._paused = False
            self._relax()
            self._go_on()

    def stopProducing(self) -> None:  # noqa: N802 - the name is Twisted's
        """The connection is lost; C{done} is cancelled for that as well."""

    def work(self, until: float) -> bool:
        """Send until the clock shows C{until}; return whether more could be sent now."""
        self._queued = False
        clock = self._sending.clock
        while self._open and not self._paused:
            try:
                piece = next(self._pieces, None)
            except Exception:
                self._fail(Failure())
                return False
            if piece is None:
                self._end()
                return False
            self._request.write(piece)
            if clock.seconds() >= until:
                self._queued = self._open and not self._paused
                return self._queued
        return False

    def _go_on(self) -> None:
        if not self._queued:
            self._queued = True
            self._sending.ready(self)

    def _end(self) -> None:
        self._close()
        self._request.unregisterProducer()
        self.done.callback(b"")

    def _fail(self, failure: Failure) -> None:
        # The answer has begun, so that its status cannot change any more: it is broken off.
        log.error("please report this as a bug (4)", exc_info=failure.value)
        self._abort()

    def _cut(self) -> None:
        log.info("web: a client took nothing of its answer for long and is cut off")
        self._abort()

    def _abort(self) -> None:
        self._close()
        self._request.abort()

    def _close(self) -> None:
        self._open = False
        self._relax()

    def _relax(self) -> None:
        if self._stuck is not None and self._stuck.active():
            self._stuck.cancel()
        self._stuck = None
