"""Tests for what a scrape says."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import ResourceLimits
from cronstable.events import Bus
from cronstable.executors.interfaces import CapsReport, Usage
from cronstable.metrics.exposition import Family, Sample
from cronstable.metrics.interfaces import (
    ClusterView,
    JobFacts,
    StateStats,
)
from cronstable.runs.record import FinishedRun, RunFinished, RunRecord
from cronstable.state.service import Lane
from cronstable.state.stats import OpCount
from tests.fakes import job
from tests.metrics.world import FakeCluster, FakeJobs, FakeState, World, families

ROW = RunRecord("a", "success", 50.5, exit_code=0, duration=1.5)
STATS = StateStats(
    "filesystem",
    "shared",
    {"append": OpCount(3, 1, 0.5)},
    {"bulk": Lane(1, 16, 2), "lease": Lane(0, 8, 1)},
)
VIEW = ClusterView(
    "gossip", "node-a", "spread", 3, 2, True, False, "node-b", {"size": True}, {"agreed": 2}
)


class JobTests(SynchronousTestCase):
    """Series of jobs."""

    def test_untouched(self) -> None:
        """Every job has its zero-filled series from the first scrape, disabled ones too."""
        world = World(job("a"), job("b", enabled=False))
        for name in ("a", "b"):
            for status in ("success", "failure", "cancelled", "skipped"):
                runs = world.value("cronstable_job_runs_total", job_name=name, status=status)
                self.assertEqual(runs, 0)
            for what in ("retries", "permanent_failures", "start_failures"):
                self.assertEqual(world.value(f"cronstable_job_{what}_total", job_name=name), 0)
            count = world.value("cronstable_job_duration_seconds_count", job_name=name)
            self.assertEqual(count, 0)
            self.assertEqual(world.value("cronstable_job_paused", job_name=name), 0)
            self.assertEqual(world.value("cronstable_job_running", job_name=name), 0)
        self.assertEqual(world.value("cronstable_job_enabled", job_name="b"), 0)
        self.assertEqual(world.value("cronstable_jobs", state="enabled"), 1)
        self.assertEqual(world.value("cronstable_jobs", state="disabled"), 1)

    def test_absent_families(self) -> None:
        """A family without a sample has no line at all."""
        text = World(job("a")).registry.text()
        for name in ("job_last_", "job_late", "job_cpu", "job_peak", "state_", "job_memory"):
            self.assertNotIn(f"cronstable_{name}", text)
        self.assertNotIn("_created", text)
        self.assertNotIn("cronstable_job_info", World().registry.text())

    def test_next_run(self) -> None:
        """Only an enabled job with a fire to come has a next run, paused or not."""
        world = World(job("a"), job("b", enabled=False), job("c", "@reboot"))
        for name in "ab":
            world.jobs.standing[name] = JobFacts(next_fire=60.0, paused=True)
        name = "cronstable_job_next_run_timestamp_seconds"
        self.assertEqual(world.value(name, job_name="a"), 60.0)
        self.assertIsNone(world.value(name, job_name="b"))
        self.assertIsNone(world.value(name, job_name="c"))

    def test_last_run(self) -> None:
        """The newest row tells when and how; success judges the newest that was not skipped."""
        world = World(job("a"))
        skipped = RunRecord("a", "skipped", 60.0)
        world.jobs.standing["a"] = JobFacts(last_row=skipped, last_run=ROW)
        self.assertEqual(
            world.value("cronstable_job_last_run_timestamp_seconds", job_name="a"), 60.0
        )
        self.assertEqual(world.value("cronstable_job_last_run_success", job_name="a"), 1)
        self.assertIsNone(world.value("cronstable_job_last_run_exit_code", job_name="a"))
        self.assertIsNone(world.value("cronstable_job_last_run_duration_seconds", job_name="a"))
        world.jobs.standing["a"] = JobFacts(
            last_row=attrs.evolve(ROW, usage=Usage(0.25, 0.5, 77, samples=1)), last_run=ROW
        )
        self.assertEqual(world.value("cronstable_job_last_run_exit_code", job_name="a"), 0)
        self.assertEqual(world.value("cronstable_job_last_run_cpu_seconds", job_name="a"), 0.75)
        self.assertEqual(world.value("cronstable_job_last_run_max_rss_bytes", job_name="a"), 77)

    def test_limits(self) -> None:
        """Each cap that is set has its series."""
        world = World(job("a", limits=ResourceLimits(cpu=0.5, memory=1024)))
        row = attrs.evolve(ROW, caps=CapsReport(True))
        world.jobs.standing["a"] = JobFacts(last_row=row, last_run=row)
        self.assertEqual(world.value("cronstable_job_cpu_limit_cpus", job_name="a"), 0.5)
        self.assertEqual(world.value("cronstable_job_memory_limit_bytes", job_name="a"), 1024)
        self.assertIsNone(world.value("cronstable_job_process_limit", job_name="a"))
        exceeded = "cronstable_job_memory_limit_exceeded_total"
        self.assertEqual(world.value(exceeded, job_name="a"), 0)
        self.assertEqual(world.value("cronstable_job_last_run_limits_enforced", job_name="a"), 1)

    def test_lateness(self) -> None:
        """Checks appear with their first evaluation, breaches zero-filled beside them."""
        world = World(job("a"))
        world.jobs.standing["a"] = JobFacts(late={"lateAfter": True, "maxRuntime": False})
        world.registry.counts.breached("a", "lateAfter")
        for check, late, breaches in (("lateAfter", 1, 1), ("maxRuntime", 0, 0)):
            labels = {"job_name": "a", "check": check}
            self.assertEqual(world.value("cronstable_job_late", **labels), late)
            self.assertEqual(world.value("cronstable_job_sla_breaches_total", **labels), breaches)

    def test_slots(self) -> None:
        """Slots are counted by what became of them, all results once there is one."""
        world = World(job("a"), job("b"))
        world.jobs.standing["a"] = JobFacts(slots={"ran": 5, "missed": 1})
        for result, number in (("ran", 5), ("missed", 1), ("skipped", 0), ("merged", 0)):
            labels = {"job_name": "a", "result": result}
            self.assertEqual(world.value("cronstable_slots_total", **labels), number)
        self.assertIsNone(world.value("cronstable_slots_total", job_name="b", result="ran"))
        self.assertEqual(world.value("cronstable_slots_unaccounted"), 0)

    def test_order(self) -> None:
        """Families are whole, and jobs stand in them in configuration order."""
        world = World(*(job(name) for name in "zay"))
        lines = [
            line for line in world.registry.text().split("\n") if "cronstable_job_enabled{" in line
        ]
        self.assertEqual([line.split('"')[1] for line in lines], ["z", "a", "y"])

    def test_odd_names(self) -> None:
        """Any job name can be a label, in both formats."""
        world = World(*(job(name) for name in ('a"b\\', "new\nline", "\0", "é")))
        for openmetrics in (False, True):
            names = {
                sample.labels["job_name"]
                for family in families(world.registry.text(openmetrics), openmetrics)
                for sample in family.samples
                if "job_name" in sample.labels
            }
            self.assertEqual(names, {'a"b\\', "new\nline", "\0", "é"})

    def test_events(self) -> None:
        """A run that is told on the bus is in the next scrape."""
        world = World(job("a"))
        bus = Bus()
        world.registry.listen(bus)
        bus.publish(RunFinished(FinishedRun(ROW, job("a"), None, None)))
        runs = world.value("cronstable_job_runs_total", job_name="a", status="success")
        self.assertEqual(runs, 1)
        world.clock.advance(0.25)
        self.assertEqual(world.value("cronstable_reactor_lag_seconds_count"), 1)


class PartsTests(SynchronousTestCase):
    """Parts that other rooms tell, or fail to."""

    def setUp(self) -> None:
        self.world = World(job("a"))
        self.registry = self.world.registry

    def test_alone(self) -> None:
        """Without store and cluster only their absence is told."""
        self.assertEqual(self.world.value("cronstable_cluster_enabled"), 0)
        self.assertEqual(self.world.value("cronstable_notify_failures_total"), 0)
        self.assertEqual(self.world.value("cronstable_up"), 1)
        self.world.clock.advance(12.5)
        self.assertEqual(self.world.value("cronstable_uptime_seconds"), 12.5)

    def test_reload_gauge(self) -> None:
        """A refused configuration turns the gauge to 0."""
        self.world.daemon.reload_succeeded = False
        self.assertEqual(self.world.value("cronstable_config_last_reload_successful"), 0)
        self.world.daemon.last_tick = None
        name = "cronstable_scheduler_last_tick_timestamp_seconds"
        self.assertIsNone(self.world.value(name))

    def test_store_that_fails(self) -> None:
        """Statistics that cannot be read are left out; lost writes are told all the same."""
        state = self.registry.state = FakeState(STATS, {"retry": 3, "pause": 0})
        self.assertEqual(self.world.value("cronstable_state_ops_total", op="append"), 3)
        lost = "cronstable_state_dropped_writes_total"
        self.assertEqual(self.world.value(lost, kind="retry"), 3)
        self.assertIsNone(self.world.value(lost, kind="pause"))
        state.broken = True
        with self.assertLogs("prometheus", "ERROR") as logs:
            left = self.world.samples()
        self.assertEqual(len(logs.records), 1)
        self.assertFalse([name for name, _ in left if "state_op" in name])
        self.assertEqual(left[lost, frozenset({("kind", "retry")})], 3)

    def test_cluster_that_fails(self) -> None:
        """A view that cannot be read leaves whether there is one, and the transitions."""
        cluster = self.registry.cluster = FakeCluster(changes=(1, 2), seen=VIEW)
        self.assertEqual(self.world.value("cronstable_cluster_size"), 3)
        self.assertEqual(self.world.value("cronstable_cluster_conflict", kind="size"), 1)
        self.assertEqual(self.world.value("cronstable_cluster_peers", status="self"), 0)
        cluster.broken = True
        with self.assertLogs("prometheus", "ERROR"):
            left = self.world.samples()
        names = sorted(name for name, _ in left if "_cluster_" in name)
        self.assertEqual(
            names,
            [
                "cronstable_cluster_enabled",
                "cronstable_cluster_leader_transitions_total",
                "cronstable_cluster_quorum_transitions_total",
            ],
        )

    def test_no_leader(self) -> None:
        """Without a leader nobody is named; without peers they are not told."""
        self.registry.cluster = FakeCluster(seen=attrs.evolve(VIEW, leader=None, peers=None))
        text = self.registry.text()
        self.assertNotIn("leader_info", text)
        self.assertNotIn("cluster_peers", text)
        self.assertNotIn("transitions", text)

    def test_job_that_fails(self) -> None:
        """A job whose standing cannot be read still has its counters."""

        def broken(jobs: object, of: object) -> JobFacts:
            raise KeyError("x")

        self.patch(FakeJobs, "facts", broken)
        with self.assertLogs("prometheus", "ERROR"):
            self.assertEqual(self.world.value("cronstable_job_retries_total", job_name="a"), 0)

    def test_reports(self) -> None:
        """Lost reports are told in all and by reporter."""

        class Reports:
            lost = 2
            counts = {("mail", "failed"): 2, ("shell", "delivered"): 5}

        self.registry.reports = Reports()
        self.assertEqual(self.world.value("cronstable_notify_failures_total"), 2)
        labels = {"reporter": "shell", "result": "delivered"}
        self.assertEqual(self.world.value("cronstable_reports_total", **labels), 5)

    def test_collectors(self) -> None:
        """Other rooms add families; one that fails leaves out only its own."""

        def good() -> list[Family]:
            return [Family("cronstable_pool_slots", "gauge", "Slots.", (Sample(4),))]

        def bad() -> list[Family]:
            raise ValueError("x")

        self.registry.collectors += [bad, good]
        with self.assertLogs("prometheus", "ERROR"):
            self.assertEqual(self.world.value("cronstable_pool_slots"), 4)


class RenderTests(SynchronousTestCase):
    """How a scrape is made."""

    def test_formats(self) -> None:
        """Both formats hold the same series, and only OpenMetrics has an end."""
        world = World(job("a"))
        world.registry.state, world.registry.cluster = FakeState(STATS), FakeCluster(seen=VIEW)
        self.assertEqual(world.samples(False), world.samples(True))
        self.assertTrue(world.registry.text(True).endswith("\n# EOF\n"))
        self.assertNotIn("# EOF", world.registry.text(False))

    def test_pieces(self) -> None:
        """A large scrape comes in many pieces, and a job that goes meanwhile does no harm."""
        world = World(*(job(f"j{number}") for number in range(1000)))
        pieces = world.registry.render(False)
        text = "".join(next(pieces) for _ in range(20))
        world.jobs.by_name.clear()
        text += "".join(pieces)
        self.assertEqual(text.count("cronstable_job_enabled{"), 1000)
        self.assertGreater(len(list(World(job("a")).registry.render(False))), 20)
