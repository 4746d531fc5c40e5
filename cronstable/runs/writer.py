"""
Writes to one file that may be slow, full, or gone, without ever holding up the reactor.

What is surely taken at once is written at once; for the rest there is a thread.  What it has not
taken yet is bounded: whoever writes is told to wait.  docs/executors.md, "Output", tells users so.
"""

from __future__ import annotations

import errno
import logging
import os
import select
import stat
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred

from cronstable.runs.terminal import for_terminal

log = logging.getLogger("cronstable")

HIGH_WATER = 2 << 20
"""Bytes waiting at which jobs are held up."""

LOW_WATER = 512 << 10
"""Bytes waiting at which they go on."""

AT_ONCE = 256
"""Blocks written with one call."""

STOPPED = frozenset((errno.EPIPE, errno.EBADF, errno.EIO, errno.EINVAL))
"""Errors after which a descriptor takes nothing any more."""


class Writer:
    """
    Writes blocks to C{descriptor} in order; C{name} is what warnings call it.

    The thread starts when it is needed first.
    """

    def __init__(self, reactor: Any, descriptor: int, name: str) -> None:
        self.thread: threading.Thread | None = None
        self._reactor = reactor
        self._descriptor = descriptor
        self._name = name
        self._terminal: bool | None = None
        self._sink: bool | None = None
        self._poll: Any = None
        self._queue: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._lock = threading.Condition()
        self._busy = False
        self._closed = False
        self._held_up: list[Callable[[], object]] = []
        self._flushing: list[Deferred[None]] = []
        self._broken = False
        self._failing = False

    def writes_to(self, descriptor: int) -> bool:
        """Return whether C{descriptor} is the same file as this one's."""
        try:
            return os.path.samestat(os.fstat(descriptor), os.fstat(self._descriptor))
        except OSError:
            return False

    def write(self, block: bytes) -> bool:
        """
        Take a block of whole lines; never blocks and never fails, in any thread.

        Returns False when whoever writes should wait until L{when_room} calls.
        """
        if self._broken or self._closed:
            return True
        with self._lock:
            if not self._queue and not self._busy:
                block = self._write_at_once(block)
                if not block:
                    return True
            self._queue.append(block)
            self._waiting_bytes += len(block)
            room = self._waiting_bytes < HIGH_WATER
            if self.thread is None:
                return not self._begin() or room
            if not self._busy:
                self._lock.notify()
        return room

    def _begin(self) -> bool:
        """
        Start the thread; return False, and keep no more than there is room for, if none is to be
        had: the next block tries again, so whoever writes is not held up.
        """
        thread = threading.Thread(target=self._run, name="mirror", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            while self._waiting_bytes >= HIGH_WATER:
                self._waiting_bytes -= len(self._queue.popleft())
            return False
        self.thread = thread
        return True

    def when_room(self, resume: Callable[[], object]) -> None:
        """Call C{resume} on the reactor thread, once, when there is room again."""
        with self._lock:
            if self._waiting_bytes >= LOW_WATER:
                self._held_up.append(resume)
                return
        self._reactor.callFromThread(resume)

    def flush(self, limit: float) -> Deferred[None]:
        """Fire when all is written, or after C{limit} seconds."""
        done: Deferred[None] = Deferred()
        with self._lock:
            if self._queue or self._busy:
                self._flushing.append(done)
        if done not in self._flushing:
            done.callback(None)
            return done
        timer = self._reactor.callLater(limit, done.callback, None)

        def written(result: None) -> None:
            if timer.active():
                timer.cancel()

        return done.addCallback(written)

    def close(self) -> None:
        """Take nothing any more; the thread ends when it has written what waits, or hangs."""
        with self._lock:
            self._closed = True
            self._lock.notify()

    def _write_at_once(self, block: bytes) -> bytes:
        """Write what cannot block, and return what is left for the thread."""
        # A terminal may take less than its readiness promises; a file and the null device take any
        # block, and faster than a thread would be told of it.
        if self._to_terminal():
            return block
        if not self._takes_all() and not (len(block) <= select.PIPE_BUF and self._takes()):
            return block
        try:
            return block[os.write(self._descriptor, block) :]
        except BlockingIOError:
            return block
        except OSError as error:
            self._failed(error)
            return b""

    def _takes(self) -> bool:
        if self._poll is None:
            self._poll = select.poll()
            self._poll.register(self._descriptor, select.POLLOUT)
        return any(event & select.POLLOUT for _, event in self._poll.poll(0))

    def _takes_all(self) -> bool:
        if self._sink is None:
            try:
                found = os.fstat(self._descriptor)
                null = os.stat(os.devnull)
                self._sink = stat.S_ISREG(found.st_mode) or os.path.samestat(found, null)
            except OSError:
                self._sink = False
        return self._sink

    def _to_terminal(self) -> bool:
        if self._terminal is None:
            self._terminal = os.isatty(self._descriptor)
        return self._terminal

    def _run(self) -> None:
        while True:
            with self._lock:
                self._busy = False
                while not self._queue and not self._closed:
                    self._lock.wait()
                if not self._queue:
                    return
                self._busy = True
                blocks = [self._queue.popleft() for _ in range(min(len(self._queue), AT_ONCE))]
            self._write_all(blocks)
            self._written(sum(map(len, blocks)))

    def _written(self, size: int) -> None:
        resume: list[Callable[[], object]] = []
        flushed: list[Deferred[None]] = []
        with self._lock:
            self._waiting_bytes -= size
            if self._waiting_bytes < LOW_WATER:
                resume, self._held_up = self._held_up, []
            if not self._queue:
                flushed, self._flushing = self._flushing, []
        if resume or flushed:
            self._reactor.callFromThread(_tell, resume, flushed)

    def _write_all(self, blocks: list[bytes]) -> None:
        if self._broken:
            return
        try:
            if self._to_terminal():
                blocks = [for_terminal(block) for block in blocks]
            _write_fully(self._descriptor, blocks)
            self._failing = False
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        if error.errno in STOPPED:
            self._broken = True
            log.warning(
                "the daemon's %s is gone (%s): jobs are not mirrored there", self._name, error
            )
        elif not self._failing:
            self._failing = True
            log.warning("mirroring jobs to the daemon's %s failed: %s", self._name, error)


def _tell(resume: list[Callable[[], object]], flushed: list[Deferred[None]]) -> None:
    for call in resume:
        call()
    for done in flushed:
        if not done.called:
            done.callback(None)


def _write_fully(descriptor: int, blocks: list[bytes]) -> None:
    """Write all blocks, waiting where the descriptor is one that does not."""
    pending: list[bytes | memoryview] = list(blocks)
    while pending:
        try:
            written = os.writev(descriptor, pending)
        except BlockingIOError:
            select.select([], [descriptor], [], 1.0)
            continue
        while pending and written >= len(pending[0]):
            written -= len(pending.pop(0))
        if written:
            pending[0] = memoryview(pending[0])[written:]
