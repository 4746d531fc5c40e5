"""Reaping orphans without taking anybody's status."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from pathlib import Path

from twisted.internet import reactor, task
from twisted.internet.defer import gatherResults

from cronstable.executors.orphans import OrphanReaper, _children_by_parent, children
from tests.executors.support import LaunchCase, program, shell, until

PR_SET_CHILD_SUBREAPER = 36


class OrphanReaperTests(LaunchCase):
    """A process that orphans come to, as they come to process 1."""

    def setUp(self) -> None:
        super().setUp()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            self.skipTest("orphans cannot be had here")
        self.addCleanup(libc.prctl, PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        self.reaper = OrphanReaper(reactor, self.clock, self.executor.pids, needed=True)
        self.addCleanup(self.reaper.stop)

    async def begin(self) -> None:
        """Start the reaper in a running reactor, as a daemon does."""
        await task.deferLater(reactor, 0)
        self.reaper.start()

    async def test_orphans(self) -> None:
        """Orphans are reaped soon after their end, statuses of jobs are all there."""
        await self.begin()
        before = set(children())
        leave = "for i in 1 2 3 4 5 6 7 8; do (sleep 0.1 &) & done; exit 0"
        runs = [self.launch(shell(leave, capture_stdout=False, capture_stderr=False))]
        runs += [self.launch(program("/bin/sh", "-c", "exit 7")) for _ in range(40)]
        ends = await gatherResults([run.over for run in runs])
        self.assertEqual([ended.status for ended in ends], [0] + [7] * 40)
        await until(lambda: not set(children()) - before)
        self.assertGreaterEqual(self.reaper.reaped, 8)

    async def test_others(self) -> None:
        """A child that other code waits for keeps its status for a second."""
        await self.begin()
        child = subprocess.Popen(["/bin/sh", "-c", "exit 5"])
        await until(lambda: os.path.exists(f"/proc/{child.pid}"))
        done: list[int] = []
        reactor.callLater(0.6, lambda: done.append(child.wait()))  # type: ignore[attr-defined]
        await until(lambda: done)
        self.assertEqual(done, [5])

    async def test_stop(self) -> None:
        """Stopped, it gives the signal back."""
        await self.begin()
        installed = signal.getsignal(signal.SIGCHLD)
        self.reaper.stop()
        self.assertIsNot(signal.getsignal(signal.SIGCHLD), installed)

    def test_not_needed(self) -> None:
        """A process that is not number 1 changes nothing."""
        before = signal.getsignal(signal.SIGCHLD)
        reaper = OrphanReaper(reactor, self.clock, self.executor.pids)
        reaper.start()
        self.assertIs(signal.getsignal(signal.SIGCHLD), before)
        reaper.stop()

    def test_children(self) -> None:
        """Both ways to list children agree."""
        child = subprocess.Popen(["sleep", "30"])
        self.assertEqual(sorted(children()), sorted(_children_by_parent(Path("/proc"))))
        self.assertIn(child.pid, children())
        child.kill()
        child.wait()
