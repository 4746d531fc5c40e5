"""
A file system in memory that knows what a power loss would leave.

Tests and simulated worlds run the real store on it.  It is as harsh as POSIX allows: what was not
forced to the medium is gone after L{MemoryFiles.power_loss}, unless told otherwise.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable

import attrs

from cronstable.state.files import FileStatus, Lock


@attrs.define(eq=False)
class _Node:
    data: bytes = b""
    durable: bytes = b""
    modified: float = 0.0
    is_directory: bool = False
    locked: bool = False


Survives = Callable[[str], bool]
"""Whether something that was not forced to the medium (named by a path) got there all the same."""


class MemoryFiles:
    """Files in memory; C{now} gives the times of changes, in epoch seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._changed = threading.Condition(threading.RLock())
        root = _Node(is_directory=True, modified=now())
        self._live: dict[str, _Node] = {"/": root}
        self._members: dict[str, set[str]] = {"/": set()}
        self._durable: dict[str, _Node] = {"/": root}

    def process_death(self) -> MemoryFiles:
        """Return what the next process finds: everything that was written, and no locks."""
        return self._copy(self._live, lambda node: node.data)

    def power_loss(self, survives: Survives = lambda path: False) -> MemoryFiles:
        """
        Return what the next boot finds.

        Names stand as they were when their directory was last forced to the medium, contents as
        they were when the file was; each newer state is there only if C{survives} its path.
        """
        with self._changed:
            names = {
                path: self._durable[path]
                for path in self._durable
                if path in self._live or not survives(path)
            }
            for path, node in self._live.items():
                if names.get(path) is not node and survives(path):
                    names[path] = node
            whole = {path: node for path, node in names.items() if _above(path) <= set(names)}
        kept = {id(node): survives(path) for path, node in whole.items()}
        return self._copy(whole, lambda node: node.data if kept[id(node)] else node.durable)

    def _copy(self, names: dict[str, _Node], content: Callable[[_Node], bytes]) -> MemoryFiles:
        other = MemoryFiles(self._now)
        copies: dict[int, _Node] = {}
        for path, node in names.items():
            data = content(node)
            if id(node) not in copies:
                copies[id(node)] = _Node(data, data, node.modified, node.is_directory)
            other._durable[path] = copies[id(node)]
            if path != "/":
                other._link(path, copies[id(node)])
        other._live["/"] = other._durable["/"]
        return other

    def paths(self) -> list[str]:
        """Return the paths of all files (not directories) there are, sorted."""
        with self._changed:
            return sorted(path for path, node in self._live.items() if not node.is_directory)

    def make_directory(self, path: str) -> None:
        """Create one directory."""
        with self._changed:
            self._add(path, _Node(is_directory=True, modified=self._now()))

    def names(self, path: str) -> list[str]:
        """Return the names in a directory."""
        with self._changed:
            self._directory(path)
            return [os.path.basename(other) for other in self._children(path)]

    def directories(self, path: str) -> list[str]:
        """Return the names of the directories in a directory."""
        with self._changed:
            self._directory(path)
            found = self._children(path)
            return [os.path.basename(other) for other in found if self._live[other].is_directory]

    def read(self, path: str) -> bytes:
        """Return all bytes of a file."""
        with self._changed:
            return self._file(path).data

    def read_part(self, path: str, offset: int, size: int) -> bytes:
        """Return a part of a file."""
        return self.read(path)[offset : offset + size]

    def create(self, path: str, data: bytes, sync: bool) -> None:
        """Write a new file."""
        with self._changed:
            durable = bytes(data) if sync else b""
            self._add(path, _Node(bytes(data), durable, self._now()))

    def append(self, path: str, data: bytes) -> None:
        """Write to the end of a file."""
        with self._changed:
            node = self._file(path)
            node.data += bytes(data)
            node.modified = self._now()

    def sync(self, path: str) -> None:
        """Force the bytes of a file to the medium."""
        with self._changed:
            node = self._file(path)
            node.durable = node.data

    def rename(self, source: str, target: str) -> None:
        """Give a file or a directory another name."""
        with self._changed:
            node = self._node(source)
            self._directory(os.path.dirname(target))
            there = self._live.get(target)
            if there is not None and there.is_directory:
                raise _error(errno.EISDIR, target)
            self._unlink(source)
            self._link(target, node)
            if node.is_directory:
                for path in [path for path in self._live if _is_in(path, source)]:
                    below = self._live[path]
                    self._unlink(path)
                    self._link(target + path[len(source) :], below)

    def sync_directory(self, path: str) -> None:
        """Force the names in a directory to the medium."""
        with self._changed:
            self._directory(path)
            for other in [other for other in self._durable if _parent(other) == path]:
                if other not in self._live:
                    for below in [d for d in self._durable if d == other or _is_in(d, other)]:
                        del self._durable[below]
            for other in self._children(path):
                self._durable[other] = self._live[other]

    def unlink(self, path: str) -> None:
        """Remove a file."""
        with self._changed:
            self._file(path)
            self._unlink(path)

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        with self._changed:
            self._directory(path)
            if self._children(path):
                raise _error(errno.ENOTEMPTY, path)
            self._unlink(path)

    def status(self, path: str) -> FileStatus:
        """Return what is known of a file."""
        with self._changed:
            node = self._node(path)
            return FileStatus(len(node.data), node.modified, node.is_directory)

    def touch(self, path: str, when: float) -> None:
        """Set when a file was last modified."""
        with self._changed:
            self._node(path).modified = when

    def lock(self, path: str, wait: bool) -> Lock | None:
        """Take the exclusive lock that a file stands for."""
        with self._changed:
            while True:
                if path not in self._live:
                    self._add(path, _Node(b"\0", b"", self._now()))
                node = self._file(path)
                if not node.locked:
                    node.locked = True
                    return _MemoryLock(node, self._changed)
                if not wait:
                    return None
                self._changed.wait()

    def _node(self, path: str) -> _Node:
        node = self._live.get(path)
        if node is None:
            above = self._live.get(_parent(path))
            missing = above is None or above.is_directory
            raise _error(errno.ENOENT if missing else errno.ENOTDIR, path)
        return node

    def _file(self, path: str) -> _Node:
        node = self._node(path)
        if node.is_directory:
            raise _error(errno.EISDIR, path)
        return node

    def _directory(self, path: str) -> _Node:
        node = self._node(path)
        if not node.is_directory:
            raise _error(errno.ENOTDIR, path)
        return node

    def _add(self, path: str, node: _Node) -> None:
        self._directory(_parent(path)).modified = self._now()
        if path in self._live:
            raise _error(errno.EEXIST, path)
        self._link(path, node)

    def _link(self, path: str, node: _Node) -> None:
        self._live[path] = node
        self._members.setdefault(_parent(path), set()).add(path)
        if node.is_directory:
            self._members.setdefault(path, set())

    def _unlink(self, path: str) -> None:
        del self._live[path]
        self._members[_parent(path)].discard(path)

    def _children(self, path: str) -> list[str]:
        return list(self._members[path])


@attrs.define(eq=False)
class _MemoryLock:
    _node: _Node
    _changed: threading.Condition
    _held: bool = True

    def release(self) -> None:
        """Unlock, once."""
        with self._changed:
            if self._held:
                self._held = self._node.locked = False
                self._changed.notify_all()


def _parent(path: str) -> str:
    return os.path.dirname(path)


def _above(path: str) -> set[str]:
    """Return the directories that a path is in."""
    found = set()
    while path != "/":
        path = _parent(path)
        found.add(path)
    return found


def _is_in(path: str, directory: str) -> bool:
    return path.startswith(directory.rstrip("/") + "/")


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
