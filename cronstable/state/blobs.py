"""Payloads under the digest of their bytes (docs/store-format.md, "Blobs")."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import attrs

from cronstable.state.errors import BadDigest, Unreadable
from cronstable.state.files import FileStatus
from cronstable.state.stats import measured
from cronstable.state.tree import Part, sync_of

SUFFIX = ".blob"

_DIGEST = re.compile(r"[0-9a-f]{64}")


@attrs.define(eq=False)
class Blobs(Part):
    """The payloads of one store namespace; any thread may call."""

    @measured("blob-put")
    def put(self, data: bytes) -> str:
        """
        Keep C{data} and return its SHA-256 in hex; call it before the record that names it.

        A payload that is there already only becomes young again, which the sweep respects.
        """
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest)
        if self.refreshed(digest, len(data)):
            return digest
        self._tree.write("blob", path, data, sync_of(self._tree.fsync, acknowledges=True))
        return digest

    @measured("blob-get")
    def get(self, digest: str) -> bytes | None:
        """
        Return a payload, None if there is none.

        Raises L{BadDigest} for what is no digest, L{Unreadable} if the bytes are not those.
        """
        path = self.path(digest)
        try:
            data = self._tree.files.read(path)
        except FileNotFoundError:
            return None
        if hashlib.sha256(data).hexdigest() != digest:
            raise Unreadable(path, "its bytes are not what its name says")
        return data

    @measured("blob-get")
    def get_part(self, digest: str, offset: int, size: int) -> bytes:
        """
        Return C{size} bytes of a payload from C{offset} on, fewer only at its end.

        Whoever has read all of them has to see whether they are what the digest says.  Raises
        FileNotFoundError if there is no such payload, L{BadDigest}.
        """
        return self._tree.files.read_part(self.path(digest), offset, size)

    def incoming(self) -> Incoming:
        """Return where a payload that comes in pieces is put."""
        return Incoming(self._tree, self)

    @measured("blob-stat")
    def stat(self, digest: str) -> FileStatus | None:
        """Return size and age of a payload, None if there is none; raises L{BadDigest}."""
        return self._status(self.path(digest))

    def path(self, digest: str) -> str:
        """Return where the payload of this digest is kept; raises L{BadDigest}."""
        if not _DIGEST.fullmatch(digest):
            raise BadDigest(f"{digest!r} is not 64 lower-case hex digits")
        return self._tree.path("blobs", digest[:2], digest + SUFFIX)

    def _status(self, path: str) -> FileStatus | None:
        try:
            return self._tree.files.status(path)
        except FileNotFoundError:
            return None

    def refreshed(self, digest: str, size: int) -> bool:
        """Make a payload young if it is there and of the right size; return whether it is."""
        path = self.path(digest)
        status = self._status(path)
        if status is None or status.size != size:
            return False
        try:
            self._tree.files.touch(path, self._tree.clock.now())
        except FileNotFoundError:
            return False
        return True


@attrs.define(eq=False)
class Incoming(Part):
    """
    A payload that comes in pieces, too large to be held in memory.

    Any thread may call, but one at a time: L{add} any number of times; then L{place} before the
    record that names it and L{confirm} after that; L{discard} at any point instead.
    """

    _blobs: Blobs
    size: int = 0
    _hash: Any = attrs.field(factory=hashlib.sha256, init=False)
    _temporary: str | None = attrs.field(default=None, init=False)

    @property
    def digest(self) -> str:
        """The SHA-256 of the pieces so far, in hex."""
        digest: str = self._hash.hexdigest()
        return digest

    @measured("blob-put")
    def add(self, piece: bytes) -> None:
        """Take the next piece; after an OSError there is nothing but L{discard}."""
        if self._temporary is None:
            self._temporary = self._tree.temporary()
            self._tree.begin(self._temporary, piece, False)
        else:
            self._tree.files.append(self._temporary, piece)
        self._hash.update(piece)
        self.size += len(piece)

    @measured("blob-put")
    def place(self) -> str:
        """Keep the payload under its digest, which is returned."""
        if self._temporary is None:
            return self._blobs.put(b"")
        digest = self.digest
        # What is there already is only made young, and ours kept in case a sweep was faster.
        if not self._blobs.refreshed(digest, self.size):
            self._move_in(digest)
        return digest

    @measured("blob-put")
    def confirm(self) -> None:
        """Put the payload in place again if a sweep took it before a record named it."""
        if self._temporary is not None and self._blobs.stat(self.digest) is None:
            self._move_in(self.digest)
        self.discard()

    def discard(self) -> None:
        """Remove what is not in place; may be repeated."""
        temporary, self._temporary = self._temporary, None
        if temporary is not None:
            self._tree.discard(temporary)

    def _move_in(self, digest: str) -> None:
        assert self._temporary is not None
        sync = sync_of(self._tree.fsync, acknowledges=True)
        self._tree.move_in("blob", self._temporary, self._blobs.path(digest), sync)
        self._temporary = None
