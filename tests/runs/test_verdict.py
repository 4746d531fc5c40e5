"""What a finished process means for its run."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import FailsWhen, JobConfig, ResourceLimits
from cronstable.executors.interfaces import CapsReport, Ended
from cronstable.runs.record import StreamText
from cronstable.runs.verdict import exit_code, fail_reason
from cronstable.runs.verify import failure
from tests.fakes import job

SPOKE = StreamText("x\n", first="x\n")
LOST = StreamText("", discarded=1)
PASSED = Ended("exited", status=0)


class ExitCodeTests(SynchronousTestCase):
    """What is recorded as the exit code."""

    def test_conventions(self) -> None:
        """The child's own; 127 where none was, -100 after a timeout, None where it is lost."""
        for ended, code in (
            (Ended("exited", status=3), 3),
            (Ended("exited", status=-9), -9),
            (Ended("exited"), None),
            (Ended("not-started"), 127),
            (Ended("timeout", status=0), -100),
        ):
            self.assertEqual(exit_code(ended), code)


class ReasonTests(SynchronousTestCase):
    """Why a run counts as a failure."""

    def reason(
        self,
        ended: Ended,
        of: JobConfig | None = None,
        stdout: StreamText | None = None,
        stderr: StreamText | None = None,
    ) -> str | None:
        """Return the reason for a job that has the standard rules unless C{of} says otherwise."""
        return fail_reason(of or job(), ended, stdout, stderr)

    def test_passed(self) -> None:
        """Status 0 and silence on stderr pass, whatever stdout has."""
        self.assertIs(self.reason(PASSED), None)
        self.assertIs(self.reason(PASSED, stdout=SPOKE, stderr=StreamText("")), None)

    def test_status(self) -> None:
        """The reason tells the code, and what only the daemon knows of it."""
        for ended, said in (
            (Ended("exited", status=3), "command exited with code 3"),
            (Ended("exited", status=-9), "command exited with code -9"),
            (Ended("exited"), "the command's exit status was lost"),
            (
                Ended("not-started", reason="no such program"),
                "command exited with code 127 (could not start: no such program)",
            ),
            (
                Ended("timeout", status=0, reason="late"),
                "command exited with code -100 (executionTimeout of 5 s passed)",
            ),
        ):
            self.assertEqual(self.reason(ended, job(execution_timeout=5.0)), said)

    def test_odd_bytes(self) -> None:
        """Bytes that are no UTF-8, from a path say, are spelled out."""
        said = self.reason(Ended("not-started", reason="directory /a\udcff does not exist"))
        self.assertIn("directory /a\\udcff does not exist", said or "")
        check = Ended("not-started", reason="/a\udcff")
        self.assertEqual(failure(check), "could not start: /a\\udcff")

    def test_streams(self) -> None:
        """A stream that counts fails the run, also if none of its lines were kept."""
        said = "command wrote to {} (configured to count as a failure)"
        self.assertEqual(self.reason(PASSED, stderr=SPOKE), said.format("stderr"))
        self.assertEqual(self.reason(PASSED, stderr=LOST), said.format("stderr"))
        both = job(fails_when=FailsWhen(produces_stdout=True))
        self.assertEqual(self.reason(PASSED, both, SPOKE, SPOKE), said.format("stdout"))
        self.assertIs(self.reason(PASSED, both), None)

    def test_rules_off(self) -> None:
        """What does not count fails nothing; C{always} fails everything."""
        nothing = FailsWhen(produces_stderr=False, nonzero_return=False)
        failed = Ended("exited", status=1)
        self.assertIs(self.reason(failed, job(fails_when=nothing), SPOKE, SPOKE), None)
        always = job(fails_when=FailsWhen(always=True))
        self.assertIn("failsWhen.always", self.reason(PASSED, always) or "")

    def test_caps(self) -> None:
        """Memory that ran out is told with the cap; a refused launch fails whatever counts."""
        killed = Ended("exited", status=-9, caps=CapsReport(True, memory_exceeded=True))
        capped = job(limits=ResourceLimits(memory=64 << 20))
        self.assertEqual(self.reason(killed, capped), "memory limit exceeded (64 MiB)")
        self.assertEqual(self.reason(killed), "memory limit exceeded (?)")
        refused = Ended("not-started", reason="no cgroup", caps=CapsReport(False, refused=True))
        lenient = job(fails_when=FailsWhen(nonzero_return=False))
        self.assertIn("could not start: no cgroup", self.reason(refused, lenient) or "")
