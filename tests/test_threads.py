"""Threads that never keep the process alive."""

from __future__ import annotations

import threading
from typing import Any
from unittest import mock

from twisted.internet import reactor
from twisted.internet.task import Clock
from twisted.internet.threads import deferToThreadPool
from twisted.trial.unittest import TestCase

from cronstable.threads import TRY_AGAIN, in_thread, use_daemon_threads


class _Reactor(Clock):
    """Runs already."""

    threadpool: Any = None

    def callWhenRunning(self, call: Any) -> None:  # noqa: N802 - the name is Twisted's
        call()


class ThreadsTests(TestCase):
    async def test_in_thread(self) -> None:
        """The call has a daemon thread of its own, named so; what it raises is told."""
        thread = await in_thread(reactor, "x", threading.current_thread)
        self.assertEqual((thread.name, thread.daemon), ("x", True))
        await self.assertFailure(in_thread(reactor, "x", int, "?"), ValueError)

    async def test_no_room(self) -> None:
        """Where the system has no thread to spare that is told like any other trouble."""

        def refuse(thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        with mock.patch.object(threading.Thread, "start", refuse):
            answer = in_thread(reactor, "x", int)
        await self.assertFailure(answer, OSError)

    async def test_twisted(self) -> None:
        """What Twisted does on threads is on daemon threads too, and nothing waits for them."""
        ours = _Reactor()
        use_daemon_threads(ours)
        self.addCleanup(ours.threadpool.stop)
        thread = await deferToThreadPool(reactor, ours.threadpool, threading.current_thread)
        self.assertTrue(thread.daemon)

    async def test_no_room_for_twisted(self) -> None:
        """What it asks for while the system has no thread to spare is done once there is one."""

        def refuse(thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        ours = _Reactor()
        use_daemon_threads(ours)
        self.addCleanup(ours.threadpool.stop)
        with mock.patch.object(threading.Thread, "start", refuse):
            asked = deferToThreadPool(reactor, ours.threadpool, int, "7")
            ours.advance(TRY_AGAIN)
        self.assertNoResult(asked)
        self.assertEqual(ours.threadpool.threads, [])
        ours.advance(TRY_AGAIN)
        self.assertEqual(await asked, 7)
