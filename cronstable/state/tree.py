"""
The directory of one namespace, and the one way in which files get into it.

A file is written under C{tmp/}, forced to the disk, renamed into place, and its directory is
forced too: at any moment a reader finds the whole old file or the whole new one.  What
C{state.fsync} takes away from that is told in docs/durability.md.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import logging
import os
import secrets
import threading
from collections.abc import Iterator
from typing import Literal, Protocol

import attrs

from cronstable.state.errors import StoreMissing
from cronstable.state.failpoints import Failpoint, passed
from cronstable.state.files import Files, Lock, OsFiles
from cronstable.state.stats import Stats

log = logging.getLogger("cronstable.state")

AREAS = ("records", "docs", "blobs", "leases", "quarantine", "tmp")
KEPT_AREAS = ("records", "docs", "blobs", "leases")
"""What a store consists of; the others hold what can be thrown away."""

FsyncMode = Literal["always", "rename", "never"]


class StoreClock(Protocol):
    """What the store asks of a clock (L{cronstable.clock.Clock} without its timers)."""

    def seconds(self) -> float:
        """Return monotonic seconds."""

    def now(self) -> float:
        """Return the wall clock, epoch seconds."""

    def awake_and_asleep(self) -> float:
        """Return monotonic seconds that also count suspended ones."""


@attrs.frozen
class Sync:
    """What a write forces to the medium before it returns."""

    file: bool = True
    directory: bool = True


def sync_of(mode: FsyncMode, acknowledges: bool) -> Sync:
    """
    Return what a write forces to the medium.

    C{acknowledges}: somebody will act on the strength of it, so it may not be lost once written.
    """
    if mode == "never":
        return Sync(file=False, directory=False)
    return Sync(file=True, directory=mode == "always" or acknowledges)


class Notices:
    """Says each thing once until it is forgotten, so that trouble cannot flood the log."""

    def __init__(self, limit: int = 4096) -> None:
        self._limit = limit
        self._said: set[object] = set()
        self._lock = threading.Lock()

    def first(self, key: object) -> bool:
        """Return whether C{key} is new, and remember it."""
        with self._lock:
            if key in self._said:
                return False
            if len(self._said) >= self._limit:
                self._said.clear()
            self._said.add(key)
            return True

    def forget(self, key: object) -> None:
        """Let C{key} be said again."""
        if key in self._said:
            with self._lock:
                self._said.discard(key)


@attrs.define(eq=False)
class Tree:
    """
    The namespace directory C{root}.

    C{instance} (12 hex digits) and a counter make every name that this process gives to a file
    its own.  Nothing is created before L{create}; later only directories below C{root} are, so
    that an unmounted store is missed rather than begun anew on the disk below.
    """

    root: str
    clock: StoreClock
    files: Files = attrs.field(factory=OsFiles)
    fsync: FsyncMode = "always"
    instance: str = attrs.field(factory=lambda: secrets.token_hex(6))
    at: Failpoint = passed
    stats: Stats = attrs.field(factory=Stats, init=False)
    notices: Notices = attrs.field(factory=Notices, init=False)
    _numbers: Iterator[int] = attrs.field(factory=lambda: itertools.count(1), init=False)

    def path(self, *parts: str) -> str:
        """Return the path of what C{parts} name below the root."""
        return "/".join((self.root, *parts))

    def next_number(self) -> str:
        """Return the next of this process's numbers, 12 digits."""
        return f"{next(self._numbers):012d}"

    def create(self) -> None:
        """Create the root and its six directories, those that are missing; survives anything."""
        for path in (self.root, *map(self.path, AREAS)):
            self._create_above(path)

    def probe(self) -> None:
        """Prove that the store can be written; raises OSError."""
        path = self.path("tmp", f"startup-{self.instance}.probe")
        with contextlib.suppress(FileNotFoundError):
            self.files.unlink(path)
        try:
            self.files.create(path, b"probe", sync=True)
        finally:
            with contextlib.suppress(OSError):
                self.files.unlink(path)

    def make_directory(self, path: str) -> None:
        """Create a directory below the root, and those between, unless they are there."""
        try:
            self.files.make_directory(path)
        except FileExistsError:
            return
        except FileNotFoundError:
            parent = os.path.dirname(path)
            if len(parent) <= len(self.root):
                raise StoreMissing(self.root) from None
            self.make_directory(parent)
            with contextlib.suppress(FileExistsError):
                self.files.make_directory(path)
        if self.fsync != "never":
            self.files.sync_directory(os.path.dirname(path))

    def write(self, kind: str, target: str, data: bytes, sync: Sync) -> None:
        """
        Put C{data} at C{target}, whole or not at all, and durable as C{sync} says.

        An error leaves the old state, unless it came from forcing the directory: then the new
        one is in place and may not survive a power loss.  C{kind} names the failpoints.
        """
        self.at(f"{kind}.begin")
        temporary = self.temporary()
        try:
            self.begin(temporary, data, sync.file)
            self.at(f"{kind}.written")
            self._rename(temporary, target)
        except BaseException:
            self.discard(temporary)
            raise
        self._in_place(kind, target, sync)

    def write_pieces(self, kind: str, target: str, pieces: Iterator[bytes], sync: Sync) -> None:
        """Do as L{write} does, with bytes that need not be in memory at once."""
        temporary = self.temporary()
        try:
            self.begin(temporary, next(pieces, b""), False)
            for piece in pieces:
                self.files.append(temporary, piece)
            self.move_in(kind, temporary, target, sync)
        except BaseException:
            self.discard(temporary)
            raise

    def move_in(self, kind: str, temporary: str, target: str, sync: Sync) -> None:
        """Put a temporary file that L{begin} made at C{target}, as L{write} does with bytes."""
        if sync.file:
            self.files.sync(temporary)
        self.at(f"{kind}.written")
        self._rename(temporary, target)
        self._in_place(kind, target, sync)

    def _in_place(self, kind: str, target: str, sync: Sync) -> None:
        self.at(f"{kind}.renamed")
        if sync.directory:
            self.files.sync_directory(os.path.dirname(target))
        self.at(f"{kind}.synced")

    def temporary(self) -> str:
        """Return the path of a temporary file that nobody else will use."""
        return self.path("tmp", f"w-{self.instance}-{self.next_number()}.tmp")

    def begin(self, temporary: str, data: bytes, sync: bool) -> None:
        """Create a temporary file; one that is left behind is swept away some day."""
        try:
            self.files.create(temporary, data, sync)
        except FileNotFoundError:
            self.make_directory(self.path("tmp"))
            self.files.create(temporary, data, sync)

    def _rename(self, temporary: str, target: str) -> None:
        try:
            self.files.rename(temporary, target)
        except FileNotFoundError:
            # A peer's garbage collection may have taken the directory with the last record.
            self.make_directory(os.path.dirname(target))
            self.files.rename(temporary, target)

    def discard(self, temporary: str) -> None:
        """Remove a temporary file, if that can be done."""
        with contextlib.suppress(OSError):
            self.files.unlink(temporary)

    def quarantine(self, path: str) -> bool:
        """Set a file aside whose content cannot be understood; False if that did not work."""
        target = self.path("quarantine", f"{os.path.basename(path)}.{self.instance}.bad")
        try:
            self.files.rename(path, target)
        except OSError:
            return False
        self.at("quarantine.moved")
        with contextlib.suppress(OSError):
            self.files.touch(target, self.clock.now())
        return True

    @contextlib.contextmanager
    def locked(self, path: str, *, touch: bool = True) -> Iterator[None]:
        """Hold the lock file at C{path}, marked as in use now; waits for as long as it takes."""
        began = self.clock.seconds()
        lock = self._lock(path)
        self.stats.add_lock(max(0.0, self.clock.seconds() - began))
        try:
            self.at("lock.taken")
            if touch:
                with contextlib.suppress(OSError):
                    self.files.touch(path, self.clock.now())
            yield
        finally:
            lock.release()

    def try_lock(self, path: str) -> Lock | None:
        """Take the lock file at C{path} if nobody has it, without a trace in its times."""
        return self.files.lock(path, wait=False)

    def _lock(self, path: str) -> Lock:
        try:
            lock = self.files.lock(path, wait=True)
        except FileNotFoundError:
            self.make_directory(os.path.dirname(path))
            lock = self.files.lock(path, wait=True)
        if lock is None:
            raise BlockingIOError(f"no lock on {path}")
        return lock

    def _create_above(self, path: str) -> None:
        try:
            self.files.make_directory(path)
        except FileExistsError:
            if not self.files.status(path).is_directory:
                raise NotADirectoryError(errno.ENOTDIR, "Not a directory", path) from None
            return
        except FileNotFoundError:
            self._create_above(os.path.dirname(path))
            with contextlib.suppress(FileExistsError):
                self.files.make_directory(path)
        self.files.sync_directory(os.path.dirname(path))


@attrs.define(eq=False)
class Part:
    """A part of a store, whose operations are counted with L{measured}."""

    _tree: Tree

    @property
    def stats(self) -> Stats:
        """Where operations are counted."""
        return self._tree.stats

    def seconds(self) -> float:
        """Return monotonic seconds."""
        return self._tree.clock.seconds()


def names_in(files: Files, path: str) -> list[str]:
    """Return the names in a directory, none if it is not there."""
    try:
        return files.names(path)
    except FileNotFoundError:
        return []


def directories_in(files: Files, path: str) -> list[str]:
    """Return the names of the directories in a directory, none if it is not there."""
    try:
        return files.directories(path)
    except FileNotFoundError:
        return []
