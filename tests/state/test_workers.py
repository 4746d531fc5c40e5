"""Threads for work that may hang."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any
from unittest import mock

from twisted.internet.defer import Deferred, gatherResults
from twisted.trial.unittest import SynchronousTestCase, TestCase

from cronstable.clock import ManualClock
from cronstable.state.workers import HUNG_AFTER, StoreHung, StoreShort, StoreSlow, Workers, within


class WorkersTests(TestCase):
    """Real threads under a real reactor."""

    timeout = 20

    def setUp(self) -> None:
        from twisted.internet import reactor

        self.reactor: Any = reactor
        self.clock = ManualClock()
        self.workers = Workers(reactor, self.clock, "test", 3)
        self.addCleanup(self.workers.stop)
        self.go_on = threading.Event()
        self.addCleanup(self.go_on.set)

    async def test_answers(self) -> None:
        """What a call returns or raises is told on the reactor's thread."""
        threads: list[int] = []

        def call() -> int:
            threads.append(threading.get_ident())
            return 5

        self.assertEqual(await self.workers.run(call), 5)
        self.assertNotEqual(threads[0], threading.get_ident())
        await self.assertFailure(self.workers.run(lambda: 1 // 0), ZeroDivisionError)

    async def test_bounded(self) -> None:
        """No more threads run than there may, and all that was asked for is done."""
        running, most, lock = 0, 0, threading.Lock()

        def call() -> None:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            self.go_on.wait(0.01)
            with lock:
                running -= 1

        await gatherResults([self.workers.run(call) for _ in range(40)])
        self.assertLessEqual(most, 3)
        self.assertEqual(self.workers.inflight, 0)
        self.assertEqual(self.workers.peak, 3)

    async def test_no_room(self) -> None:
        """Without room for a thread work fails at once, for good; with room it goes on."""
        done: list[str] = []
        with self.no_threads():
            for _ in range(5):
                await self.assertFailure(self.workers.run(lambda: done.append("late")), StoreShort)
        self.assertEqual(await self.workers.run(lambda: "went on"), "went on")
        self.assertEqual(done, [])

    async def test_no_more_room(self) -> None:
        """The threads that are there do what there is no room for another for."""
        first = self.workers.run(lambda: self.go_on.wait(10))
        with self.no_threads():
            waiting = [self.workers.run(lambda: "done") for _ in range(5)]
        self.go_on.set()
        self.assertEqual(await gatherResults([first, *waiting]), [True, *["done"] * 5])

    @contextlib.contextmanager
    def no_threads(self) -> Iterator[None]:
        def refuse(thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        with mock.patch.object(threading.Thread, "start", refuse):
            yield

    async def test_hung(self) -> None:
        """Once every thread hangs, work fails at once; when one comes back it is done again."""
        hanging = [self.workers.run(self.go_on.wait) for _ in range(3)]
        while self.workers.inflight < 3:
            await self.pause()
        waiting = self.workers.run(lambda: "waited")
        self.assertEqual(self.workers.hung, 0)
        self.clock.advance(HUNG_AFTER)
        self.assertEqual(self.workers.hung, 3)
        await self.assertFailure(self.workers.run(lambda: 5), StoreHung)
        self.go_on.set()
        await gatherResults(hanging)
        self.assertEqual(await waiting, "waited")
        self.assertEqual(await self.workers.run(lambda: 5), 5)
        self.assertEqual(self.workers.hung, 0)

    async def test_not_behind_a_hung_one(self) -> None:
        """Work is never left waiting behind what hangs while there are threads to spare."""
        for _ in range(50):
            workers = Workers(self.reactor, self.clock, "test", 3)
            await workers.run(lambda: None)
            hanging = workers.run(self.go_on.wait)
            answer = workers.run(lambda: 5)
            self.assertEqual(await answer.addTimeout(5, self.reactor), 5)
            self.go_on.set()
            await hanging
            self.go_on.clear()
            workers.stop()

    async def test_stop(self) -> None:
        """Idle threads end, threads at work after their work; they never keep the process."""
        before = threading.active_count()
        hanging = self.workers.run(self.go_on.wait)
        await self.workers.run(lambda: None)
        self.assertTrue(all(t.daemon for t in threading.enumerate() if t.name.startswith("test-")))
        self.workers.stop()
        self.go_on.set()
        await hanging
        for _ in range(200):
            if threading.active_count() <= before:
                break
            await self.pause()
        self.assertLessEqual(threading.active_count(), before)

    async def test_asked_after_a_stop(self) -> None:
        """What is asked after all threads have ended is done all the same, by threads that end."""
        before = threading.active_count()
        for _ in range(2):
            await gatherResults([self.workers.run(lambda: self.go_on.wait(0.01)) for _ in range(9)])
            self.workers.stop()
            while threading.active_count() > before:
                await self.pause()
        self.assertEqual(await self.workers.run(lambda: 5), 5)

    def pause(self) -> Deferred[None]:
        from twisted.internet import reactor, task

        clock: Any = reactor
        return task.deferLater(clock, 0.01)


class WithinTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = ManualClock()
        self.answer: Deferred[str] = Deferred()

    def test_in_time(self) -> None:
        """An answer in time is the answer, and no timer is left."""
        bounded = within(self.clock, 10, self.answer)
        self.clock.advance(9)
        self.answer.callback("x")
        self.assertEqual(self.successResultOf(bounded), "x")
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_error_in_time(self) -> None:
        """So is an error."""
        bounded = within(self.clock, 10, self.answer)
        self.answer.errback(ZeroDivisionError())
        self.failureResultOf(bounded, ZeroDivisionError)

    def test_too_late(self) -> None:
        """What comes after the bound is lost, errors too."""
        for late in ("x", ZeroDivisionError()):
            answer: Deferred[Any] = Deferred()
            bounded = within(self.clock, 10, answer)
            self.clock.advance(10)
            self.failureResultOf(bounded, StoreSlow)
            answer.callback(late) if isinstance(late, str) else answer.errback(late)
