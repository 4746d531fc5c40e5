"""What is recorded and told at the end of a run."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import RetryPolicy
from cronstable.executors.interfaces import CapsReport
from cronstable.runs.record import FinishedRun, RunRecord
from cronstable.runs.run import log_notice
from tests.fakes import job
from tests.runs.world import World

NEVER = "0 0 1 1 *"


class Reports:
    """Remembers what was to be reported."""

    def __init__(self) -> None:
        self.hooks: list[str] = []

    def report(self, hook: str, finished: FinishedRun) -> Deferred[None]:
        self.hooks.append(hook)
        return succeed(None)


class RecordTests(SynchronousTestCase):
    """The record of a run that ended in some way."""

    def setUp(self) -> None:
        self.reports = Reports()
        self.world = World(
            1_767_225_600.0, job("a", NEVER, execution_timeout=5.0), reporter=self.reports
        )

    def ended(self, *how: Any, **fields: Any) -> RunRecord:
        """Return the record of a run that ended like this."""
        self.world.executor.behave = lambda launch: launch.exit(*how, **fields)
        self.world.runs.start_now("a")
        return self.world.records("a")[-1]

    def test_itself(self) -> None:
        """A process that exits has ended by itself, whatever its status."""
        for status, outcome in ((0, "success"), (3, "failure"), (-9, "failure")):
            record = self.ended(status)
            self.assertEqual((record.outcome, record.ended_by), (outcome, "itself"))
            self.assertFalse(record.start_failed)

    def test_timeout(self) -> None:
        """A deadline is told as such, even if the process exits well then."""
        record = self.ended(0, "timeout")
        self.assertEqual(
            (record.outcome, record.ended_by, record.exit_code), ("failure", "timeout", -100)
        )

    def test_memory(self) -> None:
        """So is memory that ran out."""
        record = self.ended(-9, caps=CapsReport(True, memory_exceeded=True))
        self.assertEqual((record.outcome, record.ended_by), ("failure", "memory-limit"))

    def test_not_started(self) -> None:
        """A run that could not be started is a failure that says so."""
        self.world.executor.refuse = "no such program"
        record = self.ended()
        self.assertEqual((record.outcome, record.exit_code), ("failure", 127))
        self.assertTrue(record.start_failed)

    def test_duration(self) -> None:
        """A duration is what passed on the clock that never steps."""
        self.world.advance(100)
        self.world.runs.start_now("a")
        self.world.clock.step(-3600)
        self.world.advance(5)
        self.world.executor.live[0].exit(0)
        record = self.world.records("a")[-1]
        self.assertEqual(record.duration, 5.0)
        self.assertEqual(record.finished_at, record.started_at)

    def test_reports(self) -> None:
        """A success has its hook; a failure without retries both of its own."""
        self.ended(0)
        self.ended(1)
        self.assertEqual(self.reports.hooks, ["onSuccess", "onFailure", "onPermanentFailure"])


class LogTests(SynchronousTestCase):
    """The line that an operator finds."""

    def setUp(self) -> None:
        self.world = World(
            1_767_225_600.0,
            job("a", NEVER, capture_stderr=True, capture_stdout=True),
            job("b", NEVER, concurrency_policy="Replace", retry=RetryPolicy(3)),
        )

    def test_streams(self) -> None:
        """Whether anything came from each captured stream."""

        def speak(launch: Any) -> None:
            launch.observer.output("stderr", b"x\n")
            launch.exit(0)

        self.world.executor.behave = speak
        with self.assertLogs("cronstable", "INFO") as logged:
            self.world.runs.start_now("a")
        self.assertIn("has stdout: false, has stderr: true", "\n".join(logged.output))

    def test_notices(self) -> None:
        """What an executor notices is told in the words that operators match."""
        expected = {
            ("timeout", ""): "INFO:cronstable:Job a exceeded its executionTimeout of 5 seconds, "
            "cancelling it...",
            ("killing", "30"): "WARNING:cronstable:Job a did not gracefully terminate after 30 "
            "seconds, killing it...",
            ("unsignalled", "(pid 7): no"): "WARNING:cronstable:Job a: could not signal its "
            "process (pid 7): no",
            (
                "uncapped",
                "why",
            ): "DEBUG:cronstable:Job a: its resource limits are not enforced: why",
            ("waiting", "no room"): "INFO:cronstable:Job a: no room",
        }
        for (kind, detail), line in expected.items():
            with self.assertLogs("cronstable", "DEBUG") as logged:
                log_notice(job("a", execution_timeout=5.0), kind, detail)
            self.assertEqual(logged.output, [line])

    def test_replaced(self) -> None:
        """A run that was replaced is logged as that, and leaves no row."""
        self.world.runs.start_now("b")
        with self.assertLogs("cronstable", "INFO") as logged:
            self.world.runs.start_now("b")
        text = "\n".join(logged.output)
        self.assertIn("Job b was replaced by a newer instance", text)
        self.assertNotIn("exit code", text)
        self.assertEqual(self.world.records("b"), ())
