"""
Copies of a whole store: to and from an archive, and from one place to another.

docs/durability.md tells what a copy of a store in use is worth.  All of it is plain file work on
this host; no store is started.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import logging
import os
import secrets
import stat
import tarfile
import zlib
from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import IO, BinaryIO, Literal

import attrs

from cronstable.state.errors import Malformed
from cronstable.state.files import FILE_MODE
from cronstable.state.leases import FILE as LEASE
from cronstable.state.leases import LOCK, lease_in
from cronstable.state.tree import KEPT_AREAS, Sync, Tree

log = logging.getLogger("cronstable.state")


PIECE = 1 << 20
"""Bytes of a file that are in memory at once; no lease is as large."""


class BadArchive(Exception):
    """A file that is no whole backup; the text names it and says why."""


@attrs.frozen
class StoredFile:
    """
    One file of a store: its path below the namespace directory, its size, and its bytes.

    The bytes can be read once, and only before the next file is asked for.
    """

    path: str
    size: int
    content: IO[bytes]
    modified: float = 0.0

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes, a few at a time: a payload may be larger than the memory."""
        return iter(lambda: self.content.read(PIECE), b"")


@attrs.frozen
class Copied:
    """What a copy put into a store: files written, leases kept as newer, members left out."""

    written: int = 0
    leases_kept: int = 0
    left_out: int = 0


def stored_files(root: str) -> Iterator[StoredFile]:
    """
    Yield the files of a store, each whole as it was at one moment; those that vanish are skipped.

    What names a payload comes before the payloads, so that a copy beside a writer lacks none.
    """
    for area in KEPT_AREAS:
        top = os.path.join(root, area)
        if os.path.islink(top):
            os.stat(top)  # A disk that is not mounted is not an empty one.
        for directory, below, files in os.walk(top, onerror=_unless_gone):
            below.sort()
            for path in (os.path.join(directory, name) for name in below):
                if os.path.islink(path):
                    log.warning("state: left out %s: links are not followed", path)
            for name in sorted(files):
                path = os.path.join(directory, name)
                with contextlib.suppress(FileNotFoundError):
                    if os.path.islink(path) or not os.path.isfile(path):
                        if os.path.lexists(path):
                            log.warning("state: left out %s: it is no file", path)
                        continue
                    with open(path, "rb") as file:
                        status = os.fstat(file.fileno())
                        place = os.path.relpath(path, root)
                        yield StoredFile(place, status.st_size, file, status.st_mtime)


def is_populated(root: str) -> bool:
    """Return whether a namespace directory holds anything worth keeping."""
    for area in KEPT_AREAS:
        for _, _, files in os.walk(os.path.join(root, area), onerror=_unless_gone):
            if files:
                return True
    return False


