"""The daemon's own output as a window on its jobs."""

from __future__ import annotations

import fcntl
import os
import pty

from twisted.internet import reactor, task
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase, TestCase

from cronstable.runs import writer as module
from cronstable.runs.mirror import Mirror
from cronstable.runs.terminal import for_terminal
from tests.executors.support import until


class MirrorTests(TestCase):
    """Real descriptors, a real thread."""

    timeout = 20

    def setUp(self) -> None:
        self.out, out = os.pipe()
        self.err, err = os.pipe()
        self.ends = {self.out, self.err, out, err}
        self.targets = {1: out, 2: err}
        self.mirror = Mirror(reactor, self.targets)
        self.addCleanup(self.close)

    def close(self) -> None:
        self.mirror.close()
        for end in {self.out, self.err} & self.ends:
            self.drop(end)
        # What it writes to must not become another test's descriptor.
        for thread in self.mirror.threads():
            thread.join(5)
        for end in list(self.ends):
            self.drop(end)

    def drop(self, end: int) -> None:
        self.ends.remove(end)
        os.close(end)

    async def test_order(self) -> None:
        """Blocks arrive where they belong, whole and in order."""
        for number in range(500):
            self.assertTrue(self.mirror.write(1, b"%d\n" % number))
        self.mirror.write(2, b"error\n")
        await self.mirror.flush(5)
        expected = b"".join(b"%d\n" % number for number in range(500))
        self.assertEqual(os.read(self.out, 65536), expected)
        self.assertEqual(os.read(self.err, 100), b"error\n")

    async def test_slow_reader(self) -> None:
        """A reader that does not read holds nobody up but those who write, and loses nothing."""
        block = b"x" * 65535 + b"\n"
        written = 0
        while self.mirror.write(1, block):
            written += len(block)
        written += len(block)
        self.assertLessEqual(written, module.HIGH_WATER + 2 * len(block))
        resumed: list[float] = []
        self.mirror.when_room(1, lambda: resumed.append(1))
        await task.deferLater(reactor, 0.05)
        self.assertEqual(resumed, [])
        os.set_blocking(self.out, False)
        got = 0

        def read() -> bool:
            nonlocal got
            try:
                while True:
                    got += len(os.read(self.out, 65536))
            except BlockingIOError:
                return got == written

        await until(read)
        await until(lambda: resumed)
        self.assertEqual(resumed, [1])

    async def test_stuck_reader(self) -> None:
        """A reader of one target that is stuck holds up nothing that goes to the other."""
        while self.mirror.write(1, b"x" * 65535 + b"\n"):
            pass
        for number in range(100):
            self.assertTrue(self.mirror.write(2, b"line %d\n" % number))
        expected = b"".join(b"line %d\n" % number for number in range(100))
        self.assertEqual(os.read(self.err, 65536), expected)
        await self.mirror.flush(0.1)

    async def test_one_file(self) -> None:
        """Both targets are one, and in order, where they are the same file."""
        copy = os.dup(self.targets[1])
        self.ends.add(copy)
        mirror = Mirror(reactor, {1: self.targets[1], 2: copy})
        self.addCleanup(mirror.close)
        while mirror.write(1, b"x" * 65535 + b"\n"):
            pass
        self.assertFalse(mirror.write(2, b"end\n"))
        self.assertEqual(len(mirror.threads()), 1)
        await deferToThread(self.read_until, b"x\nend\n")

    def read_until(self, end: bytes) -> None:
        """Read the first target until it ends in C{end}."""
        data = b""
        while not data.endswith(end):
            data = data[-10:] + os.read(self.out, 65536)

    async def test_room_at_once(self) -> None:
        """Who asks while there is room is told so."""
        resumed: list[int] = []
        self.mirror.when_room(1, lambda: resumed.append(1))
        await until(lambda: resumed)

    async def test_files(self) -> None:
        """What can never block takes large blocks at once, without a thread."""
        for path in (os.devnull, self.mktemp()):
            file = os.open(path, os.O_WRONLY | os.O_CREAT)
            self.ends.add(file)
            mirror = Mirror(reactor, {1: file})
            self.assertTrue(mirror.write(1, b"x" * 1_000_000 + b"\n"))
            self.assertEqual(mirror.threads(), [])
        self.assertEqual(os.path.getsize(path), 1_000_001)

    async def test_flush_is_bounded(self) -> None:
        """Waiting for a reader that never reads ends."""
        self.mirror.write(1, b"x" * 200_000)
        await self.mirror.flush(0.1)
        self.mirror.close()
        os.read(self.out, 65536)

    async def test_flush_waits_for_what_is_under_way(self) -> None:
        """A block that the thread is writing is waited for, though nothing else waits."""
        self.mirror.write(1, b"x" * 199_999 + b"\n")
        first = await deferToThread(os.read, self.out, 1)
        flushed = self.mirror.flush(10)
        self.assertNoResult(flushed)
        await deferToThread(self.read_until, b"x\n")
        await flushed
        self.assertEqual(first, b"x")

    async def test_again(self) -> None:
        """After what a slow reader has held up the thread sleeps, and wakes for the next block."""
        for _ in range(3):
            self.mirror.write(1, b"x" * 199_999 + b"\n")
            await deferToThread(self.read_until, b"x\n")
            await self.mirror.flush(10)
        self.assertEqual(len(self.mirror.threads()), 1)

    async def test_gone(self) -> None:
        """A target that is gone is warned of once; the other goes on."""
        self.drop(self.out)
        with self.assertLogs("cronstable", "WARNING") as logs:
            for _ in range(3):
                self.mirror.write(1, b"lost\n")
                await self.mirror.flush(5)
            self.mirror.write(2, b"kept\n")
            await self.mirror.flush(5)
        self.assertEqual(len(logs.records), 1)
        self.assertIn("standard output is gone", logs.records[0].getMessage())
        self.assertEqual(os.read(self.err, 100), b"kept\n")

    async def test_not_blocking(self) -> None:
        """A target that somebody made non-blocking is waited for."""
        flags = fcntl.fcntl(self.targets[1], fcntl.F_GETFL)
        fcntl.fcntl(self.targets[1], fcntl.F_SETFL, flags | os.O_NONBLOCK)
        os.set_blocking(self.out, False)
        data = b"".join(b"%07d\n" % number for number in range(30_000))
        self.mirror.write(1, data)
        got = b""

        def read() -> bool:
            nonlocal got
            try:
                got += os.read(self.out, 65536)
            except BlockingIOError:
                pass
            return len(got) == len(data)

        await until(read)
        self.assertEqual(got, data)

    async def test_full_disk(self) -> None:
        """An error that may pass is warned of once until it has passed."""
        full = os.open("/dev/full", os.O_WRONLY)
        self.ends.add(full)
        mirror = Mirror(reactor, {1: full, 2: self.targets[2]})
        self.addCleanup(mirror.close)
        with self.assertLogs("cronstable", "WARNING") as logs:
            for _ in range(3):
                mirror.write(1, b"x\n")
                await mirror.flush(5)
        self.assertEqual(len(logs.records), 1)

    async def test_terminal(self) -> None:
        """Only what is a terminal has escape sequences removed."""
        leader, follower = pty.openpty()
        self.ends |= {leader, follower}
        mirror = Mirror(reactor, {1: follower, 2: self.targets[2]})
        self.addCleanup(mirror.close)
        data = b"\x1b[31mred\x1b[0m \x1b[2Jgone\x1b]0;title\x07!\n"
        mirror.write(1, data)
        mirror.write(2, data)
        await mirror.flush(5)
        self.assertEqual(os.read(leader, 1000), b"\x1b[31mred\x1b[0m gone!\r\n")
        self.assertEqual(os.read(self.err, 1000), data)


