"""A writer in a system that has no thread to spare."""

from __future__ import annotations

import os
import threading
from unittest import mock

from twisted.internet import reactor
from twisted.trial.unittest import TestCase

from cronstable.runs.writer import HIGH_WATER, Writer


class NoThreadTests(TestCase):
    """Whoever writes is neither failed nor held up for it."""

    timeout = 20

    async def test_goes_on(self) -> None:
        """What there is room for is kept, and written by a thread that a later block gets."""
        ours, theirs = os.pipe()
        for end in (ours, theirs):
            self.addCleanup(os.close, end)
        writer = Writer(reactor, theirs, "pipe")
        self.addCleanup(writer.close)

        def refuse(thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        block = b"x" * (HIGH_WATER // 2)
        with mock.patch.object(threading.Thread, "start", refuse):
            self.assertEqual([writer.write(block) for _ in range(4)], [True] * 4)
        writer.write(b"last\n")
        got = b""
        while not got.endswith(b"last\n"):
            got += os.read(ours, 1 << 20)
        self.assertEqual(len(got), len(block) + 5)
