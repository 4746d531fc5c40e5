"""
Locks that runs hold: the daemon renews each for its run, and gives it back at the run's end.

A hold that cannot be renewed is only warned about: its job goes on, and its fence is what a
careful job guards its writes with.  docs/job-state.md, "Locks", tells jobs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.python.failure import Failure

from cronstable.clock import Clock
from cronstable.jobapi.callers import Caller
from cronstable.service import Waiters
from cronstable.state.leases import Denied, Held
from cronstable.state.service import StoreService
from cronstable.state.store import Store
from cronstable.state.workers import within

log = logging.getLogger("cronstable.jobapi")

BOUND = 10.0
"""Seconds that a lease operation may take before it counts as failed."""

SOONEST = 1.0
"""Seconds between two renewals of one lock, at least."""


@attrs.define(eq=False)
class Hold:
    """
    A permit that a run holds: a lease of C{store}, which is the one it was taken from.

    C{deadline} counts on the clock that goes on while the host sleeps.
    """

    token: str
    label: str
    lease: str
    holder: str
    fence: int
    ttl: float
    deadline: float
    store: Store
    timer: IDelayedCall | None = None
    renewed: bool = True
    """Whether it is to be renewed at all."""
    warned: bool = False


class Holds:
    """Renews the holds of all runs, and gives them back."""

    def __init__(self, clock: Clock, store: StoreService) -> None:
        self._clock = clock
        self._store = store
        self._releasing = 0
        self._released = Waiters()

    def keep(self, caller: Caller, hold: Hold) -> None:
        """Renew C{hold} until C{caller} gives it back or is over."""
        caller.holds[hold.token] = hold
        self._renew_later(caller, hold, self._clock.seconds())

    async def release(self, caller: Caller, token: str) -> bool:
        """
        Give back what C{caller} holds by C{token}; return whether it had that.

        Raises OSError if the store does not answer: the hold is not renewed any more, and may be
        released once more.
        """
        hold = caller.holds.pop(token, None)
        if hold is None:
            return False
        _stop(hold)
        try:
            return await within(self._clock, BOUND, self._release(hold))
        except BaseException:
            if not caller.over:
                caller.holds[token] = hold
            raise

    def release_all(self, caller: Caller) -> None:
        """Give back everything that a run holds, which is over."""
        holds, caller.holds = caller.holds, {}
        for hold in holds.values():
            self.drop(caller, hold)

    def drop(self, caller: Caller, hold: Hold) -> None:
        """Give a hold back without anybody waiting for that."""
        _stop(hold)
        self._releasing += 1

        def failed(failure: Failure) -> None:
            log.warning(
                "Job %s: %s could not be released, it ends within %g s: %s",
                caller.run.job.name,
                hold.label,
                hold.ttl,
                failure.value,
            )

        def done(_: object) -> None:
            self._releasing -= 1
            if not self._releasing:
                self._released.tell()

        self._release(hold).addErrback(failed).addBoth(done)

    def when_released(self) -> Deferred[None]:
        """Fire when nothing is being given back any more."""
        return self._released.wait(not self._releasing)

    def _release(self, hold: Hold) -> Deferred[bool]:
        return self._of(hold, lambda store: _release(store, hold))

    def _of(self, hold: Hold, operation: Callable[[Store], Any]) -> Deferred[Any]:
        """Run an operation on the store that C{hold} is of, though it may not be in force."""
        return self._store.lease(operation, hold.store)

    def _renew_later(self, caller: Caller, hold: Hold, since: float) -> None:
        due = since + max(SOONEST, hold.ttl / 3) - self._clock.seconds()
        hold.timer = self._clock.callLater(max(due, 0.0), self._renew, caller, hold)

    def _renew(self, caller: Caller, hold: Hold) -> None:
        hold.timer = None
        began = self._clock.seconds()
        answer = within(self._clock, BOUND, self._of(hold, lambda store: _renew(store, hold)))
        answer.addCallback(self._renewed, caller, hold)
        answer.addErrback(self._not_renewed, caller, hold)
        answer.addBoth(lambda _: self._go_on(caller, hold, began))

    def _renewed(self, answer: Held | Denied, caller: Caller, hold: Hold) -> None:
        if isinstance(answer, Held):
            hold.deadline = answer.deadline
            hold.warned = False
        elif answer.why != "held":
            self._warn(caller, hold, answer.error or answer.why)
        elif caller.holds.get(hold.token) is hold:
            del caller.holds[hold.token]
            log.warning(
                "Job %s: %s was taken over after its lease had run out; the job does not know",
                caller.run.job.name,
                hold.label,
            )

    def _not_renewed(self, failure: Failure, caller: Caller, hold: Hold) -> None:
        self._warn(caller, hold, str(failure.value))

    def _warn(self, caller: Caller, hold: Hold, why: str) -> None:
        if hold.warned:
            return
        hold.warned = True
        left = hold.deadline - self._clock.awake_and_asleep()
        log.warning(
            "Job %s: %s could not be renewed, %s: %s",
            caller.run.job.name,
            hold.label,
            f"its lease runs out in {left:.0f} s" if left > 0 else "its lease has run out",
            why,
        )

    def _go_on(self, caller: Caller, hold: Hold, began: float) -> None:
        if caller.holds.get(hold.token) is hold and hold.renewed:
            self._renew_later(caller, hold, began)


def _stop(hold: Hold) -> None:
    hold.renewed = False
    if hold.timer is not None and hold.timer.active():
        hold.timer.cancel()
    hold.timer = None


def _renew(store: Store, hold: Hold) -> Held | Denied:
    return store.leases.renew(hold.lease, hold.holder, hold.fence, hold.ttl)


def _release(store: Store, hold: Hold) -> bool:
    return store.leases.release(hold.lease, hold.holder, hold.fence)
