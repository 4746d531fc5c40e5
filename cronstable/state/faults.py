"""
A file system with trouble: full, broken, forbidden, stale, slow or hanging, where and when told.

It wraps another; tests put it under a store, a worker pool or a whole daemon.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from typing import Literal

import attrs

from cronstable.state.files import Files, FileStatus, Lock

Op = Literal[
    "make_directory",
    "names",
    "directories",
    "read",
    "read_part",
    "create",
    "append",
    "sync",
    "rename",
    "sync_directory",
    "unlink",
    "remove_directory",
    "status",
    "touch",
    "lock",
]
READING: tuple[Op, ...] = ("names", "directories", "read", "read_part", "status")
WRITING: tuple[Op, ...] = (
    *("make_directory", "create", "append", "sync", "rename", "unlink", "lock", "touch"),
)


@attrs.define(eq=False)
class Fault:
    """
    One kind of trouble: operations C{ops} (empty = all) on paths that contain C{match}.

    It goes off at most C{times} times (None = until L{FaultyFiles.heal}).
    """

    ops: tuple[Op, ...]
    act: Callable[[], object]
    match: str = ""
    times: int | None = None
    torn: bool = False
    hits: int = 0


class FaultyFiles:
    """Files of C{inner}, through whatever faults are set."""

    def __init__(self, inner: Files) -> None:
        self._inner = inner
        self._faults: list[Fault] = []
        self._lock = threading.Lock()
        self.calls: list[tuple[Op, str]] = []
        """Every call that was made, in order."""

    def fail(
        self,
        *ops: Op,
        error: int = errno.EIO,
        match: str = "",
        times: int | None = None,
        torn: bool = False,
    ) -> Fault:
        """Let operations raise OSError C{error}; C{torn}: a create leaves half of its bytes."""

        def act() -> None:
            raise OSError(error, os.strerror(error), match or None)

        return self._set(Fault(ops, act, match, times, torn))

    def hang(self, *ops: Op, match: str = "", times: int | None = None) -> threading.Event:
        """Let operations wait; return the event that lets them go on when set."""
        go_on = threading.Event()
        self._set(Fault(ops, go_on.wait, match, times))
        return go_on

    def call(
        self, *ops: Op, act: Callable[[], object], match: str = "", times: int | None = None
    ) -> Fault:
        """Call C{act} before operations: to be slow, to interfere, to raise anything."""
        return self._set(Fault(ops, act, match, times))

    def heal(self) -> None:
        """Let every operation work from now on."""
        with self._lock:
            self._faults.clear()

    def _set(self, fault: Fault) -> Fault:
        with self._lock:
            self._faults.append(fault)
        return fault

    def _before(self, op: Op, path: str, torn: Callable[[], object] | None = None) -> None:
        with self._lock:
            self.calls.append((op, path))
            struck = [fault for fault in self._faults if _strikes(fault, op, path)]
            for fault in struck:
                fault.hits += 1
        for fault in struck:
            if fault.torn and torn is not None:
                torn()
            fault.act()

    def make_directory(self, path: str) -> None:
        """Create one directory."""
        self._before("make_directory", path)
        self._inner.make_directory(path)

    def names(self, path: str) -> list[str]:
        """Return the names in a directory."""
        self._before("names", path)
        return self._inner.names(path)

    def directories(self, path: str) -> list[str]:
        """Return the names of the directories in a directory."""
        self._before("directories", path)
        return self._inner.directories(path)

    def read(self, path: str) -> bytes:
        """Return all bytes of a file."""
        self._before("read", path)
        return self._inner.read(path)

    def read_part(self, path: str, offset: int, size: int) -> bytes:
        """Return a part of a file."""
        self._before("read_part", path)
        return self._inner.read_part(path, offset, size)

    def create(self, path: str, data: bytes, sync: bool) -> None:
        """Write a new file."""
        half = data[: len(data) // 2]
        self._before("create", path, lambda: self._inner.create(path, half, False))
        self._inner.create(path, data, sync)

    def append(self, path: str, data: bytes) -> None:
        """Write to the end of a file."""
        half = data[: len(data) // 2]
        self._before("append", path, lambda: self._inner.append(path, half))
        self._inner.append(path, data)

    def sync(self, path: str) -> None:
        """Force the bytes of a file to the medium."""
        self._before("sync", path)
        self._inner.sync(path)

    def rename(self, source: str, target: str) -> None:
        """Give a file another name; C{match} is looked for in the target."""
        self._before("rename", target)
        self._inner.rename(source, target)

    def sync_directory(self, path: str) -> None:
        """Force the names in a directory to the medium."""
        self._before("sync_directory", path)
        self._inner.sync_directory(path)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        self._before("unlink", path)
        self._inner.unlink(path)

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        self._before("remove_directory", path)
        self._inner.remove_directory(path)

    def status(self, path: str) -> FileStatus:
        """Return what is known of a file."""
        self._before("status", path)
        return self._inner.status(path)

    def touch(self, path: str, when: float) -> None:
        """Set when a file was last modified."""
        self._before("touch", path)
        self._inner.touch(path, when)

    def lock(self, path: str, wait: bool) -> Lock | None:
        """Take the exclusive lock that a file stands for."""
        self._before("lock", path)
        return self._inner.lock(path, wait)


def _strikes(fault: Fault, op: Op, path: str) -> bool:
    if fault.ops and op not in fault.ops:
        return False
    if fault.times is not None and fault.hits >= fault.times:
        return False
    return fault.match in path
