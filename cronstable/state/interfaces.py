"""
What other rooms ask of the durable store.

The answers are Deferreds; the work is done by L{cronstable.state.store.Store} in worker threads.
A Deferred fails with OSError or L{cronstable.state.errors.Unreadable} when the store cannot
answer (L{cronstable.state.errors.TROUBLE}); what that means for a job is
C{state.onStoreUnavailable}'s to say, not the store's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from zope.interface import Attribute, Interface


class IRecordStore(Interface):
    """Streams of immutable records."""

    def append(
        stream: str,
        data: Mapping[str, Any],
        keep: int | None = None,
        newest_per: str | None = None,
    ) -> Any:
        """Add a record, and keep about C{keep}; fire with its stem once it is durable."""

    def records(stream: str, limit: int | None = None, strict: bool = False) -> Any:
        """Fire with the newest readable records in stream order."""

    def latest(stream: str, strict: bool = False) -> Any:
        """Fire with the newest readable record or None."""

    def derive_max(stream: str, field: str, read: Callable[[Any], Any], strict: bool = True) -> Any:
        """Fire with the greatest C{read(value)} of a field over the stream, or None."""

    def prune(stream: str, keep: int) -> Any:
        """Remove all but the newest C{keep}; fire with how many went."""

    def streams(prefix: str = "") -> Any:
        """Fire with a L{cronstable.state.documents.Listing} of stream names."""


class IDocumentStore(Interface):
    """Mutable documents."""

    def document(namespace: str, key: str) -> Any:
        """Fire with a body or None."""

    def mutate(namespace: str, key: str, decide: Callable[[dict[str, Any] | None], Any]) -> Any:
        """
        Change a document while nobody else can; fire with the result of the change.

        C{decide} runs in a worker thread, under the lock, and returns a
        L{cronstable.state.documents.Put}, C{Remove} or C{Leave}.
        """

    def keys(namespace: str) -> Any:
        """Fire with a L{cronstable.state.documents.Listing} of keys."""


class IBlobStore(Interface):
    """Payloads by the SHA-256 of their bytes."""

    def put_blob(data: bytes) -> Any:
        """Keep a payload; fire with its digest."""

    def get_blob(digest: str) -> Any:
        """Fire with a payload or None."""


class ILeaseStore(Interface):
    """Leases; never queued behind the other operations, nor limited in rate."""

    def acquire(name: str, holder: str, ttl: float) -> Any:
        """Fire with a L{cronstable.state.leases.Held} or C{Denied}."""

    def renew(name: str, holder: str, fence: int, ttl: float) -> Any:
        """Fire with a L{cronstable.state.leases.Held} or C{Denied}."""

    def release(name: str, holder: str, fence: int) -> Any:
        """Fire with whether it was the caller's to release."""

    def lease(name: str) -> Any:
        """Fire with a L{cronstable.state.leases.Lease} or None; grants nothing."""

    def adopt(name: str, holder: str) -> Any:
        """Fire with a L{cronstable.state.leases.Held} if C{holder} has it after all, or None."""


class IStateStore(IRecordStore, IDocumentStore, IBlobStore, ILeaseStore):
    """The durable store of a daemon, whole."""

    view = Attribute("The L{cronstable.state.store.View} of the started store, or None.")

    def call(op: Callable[[Any], Any]) -> Any:
        """Run C{op(store)} with the synchronous store in a worker; fire with what it returns."""
