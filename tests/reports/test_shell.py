"""Tests for the shell reporter, with real processes."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.trial.unittest import SynchronousTestCase, TestCase

from cronstable.clock import SystemClock
from cronstable.config.values import ShellReport
from cronstable.executors.local import LocalExecutor
from cronstable.reports.shell import compose, run
from cronstable.reports.trouble import ReportFailed
from tests.fakes import FakeExecutor

PATH = {"PATH": os.environ["PATH"]}


class ComposeTests(SynchronousTestCase):
    """What is launched."""

    def test_string(self) -> None:
        """A string goes through the shell, with the daemon's environment and the report's."""
        spec = compose(ShellReport(shell="/bin/bash", command="x; y"), {"A": "1"}, {"B": "2"})
        self.assertEqual(spec.argv, ("/bin/bash", "-c", "x; y"))
        self.assertEqual(spec.env, {"A": "1", "B": "2"})
        self.assertFalse(spec.capture_stdout or spec.capture_stderr)

    def test_list(self) -> None:
        """A list is executed as it is."""
        self.assertEqual(compose(ShellReport(command=("a", "b c")), {}, {}).argv, ("a", "b c"))

    def test_timeout(self) -> None:
        """A timeout that is not above zero is the default one."""
        self.assertEqual(compose(ShellReport(command="x", timeout=3), {}, {}).execution_timeout, 3)
        self.assertEqual(compose(ShellReport(command="x", timeout=0), {}, {}).execution_timeout, 60)


class RunTests(TestCase):
    """The command's life."""

    def setUp(self) -> None:
        self.executor = LocalExecutor(reactor, SystemClock(reactor))
        self.addCleanup(self.executor.stop)
        self.out = Path(self.mktemp())

    def begin(self, command: Any, timeout: float = 10.0, **variables: str) -> Deferred[None]:
        """Run C{command}, which finds the path of a file in C{OUT}."""
        given = {"OUT": str(self.out), **variables}
        spec = compose(ShellReport(command=command, timeout=timeout), PATH, given)
        return run(self.executor, spec)

    async def trouble(self, command: Any, timeout: float = 10.0) -> str:
        """Run what fails; return why."""
        return str(await self.assertFailure(self.begin(command, timeout), ReportFailed))

    async def gone(self, pid: int) -> None:
        """Wait until no process has C{pid}; trial's own limit ends it."""
        while True:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return
            await deferLater(reactor, 0.02)  # type: ignore[arg-type]

    async def test_success(self) -> None:
        """A command that ends with 0 has reported; it saw its variables."""
        await self.begin('printf %s "$CRONSTABLE_X" > "$OUT"', CRONSTABLE_X="é\nb")
        self.assertEqual(self.out.read_text(encoding="utf-8"), "é\nb")

    async def test_own_group(self) -> None:
        """The command leads a session of its own."""
        await self.begin('echo $$ $(cut -d" " -f5,6 /proc/$$/stat) > "$OUT"')
        pid, group, session = map(int, self.out.read_text().split())
        self.assertEqual((group, session), (pid, pid))
        self.assertNotEqual(session, os.getsid(0))

    async def test_return_code(self) -> None:
        """Another return code is a failure that names it."""
        self.assertEqual(await self.trouble("exit 3"), "the command ended with return code 3")
        said = await self.trouble("kill -9 $$")
        self.assertEqual(said, f"the command ended with return code {-signal.SIGKILL}")

    async def test_missing(self) -> None:
        """A program that is not there is a failure."""
        said = await self.trouble(("/nonexistent/program", "a"))
        self.assertIn("the command could not start", said)

    async def test_timeout(self) -> None:
        """At the timeout the whole group is killed, whatever it ignores."""
        said = await self.trouble(
            "trap '' TERM; (trap '' TERM; echo $BASHPID $$ > \"$OUT\"; sleep 60) & wait", 0.5
        )
        self.assertEqual(said, "the command took more than 0.5 seconds, killed")
        await self.gone(int(self.out.read_text().split()[-1]))

    async def test_cancel(self) -> None:
        """A report that is cancelled kills its command."""
        running = self.begin('echo $$ > "$OUT"; sleep 60')
        while not (self.out.exists() and self.out.read_text().endswith("\n")):
            await deferLater(reactor, 0.02)  # type: ignore[arg-type]
        running.cancel()
        await self.assertFailure(running, Exception)
        await self.gone(int(self.out.read_text()))


class WaitingTests(SynchronousTestCase):
    """With an executor that the test holds."""

    def test_not_wanted(self) -> None:
        """A command that still waits for room is not wanted once the report was cancelled."""
        executor = FakeExecutor()
        running = run(executor, compose(ShellReport(command="x"), {}, {}))
        launch = executor.launches[0]
        self.assertTrue(launch.observer.wanted())
        running.cancel()
        self.failureResultOf(running)
        self.assertFalse(launch.observer.wanted())
        launch.exit(0)
