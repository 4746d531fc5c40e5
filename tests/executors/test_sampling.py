"""What process trees use, read in a thread that tests stand in for."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from twisted.internet.defer import Deferred, execute, fail, succeed
from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock
from cronstable.executors import sampling
from cronstable.executors.sampling import Reading, Sampler, Samples, read_tree
from tests.executors.support import LaunchCase, shell

WORK = """
import os, subprocess, sys
subprocess.run([sys.executable, "-c", "import os\\nwhile os.times().user < 0.15: pass"])
while os.times().user < 0.15: pass
now = os.times()
print(now.user + now.children_user, now.system + now.children_system, flush=True)
sys.stdin.read()
"""


class Rusage:
    ru_utime = 2.5
    ru_stime = 0.25


class Run:
    """A run that is read."""

    pid = 7

    def __init__(self, clock: ManualClock, interval: float = 1.0, history: int = 3) -> None:
        self.samples: Samples | None = Samples(interval, history, clock.seconds())
        self.running = True
        self.told: list[tuple[Any, ...]] = []

    def tell(self, name: str, *arguments: Any) -> None:
        self.told.append((name, *arguments))


class SamplerTests(SynchronousTestCase):
    """Readings of runs."""

    def setUp(self) -> None:
        self.clock = ManualClock()
        self.readings: list[Reading | None] = []
        self.asked: list[int] = []
        self.sampler = Sampler(self.clock, execute, self.read)

    def read(self, pid: int) -> Reading | None:
        self.asked.append(pid)
        return self.readings.pop(0)

    def test_series(self) -> None:
        """CPU time cumulates, memory has a peak, the newest points are kept."""
        run = Run(self.clock)
        self.readings = [
            Reading(0.25, 0.0, 100),
            Reading(1.0, 0.25, 300),
            Reading(1.0, 0.25, 200),
            Reading(0.5, 0.5, 50),
        ]
        self.sampler.add(run)
        self.clock.advance(0.25)
        self.assertEqual(len(run.told), 1)
        self.clock.pump([1.0] * 3)
        usage = run.told[-1][1]
        self.assertEqual((usage.cpu_user, usage.cpu_system, usage.max_rss), (1.0, 0.5, 300))
        self.assertEqual(usage.samples, 4)
        self.assertEqual(
            [point[1:] for point in usage.series], [(100.0, 300), (0.0, 200), (25.0, 50)]
        )
        self.assertEqual(usage.latest, usage.series[-1])
        self.assertEqual(usage.latest[0], self.clock.now())
        run.running = False
        self.clock.advance(1)
        self.assertEqual(len(run.told), 4)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_final(self) -> None:
        """At the end the process's own account counts; too short a run has none."""
        run = Run(self.clock)
        assert run.samples is not None
        self.assertIsNone(run.samples.final(Rusage()))
        run.samples.add(Reading(1.0, 0.5, 4096), 1.0, 2.0)
        usage = run.samples.final(Rusage())
        assert usage is not None
        self.assertEqual((usage.cpu_user, usage.cpu_system), (2.5, 0.5))

    def test_together(self) -> None:
        """Runs that are due together are read in one go; a late answer holds up the next."""
        waiting: list[tuple[Any, ...]] = []
        later: list[Deferred[Any]] = []

        def in_thread(work: Any, *arguments: Any) -> Deferred[Any]:
            waiting.append(arguments)
            later.append(Deferred())
            return later[-1]

        sampler = Sampler(self.clock, in_thread, self.read)
        runs = [Run(self.clock, interval=0.25) for _ in range(3)]
        for run in runs:
            sampler.add(run)
        self.clock.advance(0.25)
        self.assertEqual(waiting, [([7, 7, 7],)])
        self.clock.advance(10)
        self.assertEqual(len(waiting), 1)
        runs[1].running = False
        later[0].callback([Reading(1.0, 0.0, 1), Reading(2.0, 0.0, 1), None])
        self.assertEqual([len(run.told) for run in runs], [1, 0, 0])
        self.clock.advance(0.25)
        self.assertEqual(waiting[1], ([7, 7],))

    def test_failure(self) -> None:
        """A reading that fails is logged, and read again at the next interval."""
        run = Run(self.clock)
        self.readings = []
        self.sampler.add(run)
        with self.assertLogs("cronstable", "ERROR"):
            self.clock.advance(0.25)
        self.readings = [Reading(1.0, 0.0, 1)]
        self.clock.advance(1)
        self.assertEqual(len(run.told), 1)

    def test_no_thread(self) -> None:
        """Without a thread to spare a reading is left out, and nobody is told each second."""
        room = False

        def in_thread(work: Any, *arguments: Any) -> Deferred[Any]:
            return succeed(work(*arguments)) if room else fail(OSError("no thread to spare"))

        run = Run(self.clock)
        sampler = Sampler(self.clock, in_thread, self.read)
        self.readings = [Reading(1.0, 0.0, 1)]
        sampler.add(run)
        with self.assertNoLogs("cronstable", "WARNING"):
            self.clock.advance(0.25)
        room = True
        self.clock.advance(1)
        self.assertEqual(len(run.told), 1)


class ReadTreeTests(SynchronousTestCase):
    """Readings of a real process, which has done some work and now waits."""

    def setUp(self) -> None:
        worker = subprocess.Popen(
            [sys.executable, "-c", WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        # Leaves the block with its streams closed and waited for: the end of its input ends it.
        self.addCleanup(worker.__exit__, None, None, None)
        assert worker.stdout is not None
        self.user, self.system = map(float, worker.stdout.readline().split())
        self.pid = worker.pid

    def test_own(self) -> None:
        """The reading is what the process knows of itself and of its waited-for children."""
        reading = read_tree(self.pid)
        assert reading is not None
        self.assertGreater(self.user, 0.2)
        self.assertLess(abs(reading.user - self.user), 0.05)
        self.assertLess(abs(reading.system - self.system), 0.05)
        self.assertGreater(reading.rss, 5_000_000)

    def test_other_way(self) -> None:
        """The way of other systems agrees."""
        first, second = read_tree(self.pid), sampling._read_psutil(self.pid)
        assert first is not None and second is not None
        self.assertLess(abs(first.user - second.user), 0.05)
        self.assertLess(abs(first.rss - second.rss), 1_000_000)

    def test_gone(self) -> None:
        """There is nothing to read of a process that does not exist."""
        self.assertIsNone(read_tree(2**22 + 1))
        self.assertIsNone(sampling._read_psutil(2**22 + 1))


class MonitoredTests(LaunchCase):
    """A monitored run."""

    async def test_tree(self) -> None:
        """The usage is that of the process and what it started."""
        busy = "i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done"
        run = await self.run_to_end(
            shell(f"({busy}) & ({busy}) & wait", sample_interval=0.1, sample_history=5)
        )
        assert run.result is not None and run.result.usage is not None
        usage = run.result.usage
        self.assertGreater(usage.cpu_user + usage.cpu_system, 0.05)
        self.assertGreater(usage.max_rss or 0, 1_000_000)
        self.assertEqual(usage.samples, len(run.usages))
        self.assertLessEqual(len(usage.series), 5)

    async def test_short(self) -> None:
        """A run that was never read has no usage."""
        run = await self.run_to_end(shell("exit 0", sample_interval=1.0))
        assert run.result is not None
        self.assertIsNone(run.result.usage)
