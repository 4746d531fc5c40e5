"""The life of a launch on a clock that is moved by hand, its process imagined."""

from __future__ import annotations

import signal
from typing import Any, cast

from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock
from cronstable.executors.child import Child
from cronstable.executors.interfaces import Leftover
from cronstable.executors.launch import Launch
from tests.executors.support import Recorder, shell


class FakeChild:
    """A process that does what the test says."""

    pid = 4711

    def __init__(self) -> None:
        self.open_outputs = ["stdout", "stderr"]
        self.signals: list[int] = []
        self.refusal: OSError | None = None
        self.paused: dict[str, bool] = {}

    def signal_group(self, number: int) -> OSError | None:
        self.signals.append(number)
        return self.refusal

    def pause(self, name: str, paused: bool) -> None:
        self.paused[name] = paused

    def inodes(self) -> frozenset[int]:
        return frozenset((1, 2))

    def cut_outputs(self) -> None:
        for name in list(self.open_outputs):
            self.open_outputs.remove(name)
            self.launch.child_closed(name)

    launch: Launch


class LaunchTests(SynchronousTestCase):
    """One launch; what its executor would do is done by the test."""

    def setUp(self) -> None:
        self.clock = ManualClock()
        self.left: tuple[Leftover, ...] = (Leftover(99, "helper"),)
        self.forgotten: list[str] = []
        self.child = FakeChild()

    # House

    def gone(self, launch: Launch) -> None:
        self.forgotten.append(launch.ref)

    def holders(self, pid: int, inodes: frozenset[int]) -> Deferred[tuple[Leftover, ...]]:
        return succeed(self.left)

    def begin(self, **fields: Any) -> tuple[Launch, Recorder]:
        run = Recorder()
        launch = Launch(self, "ref", shell("x", **fields), {}, run)
        self.child.launch = launch
        launch.begin(cast(Child, self.child), lambda status: None)
        return launch, run

    def exit(self, launch: Launch, status: int | None = 0, closed: bool = True) -> None:
        launch.child_ending(status or 0)
        launch.child_exited(status, None)
        if closed:
            self.child.cut_outputs()

    def test_deadline_counts_from_the_start(self) -> None:
        """Not a moment before the deadline is anything sent."""
        launch, run = self.begin(execution_timeout=10.0, kill_timeout=3.0)
        self.clock.advance(9.99)
        self.assertEqual(self.child.signals, [])
        self.clock.advance(0.01)
        self.assertEqual(self.child.signals, [signal.SIGTERM])
        self.clock.advance(2.99)
        self.assertEqual(self.child.signals, [signal.SIGTERM])
        self.clock.advance(0.01)
        self.assertEqual(self.child.signals, [signal.SIGTERM, signal.SIGKILL])
        self.exit(launch, -9)
        assert run.result is not None
        self.assertEqual((run.result.cause, run.result.killed), ("timeout", True))
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertEqual(self.forgotten, ["ref"])

    def test_group_is_killed_when_the_process_leaves(self) -> None:
        """The rest of the group gets no more time than the process itself took."""
        launch, run = self.begin()
        launch.cancel(30)
        self.clock.advance(1)
        self.exit(launch, -15)
        self.assertEqual(self.child.signals, [signal.SIGTERM, signal.SIGKILL])
        assert run.result is not None
        self.assertFalse(run.result.killed)

    def test_no_signal_without_intent(self) -> None:
        """What ends by itself is not signalled, nor what it leaves behind."""
        launch, _ = self.begin()
        self.exit(launch, 1)
        self.assertEqual(self.child.signals, [])

    def test_refused_signal(self) -> None:
        """A refused signal is told with the pid, and the sequence goes on."""
        launch, run = self.begin()
        self.child.refusal = PermissionError(1, "Operation not permitted")
        launch.cancel(5)
        self.assertEqual(run.notices, [("unsignalled", "(pid 4711): Operation not permitted")])
        self.clock.advance(5)
        self.assertEqual(self.child.signals, [signal.SIGTERM, signal.SIGKILL])

    def test_drain(self) -> None:
        """After a kill sequence streams stay open for thirty seconds at most."""
        launch, run = self.begin()
        launch.cancel(5)
        self.exit(launch, -15, closed=False)
        self.clock.advance(29.9)
        self.assertIsNone(run.result)
        self.clock.advance(0.1)
        assert run.result is not None
        self.assertEqual((run.result.cause, run.result.output_cut), ("cancelled", True))
        self.assertEqual(run.result.leftovers, self.left)
        self.assertIsNone(run.held)

    def test_held_open(self) -> None:
        """Ten seconds after the exit the holders are told, once."""
        launch, run = self.begin()
        self.exit(launch, 0, closed=False)
        self.clock.advance(9.9)
        self.assertIsNone(run.held)
        self.clock.advance(0.1)
        self.assertEqual(run.held, self.left)
        self.clock.advance(3600)
        self.assertIsNone(run.result)
        self.child.cut_outputs()
        assert run.result is not None
        self.assertEqual((run.result.cause, run.result.output_cut), ("exited", False))
        self.assertEqual(run.calls.count("held_open"), 1)

    def test_held_up_by_ourselves(self) -> None:
        """A stream that we do not read is not said to be held by others."""
        self.left = ()
        launch, run = self.begin()
        launch.pause("stdout", True)
        self.assertEqual(self.child.paused, {"stdout": True})
        self.exit(launch, 0, closed=False)
        self.clock.advance(20)
        self.assertIsNone(run.held)

    def test_paused_before_the_start(self) -> None:
        """A stream paused while the launch waited is not read when it starts."""
        run = Recorder()
        launch = Launch(self, "ref", shell("x"), {}, run)
        launch.pause("stderr", True)
        launch.begin(cast(Child, self.child), lambda status: None)
        self.assertEqual(self.child.paused, {"stderr": True})

    def test_grace_after_the_exit(self) -> None:
        """The grace counts from the exit; a deadline in it still wins."""
        launch, run = self.begin(output_grace=5.0, execution_timeout=12.0)
        self.clock.advance(10)
        self.exit(launch, 3, closed=False)
        self.clock.advance(1.9)
        self.assertIsNone(run.result)
        self.clock.advance(0.1)
        self.assertEqual(run.notices, [("timeout", "")])
        self.assertEqual(self.child.signals, [signal.SIGTERM, signal.SIGKILL])
        self.child.cut_outputs()
        assert run.result is not None
        self.assertEqual((run.result.cause, run.result.status), ("timeout", 3))

    def test_failed_prefix(self) -> None:
        """A process that never became its program is a launch that was not started."""
        run = Recorder()
        launch = Launch(self, "ref", shell("x"), {}, run)
        self.child.launch = launch
        launch.begin(cast(Child, self.child), lambda status: f"failed with {status}")
        self.exit(launch, 127)
        assert run.result is not None
        self.assertEqual(
            (run.result.cause, run.result.status, run.result.reason),
            ("not-started", None, "failed with 127"),
        )

    def test_lost_status(self) -> None:
        """A status that is lost is None, with the reason."""
        launch, run = self.begin()
        self.exit(launch, None)
        assert run.result is not None
        self.assertEqual((run.result.cause, run.result.status), ("exited", None))
        self.assertIn("lost", run.result.reason or "")
