"""
The daemon's own standard output and error as a window on what its jobs print.

What is surely taken at once is written at once; for the rest there is a thread, so that a slow
terminal or log collector never holds up the reactor.  What it has not taken yet is bounded, and
jobs wait for it rather than memory growing.
docs/executors.md, "Output", tells users so.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import select
import stat
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred

log = logging.getLogger("cronstable")

HIGH_WATER = 2 << 20
"""Bytes waiting at which jobs are held up."""

LOW_WATER = 512 << 10
"""Bytes waiting at which they go on."""

AT_ONCE = 256
"""Blocks written with one call."""

STOPPED = frozenset((errno.EPIPE, errno.EBADF, errno.EIO, errno.EINVAL))
"""Errors after which a descriptor takes nothing any more."""

_NAMES = {1: "standard output", 2: "standard error"}

_CONTROLS = re.compile(
    rb"(\x1b\[[0-9;:]*m)"  # colours, which stay
    rb"|\x1b\[[0-?]*[ -/]*[@-~]?"  # other control sequences
    rb"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # titles, links, device strings
    rb"|\x1b[ -/]*[0-~]?"  # other escapes
    rb"|\xc2[\x80-\x9f]"  # the same as single characters
    rb"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"  # other controls
)


def for_terminal(block: bytes) -> bytes:
    """
    Return what a terminal may be given: no escape sequence but colours, valid UTF-8.

    Tabs, newlines and carriage returns stay.
    """
    text = block.decode("utf-8", "replace").encode("utf-8")
    return _CONTROLS.sub(lambda match: match[1] or b"", text)


class Mirror:
    """Writes blocks to descriptors in order, from a thread of its own that starts when needed."""

    def __init__(
        self,
        reactor: Any,
        descriptors: dict[int, int] | None = None,
        is_terminal: Callable[[int], bool] = os.isatty,
    ) -> None:
        """
        C{descriptors} says where the targets 1 and 2 go, by default to themselves.
        """
        self._reactor = reactor
        self._descriptors = descriptors or {1: 1, 2: 2}
        self._is_terminal = is_terminal
        self._terminals: dict[int, bool] = {}
        self._sinks: dict[int, bool] = {}
        self._polls: dict[int, Any] = {}
        self._queue: deque[tuple[int, bytes]] = deque()
        self._waiting_bytes = 0
        self._lock = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy = False
        self._closed = False
        self._held_up: list[Callable[[], object]] = []
        self._flushing: list[Deferred[None]] = []
        self._broken: set[int] = set()
        self._failing: set[int] = set()

    def write(self, target: int, block: bytes) -> bool:
        """
        Take a block of whole lines for C{target}; never blocks and never fails, in any thread.

        Returns False when whoever writes should wait until L{when_room} calls.
        """
        if target in self._broken or self._closed:
            return True
        with self._lock:
            if not self._queue and not self._busy:
                block = self._write_at_once(target, block)
                if not block:
                    return True
            self._queue.append((target, block))
            self._waiting_bytes += len(block)
            room = self._waiting_bytes < HIGH_WATER
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="mirror", daemon=True)
                self._thread.start()
            elif not self._busy:
                self._lock.notify()
        return room

    def _write_at_once(self, target: int, block: bytes) -> bytes:
        """Write what cannot block, and return what is left for the thread."""
        descriptor = self._descriptors[target]
        # A terminal may take less than its readiness promises; a file and the null device take any
        # block, and faster than a thread would be told of it.
        if self._terminal(target, descriptor):
            return block
        if not self._takes_all(descriptor) and not (
            len(block) <= select.PIPE_BUF and self._takes(descriptor)
        ):
            return block
        try:
            return block[os.write(descriptor, block) :]
        except BlockingIOError:
            return block
        except OSError as error:
            self._failed(target, error)
            return b""

    def _takes(self, descriptor: int) -> bool:
        poll = self._polls.get(descriptor)
        if poll is None:
            poll = self._polls[descriptor] = select.poll()
            poll.register(descriptor, select.POLLOUT)
        return any(event & select.POLLOUT for _, event in poll.poll(0))

    def _takes_all(self, descriptor: int) -> bool:
        known = self._sinks.get(descriptor)
        if known is None:
            try:
                found = os.fstat(descriptor)
                null = os.stat(os.devnull)
                known = stat.S_ISREG(found.st_mode) or os.path.samestat(found, null)
            except OSError:
                known = False
            self._sinks[descriptor] = known
        return known

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

    def _run(self) -> None:
        while True:
            with self._lock:
                self._busy = False
                while not self._queue and not self._closed:
                    self._lock.wait()
                if not self._queue:
                    return
                self._busy = True
                target, blocks = self._next()
            self._write_all(target, blocks)
            self._written(sum(map(len, blocks)))

    def _next(self) -> tuple[int, list[bytes]]:
        """Take the blocks at the front of the queue that go to one target."""
        target, block = self._queue.popleft()
        blocks = [block]
        while self._queue and self._queue[0][0] == target and len(blocks) < AT_ONCE:
            blocks.append(self._queue.popleft()[1])
        return target, blocks

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

    def _write_all(self, target: int, blocks: list[bytes]) -> None:
        if target in self._broken:
            return
        descriptor = self._descriptors[target]
        try:
            if self._terminal(target, descriptor):
                blocks = [for_terminal(block) for block in blocks]
            _write_fully(descriptor, blocks)
            self._failing.discard(target)
        except OSError as error:
            self._failed(target, error)

    def _terminal(self, target: int, descriptor: int) -> bool:
        known = self._terminals.get(target)
        if known is None:
            known = self._terminals[target] = self._is_terminal(descriptor)
        return known

    def _failed(self, target: int, error: OSError) -> None:
        name = _NAMES.get(target, f"descriptor {target}")
        if error.errno in STOPPED:
            self._broken.add(target)
            log.warning("the daemon's %s is gone (%s): jobs are not mirrored there", name, error)
        elif target not in self._failing:
            self._failing.add(target)
            log.warning("mirroring jobs to the daemon's %s failed: %s", name, error)


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
