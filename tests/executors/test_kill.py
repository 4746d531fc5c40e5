"""Real processes that have to be ended: deadlines, cancels, grandchildren, held streams."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from twisted.internet import reactor, task
from twisted.internet.defer import gatherResults

from cronstable.clock import ManualClock
from cronstable.executors import launch as launch_module
from cronstable.executors.interfaces import Ended
from cronstable.executors.local import LocalExecutor
from cronstable.executors.spawn import Spawner
from tests.executors.support import LaunchCase, Recorder, alive, shell, until

IGNORES = "trap '' TERM; echo up; while :; do sleep 0.05; done"


def end(*commands: tuple[str, ...]) -> None:
    """Kill what tests leave alive on purpose."""
    for command in commands:
        for pid in alive(*command):
            os.kill(pid, signal.SIGKILL)


class ByHandCase(LaunchCase):
    """Deadlines that come when the process is ready for them, however slow the machine is."""

    def by_hand(self) -> ManualClock:
        """Launch from now on where time passes when told to."""
        self.clock = clock = ManualClock()
        self.executor = self.make_executor()
        return clock

    async def ended(self, run: Recorder) -> Ended:
        """Let time pass until C{run} is over, and return how it ended."""
        while run.result is None:
            self.clock.advance(0.02)
            await task.deferLater(reactor, 0.005)
        return run.result


class DeadlineTests(ByHandCase):
    """executionTimeout."""

    async def test_timeout(self) -> None:
        """At the deadline the whole group gets SIGTERM; the cause is the timeout."""
        run = await self.run_to_end(shell("sleep 31.4151; echo no", execution_timeout=0.2))
        assert run.result is not None
        self.assertEqual((run.result.cause, run.result.status), ("timeout", -15))
        self.assertFalse(run.result.killed)
        self.assertEqual(run.notices, [("timeout", "")])
        self.assertEqual(alive("sleep", "31.4151"), [])

    async def test_in_time(self) -> None:
        """A run that ends in time never hears of its deadline."""
        run = await self.run_to_end(shell("echo done", execution_timeout=20))
        assert run.result is not None
        self.assertEqual((run.result.cause, run.notices), ("exited", []))

    async def test_stubborn(self) -> None:
        """What ignores SIGTERM is killed after its grace, its children with it."""
        clock = self.by_hand()
        run = self.launch(
            shell(f"sleep 31.4152 & {IGNORES}", execution_timeout=0.1, kill_timeout=0.2)
        )
        await until(run.text)
        clock.advance(0.1)
        ended = await self.ended(run)
        self.assertEqual((ended.cause, ended.status, ended.killed), ("timeout", -9, True))
        self.assertEqual(run.notices, [("timeout", ""), ("killing", "0.2")])
        await until(lambda: not alive("sleep", "31.4152"))

    async def test_clean_end_at_the_deadline(self) -> None:
        """A process that ends itself on SIGTERM keeps its status, the cause stays."""
        clock = self.by_hand()
        command = "trap 'echo bye; exit 5' TERM; sleep 30 & echo up; wait"
        run = self.launch(shell(command, execution_timeout=0.2))
        await until(run.text)
        clock.advance(0.2)
        ended = await self.ended(run)
        self.assertEqual((ended.cause, ended.status), ("timeout", 5))
        self.assertEqual(run.text(), "up\nbye\n")

    async def test_survivor_of_the_group(self) -> None:
        """A child that ignores SIGTERM dies with its parent, at once."""
        clock = self.by_hand()
        child = "(trap '' TERM; echo up; exec sleep 31.4153) &"
        run = self.launch(shell(f"{child} exec sleep 30", execution_timeout=0.3))
        await until(run.text)
        clock.advance(0.3)
        ended = await self.ended(run)
        self.assertEqual((ended.cause, ended.killed), ("timeout", False))
        await until(lambda: not alive("sleep", "31.4153"))

    async def test_open_stream_at_the_deadline(self) -> None:
        """A process that left while a helper holds its output is a timeout at the deadline."""
        clock = self.by_hand()
        run = self.launch(shell("(sleep 31.4154 &); echo done", execution_timeout=0.5))
        await until(lambda: "exited" in run.calls)
        clock.advance(0.5)
        ended = await self.ended(run)
        self.assertEqual((ended.cause, ended.status), ("timeout", 0))
        self.assertEqual(run.text(), "done\n")
        await until(lambda: not alive("sleep", "31.4154"))

    async def test_escapee(self) -> None:
        """One that left the session holds the run no longer than the drain."""
        self.patch(launch_module, "DRAIN_LIMIT", 0.3)
        self.addCleanup(end, ("sleep", "31.4155"))
        clock = self.by_hand()
        run = self.launch(shell("setsid -f sleep 31.4155; exit 3", execution_timeout=0.3))
        await until(lambda: "exited" in run.calls and alive("sleep", "31.4155"))
        clock.advance(0.3)
        ended = await self.ended(run)
        self.assertEqual((ended.cause, ended.status, ended.output_cut), ("timeout", 3, True))
        escapee = alive("sleep", "31.4155")
        self.assertEqual([left.pid for left in ended.leftovers], escapee)
        self.assertEqual(ended.leftovers[0].command, "sleep")


class CancelTests(ByHandCase):
    """Launches that somebody ends."""

    async def test_cancel(self) -> None:
        """A cancelled run is told so, with the real status."""
        run = self.launch(shell("sleep 31.4156"))
        self.assertTrue(self.cancel(run, 5))
        ended = await run.over
        self.assertEqual((ended.cause, ended.status, ended.killed), ("cancelled", -15, False))
        self.assertEqual(run.notices, [])
        self.assertEqual(alive("sleep", "31.4156"), [])

    async def test_first_intent(self) -> None:
        """The first stated intent stays: a deadline after a cancel changes nothing."""
        clock = self.by_hand()
        run = self.launch(shell(IGNORES, execution_timeout=0.3))
        await until(run.text)
        self.cancel(run, 0.6)
        clock.advance(0.5)
        self.assertEqual(run.notices, [])
        ended = await self.ended(run)
        self.assertEqual((ended.cause, ended.status, ended.killed), ("cancelled", -9, True))
        self.assertEqual(run.notices, [("killing", "0.6")])

    async def test_shorter_grace(self) -> None:
        """Cancelled again, the shorter grace holds."""
        run = self.launch(shell(IGNORES))
        await until(run.text)
        self.cancel(run, 30)
        self.cancel(run, 60)
        self.cancel(run, 0)
        ended = await run.over
        self.assertEqual((ended.cause, ended.killed), ("cancelled", True))

    async def test_gone(self) -> None:
        """What is over cannot be cancelled."""
        run = await self.run_to_end(shell("exit 0"))
        self.assertFalse(self.cancel(run, 1))
        self.assertFalse(self.executor.cancel("never-known", 1))

    async def test_after_the_exit(self) -> None:
        """A run that is only held open by a helper can be cancelled."""
        run = self.launch(shell("(sleep 31.4157 &); exit 4"))
        await until(lambda: "exited" in run.calls)
        self.cancel(run, 30)
        ended = await run.over
        self.assertEqual((ended.cause, ended.status), ("cancelled", 4))
        await until(lambda: not alive("sleep", "31.4157"))

    async def test_stop(self) -> None:
        """A stopped executor starts nothing more and watches on what runs."""
        runs = [self.launch(shell("sleep 0.3")) for _ in range(60)]
        self.executor.stop()
        ends = await gatherResults([run.over for run in runs])
        self.assertEqual({ended.cause for ended in ends}, {"exited", "withdrawn"})
        self.assertEqual(ends[0].status, 0)


class PolledCancelTests(CancelTests):
    """The same where the system has no pidfd."""

    def make_executor(self) -> LocalExecutor:
        return LocalExecutor(reactor, self.clock, spawner=Spawner(use_pidfd=False))


class HeldOpenTests(LaunchCase):
    """Streams that others hold after the main process has left."""

    async def test_grace(self) -> None:
        """With a grace the verdict is the main process's; who was left is named."""
        self.addCleanup(end, ("sleep", "31.4158"))
        run = await self.run_to_end(shell("sleep 31.4158 & echo done; exit 3", output_grace=0.2))
        assert run.result is not None
        self.assertEqual((run.result.cause, run.result.status), ("exited", 3))
        self.assertTrue(run.result.output_cut)
        left = alive("sleep", "31.4158")
        self.assertEqual([leftover.pid for leftover in run.result.leftovers], left)
        self.assertEqual(run.text(), "done\n")
        self.assertEqual(len(left), 1, "the leftover is not touched")

    async def test_notice(self) -> None:
        """Some time after the exit, whoever holds a stream is told once; the run stays open."""
        self.patch(launch_module, "HELD_AFTER", 0.2)
        self.addCleanup(end, ("sleep", "31.4159"))
        run = self.launch(shell("sleep 31.4159 & exit 0"))
        await until(lambda: run.held is not None)
        assert run.held is not None
        self.assertEqual([left.command for left in run.held], ["sleep"])
        self.assertIsNone(run.result)
        end(("sleep", "31.4159"))
        ended = await run.over
        self.assertEqual((ended.cause, ended.status, ended.output_cut), ("exited", 0, False))
        self.assertEqual(run.calls.count("held_open"), 1)

    async def test_late_output(self) -> None:
        """What a helper writes after the exit belongs to the run."""
        go = Path(self.mktemp()).absolute()
        run = self.launch(shell(f"(until test -e {go}; do sleep 0.02; done; echo late) & exit 0"))
        await until(lambda: "exited" in run.calls)
        go.touch()
        await run.over
        self.assertEqual(run.text(), "late\n")
        self.assertLess(run.calls.index("exited"), run.calls.index("output"))

    async def test_nothing_held(self) -> None:
        """A helper that holds nothing holds no run."""
        self.addCleanup(end, ("sleep", "31.4160"))
        run = await self.run_to_end(
            shell("sleep 31.4160 > /dev/null 2>&1 & exit 0", output_grace=20)
        )
        assert run.result is not None
        self.assertFalse(run.result.output_cut)


