"""
What can go wrong in a store, apart from the operating system's own errors.

Whoever asks the store for something catches L{TROUBLE}: the answer could not be had.  A
L{NotPortable} or L{BadDigest} is the caller's mistake instead.
"""

from __future__ import annotations


class StoreError(Exception):
    """Base of the store's own errors."""


class NotPortable(StoreError, ValueError):
    """A value that not every reader of the store could read back; nothing was written."""


class BadDigest(StoreError, ValueError):
    """A blob was asked for by something that is not 64 lower-case hex digits."""


class Malformed(StoreError):
    """Bytes that are no record, document or lease; the text says why."""


class Foreign(StoreError):
    """A well-formed record or document of another scheme than this build's."""

    def __init__(self, version: object) -> None:
        super().__init__(f"its schemaVersion is {version!r}, this build knows only 'v1'")
        self.version = version


class Unreadable(StoreError):
    """A strict read met a file that exists and says nothing; C{path} names it."""

    def __init__(self, path: str, why: object) -> None:
        super().__init__(f"{path} cannot be read: {why}")
        self.path = path


class StoreMissing(StoreError, FileNotFoundError):
    """The directory of the whole store has gone, as when its mount is not there."""

    def __init__(self, path: str) -> None:
        super().__init__(f"the store at {path} is not there")


TROUBLE = (OSError, Unreadable)
"""What to catch where a store that cannot answer has to be survived."""
