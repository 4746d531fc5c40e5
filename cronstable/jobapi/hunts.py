"""
The hunt for a lock: passes over its permits until one is had, the time is up, or nobody wants it.

docs/job-state.md, "Locks", tells jobs how that is done.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred

from cronstable.clock import Clock
from cronstable.identity import Identity
from cronstable.jobapi.callers import Caller
from cronstable.jobapi.holds import BOUND, Hold, Holds
from cronstable.state.errors import TROUBLE
from cronstable.state.leases import Held
from cronstable.state.service import StoreService
from cronstable.state.store import Store
from cronstable.state.workers import StoreSlow

LEAST_PAUSE = 0.05
"""Seconds between two passes over the permits, at least."""

LONGEST_PAUSE = 1.0
"""The same, at most."""


@attrs.frozen
class Wanted:
    """The lock that a job asks for; C{ttl} and C{patience} in seconds."""

    scope: str
    name: str
    permits: int
    ttl: float
    patience: float

    def lease(self, permit: int) -> str:
        """Return the name of a permit's lease."""
        return f"lock/{self.scope}/{self.name}#{permit}"


@attrs.frozen
class Caught:
    """A permit that was had, of the store that it was taken from."""

    permit: int
    held: Held
    store: Store


@attrs.define(eq=False)
class Hunt:
    """
    One request's hunt for a lock, on behalf of C{caller}.

    Whatever is caught when nobody wants it any more (the run is over, the client has gone, the
    store took too long) is given back at once.
    """

    caller: Caller
    wanted: Wanted
    clock: Clock
    store: StoreService
    holds: Holds
    identity: Identity
    token: str = attrs.field(factory=lambda: secrets.token_hex(16))
    permit: int = attrs.field(default=0, init=False)
    _unwanted: bool = attrs.field(default=False, init=False)
    _pause: Deferred[None] | None = attrs.field(default=None, init=False)

    def begin(self) -> Deferred[Hold | None]:
        """
        Fire with the hold, which is kept from then on, or None when there was none to be had.

        Fails with OSError if the store cannot say.  Cancelled, it gives up.
        """
        answer: Deferred[Hold | None] = Deferred(lambda _: self.give_up())

        def over(result: Any) -> None:
            self.caller.hunts.discard(self)
            if not answer.called:
                answer.callback(result)

        self.caller.hunts.add(self)
        Deferred.fromCoroutine(self._run()).addBoth(over)
        return answer

    def give_up(self) -> None:
        """Nobody wants the lock any more."""
        self._unwanted = True
        pause, self._pause = self._pause, None
        if pause is not None:
            pause.callback(None)

    async def _run(self) -> Hold | None:
        until = self.clock.seconds() + self.wanted.patience
        while not self._unwanted:
            trouble: Exception | None = None
            try:
                caught = await self._pass()
            except TROUBLE as error:
                trouble = error
            else:
                if caught is not None:
                    if self._is_good(caught):
                        return self._keep(caught)
                    self._give_back(caught)
            left = until - self.clock.seconds()
            if left <= 0:
                if trouble is not None and not self._unwanted:
                    raise trouble
                return None
            await self._sleep(min(self._interval, left))
        return None

    @property
    def _interval(self) -> float:
        return min(max(self.wanted.ttl / 10, LEAST_PAUSE), LONGEST_PAUSE)

    def _sleep(self, seconds: float) -> Deferred[None]:
        self._pause = Deferred()
        timer = self.clock.callLater(seconds, self._wake)

        def awake(_: None) -> None:
            if timer.active():
                timer.cancel()

        return self._pause.addCallback(awake)

    def _wake(self) -> None:
        pause, self._pause = self._pause, None
        if pause is not None:
            pause.callback(None)

    def _pass(self) -> Deferred[Caught | None]:
        """
        Try each permit once, in order; one that comes too late is given back.

        Fails with OSError if no permit was had and one could not be judged.
        """
        answer: Deferred[Caught | None] = Deferred()
        slow = StoreSlow(f"no answer within {BOUND:g} s")
        timer = self.clock.callLater(BOUND, answer.errback, slow)

        def came(result: Any) -> None:
            if timer.active():
                timer.cancel()
                answer.callback(result)
            elif isinstance(result, Caught):
                self._give_back(result)

        self.store.hunt(lambda store: self._try_all(store, timer.active)).addBoth(came)
        return answer

    def _try_all(self, store: Store, in_time: Callable[[], object]) -> Caught | None:
        trouble = None
        for permit in range(self.wanted.permits):
            if self._unwanted or not in_time():
                return None
            lease, holder = self.wanted.lease(permit), self._holder
            answer = store.leases.acquire(lease, holder, self.wanted.ttl)
            if isinstance(answer, Held):
                return Caught(permit, answer, store)
            if answer.why != "held":
                trouble = f"lease {lease} is {answer.why}: {answer.error}"
        if trouble is not None:
            raise OSError(trouble)
        return None

    @property
    def _holder(self) -> str:
        return f"{self.identity.holder}#{self.token}"

    def _is_good(self, caught: Caught) -> bool:
        """Return whether a permit is still wanted, and its lease has not run out on the way."""
        runs = self.clock.awake_and_asleep() < caught.held.deadline
        return runs and not self._unwanted and not self.caller.over

    def _keep(self, caught: Caught) -> Hold:
        self.permit = caught.permit
        hold = self._hold(caught)
        self.holds.keep(self.caller, hold)
        return hold

    def _give_back(self, caught: Caught) -> None:
        self.holds.drop(self.caller, self._hold(caught))

    def _hold(self, caught: Caught) -> Hold:
        wanted, lease = self.wanted, caught.held.lease
        return Hold(
            token=self.token,
            label=f"lock {wanted.name} (scope {wanted.scope}, permit {caught.permit})",
            lease=lease.name,
            holder=lease.holder,
            fence=lease.fence,
            ttl=wanted.ttl,
            deadline=caught.held.deadline,
            store=caught.store,
        )
