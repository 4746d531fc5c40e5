"""Counters that survive a restart."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import JobConfig
from cronstable.counters import CounterSnapshots
from cronstable.facts import DaemonFacts, FleetFacts
from cronstable.metrics.registry import Registry
from cronstable.runs.sla import SlaWatch
from tests.fakes import job
from tests.runs.durable import STATE, DurableWorld, Host
from tests.runs.test_scheduler import NOON


class CountersTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.host = Host(NOON)

    def life(self, *jobs: JobConfig, up: bool = True) -> DurableWorld:
        world = DurableWorld(self.host, *(jobs or (job("job"),)), up=up)
        facts = DaemonFacts(world.clock, world.runs, world.scheduler)
        fleet = FleetFacts(
            world.clock, world.runs, world.scheduler, SlaWatch(world.clock, world.runs, world.bus)
        )
        self.registry = Registry(world.clock, fleet, facts)
        self.registry.listen(world.bus)
        self.counters = CounterSnapshots(
            world.clock,
            "node-a",
            world.store,
            self.registry,
            lambda: world.runs.jobs.jobs,
            world.bus,
        )
        self.seed()
        return world

    def seed(self) -> None:
        self.successResultOf(Deferred.fromCoroutine(self.counters.seed()))

    def run_once(self, world: DurableWorld, status: int = 0, name: str = "job") -> None:
        world.runs.start_now(name)
        world.executor.live[-1].exit(status)

    def counted(self, name: str = "job") -> dict[str, Any]:
        found: dict[str, Any] = self.registry.snapshot()["jobs"][name]["runs"]
        return {outcome: count for outcome, count in found.items() if count}

    def test_carried_on(self) -> None:
        """Counts go on where they were, over a stop."""
        world = self.life()
        for status in (0, 0, 1):
            self.run_once(world, status)
        self.counters.write()
        self.host = world.stop()
        world = self.life()
        self.assertEqual(self.counted(), {"success": 2, "failure": 1})
        self.run_once(world)
        self.assertEqual(self.counted(), {"success": 3, "failure": 1})

    def test_throttled(self) -> None:
        """A snapshot is written at the first run, then at most one in 15 seconds."""
        world = self.life()
        for _ in range(40):
            self.run_once(world)
            world.run(1)
        stamps = [record["at"] for record in world.records("counters/node-a")]
        self.assertEqual(len(stamps), 3)

    def test_crash(self) -> None:
        """A crash costs what happened since the last snapshot, 15 seconds' worth at most."""
        world = self.life()
        for _ in range(20):
            self.run_once(world)
            world.run(1)
        self.host = world.kill()
        self.life()
        self.assertEqual(self.counted(), {"success": 16})

    def test_seeded_once(self) -> None:
        """The snapshot is added once, however often the store comes up."""
        world = self.life()
        self.run_once(world)
        self.counters.write()
        self.host = world.stop()
        self.life()
        self.seed()
        self.seed()
        self.assertEqual(self.counted(), {"success": 1})

    def test_added(self) -> None:
        """What was counted before the store was up is kept and added to."""
        world = self.life()
        self.run_once(world)
        self.counters.write()
        self.host = world.stop()
        world = self.life(up=False)
        self.run_once(world, 1)
        world.start()
        self.seed()
        self.assertEqual(self.counted(), {"success": 1, "failure": 1})

    def test_removed_jobs(self) -> None:
        """Counts of jobs that are gone are not taken over."""
        world = self.life(job("job"), job("old"))
        self.run_once(world)
        self.run_once(world, 0, "old")
        self.counters.write()
        self.host = world.stop()
        self.life()
        self.assertEqual(list(self.registry.snapshot()["jobs"]), ["job"])

    def test_unreadable_at_first(self) -> None:
        """A store that cannot be read at first is asked again; nothing is overwritten before."""
        world = self.life()
        self.run_once(world)
        self.host = world.stop()
        world = self.life(up=False)
        world.use(STATE)
        world.faults.fail("names", match="counters")
        with self.assertLogs("cronstable.state", "WARNING"):
            self.seed()
        self.run_once(world)
        self.assertEqual(len(world.records("counters/node-a")), 1)
        world.faults.heal()
        self.seed()
        self.assertEqual(self.counted(), {"success": 2})

    def test_hostile(self) -> None:
        """A snapshot that makes no sense costs the counts, never the start."""
        for odd in ({}, {"jobs": 5}, {"jobs": {"job": 5}}, {"jobs": {"job": {"runs": []}}}):
            self.host = Host(NOON)
            DurableWorld(self.host, job("job")).append("counters/node-a", odd)
            world = self.life()
            self.run_once(world)
            self.assertEqual(self.counted(), {"success": 1}, odd)

    def test_without_a_store(self) -> None:
        """Without a store nothing is written."""
        world = self.life(up=False)
        self.run_once(world)
        self.counters.write()
        self.assertEqual(self.host.files.paths(), [])
