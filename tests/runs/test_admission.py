"""Admission under a store that takes its time: one budget, and what follows when it is spent."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import JobConfig
from cronstable.runs.admission import BUDGET
from cronstable.runs.gates import No
from cronstable.runs.record import Cause
from tests.fakes import job
from tests.runs.test_scheduler import NOON
from tests.runs.world import World


class Slow:
    """A gate or a claim that answers when the test says so."""

    name = "slow"
    causes: frozenset[Cause] = frozenset(("manual",))

    def __init__(self) -> None:
        self.answers: list[Deferred[Any]] = []
        self.holds: list[str] = []

    def claim(self, request: object, made: JobConfig) -> Any:
        self.answers.append(Deferred())
        return self.answers[-1]

    def release(self) -> None:
        self.holds.append("released")

    def undo(self) -> None:
        self.holds.append("undone")


class Lenient(Slow):
    """One that says what follows when it is late."""

    def __init__(self, verdict: Any) -> None:
        super().__init__()
        self.verdict = verdict
        self.came: list[Any] = []

    def late(self, request: object, made: JobConfig) -> Any:
        return self.verdict

    def came_late(self, answer: Any, request: object, made: JobConfig) -> None:
        self.came.append(answer)


class Judge(Lenient):
    def __call__(self, request: object, made: JobConfig) -> Any:
        return self.claim(request, made)


class LateTests(SynchronousTestCase):
    def world(self, *claims: Any, **wiring: Any) -> World:
        return World(NOON, job("job", "0 0 1 1 *"), claims=claims, **wiring)

    def test_late_hold(self) -> None:
        """A hold that comes after the budget is given back as soon as it comes."""
        slow = Slow()
        world = self.world(slow)
        decided = world.runs.start_now("job").when_decided()
        world.run(BUDGET - 0.1)
        self.assertNoResult(decided)
        world.run(0.2)
        decision = self.successResultOf(decided)
        self.assertEqual((decision.kind, decision.reason), ("refused", "late"))
        slow.answers[0].callback(slow)
        self.assertEqual(slow.holds, ["undone"])
        self.assertEqual(world.executor.launches, [])

    def test_claim_decides(self) -> None:
        """A claim that knows what follows decides, and gets the answer that came too late."""
        lenient = Lenient(Slow())
        world = self.world(lenient)
        world.runs.start_now("job")
        world.run(BUDGET + 1)
        self.assertEqual(len(world.executor.launches), 1)
        lenient.answers[0].callback("late")
        self.assertEqual(lenient.came, ["late"])
        world.executor.live[0].exit()
        self.assertEqual(lenient.verdict.holds, ["released"])

    def test_claim_refuses(self) -> None:
        """It may decide for a no."""
        world = self.world(Lenient(No("store")))
        decided = world.runs.start_now("job").when_decided()
        world.run(BUDGET + 1)
        self.assertEqual(self.successResultOf(decided).reason, "store")

    def test_judgement_decides(self) -> None:
        """So does a judgement."""
        for verdict, launches in ((None, 1), (No("store"), 0)):
            judge = Judge(verdict)
            world = self.world(judgements={"overlap": judge})
            world.runs.start_now("job")
            world.run(BUDGET + 1)
            self.assertEqual(len(world.executor.launches), launches)

    def test_one_budget(self) -> None:
        """Several slow gates share one budget."""
        claims = [Lenient(Slow()) for _ in range(3)]
        world = self.world(*claims)
        world.runs.start_now("job")
        world.run(BUDGET)
        self.assertEqual(world.started("job"), [NOON + BUDGET])

    def test_late_error(self) -> None:
        """An error that comes too late is logged, once."""
        slow = Slow()
        world = self.world(slow)
        world.runs.start_now("job")
        world.run(BUDGET + 1)
        with self.assertLogs("cronstable", "ERROR") as logs:
            slow.answers[0].errback(RuntimeError("boom"))
        self.assertEqual(len(logs.output), 1)

    def test_stop(self) -> None:
        """A stop waits for no gate; holds that come later are given back."""
        for claim in (Slow(), Lenient(Slow())):
            world = self.world(claim)
            decided = world.runs.start_now("job").when_decided()
            world.runs.quiesce()
            self.successResultOf(world.runs.when_drained())
            self.assertEqual(self.successResultOf(decided).kind, "refused")
            self.assertEqual(world.executor.launches, [])
            self.assertEqual(world.clock.getDelayedCalls()[1:], [])
