"""Draining: what a stop waits for."""

from __future__ import annotations

from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from cronstable.runs.record import FinishedRun
from tests.fakes import job
from tests.runs.test_scheduler import NOON
from tests.runs.world import World

REFUSED = ("refused", "shutdown")


class Told:
    """A reporter that keeps what it is asked to report."""

    def __init__(self) -> None:
        self.hooks: list[str] = []

    def report(self, hook: str, finished: FinishedRun) -> Deferred[None]:
        self.hooks.append(hook)
        return succeed(None)


class DrainTests(SynchronousTestCase):
    """RunService.when_drained."""

    def test_reports(self) -> None:
        """It fires only when the last run's reports have been asked for."""
        told = Told()
        world = World(NOON + 30, job("a"), reporter=told)
        world.advance(30)
        world.runs.quiesce()
        seen: list[list[str]] = []
        world.runs.when_drained().addCallback(lambda _: seen.append(list(told.hooks)))
        self.assertEqual(seen, [])
        world.executor.live[0].exit(0)
        self.assertEqual(seen, [["onSuccess"]])

    def test_all(self) -> None:
        """It waits for every run, and fires at once when there is none."""
        world = World(NOON + 30, job("a"), job("b"))
        world.advance(30)
        drained = world.runs.when_drained()
        world.executor.live[0].exit(0)
        self.assertNoResult(drained)
        world.executor.live[0].exit(1)
        self.successResultOf(drained)
        self.successResultOf(world.runs.when_drained())

    def test_waiting(self) -> None:
        """Who waits for an answer when a stop begins is refused, wherever the request stands."""
        never: Deferred[None] = Deferred()
        world = World(NOON, job("a"), judgements={"overlap": lambda request, job: never})
        tickets = [world.runs.start_now("a") for _ in range(3)]
        self.assertEqual([ticket.decision for ticket in tickets], [None] * 3)
        world.runs.quiesce()
        told = [ticket.decision for ticket in tickets]
        self.assertEqual([each and each.kind for each in told], ["refused"] * 3)
        self.assertEqual([each and each.reason for each in told[1:]], ["shutdown"] * 2)
        self.successResultOf(world.runs.when_drained())

    def test_waiting_behind_a_replacement(self) -> None:
        """So is who waits behind a start that waits for the run that it replaces."""
        world = World(NOON, job("a", concurrency_policy="Replace"))
        world.executor.on_cancel = lambda launch: None
        tickets = [world.runs.start_now("a") for _ in range(3)]
        self.assertEqual([each.decision and each.decision.kind for each in tickets[1:]], [None] * 2)
        world.runs.quiesce()
        world.executor.live[0].exit(-15)
        told = [ticket.decision for ticket in tickets[1:]]
        self.assertEqual([each and (each.kind, each.reason) for each in told], [REFUSED] * 2)
        self.successResultOf(world.runs.when_drained())