def write_archive(root: str, output: str) -> int:
    """
    Write all files of a store into a gzipped tar, 0600, replacing C{output} once it is whole.

    Returns how many; raises OSError.
    """
    target = _target_of(output)
    temporary = os.path.join(os.path.dirname(target), f"cronstable-{secrets.token_hex(4)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    except OSError as error:
        error.filename = output
        raise
    try:
        with os.fdopen(descriptor, "wb") as raw:
            count = _fill(raw, root)
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:
            error.filename = output
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return count


def _target_of(output: str) -> str:
    """
    Return the path of the file that an archive at C{output} becomes; links are followed.

    Raises OSError for a device or a pipe, which nobody wants replaced by a file, and for a link
    that somebody else may have left in a shared directory.
    """
    if os.path.islink(output):
        owner = os.lstat(output).st_uid
        if owner and owner != os.geteuid():
            raise PermissionError(errno.EACCES, "A link of another user", output)
    target = os.path.realpath(output)
    if os.path.exists(target) and not os.path.isfile(target):
        raise OSError(errno.EINVAL, "Not a regular file", output)
    return target


def _fill(raw: BinaryIO, root: str) -> int:
    count = 0
    with tarfile.open(fileobj=raw, mode="w:gz", compresslevel=6) as tar:
        for stored in stored_files(root):
            member = tarfile.TarInfo(stored.path.replace(os.sep, "/"))
            member.size = stored.size
            member.mtime = int(stored.modified)
            member.mode = FILE_MODE
            tar.addfile(member, stored.content)
            count += 1
    return count


def verify_archive(archive: str) -> None:
    """
    Read an archive to its end.

    Raises L{BadArchive}, also if no member is part of a store; OSError if it is not there.
    """
    if not stat.S_ISREG(os.stat(archive).st_mode):
        raise BadArchive(f"{archive} is not a regular file, and an archive is read twice")
    members = belonging = 0
    for stored in archived_files(archive):
        members += 1
        if stored is not None:
            belonging += 1
            deque(stored.pieces(), maxlen=0)
    if members and not belonging:
        raise BadArchive(
            f"{archive} holds nothing of a store: members are named like records/..., from the"
            " directory of the namespace on"
        )


def archived_files(archive: str) -> Iterator[StoredFile | None]:
    """
    Yield the files of a store in an archive, None for each member that is no part of one.

    Links, devices, absolute paths, C{..} and everything outside the areas of a store are none.
    """
    try:
        with gzip.open(archive) as unzipped:
            with tarfile.open(fileobj=unzipped, mode="r|") as tar:
                for member in tar:
                    if member.isdir():
                        continue
                    place = _place_of(member)
                    content = None if place is None else tar.extractfile(member)
                    if place is None or content is None:
                        yield None
                    else:
                        yield StoredFile(place, member.size, content)
            while unzipped.read(1 << 20):
                pass  # Only at its very end does an archive tell whether it is whole.
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise BadArchive(f"{archive} is not a whole gzipped tar archive: {error}") from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise BadArchive(f"{archive} is not a whole gzipped tar archive: {error}") from None


def _place_of(member: tarfile.TarInfo) -> str | None:
    """Return where below a namespace directory a member belongs, None if nowhere."""
    name = member.name.removeprefix("./")  # As C{tar -C DIRECTORY .} writes them.
    parts = name.split("/")
    belongs = (
        member.isreg()
        and "\\" not in name
        and "\0" not in name
        and len(parts) >= 2
        and parts[0] in KEPT_AREAS
        and not any(part in ("", ".", "..") for part in parts)
    )
    return name if belongs else None


def put_files(tree: Tree, files: Iterator[StoredFile | None], merge: bool) -> Copied:
    """
    Write files into a store that nobody uses, each whole or not at all; raises OSError.

    With C{merge} lock files are left out, and a lease that is there is replaced only by one whose
    fence is not below its own.
    """
    tree.create()
    written = leases_kept = left_out = 0
    for stored in files:
        if stored is None:
            left_out += 1
            continue
        if merge and stored.path.endswith(LOCK):
            continue
        first = stored.content.read(PIECE)
        if merge and stored.path.endswith(LEASE) and not _may_replace(tree, stored.path, first):
            leases_kept += 1
            continue
        target = tree.path(*stored.path.split(os.sep))
        tree.make_directory(os.path.dirname(target))
        tree.write_pieces("name", target, chain((first,), stored.pieces()), Sync(False, False))
        written += 1
    # One flush of everything instead of two for each of thousands of files.
    os.sync()
    return Copied(written, leases_kept, left_out)


def _may_replace(tree: Tree, path: str, raw: bytes) -> bool:
    """Return whether the lease in C{raw} is provably not older than the one that is there."""
    try:
        present = tree.files.read(tree.path(*path.split(os.sep)))
    except FileNotFoundError:
        return True
    try:
        return lease_in(raw).fence >= lease_in(present).fence
    except Malformed:
        return False


def _unless_gone(error: OSError) -> Literal[None]:
    if not isinstance(error, FileNotFoundError):
        raise error
