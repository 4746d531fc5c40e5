"""
Writes that nobody waits for: in order for each key, bounded in number, counted when lost.

A key is a job (or a host): its writes reach the store in the order in which they were asked for,
across its streams.  Writes of several keys share one trip to a worker, since a thread that is
woken for each would cost more than the write.  A trip that takes long is joined by others, and
what it has not begun is given to them.

When too many wait, those that matter least are shed first: in-flight pairs that were never
written go together, run records and retries go last.

docs/durability.md, "When the store does not answer", tells an operator.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall

from cronstable.clock import Clock
from cronstable.service import Waiters
from cronstable.state.repeats import Repeats
from cronstable.state.store import Store

log = logging.getLogger("cronstable.state")

T = TypeVar("T")

Kind = Literal[
    "run-record",
    "retry",
    "reboot-marker",
    "pause",
    "checkpoint",
    "manifest",
    "counters",
    "inflight",
]

SHED_FIRST: tuple[Kind, ...] = (
    "inflight",
    "counters",
    "manifest",
    "checkpoint",
    "pause",
    "reboot-marker",
    "retry",
    "run-record",
)

MOST_PENDING = 8192
"""Writes that may wait."""

MOST_BYTES = 64 * 1024 * 1024
"""Bytes of output that may wait to be archived; a store that hangs must not fill the memory."""

MOST_AT_ONCE = 16
"""Writes of one trip."""

LONG = 0.05
"""Seconds after which a trip no longer keeps others from beginning."""

Operation = Callable[[Store], Any]
Run = Callable[[Operation], "Deferred[Any]"]


class Write:
    """One write that waits or is under way; fires its Deferred with whether it was written."""

    __slots__ = ("about", "done", "kind", "operation", "size", "started", "withdrawn")

    def __init__(self, kind: Kind, about: str, operation: Operation, size: int) -> None:
        self.kind = kind
        self.about = about
        self.operation: Operation | None = operation
        self.size = size
        self.started = False
        self.withdrawn = False
        self.done: Deferred[bool] = Deferred()


class _Trip:
    """
    Writes that one worker does after each other.

    C{left} are those it has not begun, C{done} those it has, each with the error that it met; both
    are used by the worker and by the queue.
    """

    __slots__ = ("begun_at", "done", "left")

    def __init__(self, writes: Iterable[Write], begun_at: float) -> None:
        self.left = deque(writes)
        self.done: deque[tuple[Write, BaseException | None]] = deque()
        self.begun_at = begun_at

    def work(self, store: Store) -> None:
        """Do what is left, in a thread."""
        for write in _drained(self.left):
            operation = write.operation
            assert operation is not None
            error: BaseException | None = None
            try:
                operation(store)
            except BaseException as trouble:
                error = trouble
            self.done.append((write, error))


def _drained(queue: deque[T]) -> Iterator[T]:
    """Iterate over a queue that somebody else may empty meanwhile."""
    while True:
        try:
            yield queue.popleft()
        except IndexError:
            return


class Writes:
    """
    The queue of pending writes of one store.

    It begins held: nothing is written before L{open}.  At most C{abreast} trips are under way, of
    C{at_once} writes each.
    """

    def __init__(
        self,
        clock: Clock,
        run: Run,
        abreast: int,
        at_once: int = MOST_AT_ONCE,
        most: int = MOST_PENDING,
    ) -> None:
        self.dropped: Counter[str] = Counter()
        self.pending = 0
        self._clock = clock
        self._run = run
        self._abreast = abreast
        self._at_once = at_once
        self._most = most
        self._held = True
        self._pumping = False
        self._trips: list[_Trip] = []
        self._wake: IDelayedCall | None = None
        self._bytes = 0
        self._chains: dict[str, deque[Write]] = {}
        self._ready: deque[str] = deque()
        self._waiting: dict[Kind, dict[Write, None]] = {kind: {} for kind in SHED_FIRST}
        self._empty = Waiters()
        self._withdrawn: Counter[str] = Counter()
        self._repeats = Repeats(clock)

    def open(self) -> None:
        """Begin to write, first what has been asked for so far."""
        self._held = False
        self._pump()

    def fail_held(self, why: object) -> None:
        """Drop what waits to be written, and count it: the store did not come up."""
        for kind in SHED_FIRST:
            for write in tuple(self._waiting[kind]):
                self._drop(write, kind, why)

    def add(self, key: str, kind: Kind, operation: Operation, size: int = 0) -> Deferred[bool]:
        """
        Write once everything asked for C{key} before is written; fire with whether it was.

        C{size} is what the write keeps in memory beside its record, in bytes.
        """
        write = Write(kind, key, operation, size)
        chain = self._chains.get(key)
        if chain is None:
            chain = self._chains[key] = deque()
            self._ready.append(key)
        chain.append(write)
        self._waiting[kind][write] = None
        self.pending += 1
        self._bytes += size
        if self.pending > self._most:
            self._shed()
        if size and self._bytes > MOST_BYTES:
            self._shed_large()
        self._pump()
        return write.done

    def withdraw(self, key: str, kind: Kind) -> bool:
        """
        Take back the newest write of C{kind} for C{key} if it has not been started.

        Used for pairs that cancel each other out: what was never written need not be undone.
        """
        for write in reversed(self._chains.get(key, ())):
            if write.kind == kind and not write.withdrawn:
                if write.started:
                    return False
                self._leave(write, True)
                return True
        return False

    def when_written(self, key: str) -> Deferred[None]:
        """Fire when all that was asked for C{key} so far is written, or given up."""
        chain = tuple(self._chains.get(key, ()))
        waiter: Deferred[None] = Deferred()
        left = len(chain)

        def one_less(written: bool) -> bool:
            nonlocal left
            left -= 1
            if not left:
                waiter.callback(None)
            return written

        if not chain:
            waiter.callback(None)
        for write in chain:
            write.done.addCallback(one_less)
        return waiter

    def when_empty(self) -> Deferred[None]:
        """Fire when nothing is pending."""
        return self._empty.wait(not self.pending)

    def stop(self) -> None:
        """Begin no more writes."""
        self._held = True
        self._sleep()

    def _pump(self) -> None:
        if self._held or self._pumping:
            return
        self._pumping = True
        try:
            while self._ready and len(self._trips) < self._abreast and not self._has_young_trip():
                self._begin()
        finally:
            self._pumping = False
        if not self._trips:
            self._sleep()
        elif self._wake is None and (self._ready or self._has_young_trip()):
            self._wake = self._clock.callLater(LONG, self._look)

    def _sleep(self) -> None:
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None

    def _has_young_trip(self) -> bool:
        """Return whether the latest trip has not been under way for long."""
        return bool(self._trips) and self._clock.seconds() - self._trips[-1].begun_at < LONG

    def _look(self) -> None:
        """
        Hear of what trips that take long have done, and give to others what they have not begun.
        """
        self._wake = None
        for trip in tuple(self._trips):
            if self._clock.seconds() - trip.begun_at >= LONG:
                self._hear(trip)
                self._take_back(trip)
        self._pump()

    def _take_back(self, trip: _Trip) -> None:
        if self._at_once == 1:
            return  # It holds up nothing else, and may wait for its turn under a rate limit.
        for write in reversed(tuple(_drained(trip.left))):
            write.started = False
            self._waiting[write.kind][write] = None
            self._ready.appendleft(write.about)

    def _begin(self) -> None:
        writes: list[Write] = []
        while self._ready and len(writes) < self._at_once:
            write = self._next(self._ready.popleft())
            if write is not None:
                write.started = True
                del self._waiting[write.kind][write]
                writes.append(write)
        if writes:
            trip = _Trip(writes, self._clock.seconds())
            self._trips.append(trip)
            self._run(trip.work).addCallbacks(
                self._done, self._failed, callbackArgs=(trip,), errbackArgs=(trip,)
            )

    def _next(self, key: str) -> Write | None:
        """Return the write for C{key} whose turn it is, if there is one."""
        chain = self._chains[key]
        while chain and chain[0].withdrawn:
            chain.popleft()
        if not chain:
            self._forget(key)
            return None
        return chain[0]

    def _forget(self, key: str) -> None:
        del self._chains[key]
        self._withdrawn.pop(key, None)

    def _done(self, _: object, trip: _Trip) -> None:
        self._trips.remove(trip)
        self._hear(trip)
        self._pump()

    def _failed(self, failure: Any, trip: _Trip) -> None:
        trip.done.extend((write, failure.value) for write in _drained(trip.left))
        self._done(None, trip)

    def _hear(self, trip: _Trip) -> None:
        """Deal with what a trip has done so far; what that leads to goes with one trip."""
        pumping, self._pumping = self._pumping, True
        for write, error in _drained(trip.done):
            self._over(write, error)
        self._pumping = pumping

    def _over(self, write: Write, error: BaseException | None) -> None:
        if error is not None:
            self.dropped[write.kind] += 1
            self._say(write, error)
        chain = self._chains[write.about]
        chain.popleft()
        if chain:
            self._ready.append(write.about)
        else:
            self._forget(write.about)
        self._leave(write, error is None)

    def _leave(self, write: Write, written: bool) -> None:
        """Forget a write; one that still stands in its chain is passed over when its turn comes."""
        self._waiting[write.kind].pop(write, None)
        write.withdrawn = True
        if not write.started:
            self._passed_over(write.about)
        write.operation = None
        self.pending -= 1
        self._bytes -= write.size
        write.done.callback(written)
        if not self.pending:
            self._empty.tell()

    def _passed_over(self, key: str) -> None:
        """Clear a chain of what was taken back: its first write may hang for days."""
        self._withdrawn[key] += 1
        chain = self._chains[key]
        if self._withdrawn[key] > 64 and self._withdrawn[key] * 2 > len(chain):
            self._chains[key] = deque(write for write in chain if not write.withdrawn)
            del self._withdrawn[key]

    def _shed(self) -> None:
        for kind in SHED_FIRST:
            for write in self._waiting[kind]:
                self._drop(write, "overflow", "too many writes are pending")
                return

    def _shed_large(self) -> None:
        for kind in SHED_FIRST:
            for write in [each for each in self._waiting[kind] if each.size]:
                self._drop(write, kind, "too much output waits to be archived")
                if self._bytes <= MOST_BYTES:
                    return

    def _drop(self, write: Write, count_as: str, why: object) -> None:
        self.dropped[count_as] += 1
        self._say(write, why)
        self._leave(write, False)

    def _say(self, write: Write, why: object) -> None:
        # The text of an error names a temporary file, another one each time.
        more = self._repeats.again((write.kind, str(getattr(why, "errno", None) or why)))
        if more is not None:
            what = write.kind.replace("-", " ")
            log.warning("state: failed to persist %s for %s: %s%s", what, write.about, why, more)
