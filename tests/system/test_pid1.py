"""The daemon as process 1 of a container, and not as that; docs/executors.md, "As process 1"."""

from __future__ import annotations

from pathlib import Path

from twisted.internet import reactor, task
from twisted.trial.unittest import TestCase

from tests.system.harness import Daemon
from tests.system.proc import defunct, together, until

ORPHANS = """\
jobs:
  - name: orphans
    schedule: "*/3 * * * * * *"
    command: for i in $(seq 100); do (sleep 0.$((i%9)) &) & done; exit 0
    captureStderr: false
  - name: seven
    schedule: "* * * * * * *"
    command: exit 7
  - name: nine
    schedule: "* * * * * * *"
    command: kill -9 $$
    captureStderr: false
"""
RUNS = 10
OLDEST = 2.5
"""Seconds for which nothing may stay defunct."""


class Watch:
    """Looks at the defunct children of a process again and again."""

    def __init__(self, pid: int) -> None:
        self.most = 0
        self.oldest = 0.0
        self._pid = pid
        self._since: dict[int, float] = {}
        self._loop = task.LoopingCall(self._look)
        self._ended = self._loop.start(0.1)

    def _look(self) -> None:
        now = reactor.seconds()  # type: ignore[attr-defined]
        self._since = {pid: self._since.get(pid, now) for pid in defunct(self._pid)}
        self.most = max(self.most, len(self._since))
        self.oldest = max([self.oldest, *(now - since for since in self._since.values())])

    async def stop(self) -> None:
        """Look no more."""
        self._loop.stop()
        await self._ended


class ReaperTests(TestCase):
    """Jobs that leave orphans beside jobs whose exit code matters."""

    timeout = 60

    def assert_codes(self, daemon: Daemon) -> None:
        """Fail unless every run has its own exit code and nothing was said of lost ones."""
        for job, code in (("seven", 7), ("nine", -9), ("orphans", 0)):
            self.assertEqual({end.code for end in daemon.ends(job)}, {code})
        for line in daemon.stderr:
            self.assertRegex(line, "^INFO:")

    async def test_reaping(self) -> None:
        """What each of the following says, at the same time to save some."""
        await together(self.process_1(), self.not_process_1(), self.drain())

    async def process_1(self) -> None:
        """As process 1 it leaves no orphan defunct, takes no status away, and stops with 0."""
        daemon = Daemon(self, ORPHANS, as_pid1=True)
        await daemon.wait_for_log("Job set id")
        status = Path(f"/proc/{daemon.pid}/status").read_text()
        self.assertRegex(status, r"NSpid:.*\t1\n")
        watch = Watch(daemon.pid)
        await daemon.wait_for_end_of("seven", 40, count=RUNS)
        await daemon.wait_for_end_of("nine", count=RUNS)
        await daemon.wait_for_end_of("orphans", count=3)
        await until("the last orphans", lambda: len(daemon.descendants()) <= 2)
        await until("the reaper", lambda: not defunct(daemon.pid))
        await watch.stop()
        self.assertGreater(watch.most, 20, "orphans did not become children of the daemon")
        self.assertLess(watch.oldest, OLDEST)
        self.assert_codes(daemon)
        self.assertEqual(await daemon.stop(), 0)

    async def not_process_1(self) -> None:
        """Otherwise it reaps its own children, and says nothing of orphans."""
        daemon = Daemon(self, ORPHANS)
        await daemon.wait_for_log("Job set id")
        watch = Watch(daemon.pid)
        await daemon.wait_for_end_of("seven", 40, count=4)
        await watch.stop()
        self.assertLess(watch.oldest, OLDEST)
        self.assert_codes(daemon)
        self.assertEqual(await daemon.stop(), 0)

    async def drain(self) -> None:
        """Orphans are reaped as long as the daemon waits for its last run."""
        daemon = Daemon(self, DRAINING, as_pid1=True)
        await daemon.wait_for_output("up")
        daemon.signal(15)
        await daemon.wait_for_log("Shutting down")
        (daemon.directory / "go").write_text("")
        await until("an orphan", lambda: defunct(daemon.pid))
        await until("the reaper", lambda: not defunct(daemon.pid))
        self.assertIsNone(daemon.status)
        (daemon.directory / "end").write_text("")
        self.assertEqual(await daemon.wait_for_end(), 0)


DRAINING = """\
jobs:
  - name: last
    schedule: "@reboot"
    command: |
      echo up
      until test -e go; do sleep 0.05; done
      sh -c 'sleep 0.3 & sleep 0.3 &'
      until test -e end; do sleep 0.05; done
    captureStdout: true
"""
