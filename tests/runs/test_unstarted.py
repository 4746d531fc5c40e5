"""Runs that are ended while their launch still waits for room: they never have a process."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import JobConfig, RetryPolicy
from cronstable.runs.request import Decision
from tests.fakes import job
from tests.runs.world import World

NOON = 1_767_268_800.0


class UnstartedTests(SynchronousTestCase):
    """Each slot has its consequence, and each request its answer."""

    def world(self, *jobs: JobConfig) -> World:
        world = World(NOON, *jobs)
        world.executor.room = False
        return world

    def results(self, world: World) -> list[tuple[str, str | None, int | None]]:
        self.assertEqual(world.book.unaccounted(), 0)
        return [(each.result, each.reason, each.into) for each in world.book.entries("a")]

    def test_replaced(self) -> None:
        """The newer run stands for one that it replaces before that has started."""
        world = self.world(job("a", concurrency_policy="Replace"))
        world.advance(121)
        self.assertEqual(len(world.executor.launches), 2)
        self.assertEqual(self.results(world), [("merged", None, int(NOON) + 120)])
        world.executor.room = True
        world.advance(60)
        self.assertEqual(
            self.results(world),
            [
                ("merged", None, int(NOON) + 120),
                ("merged", None, int(NOON) + 180),
                ("ran", None, None),
            ],
        )
        self.assertEqual((world.records("a"), world.finished), ((), []))

    def test_replaced_by_hand(self) -> None:
        """A run without a slot of its own leaves the older one standing for itself."""
        world = self.world(job("a", concurrency_policy="Replace"))
        world.advance(61)
        world.runs.start_now("a")
        self.assertEqual(self.results(world), [("merged", None, int(NOON) + 60)])

    def test_cancelled(self) -> None:
        """A slot is missed when somebody cancels the run, and nothing enters the history."""
        world = self.world(job("a"))
        world.advance(61)
        with self.assertLogs("cronstable", "INFO") as logged:
            count, ended = world.runs.cancel("a")
        self.assertEqual(count, 1)
        self.successResultOf(ended)
        self.assertEqual(self.results(world), [("missed", "cancelled", None)])
        self.assertEqual(world.records("a"), ())
        self.assertEqual(logged.output, ["INFO:cronstable:Job a was not started (cancelled)"])

    def test_started_by_hand(self) -> None:
        """Whoever started it by hand is answered."""
        world = self.world(job("a", "0 0 1 1 *"))
        ticket = world.runs.start_now("a")
        world.runs.cancel("a")
        self.assertEqual(
            self.successResultOf(ticket.when_decided()), Decision("refused", "cancelled")
        )
        self.assertIsNone(self.successResultOf(ticket.when_ended()))

    def test_cut(self) -> None:
        """A second signal at a stop misses the slot for the shutdown."""
        world = self.world(job("a"))
        world.advance(61)
        world.runs.quiesce()
        drained = world.runs.when_drained()
        world.runs.cut()
        self.successResultOf(drained)
        self.assertEqual(self.results(world), [("missed", "shutdown", None)])

    def test_retry_cancelled(self) -> None:
        """An attempt that is cancelled before it starts ends its sequence."""
        world = self.world(job("a", retry=RetryPolicy(maximum_retries=3, initial_delay=5)))
        world.executor.room = True
        world.advance(61)
        world.executor.live[0].exit(1)
        world.executor.room = False
        world.advance(6)
        self.assertEqual(len(world.executor.launches), 2)
        world.runs.cancel("a")
        self.assertIsNone(world.runs.pending_retry("a"))
        self.assertIsNone(world.runs.retries.current("a"))
