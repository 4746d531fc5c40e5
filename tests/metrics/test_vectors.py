"""Scrapes that were captured, built again from their own values and compared series by series."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import JobConfig, ResourceLimits, Sla
from cronstable.executors.interfaces import CapsReport, Usage
from cronstable.metrics import registry
from cronstable.metrics.counts import JobCounts
from cronstable.metrics.interfaces import ClusterView, JobFacts, StateStats
from cronstable.runs.record import RunRecord
from cronstable.state.service import Lane
from cronstable.state.stats import OpCount
from tests.fakes import job
from tests.metrics.world import FakeCluster, FakeState, World, families, samples

VECTORS = Path(__file__).parents[1] / "vectors" / "metrics"
OURS = {
    "cronstable_up",
    "cronstable_uptime_seconds",
    "cronstable_scheduler_last_tick_timestamp_seconds",
    "cronstable_slots_unaccounted",
    "cronstable_notify_failures_total",
}
"""Families that the captured daemon did not have, and that are always there."""

Series = dict[tuple[str, frozenset[Any]], float]


class Captured:
    """A captured scrape, asked by series."""

    def __init__(self, series: Series) -> None:
        self._series = series
        self._by_name: dict[str, list[tuple[dict[str, str], float]]] = {}
        for (name, labels), value in series.items():
            self._by_name.setdefault(name, []).append((dict(labels), value))

    def all(self, name: str) -> list[tuple[dict[str, str], float]]:
        """Return the series of a name: labels and value."""
        return self._by_name.get(f"cronstable_{name}", [])

    def get(self, name: str, **labels: str) -> float | None:
        """Return the value of one series."""
        return self._series.get((f"cronstable_{name}", frozenset(labels.items())))

    def whole(self, name: str, **labels: str) -> int:
        """Return the value of one series as a whole number, 0 if it is absent."""
        return int(self.get(name, **labels) or 0)

    def only(self, name: str) -> dict[str, str] | None:
        """Return the labels of the one series of a name."""
        found = self.all(name)
        return found[0][0] if found else None


def build(captured: Captured) -> World:
    """Return a world that says what C{captured} says."""
    jobs = [_job(captured, labels) for labels, _ in captured.all("job_info")]
    world = World(*jobs)
    bounds = sorted(
        {float(labels["le"]) for labels, _ in captured.all("job_duration_seconds_bucket")}
    )
    world.registry.counts.configure(bounds[:-1])
    for each in jobs:
        counts = world.registry.counts.write(each.name)
        assert counts is not None
        _fill(captured, counts, each.name, bounds)
        world.jobs.standing[each.name] = _facts(captured, each)
    _fill_daemon(captured, world)
    if captured.all("state_info"):
        world.registry.state = _state(captured)
    world.registry.cluster = _cluster(captured)
    return world


def _job(captured: Captured, labels: dict[str, str]) -> JobConfig:
    name = labels["job_name"]
    memory = captured.get("job_memory_limit_bytes", job_name=name)
    processes = captured.get("job_process_limit", job_name=name)
    return attrs.evolve(
        job(name),
        schedule_text=labels["schedule"],
        cluster_policy=labels["cluster_policy"],
        enabled=captured.get("job_enabled", job_name=name) == 1,
        limits=ResourceLimits(
            cpu=captured.get("job_cpu_limit_cpus", job_name=name),
            memory=None if memory is None else int(memory),
            processes=None if processes is None else int(processes),
        ),
        sla=Sla(),
    )


def _fill(captured: Captured, counts: JobCounts, name: str, bounds: list[float]) -> None:
    for status in ("success", "failure", "cancelled", "skipped"):
        setattr(counts, status, captured.whole("job_runs_total", job_name=name, status=status))
    for field in ("retries", "permanent_failures", "start_failures"):
        setattr(counts, field, captured.whole(f"job_{field}_total", job_name=name))
    before = 0
    counts.durations = []
    for bound in bounds:
        text = "+Inf" if bound == float("inf") else str(bound)
        seen = captured.whole("job_duration_seconds_bucket", job_name=name, le=text)
        counts.durations.append(seen - before)
        before = seen
    counts.duration_sum = captured.get("job_duration_seconds_sum", job_name=name) or 0.0
    counts.last_success = captured.get("job_last_success_timestamp_seconds", job_name=name)
    counts.last_failure = captured.get("job_last_failure_timestamp_seconds", job_name=name)
    user = captured.get("job_cpu_seconds_total", job_name=name, mode="user")
    if user is not None:
        counts.cpu_count, counts.cpu_user = 1, user
        counts.cpu_system = captured.get("job_cpu_seconds_total", job_name=name, mode="system") or 0
    counts.max_rss = captured.whole("job_peak_rss_bytes", job_name=name)
    counts.memory_exceeded = captured.whole("job_memory_limit_exceeded_total", job_name=name)
    counts.breaches = {
        labels["check"]: int(value)
        for labels, value in captured.all("job_sla_breaches_total")
        if labels["job_name"] == name
    }


def _facts(captured: Captured, of: JobConfig) -> JobFacts:
    name = of.name
    late = {
        labels["check"]: bool(value)
        for labels, value in captured.all("job_late")
        if labels["job_name"] == name
    }
    row = _row(captured, name)
    skipped = row is not None and row.outcome == "skipped"
    return JobFacts(
        running=captured.whole("job_running", job_name=name),
        next_fire=captured.get("job_next_run_timestamp_seconds", job_name=name),
        last_row=row,
        last_run=attrs.evolve(row, outcome="success") if row is not None and skipped else row,
        paused=captured.get("job_paused", job_name=name) == 1,
        late=late or None,
    )


def _row(captured: Captured, name: str) -> RunRecord | None:
    at = captured.get("job_last_run_timestamp_seconds", job_name=name)
    if at is None:
        return None
    code = captured.get("job_last_run_exit_code", job_name=name)
    good = captured.get("job_last_run_success", job_name=name) == 1
    cpu = captured.get("job_last_run_cpu_seconds", job_name=name)
    enforced = captured.get("job_last_run_limits_enforced", job_name=name)
    rss = captured.whole("job_last_run_max_rss_bytes", job_name=name)
    return RunRecord(
        job=name,
        outcome="success" if good else "skipped" if code is None else "failure",
        finished_at=at,
        duration=captured.get("job_last_run_duration_seconds", job_name=name),
        exit_code=None if code is None else int(code),
        usage=None if cpu is None else Usage(cpu, 0.0, rss, samples=1),
        caps=None if enforced is None else CapsReport(enforced == 1),
    )


def _fill_daemon(captured: Captured, world: World) -> None:
    daemon = world.daemon
    daemon.job_set_id = (captured.only("job_set_info") or {})["job_set_id"]
    daemon.started_at = captured.get("start_time_seconds") or 0.0
    daemon.reload_succeeded = captured.get("config_last_reload_successful") == 1
    daemon.reloaded_at = captured.get("config_last_reload_success_timestamp_seconds") or 0.0


def _state(captured: Captured) -> FakeState:
    about = captured.only("state_info") or {}
    operations = {
        labels["op"]: OpCount(
            int(count),
            captured.whole("state_op_errors_total", op=labels["op"]),
            captured.get("state_op_seconds_total", op=labels["op"]) or 0.0,
        )
        for labels, count in captured.all("state_ops_total")
    }
    lanes = {
        labels["lane"]: Lane(
            int(busy),
            captured.whole("state_workers_capacity", lane=labels["lane"]),
            captured.whole("state_workers_peak", lane=labels["lane"]),
        )
        for labels, busy in captured.all("state_workers_inflight")
    }
    stats = StateStats(
        about["backend"],
        about["topology"],
        operations,
        lanes,
        captured.whole("state_lock_acquisitions_total"),
        captured.get("state_lock_wait_seconds_total") or 0.0,
        captured.whole("state_throttled_ops_total"),
        captured.get("state_throttle_wait_seconds_total") or 0.0,
    )
    dropped = captured.all("state_dropped_writes_total")
    return FakeState(stats, {labels["kind"]: int(lost) for labels, lost in dropped})


def _cluster(captured: Captured) -> FakeCluster | None:
    if captured.get("cluster_enabled") != 1:
        return None
    about = captured.only("cluster_info") or {}
    peers = {labels["status"]: int(seen) for labels, seen in captured.all("cluster_peers")}
    return FakeCluster(
        changes=(
            captured.whole("cluster_leader_transitions_total"),
            captured.whole("cluster_quorum_transitions_total"),
        ),
        seen=ClusterView(
            about["backend"],
            about["node_name"],
            about["distribution"],
            captured.whole("cluster_size"),
            captured.whole("cluster_quorum"),
            captured.get("cluster_quorate") == 1,
            captured.get("cluster_is_leader") == 1,
            (captured.only("cluster_leader_info") or {}).get("leader"),
            {labels["kind"]: bool(on) for labels, on in captured.all("cluster_conflict")},
            peers or None,
        ),
    )


class VectorTests(SynchronousTestCase):
    """Each captured scrape against ours of the same values."""

    def setUp(self) -> None:
        self.patch(registry, "__version__", "0.0.0")

    def compare(self, path: Path) -> int:
        """Compare one scrape; return how many series it has."""
        openmetrics = ".openmetrics." in path.name
        theirs = samples(path.read_text(encoding="utf-8"), openmetrics)
        ours = build(Captured(theirs)).samples(openmetrics)
        for key in [key for key in ours if key[0] in OURS and key not in theirs]:
            del ours[key]
        self.assertEqual(sorted(map(str, theirs)), sorted(map(str, ours)), path.name)
        paused = {
            dict(labels)["job_name"]
            for (name, labels), value in theirs.items()
            if name == "cronstable_job_paused" and value == 1
        }
        for key, value in theirs.items():
            if key[0] == "cronstable_job_last_run_success" and dict(key[1])["job_name"] in paused:
                # Ours differs: a skipped row is not the last run.
                self.assertEqual((value, ours[key]), (0, 1))
                continue
            self.assertAlmostEqual(value, ours[key], places=5, msg=f"{path.name} {key}")
        return len(theirs)

    def test_all(self) -> None:
        """Every captured scrape comes out with the same series and the same values."""
        paths = sorted(VECTORS.glob("*.txt"))
        self.assertEqual(len(paths), 12)
        for path in paths:
            self.assertGreater(self.compare(path), 30)

    def test_types(self) -> None:
        """Families have the captured names and types in both formats."""
        scrapes = {
            name: build(Captured(samples((VECTORS / name).read_text())))
            for name in ("state.txt", "cluster-gossip-leader.txt", "state-dropped-writes.txt")
        }
        scrapes["locks"] = build(Captured(samples((VECTORS / "jobapi-primitives.txt").read_text())))
        scrapes["slow"] = build(
            Captured(samples((VECTORS / "state-after-restart-throttled.txt").read_text()))
        )
        for key, form in (("text", False), ("openmetrics", True)):
            ours = {
                family.name: family
                for world in scrapes.values()
                for family in families(world.registry.text(form), form)
            }
            for listed in json.loads((VECTORS / "families.json").read_text()):
                name = listed["openmetrics_family"] if form else listed["name"]
                kind = listed["openmetrics_type"] if form else listed["text_type"]
                if not form and kind == "counter":
                    name = name.removesuffix("_total")
                self.assertIn(name, ours, key)
                self.assertEqual(ours[name].type, kind)
                seen = {each for sample in ours[name].samples for each in sample.labels}
                self.assertEqual(seen, set(listed["labels"]), name)
