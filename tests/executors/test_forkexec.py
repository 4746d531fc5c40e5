"""Tests of the quick start of a program."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from cronstable.executors import forkexec
from cronstable.executors.orphans import children
from cronstable.executors.spawn import Spawner
from tests.executors.support import shell


def output_of(command: str, env: list[bytes], **given: object) -> bytes:
    """Run C{command} by sh to its end; return what it printed."""
    read, write = os.pipe()
    rest = {"cwd": None, "umask": forkexec.INHERIT, **given}
    pid = forkexec.start(
        [b"sh", b"-c", command.encode()],
        b"/bin/sh",
        env,
        stdin=forkexec.INHERIT,
        stdout=write,
        stderr=forkexec.INHERIT,
        **rest,  # type: ignore[arg-type]
    )
    os.close(write)
    with os.fdopen(read, "rb") as file:
        text = file.read()
    assert pid is not None
    os.waitpid(pid, 0)
    return text


class StartTests(SynchronousTestCase):
    """The call itself, on a Python whose signature is known."""

    if forkexec._fork_exec is None:
        skip = "the call is not known on this Python"

    def test_environment(self) -> None:
        """The child has the given environment and nothing else."""
        self.assertIn(b"A=b c\n", output_of("env", [b"A=b c"]))
        self.assertNotIn(b"PATH=/", output_of("env | grep -v PWD", [b"A=b"]))

    def test_place(self) -> None:
        """Directory, umask and session are what was asked for."""
        place = self.mktemp()
        os.mkdir(place)
        text = output_of("pwd; umask; ps -o sid= -p $$; echo $$", [], cwd=place, umask=0o27)
        where, mask, session, pid = text.split()
        self.assertEqual(os.path.realpath(where), os.path.realpath(place).encode())
        self.assertEqual(int(mask, 8), 0o27)
        self.assertEqual(session, pid)

    def test_nothing_there(self) -> None:
        """What cannot be executed starts nothing and leaves no child behind."""
        before = set(children())
        pid = forkexec.start(
            [b"x"], b"/nowhere/x", [], cwd=None, umask=-1, stdin=-1, stdout=-1, stderr=-1
        )
        self.assertIdentical(pid, None)
        self.assertEqual(set(children()) - before, set())


class UnknownPythonTests(SynchronousTestCase):
    """A Python whose call is not known."""

    def test_other_way(self) -> None:
        """Programs are started by Popen there."""
        self.patch(forkexec, "_fork_exec", None)
        spawned = Spawner().spawn(shell("exit 7"))
        _, status = os.waitpid(spawned.pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 7)
        for descriptor in (*spawned.outputs.values(), spawned.pidfd):
            if descriptor is not None:
                os.close(descriptor)


class BlockTests(SynchronousTestCase):
    """The environment for the system."""

    def test_entries(self) -> None:
        """Text and bytes are taken, odd bytes as they were."""
        self.assertEqual(forkexec.block({"A": "\udcff", b"B": b"c"}), [b"A=\xff", b"B=c"])

    def test_bad_name(self) -> None:
        """A name with an equals sign would be another variable."""
        self.assertRaises(ValueError, forkexec.block, {"A=B": "c"})
