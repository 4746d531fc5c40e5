"""
The few things a store does with a file system, and the real one.

Everything the store touches goes through here, so that a fault, a crash or a whole disk can be
put in its place (L{cronstable.state.faults}, L{cronstable.state.memory}).
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import Protocol

import attrs

from cronstable.state.encoding import LARGEST

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700


@attrs.frozen
class FileStatus:
    """What is known of a file without reading it; C{modified} in epoch seconds."""

    size: int
    modified: float
    is_directory: bool


class Lock(Protocol):
    """A lock that is held."""

    def release(self) -> None:
        """Let the next one have it."""


class Files(Protocol):
    """
    A file system; paths are absolute, errors are OSErrors.

    Created files are 0600 and directories 0700, less the umask.  A call may hang for as long as
    the medium does.
    """

    def make_directory(self, path: str) -> None:
        """Create one directory; FileExistsError if it is there."""

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, in no order."""

    def directories(self, path: str) -> list[str]:
        """Return the names of the directories in a directory, in no order."""

    def read(self, path: str) -> bytes:
        """
        Return all bytes of a file; never waits for a writer of a pipe.

        Raises OSError with EFBIG for one of more than L{LARGEST} bytes, or with no end.
        """

    def read_part(self, path: str, offset: int, size: int) -> bytes:
        """Return C{size} bytes from C{offset} on, fewer only at the end of the file."""

    def create(self, path: str, data: bytes, sync: bool) -> None:
        """Write a new file, forced to the medium if C{sync}; FileExistsError if it is there."""

    def append(self, path: str, data: bytes) -> None:
        """Write to the end of a file that is there."""

    def sync(self, path: str) -> None:
        """Force the bytes of a file to the medium."""

    def rename(self, source: str, target: str) -> None:
        """Give a file another name, replacing what had it."""

    def sync_directory(self, path: str) -> None:
        """Force the names in a directory to the medium."""

    def unlink(self, path: str) -> None:
        """Remove a file."""

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""

    def status(self, path: str) -> FileStatus:
        """Return what is known of a file."""

    def touch(self, path: str, when: float) -> None:
        """Set when a file was last modified, in epoch seconds."""

    def lock(self, path: str, wait: bool) -> Lock | None:
        """
        Take the exclusive lock that the file at C{path}, created if need be, stands for.

        Two holders exclude each other also within a process.  None if another holds it and
        C{wait} is false.
        """


