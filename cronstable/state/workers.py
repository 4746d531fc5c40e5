"""
Threads for an operation that may hang: a bounded number, started when needed, never joined.

An operation on a dead mount keeps its thread for ever.  What hangs is counted; once every thread
does, further operations fail at once instead of piling up, until one comes back.  Where the system
has no room for another thread those that are there serve all.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, fail
from twisted.python.failure import Failure

from cronstable.clock import Clock

T = TypeVar("T")

HUNG_AFTER = 30.0
"""Seconds after which a running operation counts as hung."""


class StoreHung(OSError):
    """Every worker hangs in the store, so that nothing can be asked of it now."""


class StoreShort(OSError):
    """The system has no thread to spare for the store, which can be asked again later."""


class StoreSlow(OSError):
    """The store did not answer within the time that the question has."""


class Workers:
    """At most C{capacity} daemon threads for one kind of work, served in order of asking."""

    def __init__(self, reactor: Any, clock: Clock, name: str, capacity: int) -> None:
        self.capacity = capacity
        self.peak = 0
        self._reactor = reactor
        self._clock = clock
        self._name = name
        self._lock = threading.Condition()
        self._queue: deque[tuple[Deferred[Any], Callable[[], Any]]] = deque()
        self._since: dict[int, float] = {}
        self._threads = 0
        self._idle = 0
        self._stopped = False

    @property
    def inflight(self) -> int:
        """How many operations are under way."""
        return len(self._since)

    @property
    def hung(self) -> int:
        """How many operations have been under way for too long."""
        limit = self._clock.seconds() - HUNG_AFTER
        return sum(1 for since in tuple(self._since.values()) if since <= limit)

    def run(self, call: Callable[[], T]) -> Deferred[T]:
        """Fire with what C{call} returns or raises on a worker, however long it takes."""
        if self.hung >= self.capacity:
            return fail(StoreHung("every worker hangs in the store"))
        done: Deferred[T] = Deferred()
        with self._lock:
            self._queue.append((done, call))
            # One that was notified counts as idle until it wakes: what waits may outnumber them.
            if len(self._queue) <= self._idle:
                self._lock.notify()
            elif self._threads < self.capacity and not self._another() and not self._threads:
                self._queue.pop()
                return fail(StoreShort("no thread to spare"))
        return done

    def _another(self) -> bool:
        """Start one more thread; return whether the system had room for it."""
        name = f"{self._name}-{self._threads + 1}"
        try:
            threading.Thread(target=self._work, name=name, daemon=True).start()
        except RuntimeError:
            return False
        self._threads += 1
        return True

    def stop(self) -> None:
        """Keep no idle thread from now on; what runs is left to itself, and more may be asked."""
        with self._lock:
            self._stopped = True
            self._lock.notify_all()

    def _work(self) -> None:
        me = threading.get_ident()
        while True:
            with self._lock:
                while not self._queue:
                    if self._stopped:
                        self._threads -= 1
                        return
                    self._idle += 1
                    self._lock.wait()
                    self._idle -= 1
                done, call = self._queue.popleft()
                self._since[me] = self._clock.seconds()
                self.peak = max(self.peak, len(self._since))
            try:
                result: Any = call()
            except BaseException:
                result = Failure()
            finally:
                with self._lock:
                    del self._since[me]
            self._reactor.callFromThread(_tell, done, result)


def within(clock: Clock, seconds: float, answer: Deferred[T]) -> Deferred[T]:
    """
    Fire as C{answer} does, or fail with L{StoreSlow} after C{seconds}.

    What C{answer} says after that is lost.
    """
    first: Deferred[T] = Deferred()
    timer = clock.callLater(
        seconds, lambda: first.errback(StoreSlow(f"no answer within {seconds:g} s"))
    )

    def answered(result: Any) -> None:
        if timer.active():
            timer.cancel()
            first.callback(result)

    answer.addBoth(answered)
    return first


def _tell(done: Deferred[Any], result: Any) -> None:
    if isinstance(result, Failure):
        done.errback(result)
    else:
        done.callback(result)
