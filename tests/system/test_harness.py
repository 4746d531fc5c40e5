"""Tests of the harness: it sees what happens, and it leaves nothing behind."""

from __future__ import annotations

import os
import signal

from twisted.trial.unittest import TestCase

from tests.system.harness import Daemon

FAMILY = """
echo ready >&2
setsid sleep 600 >/dev/null 2>&1 &
trap '' TERM
echo $! > child
echo born >&2
wait
"""


class DaemonTests(TestCase):
    """The harness around small shell scripts."""

    def script(self, text: str, **options: object) -> Daemon:
        """Start a shell with C{text}."""
        return Daemon(self, program=["/bin/sh", "-c", text], **options)  # type: ignore[arg-type]

    async def test_lines(self) -> None:
        """Lines of both streams are kept apart, the last one also without its newline."""
        daemon = self.script("echo a; echo b >&2; echo c; printf d >&2")
        self.assertEqual(await daemon.wait_for_end(), 0)
        self.assertEqual((daemon.stdout, daemon.stderr), (["a", "c"], ["b", "d"]))

    async def test_status(self) -> None:
        """The exit status is told, a signal as its negative number."""
        self.assertEqual(await self.script("exit 3").wait_for_end(), 3)
        self.assertEqual(await self.script("kill -9 $$").wait_for_end(), -9)

    async def test_wait_for_log(self) -> None:
        """A line that came before, one that comes later, and the n-th one are all found."""
        daemon = self.script("for n in 1 2 3; do echo tick $n >&2; done; read x; exec sleep 60")
        self.assertEqual((await daemon.wait_for_log(r"tick (\d)", count=3)).group(1), "3")
        self.assertEqual((await daemon.wait_for_log(r"tick (\d)")).group(1), "1")
        self.assertEqual((await daemon.wait_for_log(r"tick (\d)", since=1)).group(1), "2")

    async def test_wait_fails(self) -> None:
        """A line that does not come fails after the bound, or at once when the process ends."""
        daemon = self.script("echo something >&2; exec sleep 60")
        error = await self.assertFailure(daemon.wait_for_log("else", timeout=0.2), AssertionError)
        self.assertIn("else", str(error))
        ended = self.script("exit 0")
        await self.assertFailure(ended.wait_for_log("else", timeout=60), AssertionError)

    async def test_signal(self) -> None:
        """A signal reaches the process; stop returns its status."""
        daemon = self.script("trap 'exit 7' TERM; echo up >&2; while :; do sleep 0.05; done")
        await daemon.wait_for_log("up")
        self.assertEqual(await daemon.stop(), 7)

    async def test_configuration(self) -> None:
        """The configuration is written with its directory and port filled in, and named by -c."""
        daemon = Daemon(
            self, "at @WORK@ on @PORT@", program=["/bin/sh", "-c", 'cat "$2"; echo "$1"', "x"]
        )
        await daemon.wait_for_end()
        self.assertEqual(daemon.stdout, [f"at {daemon.directory} on {daemon.port}-c"])

    async def test_kill(self) -> None:
        """Everything that descends from the process dies with it, in whatever session it is."""
        daemon = self.script(FAMILY)
        await daemon.wait_for_log("born")
        child = int((daemon.directory / "child").read_text())
        self.assertIn(child, daemon.descendants())
        await daemon.kill()
        self.assertEqual(daemon.descendants(), [])
        self.assertEqual(daemon.status, -signal.SIGKILL)

    async def test_as_pid1(self) -> None:
        """The program can be process 1, gets signals, and its status is told."""
        daemon = self.script(
            "trap 'exit 5' TERM; echo pid $$ >&2; while :; do sleep 0.05; done", as_pid1=True
        )
        found = await daemon.wait_for_log(r"pid (\d+)")
        self.assertEqual(found.group(1), "1")
        self.assertNotEqual(daemon.pid, 1)
        self.assertNotEqual(daemon.pid, os.getpid())
        self.assertEqual(await daemon.stop(), 5)
