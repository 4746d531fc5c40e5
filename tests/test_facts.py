"""What metrics are told of the rooms, read back from whole scrapes."""

from __future__ import annotations

import timeit

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import JobConfig, Sla
from cronstable.facts import DaemonFacts, FleetFacts
from cronstable.metrics.registry import Registry
from cronstable.metrics.statsd import StatsdService
from cronstable.runs.pauses import Pause
from cronstable.runs.record import RunFinished
from cronstable.runs.sla import SlaWatch
from tests.fakes import job
from tests.metrics.world import samples
from tests.runs.test_scheduler import NOON
from tests.runs.world import World


@attrs.define
class FakeReloads:
    """A reload service that says what is set."""

    last_success: float = 0.0
    successful: bool = True


class FactsTestCase(SynchronousTestCase):
    """A scheduler, its runs, and a registry that reads them."""

    def house(self, *jobs: JobConfig) -> World:
        world = World(NOON, *jobs)
        self.sla = SlaWatch(world.clock, world.runs, world.bus)
        self.facts = DaemonFacts(world.clock, world.runs, world.scheduler)
        fleet = FleetFacts(world.clock, world.runs, world.scheduler, self.sla)
        self.registry = Registry(world.clock, fleet, self.facts)
        self.registry.listen(world.bus)
        self.addCleanup(self.registry.lag.stop)
        return world

    def value(self, family: str, **labels: str) -> float | None:
        """Return the value of one series of a scrape, None if it is absent."""
        found = samples(self.registry.text())
        return found.get((f"cronstable_{family}", frozenset(labels.items())))


class FleetFactsTests(FactsTestCase):
    def test_what_stands(self) -> None:
        """A scrape shows live runs, the next fire, pauses, and how due slots ended."""
        world = self.house(job("a"), job("off", enabled=False))
        world.advance(61)
        self.assertEqual(self.value("job_running", job_name="a"), 1.0)
        self.assertEqual(self.value("job_next_run_timestamp_seconds", job_name="a"), NOON + 120)
        self.assertEqual(self.value("job_enabled", job_name="off"), 0.0)
        self.assertIsNone(self.value("job_next_run_timestamp_seconds", job_name="off"))
        self.assertEqual(self.value("slots_total", job_name="a", result="ran"), 1.0)
        self.assertEqual(self.value("job_paused", job_name="a"), 0.0)
        world.executor.live[0].exit(0)
        now = world.clock.now()
        world.runs.pause("a", Pause(now, now + 3600, "", "api"))
        self.assertEqual(self.value("job_paused", job_name="a"), 1.0)
        self.assertEqual(self.value("job_running", job_name="a"), 0.0)
        self.assertEqual(self.value("slots_unaccounted"), 0.0)

    def test_pause_keeps_the_verdict(self) -> None:
        """Rows that a pause leaves are the newest rows, but never the last run."""
        world = self.house(job("a"))
        world.runs.start_now("a")
        world.runs.cancel("a")
        now = world.clock.now()
        world.runs.pause("a", Pause(now, now + 86400, "", "api"))
        self.assertEqual(self.value("job_last_run_success", job_name="a"), 0.0)
        world.runs.resume("a")
        world.runs.start_now("a")
        world.executor.live[0].exit(0)
        world.runs.pause("a", Pause(now, now + 86400, "", "api"))
        world.advance(3700, 30)
        self.assertEqual(world.runs.history.runs("a")[0].outcome, "skipped")
        self.assertEqual(self.value("job_last_run_success", job_name="a"), 1.0)
        self.assertGreater(self.value("job_last_run_timestamp_seconds", job_name="a"), NOON + 3500)

    def test_could_not_start(self) -> None:
        """A command that could not be started is a failure, and a start failure; others are not."""
        world = self.house(job("a"))
        world.runs.start_now("a")
        world.executor.live[0].exit(127)
        self.assertEqual(self.value("job_start_failures_total", job_name="a"), 0.0)
        world.executor.refuse = "no such file"
        world.runs.start_now("a")
        self.assertEqual(self.value("job_start_failures_total", job_name="a"), 1.0)
        self.assertEqual(self.value("job_runs_total", job_name="a", status="failure"), 2.0)
        self.assertEqual(
            [record.start_failed for record in world.runs.history.runs("a")], [False, True]
        )

    def test_lateness(self) -> None:
        """Only configured checks are told, from the first judgement on."""
        world = self.house(
            job("a", "0 13 * * *", sla=Sla(max_runtime=90, late_after=600)), job("b")
        )
        world.runs.start_now("a")
        self.assertIsNone(self.value("job_late", job_name="a", check="maxRuntime"))
        world.advance(120, 5)
        self.sla.judge(world.runs.jobs)
        self.assertEqual(self.value("job_late", job_name="a", check="maxRuntime"), 1.0)
        self.assertEqual(self.value("job_late", job_name="a", check="lateAfter"), 0.0)
        self.assertEqual(
            self.value("job_sla_breaches_total", job_name="a", check="maxRuntime"), 1.0
        )
        self.assertIsNone(self.value("job_late", job_name="a", check="maxTimeSinceSuccess"))
        self.assertIsNone(self.value("job_late", job_name="b", check="maxRuntime"))

    def test_paused_jobs_are_not_late(self) -> None:
        """A pause ends a breach and keeps the series."""
        world = self.house(job("a", "0 13 * * *", sla=Sla(max_runtime=90)))
        world.runs.start_now("a")
        world.advance(120, 5)
        self.sla.judge(world.runs.jobs)
        now = world.clock.now()
        world.runs.pause("a", Pause(now, now + 3600, "", "api"))
        self.sla.judge(world.runs.jobs)
        self.assertEqual(self.value("job_late", job_name="a", check="maxRuntime"), 0.0)

    def test_removed_job(self) -> None:
        """A job that is configured no more has no series, and starts at zero when it is back."""
        world = self.house(job("a", "0 13 * * *", sla=Sla(max_runtime=90)), job("b"))
        self.sla.judge(world.runs.jobs)
        self.assertEqual(self.value("job_late", job_name="a", check="maxRuntime"), 0.0)
        world.install(job("b"))
        self.sla.judge(world.runs.jobs)
        world.install(job("a", "0 13 * * *", sla=Sla(max_runtime=90)), job("b"))
        self.assertIsNone(self.value("job_late", job_name="a", check="maxRuntime"))


