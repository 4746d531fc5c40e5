"""
A file system whose open files no program that is started meanwhile gets to close.

A process closes what it was not to inherit before its program begins, and closing a file of a
network mount waits for the server.  While a mount hangs, each start of a job would hang with it,
and the daemon that waits for the start.  So files of such a mount are opened by threads that have
a descriptor table of their own.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from cronstable.platform import take_own_descriptors
from cronstable.state.files import Files, FileStatus, Lock

T = TypeVar("T")

IDLE = 30.0
"""Seconds after which a thread that has nothing to do ends."""


class ApartFiles:
    """
    Files of C{inner}, opened apart where C{needed}, which is asked once, says so.

    Where the system cannot part descriptors they are opened as usual.
    """

    def __init__(
        self,
        inner: Files,
        needed: Callable[[], bool],
        take_own: Callable[[], bool] = take_own_descriptors,
        idle: float = IDLE,
    ) -> None:
        self._inner = inner
        self._needed = needed
        self._take_own = take_own
        self._idle = idle
        self._lock = threading.Lock()
        self._apart: bool | None = None
        self._free: list[_Hand] = []

    # What opens files

    def read(self, path: str) -> bytes:
        """Return all bytes of a file."""
        return self._do(lambda: self._inner.read(path))

    def read_part(self, path: str, offset: int, size: int) -> bytes:
        """Return a part of a file."""
        return self._do(lambda: self._inner.read_part(path, offset, size))

    def create(self, path: str, data: bytes, sync: bool) -> None:
        """Write a new file."""
        self._do(lambda: self._inner.create(path, data, sync))

    def append(self, path: str, data: bytes) -> None:
        """Write to the end of a file that is there."""
        self._do(lambda: self._inner.append(path, data))

    def sync(self, path: str) -> None:
        """Force the bytes of a file to the medium."""
        self._do(lambda: self._inner.sync(path))

    def lock(self, path: str, wait: bool) -> Lock | None:
        """Take a lock; the thread that holds its descriptor is kept until it is released."""
        hand = self._take()
        if hand is None:
            return self._inner.lock(path, wait)
        lock = None
        try:
            lock = hand.do(lambda: self._inner.lock(path, wait))
        finally:
            if lock is None:
                self._give_back(hand)
        return None if lock is None else _ApartLock(self, hand, lock)

    # What opens none, or directories only, whose closing waits for nothing

    def make_directory(self, path: str) -> None:
        """Create one directory."""
        self._inner.make_directory(path)

    def names(self, path: str) -> list[str]:
        """Return the names in a directory."""
        return self._inner.names(path)

    def directories(self, path: str) -> list[str]:
        """Return the names of the directories in a directory."""
        return self._inner.directories(path)

    def rename(self, source: str, target: str) -> None:
        """Give a file another name."""
        self._inner.rename(source, target)

    def sync_directory(self, path: str) -> None:
        """Force the names in a directory to the medium."""
        self._inner.sync_directory(path)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        self._inner.unlink(path)

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        self._inner.remove_directory(path)

    def status(self, path: str) -> FileStatus:
        """Return what is known of a file."""
        return self._inner.status(path)

    def touch(self, path: str, when: float) -> None:
        """Set when a file was last modified."""
        self._inner.touch(path, when)

    # The threads: one for each operation under way, and for each lock that is held

    def _do(self, call: Callable[[], T]) -> T:
        hand = self._take()
        if hand is None:
            return call()
        try:
            return hand.do(call)
        finally:
            self._give_back(hand)

    def _take(self) -> _Hand | None:
        if self._apart is None:
            self._apart = self._needed()
        if not self._apart:
            return None
        with self._lock:
            if self._free:
                return self._free.pop()
        try:
            hand = _Hand(self._may_end, self._idle)
        except RuntimeError:
            raise OSError(errno.EAGAIN, "no thread to spare for a file") from None
        if not hand.do(self._take_own):
            self._apart = False
            hand.end()
            return None
        return hand

    def _give_back(self, hand: _Hand) -> None:
        with self._lock:
            self._free.append(hand)

    def _may_end(self, hand: _Hand) -> bool:
        """Return whether a thread that was idle may end: it will not be taken any more."""
        with self._lock:
            if hand not in self._free:
                return False
            self._free.remove(hand)
            return True


class _ApartLock:
    """A lock whose descriptor is another thread's."""

    def __init__(self, files: ApartFiles, hand: _Hand, lock: Lock) -> None:
        self._files = files
        self._hand: _Hand | None = hand
        self._lock = lock

    def release(self) -> None:
        """Unlock, once."""
        hand, self._hand = self._hand, None
        if hand is None:
            return
        try:
            hand.do(self._lock.release)
        finally:
            self._files._give_back(hand)


class _Hand:
    """A thread that does one thing at a time for whoever has taken it, who waits for it."""

    def __init__(self, may_end: Callable[[_Hand], bool], idle: float) -> None:
        self._may_end = may_end
        self._idle = idle
        self._asked: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self._answers: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        threading.Thread(target=self._work, name="store-files", daemon=True).start()

    def do(self, call: Callable[[], T]) -> T:
        """Return what C{call} returns or raises on this thread."""
        self._asked.put(call)
        result, error = self._answers.get()
        if error is None:
            return result  # type: ignore[no-any-return]
        try:
            raise error
        finally:
            del error  # It refers to this frame, which refers to it.

    def end(self) -> None:
        """Let the thread end; it was not given back."""
        self._asked.put(None)

    def _work(self) -> None:
        # Nothing here may use a descriptor of the daemon: no log, no reactor.
        while True:
            try:
                call = self._asked.get(timeout=self._idle)
            except Empty:
                if self._may_end(self):
                    return
                continue
            if call is None:
                return
            try:
                answer: tuple[Any, BaseException | None] = (call(), None)
            except BaseException as error:
                answer = (None, error)
            self._answers.put(answer)
            del call, answer
