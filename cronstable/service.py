"""
An ordered service tree, and work that nobody waits for.

Twisted's MultiService starts and stops its children at once and ignores what they return; the
rooms of this daemon depend on each other, so theirs start one after another.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import Any

from twisted.application.service import MultiService, Service
from twisted.internet.defer import Deferred, maybeDeferred
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


class Sequence(MultiService):
    """Children that start one after another and stop in the reverse order."""

    def startService(self) -> Deferred[None]:
        """Start each child once the one before it has started; a failure stops the sequence."""
        Service.startService(self)
        return Deferred.fromCoroutine(self._start())

    def stopService(self) -> Deferred[None]:
        """Stop each child, newest first; one that fails is logged and does not stop the rest."""
        Service.stopService(self)
        return Deferred.fromCoroutine(self._stop())

    async def _start(self) -> None:
        for child in list(self):
            await maybeDeferred(child.startService)

    async def _stop(self) -> None:
        for child in reversed(list(self)):
            try:
                await maybeDeferred(child.stopService)
            except Exception:
                log.exception("stopping %s failed", child)
