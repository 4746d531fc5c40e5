"""Children on the reactor: what is signalled, and events that were meant for somebody else."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from cronstable import platform
from cronstable.clock import ManualClock
from cronstable.executors.child import Child, _Output
from cronstable.executors.program import Program
from cronstable.executors.spawn import Spawned, Spawner
from cronstable.executors.turns import Turns
from tests.executors.support import shell


class FakeReactor:
    """Remembers who reads."""

    def __init__(self) -> None:
        self.readers: list[Any] = []

    def addReader(self, reader: Any) -> None:  # noqa: N802
        if reader not in self.readers:
            self.readers.append(reader)

    def removeReader(self, reader: Any) -> None:  # noqa: N802
        if reader in self.readers:
            self.readers.remove(reader)


class Listener:
    """Records what a child tells."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def child_output(self, name: str, data: bytes) -> None:
        self.told.append(("output", name, data))

    def child_closed(self, name: str) -> None:
        self.told.append(("closed", name))

    def child_ending(self, status: int) -> None:
        self.told.append(("ending", status))

    def child_exited(self, status: int | None, usage: Any) -> None:
        self.told.append(("exited", status))


class ChildTests(SynchronousTestCase):
    """One child, its events made by hand."""

    def setUp(self) -> None:
        self.reactor = FakeReactor()
        self.clock = ManualClock()
        self.owner = Listener()

    def child(self, command: str) -> Child:
        spawned = Spawner().spawn(shell(command))
        child = Child(self.reactor, self.clock, Turns(self.clock), spawned, self.owner)
        self.addCleanup(self.finish, child)
        return child

    def finish(self, child: Child) -> None:
        if not child.reaped:
            os.kill(child.pid, signal.SIGKILL)
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            child.ended()
        child.cut_outputs()
        self.assertEqual(self.reactor.readers, [])

    def wait(self, child: Child) -> None:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    def test_end(self) -> None:
        """The end is told before the process is reaped, and again after."""
        child = self.child("exit 6")
        self.wait(child)
        child.ended()
        child.ended()
        kinds = [told for told in self.owner.told if told[0] != "closed"]
        self.assertEqual(kinds, [("ending", 6), ("exited", 6)])
        self.assertTrue(child.reaped)
        self.assertEqual(child.open_outputs, [])

    def test_much_output(self) -> None:
        """A stream that fills its pipe is read in larger blocks from then on."""
        child = self.child("exec sleep 30")
        read, write = os.pipe()
        output = _Output(child, "stdout", read)
        for size in (65_536, 100_000):
            os.set_blocking(write, False)
            self.assertEqual(os.write(write, bytes(size)), size)
            self.assertTrue(output.read())
        os.close(write)
        os.close(read)
        self.assertEqual([len(told[2]) for told in self.owner.told], [65_536, 100_000])

    if not sys.platform.startswith("linux"):
        test_much_output.skip = "pipes cannot grow here"  # type: ignore[attr-defined]

    def test_stale_end(self) -> None:
        """An event of an earlier process under the same descriptor ends nothing."""
        child = self.child("exec sleep 30")
        readers = list(self.reactor.readers)
        child.ended()
        self.assertEqual((self.owner.told, child.reaped), ([], False))
        self.assertCountEqual(self.reactor.readers, readers)

    def test_stale_hang_up(self) -> None:
        """A hang-up that the reactor told of another pipe closes nothing."""
        child = self.child("exec sleep 30")
        output = self.reactor.readers[0]
        self.reactor.removeReader(output)
        output.connectionLost(Failure(Exception("hang-up")))
        self.assertEqual(child.open_outputs, ["stdout", "stderr"])
        self.assertIn(output, self.reactor.readers)

    def test_hang_up(self) -> None:
        """A hang-up is believed once the stream itself has ended."""
        child = self.child("exit 0")
        self.wait(child)
        output = self.reactor.readers[0]
        self.reactor.removeReader(output)
        output.connectionLost(Failure(Exception("hang-up")))
        self.assertEqual(child.open_outputs, ["stderr"])
        self.assertEqual(self.owner.told, [("closed", "stdout")])

    def test_group_that_is_gone(self) -> None:
        """Once reaped, a live process under the pid means that the group is somebody else's."""
        child = self.child("exit 0")
        self.wait(child)
        child.ended()
        sent: list[tuple[int, int]] = []
        self.patch(os, "killpg", lambda pid, number: sent.append((pid, number)))
        self.patch(platform, "process_exists", lambda pid: True)
        self.assertIsNone(child.signal_group(signal.SIGKILL))
        self.assertEqual(sent, [])
        self.patch(platform, "process_exists", lambda pid: False)
        child.signal_group(signal.SIGKILL)
        self.assertEqual(sent, [(child.pid, signal.SIGKILL)])

    def test_refused_group(self) -> None:
        """Where the group may not be signalled, the process alone is; a refusal is returned."""
        child = self.child("exec sleep 30")
        refusal = PermissionError(1, "Operation not permitted")
        self.patch(os, "killpg", raising(refusal))
        self.assertIsNone(child.signal_group(signal.SIGTERM))
        self.wait(child)
        child.ended()
        self.assertIn(("exited", -15), self.owner.told)
        other = self.child("exec sleep 30")
        self.patch(signal, "pidfd_send_signal", raising(refusal))
        self.assertIs(other.signal_group(signal.SIGTERM), refusal)

    def test_no_descriptor_for_the_end(self) -> None:
        """Where no pidfd can be had the end is noticed by looking, within a second."""
        spawned = Spawner(use_pidfd=False).spawn(shell("exit 9"))
        self.assertIsNone(spawned.pidfd)
        child = Child(self.reactor, self.clock, Turns(self.clock), spawned, self.owner)
        self.addCleanup(self.finish, child)
        self.clock.advance(0.5)
        self.assertFalse(child.reaped)
        self.wait(child)
        self.clock.advance(0.5)
        self.assertIn(("exited", 9), self.owner.told)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_without_waitid(self) -> None:
        """Systems without waitid reap first; the group is then signalled with care."""
        from cronstable.executors import child as module

        self.patch(module, "_HAS_WAITID", False)
        child = self.child("exec sleep 30")
        child.ended()
        self.assertFalse(child.reaped)
        child.signal_group(signal.SIGKILL)
        self.wait(child)
        child.ended()
        self.assertIn(("exited", -9), self.owner.told)


class SpawnedTests(SynchronousTestCase):
    """What a start leaves when it is taken back."""

    def test_undo(self) -> None:
        """A start that is taken back leaves neither process nor descriptor."""
        spawner = Spawner()
        spawner.spawn(shell("exit 0")).undo()
        before = len(os.listdir("/proc/self/fd"))
        spawned = spawner.spawn(shell("exec sleep 30"))
        spawned.undo()
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)
        self.assertFalse(platform.process_exists(spawned.pid))

    def test_failure_without_a_switch(self) -> None:
        """A status is the program's own where nothing stood before it."""
        spawned = Spawned(os.getpid(), {}, None, Program(b"/bin/true", b"/bin/true"))
        self.assertIsNone(spawned.failure(127))


def raising(error: Exception) -> Any:
    """Return a function that fails."""

    def fail(*arguments: Any) -> None:
        raise error

    return fail
