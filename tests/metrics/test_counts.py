"""Tests for what is counted per job."""

from __future__ import annotations

import timeit
from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import ResourceLimits
from cronstable.events import Bus
from cronstable.executors.interfaces import CapsReport, Usage
from cronstable.metrics.counts import ZERO, Counts
from cronstable.runs.record import (
    FinishedRun,
    GaveUp,
    JobSetChanged,
    RetryLaunched,
    RunFinished,
    RunRecord,
    RunSkipped,
)
from cronstable.runs.sla import Breach, SlaBreached
from tests.fakes import job


class CountsTests(SynchronousTestCase):
    """Counters fed by events."""

    def setUp(self) -> None:
        self.jobs = {"a": job("a"), "b": job("b", limits=ResourceLimits(memory=1))}
        self.counts = Counts(self.jobs.get, (1, 10))
        self.bus = Bus()
        self.counts.listen(self.bus)

    def finish(self, name: str = "a", outcome: Any = "success", **fields: Any) -> None:
        """Publish the end of a run."""
        record = RunRecord(
            **{"job": name, "outcome": outcome, "finished_at": 5.0, "duration": 0.5, **fields}
        )
        of = self.jobs.get(name) or job(name)
        self.bus.publish(RunFinished(FinishedRun(record, of, None, None)))

    def test_outcomes(self) -> None:
        """Each outcome has its counter and moves its own time; a cancel moves none."""
        self.finish()
        self.finish(outcome="failure", finished_at=6.0)
        self.finish(outcome="cancelled", finished_at=7.0)
        self.bus.publish(RunSkipped(RunRecord("a", "skipped", 8.0)))
        a = self.counts.read("a")
        self.assertEqual((a.success, a.failure, a.cancelled, a.skipped), (1, 1, 1, 1))
        self.assertEqual((a.last_success, a.last_failure), (5.0, 6.0))

    def test_not_counted(self) -> None:
        """Replaced runs, reconciled rows and workflow tasks count nowhere."""
        for fields in ({"outcome": "replaced"}, {"outcome": "unknown"}, {"cause": "task"}):
            self.finish(**fields)  # type: ignore[arg-type]
        self.assertIs(self.counts.read("a"), ZERO)

    def test_start_failures(self) -> None:
        """A command that never started counts apart; one that exited 127 by itself does not."""
        self.finish(outcome="failure", exit_code=127)
        self.assertEqual(self.counts.read("a").start_failures, 0)
        self.finish(outcome="failure", exit_code=127, start_failed=True)
        a = self.counts.read("a")
        self.assertEqual((a.start_failures, a.failure), (1, 2))
        self.assertEqual(sum(a.durations or ()), 2)

    def test_durations(self) -> None:
        """A duration falls into the first bucket that holds it; a row without one into none."""
        for seconds in (0.5, 1.0, 1.001, 10.0, 11.0, None):
            self.finish(duration=seconds)
        a = self.counts.read("a")
        self.assertEqual(a.durations, [2, 2, 1])
        self.assertAlmostEqual(a.duration_sum, 23.501)

    def test_resources(self) -> None:
        """Resources add up over sampled runs, memory keeps its highest value."""
        self.finish(usage=Usage(1.0, 0.5, 100, samples=0))
        for rss in (200, 100, None):
            self.finish(usage=Usage(1.0, 0.5, rss, samples=1))
        a = self.counts.read("a")
        self.assertEqual((a.cpu_count, a.cpu_user, a.cpu_system, a.max_rss), (3, 3.0, 1.5, 200))

    def test_memory_limit(self) -> None:
        """A run that its memory cap ended is counted."""
        self.finish("b", "failure", caps=CapsReport(True, memory_exceeded=True))
        self.finish("b", "failure", caps=CapsReport(True))
        self.assertEqual(self.counts.read("b").memory_exceeded, 1)

    def test_other_events(self) -> None:
        """Retries, permanent failures and breaches have their own events."""
        self.bus.publish(RetryLaunched("a", 1))
        self.bus.publish(GaveUp("a"))
        for _ in range(2):
            breach = Breach("lateAfter", 1.0, 61.0, 60)
            self.bus.publish(SlaBreached(self.jobs["a"], breach, None))
        a = self.counts.read("a")
        self.assertEqual((a.retries, a.permanent_failures), (1, 1))
        self.assertEqual(a.breaches, {"lateAfter": 2})

    def test_removed_jobs(self) -> None:
        """A removed job loses its counters for good; its late end counts nowhere."""
        self.finish()
        del self.jobs["a"]
        self.bus.publish(JobSetChanged((), ("a",), ()))
        self.finish()
        for event in (RetryLaunched("a", 1), GaveUp("a"), RunSkipped(RunRecord("a", "skipped", 1))):
            self.bus.publish(event)
        self.assertIs(self.counts.read("a"), ZERO)
        self.jobs["a"] = job("a")
        self.finish()
        self.assertEqual(self.counts.read("a").success, 1)

    def test_kept_jobs(self) -> None:
        """A job that is kept or changed keeps its counters."""
        self.finish()
        self.jobs["a"] = attrs.evolve(self.jobs["a"], command="false")
        self.bus.publish(JobSetChanged((), (), ("a",)))
        self.assertEqual(self.counts.read("a").success, 1)

    def test_new_bounds(self) -> None:
        """New bounds zero the histograms and nothing else; the same ones change nothing."""
        self.finish()
        self.counts.configure((1.0, 10.0))
        self.assertEqual(self.counts.read("a").durations, [1, 0, 0])
        self.counts.configure(())
        a = self.counts.read("a")
        self.assertEqual((a.durations, a.duration_sum, a.success), (None, 0.0, 1))
        self.finish()
        self.assertEqual(len(self.counts.read("a").durations or ()), 10)

    def test_cheap(self) -> None:
        """Counting a run costs microseconds."""
        record = RunRecord("a", "success", 5.0, duration=0.5)
        event = RunFinished(FinishedRun(record, self.jobs["a"], None, None))
        cost = min(timeit.repeat(lambda: self.counts.finished(event), number=2000, repeat=5)) / 2000
        self.assertLess(cost, 20e-6)