class DaemonFactsTests(FactsTestCase):
    def test_before_the_first_reload(self) -> None:
        """The load at the start counts as the last one."""
        world = self.house(job("a"))
        world.advance(5)
        self.assertEqual(self.value("start_time_seconds"), NOON)
        self.assertEqual(self.value("config_last_reload_successful"), 1.0)
        self.assertEqual(self.value("config_last_reload_success_timestamp_seconds"), NOON)

    def test_reloads(self) -> None:
        """What the reload service knows is told."""
        self.house(job("a"))
        self.facts.reloads = FakeReloads(NOON + 7, successful=False)
        self.assertEqual(self.value("config_last_reload_successful"), 0.0)
        self.assertEqual(self.value("config_last_reload_success_timestamp_seconds"), NOON + 7)

    def test_last_pass(self) -> None:
        """The last pass is told on the wall clock; its age survives a step of that clock."""
        world = self.house(job("a", "0 13 * * *"))
        world.advance(35, 5)
        age = world.clock.now() - (self.value("scheduler_last_tick_timestamp_seconds") or 0)
        self.assertEqual(age, 5.0)
        world.clock.step(-7200)
        age = world.clock.now() - (self.value("scheduler_last_tick_timestamp_seconds") or 0)
        self.assertEqual(age, 5.0)


class CostTests(FactsTestCase):
    def test_listeners_are_cheap(self) -> None:
        """What all listeners of metrics do for the end of a run costs a few microseconds."""
        world = self.house(job("a"))
        StatsdService(None, world.clock).listen(world.bus)
        world.runs.start_now("a")
        world.executor.live[0].exit(0)
        event = RunFinished(world.finished[0])
        publish = world.bus.publish
        best = min(timeit.repeat(lambda: publish(event), number=2000, repeat=7)) / 2000
        # The bus, the sla watch and the recorder of this test are in it as well.
        self.assertLess(best, 10e-6)
