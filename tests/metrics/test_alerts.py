"""The alerts of docs/metrics.md, evaluated over scrapes in which they should fire, and not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs
import yaml
from twisted.trial.unittest import SynchronousTestCase

from cronstable.metrics.exposition import Family, Sample
from cronstable.metrics.interfaces import ClusterView, JobFacts, StateStats
from cronstable.runs.record import RunRecord
from cronstable.state.service import Lane
from tests.fakes import job
from tests.metrics.promql import Query
from tests.metrics.world import FakeCluster, FakeState, World

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
VIEW = ClusterView("gossip", "node-a", "single-leader", 3, 2, True, True, "node-a", {}, {})
STATS = StateStats("filesystem", "shared", {}, {"bulk": Lane(15, 16, 16)})


class Lost:
    """Reports of which some were lost."""

    def __init__(self, lost: int) -> None:
        self.lost = lost
        self.counts: dict[tuple[str, str], int] = {}


def one(name: str, value: float, **labels: str) -> Family:
    """Return a gauge with one series."""
    return Family(name, "gauge", "Help.", (Sample(value, tuple(labels.items())),))


class AlertTests(SynchronousTestCase):
    """Each alert, in a world where all is well and in one where something is not."""

    def setUp(self) -> None:
        text = re.search(r"```yaml\n(groups:.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        assert text is not None
        rules = yaml.safe_load(text.group(1))["groups"][0]["rules"]
        self.queries = {
            rule["alert"].removeprefix("Cronstable"): Query(rule["expr"]) for rule in rules
        }
        self.world = self.make()
        self.before = self.scrape(self.world)

    def make(self) -> World:
        """Return a world where all is well."""
        world = World(job("a"), job("b"))
        now = world.clock.now()
        row = RunRecord("a", "success", now - 60, exit_code=0, duration=1.0)
        world.jobs.standing["a"] = JobFacts(last_row=row, last_run=row)
        counts = world.registry.counts.write("a")
        assert counts is not None
        counts.last_success = now - 60
        world.daemon.last_tick = now - 2
        world.registry.state = FakeState(STATS)
        world.registry.cluster = FakeCluster(changes=(1, 1), seen=VIEW)
        world.registry.reports = Lost(0)
        return world

    def scrape(self, world: World, up: float = 1, instance: str = "node-a") -> dict[Any, float]:
        """Return a scrape as Prometheus keeps it, with what it adds."""
        series = {
            (name, labels | {("instance", instance), ("job", "cronstable")}): value
            for (name, labels), value in world.samples().items()
        }
        target = frozenset({("instance", instance), ("job", "cronstable")})
        return {**series, ("up", target): up}

    def firing(self, *scrapes: dict[Any, float]) -> set[str]:
        """Return the alerts that fire over C{scrapes} of several nodes."""
        series = {key: value for scrape in scrapes for key, value in scrape.items()}
        now = self.world.clock.now()
        return {
            name for name, query in self.queries.items() if query.evaluate(now, series, self.before)
        }

    def fires(self, name: str, *scrapes: dict[Any, float]) -> None:
        """Check that exactly the alert called C{name} fires."""
        self.assertEqual(self.firing(*(scrapes or (self.scrape(self.world),))), {name})

    def test_all_is_well(self) -> None:
        """Nothing fires where all is well."""
        self.assertEqual(self.firing(self.before), set())

    def test_known_names(self) -> None:
        """Every family that an alert names is described on the page, or belongs to other rooms."""
        elsewhere = {"runs_finished_total", "runs_current", "max_queued_runs", "workers"}
        page = PAGE.read_text(encoding="utf-8")
        named = {
            each
            for query in self.queries.values()
            for each in query._tokens
            if each.startswith("cronstable_")
        }
        self.assertGreater(len(named), 12)
        described = page.split("## Alerts")[0]
        for name in named:
            short = re.sub("^cronstable_(job_|state_|cluster_)?", "", name)
            self.assertTrue(short in elsewhere or f"`{short}" in described, name)

    def test_job_failed(self) -> None:
        """A failed job fires, unless it is paused."""
        row = RunRecord("b", "failure", self.world.clock.now(), exit_code=1, duration=1.0)
        facts = JobFacts(last_row=row, last_run=row)
        self.world.jobs.standing["b"] = facts
        self.fires("JobFailed")
        self.world.jobs.standing["b"] = attrs.evolve(facts, paused=True)
        self.assertEqual(self.firing(self.scrape(self.world)), set())

    def test_job_stale(self) -> None:
        """A job whose success is old fires."""
        counts = self.world.registry.counts.write("a")
        assert counts is not None
        counts.last_success = self.world.clock.now() - 7300
        self.fires("JobStale")

    def test_daemon(self) -> None:
        """A refused configuration, a stalled scheduler, a lost slot and a dead target fire."""
        self.world.daemon.reload_succeeded = False
        self.fires("ConfigBroken")
        self.world = self.make()
        self.world.daemon.last_tick = self.world.clock.now() - 61
        self.fires("SchedulerStalled")
        self.world = self.make()
        self.world.jobs.unaccounted = 1
        self.fires("SlotsUnaccounted")
        self.world = self.make()
        self.fires("Down", self.scrape(self.world, up=0))

    def test_cluster(self) -> None:
        """A lost quorum, two leaders and a conflict fire."""
        for name, view in (
            ("NotQuorate", attrs.evolve(VIEW, quorate=False)),
            ("Conflict", attrs.evolve(VIEW, conflicts={"size": True})),
        ):
            self.world.registry.cluster = FakeCluster(changes=(1, 1), seen=view)
            self.fires(name)
        self.world = self.make()
        other = self.scrape(self.make(), instance="node-b")
        self.fires("MultipleLeaders", self.scrape(self.world), other)

    def test_store(self) -> None:
        """A lost record and a wedged store fire."""
        self.world.registry.state = FakeState(STATS, {"retry": 1})
        self.fires("StateDropping")
        full = attrs.evolve(STATS, lanes={"bulk": Lane(16, 16, 16)})
        self.world.registry.state = FakeState(full)
        self.fires("StoreWedged")

    def test_reports(self) -> None:
        """A report that nobody got fires."""
        self.world.registry.reports = Lost(1)
        self.fires("NotifyBroken")

    def test_workflows(self) -> None:
        """A failed workflow run, a queue that fills and a lost worker fire."""
        for name, added in (
            ("RunFailures", [one("cronstable_runs_finished_total", 1, state="failed")]),
            (
                "QueueSaturation",
                [
                    one("cronstable_runs_current", 9, state="queued"),
                    one("cronstable_max_queued_runs", 10),
                ],
            ),
            ("WorkerLost", [one("cronstable_workers", 1, state="lost")]),
        ):
            self.world = self.make()
            families = added

            def collect(families: list[Family] = families) -> list[Family]:
                return families

            self.world.registry.collectors.append(collect)
            self.fires(name)

    def test_every_alert_is_tried(self) -> None:
        """No alert of the page is without a test here."""
        source = Path(__file__).read_text(encoding="utf-8")
        for name in self.queries:
            self.assertIn(f'"{name}"', source)