class FlowTests(LaunchCase):
    """Output that is not wanted just now."""

    async def test_pause(self) -> None:
        """A paused stream makes the job wait; resumed, nothing is missing."""
        zeros = "head -c {} /dev/zero; echo {} >&2"
        run = self.launch(shell(f"{zeros.format(50000, 'begun')}; {zeros.format(950000, 'over')}"))
        self.executor.flow(run.ref, "stdout", True)
        await until(lambda: run.text("stderr"))
        self.assertEqual((run.data["stdout"], run.text("stderr")), (b"", "begun\n"))
        self.executor.flow(run.ref, "stdout", False)
        await run.over
        self.assertEqual(len(run.data["stdout"]), 1_000_000)
        self.assertEqual(run.text("stderr"), "begun\nover\n")

    async def test_paused_at_the_end(self) -> None:
        """What a paused stream still holds when the run is cut is not lost."""
        run = Recorder()
        self.executor.launch("paused", shell("echo kept; (sleep 0.5 &)", output_grace=0.3), {}, run)
        self.executor.flow("paused", "stdout", True)
        await run.over
        self.assertEqual(run.text(), "kept\n")
        self.executor.flow("paused", "stdout", False)

    async def test_flood(self) -> None:
        """A flood of output leaves the reactor its turns and ends at the deadline."""
        run = await self.run_to_end(
            shell("while :; do echo e >&2; echo o; done", execution_timeout=0.5)
        )
        assert run.result is not None
        self.assertEqual(run.result.cause, "timeout")
        self.assertTrue(run.data["stdout"] and run.data["stderr"])
