"""Work that nobody waits for, work that is waited for no longer than it is worth, and who waits."""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from cronstable.clock import Clock

log = logging.getLogger("cronstable")


def log_failure(what: str, failure: Failure) -> None:
    """Log an unexpected failure once, with its traceback."""
    log.error("%s failed", what, exc_info=failure.value)


def background(what: str, work: Coroutine[Any, Any, object]) -> Deferred[None]:
    """Run C{work} that nobody waits for, and say so in the log if it fails."""
    return Deferred.fromCoroutine(work).addCallbacks(
        lambda _: None, lambda failure: log_failure(what, failure)
    )


class Waiters:
    """Those who wait for one thing to come about; they are told in order of asking."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        # Of the many that there are, few have anybody waiting.
        self._waiting: list[Deferred[None]] | None = None

    def __bool__(self) -> bool:
        """Return whether anybody waits."""
        return bool(self._waiting)

    def wait(self, no_more: bool = False) -> Deferred[None]:
        """Fire with the next L{tell}, or at once if there is C{no_more} to wait for."""
        waiter: Deferred[None] = Deferred()
        if no_more:
            waiter.callback(None)
        elif self._waiting is None:
            self._waiting = [waiter]
        else:
            self._waiting.append(waiter)
        return waiter

    def tell(self) -> None:
        """Tell everybody who waits now."""
        told, self._waiting = self._waiting, None
        for waiter in told or ():
            waiter.callback(None)


def first_of(clock: Clock, seconds: float, work: Deferred[None]) -> Deferred[None]:
    """Fire when C{work} has ended, or after C{seconds}, whichever is sooner; never fail."""
    first: Deferred[None] = Deferred()

    def over(_: object = None) -> None:
        if not first.called:
            first.callback(None)

    timer = clock.callLater(seconds, over)

    def ended(_: object) -> None:
        if timer.active():
            timer.cancel()
        over()

    work.addBoth(ended)
    return first
