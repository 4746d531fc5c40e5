"""Tests for counters that outlive the process."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.metrics.counts import Counts
from cronstable.metrics.durable import seed, snapshot, snapshot_in_steps
from cronstable.runs.record import FinishedRun, RunFinished, RunRecord
from tests.fakes import job
from tests.properties import given, settings, st

VECTOR = Path(__file__).parents[1] / "vectors" / "metrics" / "counter-snapshot.json"
AT = 1_795_954_948.63486


class DurableTests(SynchronousTestCase):
    """One record out, one record in."""

    def setUp(self) -> None:
        self.record: dict[str, Any] = json.loads(VECTOR.read_text())["data"]
        self.jobs = {name: job(name) for name in self.record["jobs"]}
        self.counts = self.fresh()

    def fresh(self, *bounds: float) -> Counts:
        """Return the counters of a new process."""
        return Counts(self.jobs.get, bounds or self.record["buckets"])

    def shot(self, counts: Counts | None = None) -> dict[str, Any]:
        """Return the record of C{counts}."""
        return snapshot(counts or self.counts, self.jobs.values(), AT)

    def finish(self, name: str, **fields: Any) -> None:
        """Count a run."""
        record = RunRecord(
            **{"job": name, "outcome": "success", "finished_at": AT, "duration": 2.0, **fields}
        )
        self.counts.finished(RunFinished(FinishedRun(record, self.jobs[name], None, None)))

    def test_captured(self) -> None:
        """A captured record comes out as it went in, to the last field."""
        self.assertEqual(seed(self.counts, self.record), len(self.jobs))
        again = self.shot()
        for name, kept in self.record["jobs"].items():
            breaches = {check: n for check, n in kept["sla_breaches"].items() if n}
            self.assertEqual(again["jobs"][name], {**kept, "sla_breaches": breaches}, name)
        self.assertEqual(again["buckets"], self.record["buckets"])
        self.assertEqual(again["at"], self.record["at"])
        json.dumps(again)

    def test_added(self) -> None:
        """What this process has counted already is added to, not replaced."""
        self.finish("job-ok")
        seed(self.counts, self.record)
        ok = self.counts.read("job-ok")
        self.assertEqual((ok.success, sum(ok.durations or ())), (25, 25))
        self.assertEqual(ok.last_success, AT)
        self.assertEqual(self.shot()["jobs"]["job-ok"]["bucket_counts"][3], 25)

    def test_clock_was_ahead(self) -> None:
        """Of the times of a success the later stays, also where it is the earlier process's."""
        self.finish("job-ok", finished_at=AT - 90_000)
        seed(self.counts, self.record)
        kept = self.record["jobs"]["job-ok"]["last_success_time"]
        self.assertGreater(kept, AT - 90_000)
        self.assertEqual(self.counts.read("job-ok").last_success, kept)

    def test_only_configured(self) -> None:
        """Jobs that are gone are not seeded."""
        del self.jobs["job-fail"]
        self.assertEqual(seed(self.counts, self.record), len(self.jobs))
        self.assertNotIn("job-fail", self.shot()["jobs"])

    def test_other_bounds(self) -> None:
        """With other bounds everything but the histogram is seeded."""
        self.counts = self.fresh(1.0, 10.0)
        seed(self.counts, self.record)
        ok = self.counts.read("job-ok")
        self.assertEqual((ok.success, ok.durations, ok.duration_sum), (24, None, 0.0))

    def test_memory_limit(self) -> None:
        """Memory kills are in the record once there was one."""
        counts = self.counts.write("job-capped")
        assert counts is not None
        self.assertNotIn("memory_limit_exceeded", self.shot()["jobs"]["job-capped"])
        counts.memory_exceeded = 2
        record = self.shot()
        self.assertEqual(record["jobs"]["job-capped"]["memory_limit_exceeded"], 2)
        other = self.fresh()
        seed(other, record)
        self.assertEqual(other.read("job-capped").memory_exceeded, 2)

    def test_damaged_fields(self) -> None:
        """Damage costs the field that has it and no other."""
        for field, value in (
            ("retries", True),
            ("retries", -1),
            ("retries", 1.5),
            ("retries", "3"),
            ("cpu_user_sum", float("nan")),
            ("cpu_user_sum", float("inf")),
            ("cpu_user_sum", None),
            ("cpu_user_sum", 1e308),
            ("cpu_user_sum", 10**400),
            ("last_failure_time", 10**400),
            ("last_failure_time", False),
            ("runs", None),
            ("sla_breaches", []),
            ("sla_breaches", {"lateAfter": -1}),
            ("max_rss_observed", {}),
        ):
            record = copy.deepcopy(self.record)
            record["jobs"]["job-fail"][field] = value
            counts = self.fresh()
            seed(counts, record)
            fail = counts.read("job-fail")
            self.assertEqual(fail.start_failures, 0)
            self.assertEqual(fail.permanent_failures, 20)
            self.assertEqual(fail.failure, 0 if field == "runs" else 45)
            self.assertEqual(fail.retries, 0 if field == "retries" else 20)

    def test_damaged_histogram(self) -> None:
        """A histogram with any damaged part is left out whole."""
        for field, value in (
            ("bucket_counts", [1, 2]),
            ("bucket_counts", None),
            ("bucket_counts", [9, 8, 9, 9, 9, 9, 9, 9, 9]),
            ("bucket_counts", [True] * 9),
            ("bucket_counts", [46] * 9),
            ("duration_count", -1),
            ("duration_sum", float("nan")),
            ("duration_sum", 10**400),
        ):
            record = copy.deepcopy(self.record)
            record["jobs"]["job-fail"][field] = value
            counts = self.fresh()
            seed(counts, record)
            fail = counts.read("job-fail")
            self.assertEqual((fail.durations, fail.duration_sum, fail.failure), (None, 0.0, 45))

    def test_foreign(self) -> None:
        """A record of something else seeds nothing."""
        for record in ({}, {"jobs": []}, {"jobs": {"job-ok": 3}}, {"jobs": None, "buckets": 1}):
            self.assertEqual(seed(self.counts, record), 0)

    def test_steps(self) -> None:
        """A record of many jobs is made in steps, and is the same one."""
        self.jobs = {f"j{number}": job(f"j{number}") for number in range(1200)}
        self.finish("j7")
        steps = snapshot_in_steps(self.counts, self.jobs.values(), AT)
        taken = 0
        try:
            while True:
                next(steps)
                taken += 1
        except StopIteration as over:
            self.assertEqual(over.value, self.shot())
        self.assertEqual(taken, 2)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=9)
                | st.dictionaries(
                    st.sampled_from(
                        ["jobs", "job-ok", "runs", "success", "bucket_counts", "duration_sum"]
                        + ["buckets", "sla_breaches", "duration_count", "last_success_time"]
                    ),
                    inner,
                )
            ),
            max_leaves=20,
        )
    )
    @settings(max_examples=300)
    def test_anything(self, content: Any) -> None:
        """Whatever a record holds, seeding does not fail and a good record can follow."""
        counts = self.fresh()
        if isinstance(content, dict):
            seed(counts, content)
        json.dumps(self.shot(counts), allow_nan=False)
