"""Tests for what a report knows."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import ResourceLimits
from cronstable.executors.interfaces import CapsReport
from cronstable.reports.variables import (
    STREAM_LIMIT,
    masked,
    of_event,
    of_lateness,
    of_run,
    shell_variables,
)
from cronstable.runs.record import Verification
from tests.fakes import job
from tests.reports.values import USAGE, finished

ALWAYS_SET = (
    "FAIL_REASON FAILED JOB_NAME JOB_COMMAND JOB_SCHEDULE RETCODE STDOUT STDERR STDOUT_TRUNCATED "
    "STDERR_TRUNCATED CPU_SECONDS MAX_RSS_BYTES HOST RUN_ID STARTED_AT SLA_CHECK "
    "SLA_THRESHOLD_SECONDS SLA_OBSERVED_SECONDS LAST_SUCCESS_AT LIMITS_ENFORCED "
    "MEMORY_LIMIT_EXCEEDED"
).split()
CAPS = CapsReport(enforced=False, unenforced=("memory",), reason="no cgroups")


class RunTests(SynchronousTestCase):
    """The variables of a finished run."""

    def test_failure(self) -> None:
        """A failed run has all its facts, with None for what there is not."""
        run = finished(stdout="hello\n", stderr="err\n")
        self.assertEqual(
            of_run(run, "node-a"),
            {
                "name": "job",
                "success": False,
                "fail_reason": "command exited with code 2",
                "stdout": "hello\n",
                "stderr": "err\n",
                "exit_code": 2,
                "command": "true",
                "shell": "/bin/sh",
                "environment": None,
                "host": "node-a",
                "schedule": "* * * * *",
                "started_at": "2026-01-01T00:00:00.250000+00:00",
                "run_id": None,
                "cpu_seconds": None,
                "cpu_user_seconds": None,
                "cpu_system_seconds": None,
                "max_rss_bytes": None,
                "verification": None,
                "limits": None,
            },
        )

    def test_streams(self) -> None:
        """A stream that was not captured is None, an empty one is empty text."""
        facts = of_run(finished(stdout=None, stderr=""), "node-a")
        self.assertEqual((facts["stdout"], facts["stderr"]), (None, ""))

    def test_start_failure(self) -> None:
        """A run that never started has no streams, but a start time and exit code 127."""
        facts = of_run(finished(stdout="", exit_code=127, start_failed=True), "node-a")
        self.assertEqual((facts["stdout"], facts["stderr"]), (None, None))
        self.assertEqual(facts["exit_code"], 127)
        self.assertIsNotNone(facts["started_at"])

    def test_list_command(self) -> None:
        """A command given as a list stays a list."""
        run = finished("success", of=attrs.evolve(job(), command=("a", "b c")), run_id="r1")
        facts = of_run(run, "node-a")
        self.assertEqual((facts["command"], facts["success"]), (["a", "b c"], True))
        self.assertEqual((facts["fail_reason"], facts["run_id"]), (None, "r1"))

    def test_usage(self) -> None:
        """Resources are told once a sample was taken."""
        facts = of_run(finished(usage=USAGE), "node-a")
        self.assertEqual(facts["cpu_seconds"], 0.75)
        self.assertEqual((facts["cpu_user_seconds"], facts["cpu_system_seconds"]), (0.5, 0.25))
        self.assertEqual(facts["max_rss_bytes"], 1048576)
        facts = of_run(finished(usage=attrs.evolve(USAGE, samples=0)), "node-a")
        self.assertIsNone(facts["cpu_seconds"])

    def test_verification(self) -> None:
        """A check's result is a map with instants as text."""
        check = Verification("failure", 1, "command exited with code 1", 10.0, 10.5, 0.5, "o", "e")
        shown = of_run(finished(verification=check), "node-a")["verification"]
        self.assertEqual(shown["started_at"], "1970-01-01T00:00:10+00:00")
        self.assertEqual(
            (shown["outcome"], shown["exit_code"], shown["stderr"]), ("failure", 1, "e")
        )

    def test_limits(self) -> None:
        """Caps are told with what became of them, and only where the job has some."""
        capped = attrs.evolve(job(), limits=ResourceLimits(memory=1024))
        shown = of_run(finished(of=capped, caps=CAPS), "node-a")["limits"]
        self.assertEqual((shown["memory_bytes"], shown["enforced"]), (1024, False))
        self.assertEqual((shown["unenforced"], shown["process_limit_hits"]), (["memory"], None))
        self.assertIsNone(of_run(finished(caps=CAPS), "node-a")["limits"])

    def test_masked(self) -> None:
        """Masking reaches output, reasons, environment and checks, but not the configuration."""
        check = Verification("failure", 1, "x", 10.0, 10.5, 0.5, "say hunter22", "")
        run = finished(
            of=attrs.evolve(job(), command="echo hunter22"),
            stdout="hunter22",
            environment={"A": "hunter22"},
            verification=check,
            fail_reason="said hunter22",
        )
        shown = masked(of_run(run, "node-a"), lambda text: text.replace("hunter22", "***"))
        self.assertEqual((shown["stdout"], shown["fail_reason"]), ("***", "said ***"))
        self.assertEqual(shown["environment"], {"A": "***"})
        self.assertEqual(shown["verification"]["stdout"], "say ***")
        self.assertEqual(shown["command"], "echo hunter22")
        self.assertEqual(shown["exit_code"], 2)


