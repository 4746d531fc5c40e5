"""
Admission: judgements first, claims last, and everything undone when one refuses.

The tables say who is asked (C{tables.py}).  Gates that answer at once cost no wait.  One
admission has one budget of time for all gates that make it wait.  A gate that is late may say
what follows (its C{late} method); otherwise a judgement that is late counts as a refusal, and a
hold that is late is given back as soon as it comes.

docs/admission.md holds the tables.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
from twisted.internet.defer import Deferred

from cronstable.clock import Clock
from cronstable.config.values import JobConfig
from cronstable.runs.gates import Claim, ClaimsLate, DecidesLate, Hold, Judge, No
from cronstable.runs.request import RunRequest
from cronstable.runs.tables import Answer, claim_answer, rows_for

log = logging.getLogger("cronstable")

BUDGET = 10.0
"""Seconds that all gates of one admission may take together."""

LATE = No("late", "a gate did not answer in time")
REMOVED = No("removed", "the job is no longer configured", transient=False)


@attrs.frozen
class Admitted:
    """The run may start: with which definition, and what was taken for it."""

    job: JobConfig
    holds: tuple[Hold, ...] = ()


@attrs.frozen
class Denied:
    """The run does not start: what the table says about it, and the gate's reason."""

    answer: Answer
    no: No
    job: JobConfig | None = None


class Admission:
    """Asks the gates of the tables about one request at a time."""

    def __init__(
        self,
        clock: Clock,
        find: Callable[[str], JobConfig | None],
        gates: Mapping[str, Judge],
        claims: Sequence[Claim] = (),
    ) -> None:
        self._clock = clock
        self._find = find
        self._gates = dict(gates)
        self._claims = tuple(claims)
        self._waiting: set[_Budget] = set()

    def find(self, request: RunRequest) -> JobConfig | None:
        """Return the definition that C{request} would run with now."""
        work = request.work
        return work if isinstance(work, JobConfig) else self._find(work)

    async def admit(self, request: RunRequest) -> Admitted | Denied:
        """Return whether C{request} may start; a gate that raises is an error of the caller."""
        budget = _Budget(self._clock)
        self._waiting.add(budget)
        try:
            return await self._admit(request, budget)
        finally:
            self._waiting.discard(budget)

    def hurry(self) -> None:
        """Wait for no gate any more: the daemon is stopping, and nothing will be launched."""
        for budget in tuple(self._waiting):
            budget.end()

    async def _admit(self, request: RunRequest, budget: _Budget) -> Admitted | Denied:
        job = self.find(request)
        for gate, answer, _ in rows_for(request.cause):
            if gate == "configured":
                if job is None:
                    return Denied(answer, REMOVED)
                continue
            if job is None:
                continue
            judge = self._gates[gate]
            judged = judge(request, job)
            if isinstance(judged, Deferred):
                judged = await budget.judged(judged)
                if judged is LATE and isinstance(judge, DecidesLate):
                    judged = judge.late(request, job)
            if judged is not None:
                return Denied(answer, judged, job)
        if job is None:
            return Denied("refuse", REMOVED)
        return await self._claim(request, job, budget)

    def again(self, request: RunRequest, registered: bool = False) -> Admitted | Denied:
        """
        Ask the gates that need no wait once more, just before the spawn.

        A run that is C{registered} already is no overlap with itself.
        """
        job = self.find(request)
        for gate, answer, again in rows_for(request.cause):
            if not again or (registered and gate == "overlap"):
                continue
            if gate == "configured" or job is None:
                if job is None:
                    return Denied(answer, REMOVED)
                continue
            judged = self._gates[gate](request, job)
            if isinstance(judged, No):
                return Denied(answer, judged, job)
        assert job is not None
        return Admitted(job)

    async def _claim(
        self, request: RunRequest, job: JobConfig, budget: _Budget
    ) -> Admitted | Denied:
        holds: list[Hold] = []
        try:
            for claim in self._claims:
                if request.cause not in claim.causes:
                    continue
                taken = claim.claim(request, job)
                if isinstance(taken, Deferred):
                    taken = await self._hold(claim, taken, request, job, budget)
                if isinstance(taken, No):
                    undo(holds)
                    return Denied(claim_answer(claim.name, request.cause), taken, job)
                holds.append(taken)
        except BaseException:
            undo(holds)
            raise
        return Admitted(job, tuple(holds))

    async def _hold(
        self,
        claim: Claim,
        answer: Deferred[Any],
        request: RunRequest,
        job: JobConfig,
        budget: _Budget,
    ) -> Hold | No:
        if not isinstance(claim, ClaimsLate):
            taken: Hold | No = await budget.hold(answer)
            return taken
        taken = await budget.first(answer, lambda late: claim.came_late(late, request, job))
        return claim.late(request, job) if taken is LATE else taken


def undo(holds: Sequence[Hold]) -> None:
    """Undo C{holds}, the newest first; one that fails is logged and stops no other."""
    _each("undoing", [hold.undo for hold in reversed(holds)])


def release(holds: Sequence[Hold]) -> None:
    """Give C{holds} back, the newest first; one that fails is logged and stops no other."""
    _each("releasing", [hold.release for hold in reversed(holds)])


def _each(what: str, calls: Sequence[Callable[[], object]]) -> None:
    for call in calls:
        try:
            answer = call()
        except Exception:
            log.exception("%s a hold failed", what)
            continue
        if isinstance(answer, Deferred):
            answer.addErrback(
                lambda failure: log.error("%s a hold failed: %s", what, failure.value)
            )


class _Budget:
    """The seconds that one admission may wait in all."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = clock.seconds() + BUDGET
        self._give_up: Callable[[], object] | None = None

    def end(self) -> None:
        """Let what is being waited for be late now, and all that follows."""
        self._until = self._clock.seconds()
        if self._give_up is not None:
            self._give_up()

    async def judged(self, answer: Deferred[Any]) -> Any:
        """Return the answer, or L{LATE} when the budget ends first."""
        return await self.first(answer, lambda late: None)

    async def hold(self, answer: Deferred[Any]) -> Any:
        """Return the hold, or L{LATE}; a hold that comes after that is undone."""
        return await self.first(answer, _give_back)

    def first(self, answer: Deferred[Any], late: Callable[[Any], object]) -> Deferred[Any]:
        """Fire with the answer, or L{LATE} when the budget ends; then C{late} gets the answer."""
        waiter: Deferred[Any] = Deferred()
        state = {"open": True}

        def close() -> None:
            state["open"] = False
            self._give_up = None
            if timer.active():
                timer.cancel()

        def give_up() -> None:
            close()
            waiter.callback(LATE)

        def answered(value: Any) -> None:
            if state["open"]:
                close()
                waiter.callback(value)
            else:
                late(value)

        def failed(failure: Any) -> None:
            if state["open"]:
                close()
                waiter.errback(failure)
            else:
                log.error("a gate failed after its time was up: %s", failure.value)

        timer = self._clock.callLater(max(self._until - self._clock.seconds(), 0.0), give_up)
        self._give_up = give_up
        answer.addCallbacks(answered, failed)
        return waiter


def _give_back(late: Any) -> None:
    if not isinstance(late, No):
        undo([late])
