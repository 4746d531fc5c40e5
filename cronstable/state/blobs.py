"""Payloads under the digest of their bytes (docs/store-format.md, "Blobs")."""

from __future__ import annotations

import hashlib
import re

import attrs

from cronstable.state.errors import BadDigest, Unreadable
from cronstable.state.files import FileStatus
from cronstable.state.stats import Stats, measured
from cronstable.state.tree import Tree, sync_of

SUFFIX = ".blob"

_DIGEST = re.compile(r"[0-9a-f]{64}")


@attrs.define(eq=False)
class Blobs:
    """The payloads of one store namespace; any thread may call."""

    _tree: Tree

    @property
    def stats(self) -> Stats:
        """Where operations are counted."""
        return self._tree.stats

    def seconds(self) -> float:
        """Return monotonic seconds."""
        return self._tree.clock.seconds()

    @measured("blob-put")
    def put(self, data: bytes) -> str:
        """
        Keep C{data} and return its SHA-256 in hex; call it before the record that names it.

        A payload that is there already only becomes young again, which the sweep respects.
        """
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(digest)
        if self._refreshed(path, len(data)):
            return digest
        self._tree.write("blob", path, data, sync_of(self._tree.fsync, acknowledges=True))
        return digest

    @measured("blob-get")
    def get(self, digest: str) -> bytes | None:
        """
        Return a payload, None if there is none.

        Raises L{BadDigest} for what is no digest, L{Unreadable} if the bytes are not those.
        """
        path = self._path(digest)
        try:
            data = self._tree.files.read(path)
        except FileNotFoundError:
            return None
        if hashlib.sha256(data).hexdigest() != digest:
            raise Unreadable(path, "its bytes are not what its name says")
        return data

    @measured("blob-stat")
    def stat(self, digest: str) -> FileStatus | None:
        """Return size and age of a payload, None if there is none; raises L{BadDigest}."""
        return self._status(self._path(digest))

    def _path(self, digest: str) -> str:
        if not _DIGEST.fullmatch(digest):
            raise BadDigest(f"{digest!r} is not 64 lower-case hex digits")
        return self._tree.path("blobs", digest[:2], digest + SUFFIX)

    def _status(self, path: str) -> FileStatus | None:
        try:
            return self._tree.files.status(path)
        except FileNotFoundError:
            return None

    def _refreshed(self, path: str, size: int) -> bool:
        """Make a payload young if it is there and of the right size."""
        status = self._status(path)
        if status is None or status.size != size:
            return False
        try:
            self._tree.files.touch(path, self._tree.clock.now())
        except FileNotFoundError:
            return False
        return True