class ForTerminalTests(SynchronousTestCase):
    """What a terminal is spared."""

    def test_sequences(self) -> None:
        """Colours stay, everything else that starts with an escape goes."""
        cases = {
            b"plain \xe2\x82\xac\ttab\r\n": b"plain \xe2\x82\xac\ttab\r\n",
            b"\x1b[1;38;5;200mx\x1b[m\n": b"\x1b[1;38;5;200mx\x1b[m\n",
            b"\x1b[2J\x1b[H\x1b[?25lx\n": b"x\n",
            b"\x1b[>4;2mx\n": b"x\n",
            b"\x1b]0;owned\x07a\n": b"a\n",
            b"\x1b]8;;http://example.org\x1b\\link\x1b]8;;\x1b\\\n": b"link\n",
            b"\x1b]52;c;aGk=\n next\n": b"\n next\n",
            b"\x1bP1$r\x1b\\dcs\n": b"dcs\n",
            b"\x1b(0\x1b=\x1bcx\n": b"x\n",
            b"\x07\x08\x0e\x7f\x00x\n": b"x\n",
            b"\xc2\x9b31mx\xc2\x9d0;t\n": b"31mx0;t\n",
            b"\xff\x9b2J\n": "\ufffd\ufffd2J\n".encode(),
            b"end\x1b\n": b"end\n",
            b"\x1b[31\n": b"\n",
        }
        for data, expected in cases.items():
            self.assertEqual(for_terminal(data), expected, data)