class OtherTests(SynchronousTestCase):
    """The variables of lateness and of events."""

    def test_lateness(self) -> None:
        """On lateness the run's facts are None and the check's are there."""
        facts = of_lateness(job(), "node-a", "lateAfter", 60, 93.5, 10.0)
        self.assertEqual(
            (facts["success"], facts["fail_reason"]), (False, "sla: lateAfter breached")
        )
        for name in ("stdout", "stderr", "exit_code", "started_at", "run_id", "limits"):
            self.assertIsNone(facts[name])
        self.assertEqual((facts["threshold_seconds"], facts["observed_seconds"]), (60, 93.5))
        self.assertEqual(facts["last_success_at"], "1970-01-01T00:00:10+00:00")
        self.assertEqual(facts["environment"], {"HOSTNAME": "node-a"})

    def test_event(self) -> None:
        """An event's own facts are added, and its identity cannot be overridden by them."""
        facts = of_event(
            "dag_failure", "node-a", {"name": "etl", "subject": "s", "message": "m", "event": "x"}
        )
        self.assertEqual((facts["event"], facts["name"]), ("dag_failure", "etl"))
        self.assertEqual((facts["success"], facts["host"]), (False, "node-a"))


class ShellTests(SynchronousTestCase):
    """The variables of a shell reporter."""

    def shell(self, **fields: object) -> dict[str, str]:
        """Return the variables of a finished run, without their prefix."""
        given = shell_variables(of_run(finished(**fields), "node-a"))
        return {name.removeprefix("CRONSTABLE_"): value for name, value in given.items()}

    def test_all_set(self) -> None:
        """Every variable is always set, as text, empty where nothing is known."""
        given = self.shell(stdout=None)
        self.assertEqual(sorted(given), sorted(ALWAYS_SET))
        self.assertEqual((given["FAILED"], given["RETCODE"], given["RUN_ID"]), ("1", "2", ""))
        self.assertEqual((given["STDOUT"], given["CPU_SECONDS"]), ("", ""))
        self.assertEqual((given["STDOUT_TRUNCATED"], given["LIMITS_ENFORCED"]), ("0", ""))

    def test_command(self) -> None:
        """A list command is joined with blanks."""
        given = self.shell(of=attrs.evolve(job(), command=("a", "b c")))
        self.assertEqual(given["JOB_COMMAND"], "a b c")

    def test_long_streams(self) -> None:
        """Each stream keeps its first characters, and says whether it was cut."""
        given = self.shell(stdout="é" * STREAM_LIMIT, stderr="x" * (STREAM_LIMIT + 1))
        self.assertEqual(given["STDOUT"], "é" * STREAM_LIMIT)
        self.assertEqual(given["STDERR"], "x" * STREAM_LIMIT)
        self.assertEqual((given["STDOUT_TRUNCATED"], given["STDERR_TRUNCATED"]), ("0", "1"))

    def test_nul(self) -> None:
        """Text with NUL, which no environment can hold, is still handed over."""
        self.assertEqual(self.shell(stdout="a\0b")["STDOUT"], "a\ufffdb")

    def test_limits(self) -> None:
        """Caps: enforced or not, and whether memory ended the run, empty when not watched."""
        capped = attrs.evolve(job(), limits=ResourceLimits(memory=1024))
        given = self.shell(of=capped, caps=CAPS, usage=USAGE)
        self.assertEqual((given["LIMITS_ENFORCED"], given["MEMORY_LIMIT_EXCEEDED"]), ("0", ""))
        self.assertEqual((given["CPU_SECONDS"], given["MAX_RSS_BYTES"]), ("0.75", "1048576"))
        for exceeded, text in ((True, "1"), (False, "0")):
            given = self.shell(of=capped, caps=CapsReport(True, memory_exceeded=exceeded))
            self.assertEqual(given["MEMORY_LIMIT_EXCEEDED"], text)

    def test_lateness(self) -> None:
        """On lateness the return code is the text None."""
        given = shell_variables(of_lateness(job(), "node-a", "maxRuntime", 5, 30.15, None))
        self.assertEqual(given["CRONSTABLE_RETCODE"], "None")
        self.assertEqual(given["CRONSTABLE_SLA_CHECK"], "maxRuntime")
        self.assertEqual(given["CRONSTABLE_SLA_OBSERVED_SECONDS"], "30.15")
        self.assertEqual(given["CRONSTABLE_LAST_SUCCESS_AT"], "")

    def test_event(self) -> None:
        """An event is told with three variables of its own."""
        given = shell_variables(of_event("quorum_loss", "node-a", {"message": "gone"}))
        self.assertEqual(given["CRONSTABLE_EVENT"], "quorum_loss")
        self.assertEqual(given["CRONSTABLE_MESSAGE"], "gone")
        self.assertEqual(given["CRONSTABLE_JOB_COMMAND"], "")
