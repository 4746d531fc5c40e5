"""A few spaced attempts within one bound."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from twisted.internet.defer import Deferred

from cronstable.clock import Clock
from cronstable.reports.trouble import ReportFailed

log = logging.getLogger("cronstable")

T = TypeVar("T")

DELAYS = (2.0, 6.0)
"""Seconds before the second and the third attempt."""

_WORTH_IT = 2.0
"""Seconds that have to be left for an attempt to be worth it."""


async def attempts(
    clock: Clock, what: str, within: float, attempt: Callable[[float], Awaitable[T]]
) -> T:
    """
    Return what C{attempt} returns; try again after transient trouble while time is left.

    C{attempt} is given the seconds that it may take.  All attempts and the waits between them
    stay within C{within} seconds.

    @raise ReportFailed: the last trouble.
    """
    deadline = clock.seconds() + within
    for delay in (*DELAYS, None):
        try:
            return await attempt(max(deadline - clock.seconds(), 0.0))
        except ReportFailed as failed:
            if not failed.transient or delay is None:
                raise
            if deadline - clock.seconds() < delay + _WORTH_IT:
                raise
            log.info("%s: %s; trying again in %g seconds", what, failed, delay)
        await pause(clock, delay)
    raise AssertionError("the last attempt returns or raises")


def pause(clock: Clock, seconds: float) -> Deferred[None]:
    """Fire after C{seconds}; cancelling it cancels the timer."""
    done: Deferred[None] = Deferred(lambda _: timer.cancel())
    timer = clock.callLater(seconds, done.callback, None)
    return done
