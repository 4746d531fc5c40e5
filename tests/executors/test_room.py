"""Launches that find no descriptor or process to spare wait for one, in order and not for ever."""

from __future__ import annotations

import os
import resource
from typing import Any

from twisted.internet.defer import gatherResults
from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock
from cronstable.executors.interfaces import LaunchSpec
from cronstable.executors.local import LocalExecutor
from cronstable.executors.program import NoRoom, NotStarted
from cronstable.executors.spawn import Spawner
from tests.executors.support import LaunchCase, Recorder, descriptors, program, shell


class FullSpawner:
    """Has no room while C{full}; otherwise refuses for good, which tells that it was asked."""

    def __init__(self) -> None:
        self.full = True
        self.asked: list[str] = []

    def spawn(self, spec: LaunchSpec) -> Any:
        if self.full:
            raise NoRoom("no descriptor to spare: Too many open files")
        self.asked.append(spec.argv[0])
        raise NotStarted("asked")

    def close(self) -> None:
        pass


class RoomTests(SynchronousTestCase):
    """Waiting for room."""

    def setUp(self) -> None:
        self.clock = ManualClock()
        watch = self.assertLogs("cronstable", "WARNING")
        self.logged = watch.__enter__().records
        self.addCleanup(watch.__exit__, None, None, None)
        self.spawner = FullSpawner()
        self.executor = LocalExecutor(
            None,
            self.clock,
            spawner=self.spawner,  # type: ignore[arg-type]
        )

    def launch(self, name: str, within: float = 60.0) -> Recorder:
        run = Recorder()
        self.executor.launch(name, program(name, start_within=within), {}, run)
        return run

    def test_waits(self) -> None:
        """A launch without room is told to wait, warned of once, and started when there is."""
        first, second = self.launch("a"), self.launch("b")
        self.assertEqual(len(self.logged), 1)
        self.assertIn("it waits for room", self.logged[0].getMessage())
        for run in (first, second):
            self.assertEqual([kind for kind, _ in run.notices], ["waiting"])
            self.assertIsNone(run.result)
        self.assertEqual(self.executor.waiting, 2)
        self.clock.advance(1)
        self.spawner.full = False
        self.clock.advance(1)
        self.assertEqual(self.spawner.asked, ["a", "b"])
        self.assertEqual(self.executor.waiting, 0)
        self.assertEqual(
            first.notices, [("waiting", "no descriptor to spare: Too many open files")]
        )

    def test_warned_of_now_and_then(self) -> None:
        """Room that comes and goes is warned of once a minute."""
        self.launch("first", 1)
        self.clock.pump([1] * 50)
        self.launch("second", 1)
        self.assertEqual((len(self.logged), self.executor.waiting), (1, 1))
        self.clock.pump([1] * 10)
        self.launch("third", 1)
        self.assertEqual(len(self.logged), 2)

    def test_gives_up(self) -> None:
        """After its time a launch is not started, and the reason says what was missing."""
        patient, hasty = self.launch("patient", 60), self.launch("hasty", 5)
        self.clock.pump([0.5] * 10)
        assert hasty.result is not None
        self.assertEqual(hasty.result.cause, "not-started")
        self.assertIn("no descriptor to spare", hasty.result.reason or "")
        self.assertIn("(waited 5 seconds)", hasty.result.reason or "")
        self.assertIsNone(patient.result)
        self.clock.pump([0.5] * 110)
        assert patient.result is not None
        self.assertEqual(patient.result.cause, "not-started")
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_no_longer_wanted(self) -> None:
        """A launch that waited is asked for again before it starts."""
        run, other = self.launch("a"), self.launch("b")
        run.want = False
        self.spawner.full = False
        self.clock.advance(1)
        assert run.result is not None and other.result is not None
        self.assertEqual((run.result.cause, other.result.cause), ("withdrawn", "not-started"))
        self.assertEqual(self.spawner.asked, ["b"])

    def test_cancelled(self) -> None:
        """A waiting launch that is cancelled ends at once and is never started."""
        run = self.launch("a")
        self.assertTrue(self.executor.cancel("a", 30))
        assert run.result is not None
        self.assertEqual((run.result.cause, run.result.status), ("cancelled", None))
        self.spawner.full = False
        self.clock.advance(1)
        self.assertEqual(self.spawner.asked, [])

    def test_behind_others(self) -> None:
        """Who comes later does not overtake who waits."""
        self.launch("a")
        self.spawner.full = False
        self.launch("b")
        self.assertEqual(self.spawner.asked, [])
        self.clock.advance(1)
        self.assertEqual(self.spawner.asked, ["a", "b"])

    def test_stopped(self) -> None:
        """What waits when the executor stops is withdrawn."""
        run = self.launch("a")
        self.executor.stop()
        assert run.result is not None
        self.assertEqual(run.result.cause, "withdrawn")
        self.assertEqual(self.clock.getDelayedCalls(), [])


class RealRoomTests(LaunchCase):
    """The same with a real limit."""

    def limit(self, soft: int) -> None:
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))

    async def test_descriptors(self) -> None:
        """With few descriptors all launches happen, some later; none fails, none leaks."""
        await self.run_to_end(shell("exit 0"))
        open_before = descriptors()
        self.limit(len(open_before) + 40)
        with self.assertLogs("cronstable", "WARNING") as logs:
            runs = [self.launch(shell("sleep 0.1; exit 7")) for _ in range(60)]
            ends = await gatherResults([run.over for run in runs])
        self.assertEqual({ended.status for ended in ends}, {7})
        self.assertTrue(any(("waiting" in dict(run.notices)) for run in runs))
        self.assertLessEqual(len(logs.records), 3)
        self.assertEqual(descriptors() - open_before, set())

    async def test_processes(self) -> None:
        """Where the system refuses another process, the launch is not started after its time."""
        if os.geteuid() == 0:
            # Root is not bound by the limit: the refusal is that of the spawner.
            self.patch(Spawner, "_popen", refuse)
        with self.assertLogs("cronstable", "WARNING"):
            run = self.launch(shell("exit 0", start_within=0.5))
            ended = await run.over
        self.assertEqual(ended.cause, "not-started")
        self.assertIn("no process to spare", ended.reason or "")


def refuse(*arguments: Any) -> int:
    """Fail as a fork beyond the limit does."""
    raise BlockingIOError(11, "Resource temporarily unavailable")