class OsFiles:
    """The file system of this host."""

    def make_directory(self, path: str) -> None:
        """Create one directory."""
        os.mkdir(path, DIRECTORY_MODE)

    def names(self, path: str) -> list[str]:
        """Return the names in a directory."""
        return os.listdir(path)

    def directories(self, path: str) -> list[str]:
        """Return the names of the directories in a directory."""
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir()]

    def read(self, path: str) -> bytes:
        """Return all bytes of a file; one that a peer on a network mount replaced is read anew."""
        try:
            return self._read(path)
        except OSError as error:
            if error.errno != errno.ESTALE:
                error.filename = error.filename or path
                raise
        return self._read(path)

    def _read(self, path: str) -> bytes:
        descriptor = _open_to_read(path)
        try:
            # Most files are small, and a large buffer costs more than reading one of them.
            first = os.read(descriptor, 4096)
            more = os.read(descriptor, 65536) if first else b""
            if not more:
                return first
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
                # What is no regular file, such as a link to a device, may have no end.
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
            # The memory of one large piece goes back to the system, that of many often does not.
            os.lseek(descriptor, 0, os.SEEK_SET)
            size = max(status.st_size + 1, 1 << 20)
            pieces = [os.read(descriptor, size)]
            while pieces[-1] and sum(map(len, pieces)) != status.st_size:
                pieces.append(os.read(descriptor, size))
            return b"".join(pieces)
        finally:
            os.close(descriptor)

    def read_part(self, path: str, offset: int, size: int) -> bytes:
        """Return C{size} bytes from C{offset} on, fewer only at the end of the file."""
        descriptor = _open_to_read(path)
        try:
            os.lseek(descriptor, offset, os.SEEK_SET)
            pieces = [os.read(descriptor, size)]
            while pieces[-1] and (left := size - sum(map(len, pieces))):
                pieces.append(os.read(descriptor, left))
            return b"".join(pieces)
        finally:
            os.close(descriptor)

    def create(self, path: str, data: bytes, sync: bool) -> None:
        """Write a new file; what is left of a failed write is the caller's to remove."""
        descriptor = os.open(path, _CREATE, FILE_MODE)
        try:
            _write_all(descriptor, data)
            if sync:
                os.fsync(descriptor)
        except OSError as error:
            error.filename = error.filename or path  # The system names files that it opens only.
            raise
        finally:
            os.close(descriptor)

    def append(self, path: str, data: bytes) -> None:
        """Write to the end of a file that is there."""
        descriptor = os.open(path, _APPEND)
        try:
            _write_all(descriptor, data)
        except OSError as error:
            error.filename = error.filename or path
            raise
        finally:
            os.close(descriptor)

    def sync(self, path: str) -> None:
        """Force the bytes of a file to the medium."""
        descriptor = os.open(path, _APPEND)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, source: str, target: str) -> None:
        """Give a file another name."""
        os.replace(source, target)

    def sync_directory(self, path: str) -> None:
        """Force the names in a directory to the medium, where the system has a way to."""
        if sys.platform == "win32":
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        os.unlink(path)

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        os.rmdir(path)

    def status(self, path: str) -> FileStatus:
        """Return what is known of a file."""
        status = os.stat(path)
        return FileStatus(status.st_size, status.st_mtime, _is_directory(status.st_mode))

    def touch(self, path: str, when: float) -> None:
        """Set when a file was last modified; a link's own time, not that of what it leads to."""
        os.utime(path, (when, when), follow_symlinks=_FOLLOWED)

    def lock(self, path: str, wait: bool) -> Lock | None:
        """
        Take an advisory lock on the whole file.

        The file may be swept away while its lock is waited for, so what counts is a lock on the
        file that the path still names.
        """
        while True:
            descriptor = os.open(path, _LOCK, FILE_MODE)
            try:
                if not _flock(descriptor, wait):
                    os.close(descriptor)
                    return None
                if _still_named(path, descriptor):
                    _give_a_byte(descriptor)
                    return _OsLock(descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)


@attrs.define
class _OsLock:
    """A locked descriptor; closing it unlocks."""

    _descriptor: int

    def release(self) -> None:
        """Unlock, once."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


_CLOEXEC = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _CLOEXEC
_READ_QUIETLY = _READ | getattr(os, "O_NOATIME", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOEXEC
_APPEND = os.O_WRONLY | os.O_APPEND | _CLOEXEC
_LOCK = os.O_RDWR | os.O_CREAT | _CLOEXEC

_FOLLOWED = os.utime not in os.supports_follow_symlinks


def _open_to_read(path: str) -> int:
    """Open a file, if that is allowed without a note of when it was read, which costs a write."""
    try:
        return os.open(path, _READ_QUIETLY)
    except PermissionError:
        return os.open(path, _READ)


def _write_all(descriptor: int, data: bytes) -> None:
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])


def _is_directory(mode: int) -> bool:
    return mode & 0o170000 == 0o040000


def _still_named(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _give_a_byte(descriptor: int) -> None:
    """Make sure there is something to lock for peers that lock bytes."""
    if os.fstat(descriptor).st_size == 0:
        try:
            os.write(descriptor, b"\0")
        except OSError:
            return  # A full disk is no reason to refuse a lock.


if sys.platform == "win32":
    import msvcrt

    def _flock(descriptor: int, wait: bool) -> bool:
        """Lock byte 0; the library's own wait ends after ten seconds, so it is repeated."""
        while True:
            os.lseek(descriptor, 0, os.SEEK_SET)
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
                return True
            except OSError:
                if not wait:
                    return False

else:
    import fcntl

    def _flock(descriptor: int, wait: bool) -> bool:
        """Lock the whole file; False if another holds it and C{wait} is false."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True
