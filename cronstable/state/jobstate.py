"""
What a running job may keep: keys, cursors, claims and artifacts, each in a scope.

docs/store-format.md, "Documents", specifies the bodies.  Every function blocks as the store does.
"""

from __future__ import annotations

from typing import Any

import attrs

from cronstable.state import names
from cronstable.state.blobs import Incoming
from cronstable.state.documents import Change, Leave, Put, Remove
from cronstable.state.encoding import Data, to_text
from cronstable.state.errors import StoreError, Unreadable
from cronstable.state.store import Store
from cronstable.state.streams import artifacts


class BadScope(StoreError, ValueError):
    """A scope that is empty or has blanks at an end; it is never trimmed."""


class TooLarge(StoreError, ValueError):
    """A value of C{size} bytes, where C{limit} are allowed."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"the value has {size} bytes, {limit} are allowed")
        self.size = size
        self.limit = limit


class Incomparable(StoreError, ValueError):
    """A cursor that C{stands} at a value was to be advanced to one that has no order with it."""

    def __init__(self, stands: object, given: object) -> None:
        super().__init__("the new value and the stored one cannot be compared")
        self.stands = stands
        self.given = given


@attrs.frozen
class Advanced:
    """Where a cursor stands now, and whether this call moved it."""

    value: Any
    advanced: bool


@attrs.frozen
class Claim:
    """Whether this call won the key; C{claimed_at} (epoch seconds) is the winner's."""

    fresh: bool
    claimed_at: float


@attrs.frozen
class Artifact:
    """The newest record of an artifact; C{at} in epoch seconds."""

    name: str
    sha256: str
    size: int
    at: float


def kv_get(store: Store, scope: str, key: str) -> Data | None:
    """Return C{key}, C{value} and C{updatedAt}, None if nothing is stored; null is something."""
    return store.documents.read(f"kv/{_scope(scope)}", key)


def kv_set(store: Store, scope: str, key: str, value: object, max_bytes: int = 0) -> Data:
    """
    Store a JSON value and return the body.

    Raises L{NotPortable}, or L{TooLarge} if its compact text has more than C{max_bytes} (0 = any).
    """
    _check_value(value, max_bytes)
    body = {"key": key, "value": value, "updatedAt": store.tree.clock.now()}
    stored: Data = store.documents.mutate(
        f"kv/{_scope(scope)}", key, lambda current: Put(body, body)
    )
    return stored


def kv_delete(store: Store, scope: str, key: str) -> bool:
    """Remove a key; return whether it was there."""
    return _delete(store, f"kv/{_scope(scope)}", key)


def kv_list(store: Store, scope: str) -> list[Data]:
    """
    Return the bodies of all keys, sorted by key.

    A key whose file name was cut is told by its body, if that has the file's name.
    """
    found = []
    for entry in store.documents.entries(f"kv/{_scope(scope)}"):
        key = entry.body.get("key")
        if not isinstance(key, str) or names.token(key) != entry.token:
            if entry.key is None:
                raise Unreadable(entry.token, "its key cannot be told")
            key = entry.key
        found.append({**entry.body, "key": key})
    return sorted(found, key=lambda body: str(body["key"]))


def cursor_get(store: Store, scope: str, name: str) -> Data | None:
    """Return C{name}, C{value} and C{updatedAt} of a cursor, None if it was never set."""
    return store.documents.read(f"cursor/{_scope(scope)}", name)


def cursor_advance(
    store: Store, scope: str, name: str, value: object, *, force: bool = False, max_bytes: int = 0
) -> Advanced:
    """
    Move a cursor to C{value} if that is greater; with C{force} wherever it is.

    Numbers compare as numbers, texts as texts, and null is below everything; any other pair raises
    L{Incomparable}.  A cursor that does not move is not written.  Raises L{NotPortable} and
    L{TooLarge} as L{kv_set}.
    """
    _check_value(value, max_bytes)

    def decide(current: Data | None) -> Change:
        if current is not None:
            stands = current.get("value")
            differ = _differ(stands, value)
            moves = differ if force or stands is None else _greater(value, stands)
            if not moves:
                return Leave(Advanced(stands, False))
        body = {"name": name, "value": value, "updatedAt": store.tree.clock.now()}
        return Put(body, Advanced(value, True))

    moved: Advanced = store.documents.mutate(f"cursor/{_scope(scope)}", name, decide)
    return moved


def claim(store: Store, scope: str, key: str, ttl: float = 0.0) -> Claim:
    """Claim a key once, for ever or for C{ttl} seconds; exactly one of several callers wins."""

    def decide(current: Data | None) -> Change:
        now = store.tree.clock.now()
        if current is not None and _is_held(current, now):
            return Leave(Claim(False, current["claimedAt"]))
        body: Data = {"key": key, "claimedAt": now}
        if ttl > 0:
            body["expiresAt"] = now + ttl
        return Put(body, Claim(True, now))

    claimed: Claim = store.documents.mutate(f"idem/{_scope(scope)}", key, decide)
    return claimed


def release(store: Store, scope: str, key: str) -> bool:
    """Drop a claim so that the key can be won again; return whether there was one."""
    return _delete(store, f"idem/{_scope(scope)}", key)


def artifact_put(store: Store, scope: str, name: str, payload: bytes) -> Artifact:
    """
    Publish a payload under a name.

    The payload is in place before the record that names it, and is put again if a sweep took it
    in between.
    """
    stream = artifacts(_scope(scope))
    artifact = _publish(store, stream, name, store.blobs.put(payload), len(payload))
    if store.blobs.stat(artifact.sha256) is None:
        store.blobs.put(payload)
    return artifact


def artifact_put_incoming(store: Store, scope: str, name: str, incoming: Incoming) -> Artifact:
    """Publish a payload that has come in pieces, as L{artifact_put} does; it is used up then."""
    stream = artifacts(_scope(scope))
    artifact = _publish(store, stream, name, incoming.place(), incoming.size)
    incoming.confirm()
    return artifact


def _publish(store: Store, stream: str, name: str, digest: str, size: int) -> Artifact:
    artifact = Artifact(name, digest, size, store.tree.clock.now())
    record = {"name": name, "sha256": digest, "size": size, "at": artifact.at}
    store.records.append(stream, record, newest_per="name")
    return artifact


def artifact_list(store: Store, scope: str) -> list[Artifact]:
    """Return the newest record of each name, sorted by name."""
    newest: dict[str, Artifact] = {}
    for record in store.records.read(artifacts(_scope(scope))):
        artifact = _artifact(record)
        if artifact is not None:
            newest[artifact.name] = artifact
    return [newest[name] for name in sorted(newest)]


def artifact_find(store: Store, scope: str, name: str, *, strict: bool = False) -> Artifact | None:
    """
    Return the newest record of one name, None if there is none.

    C{strict} raises (OSError, L{Unreadable}) where a record could not be read, instead of taking
    it for absent.
    """
    for record in reversed(store.records.read(artifacts(_scope(scope)), strict=strict)):
        artifact = _artifact(record)
        if artifact is not None and artifact.name == name:
            return artifact
    return None


def _artifact(record: Data) -> Artifact | None:
    name, digest, size, at = (record.get(key) for key in ("name", "sha256", "size", "at"))
    if not isinstance(name, str) or not isinstance(digest, str) or not isinstance(size, int):
        return None
    return Artifact(name, digest, size, float(at) if isinstance(at, (int, float)) else 0.0)


def _delete(store: Store, namespace: str, key: str) -> bool:
    existed: bool = store.documents.mutate(
        namespace, key, lambda current: Leave(False) if current is None else Remove(True)
    )
    return existed


def _scope(scope: str) -> str:
    if not scope or scope != scope.strip():
        raise BadScope("a scope is not empty and has no blanks at its ends")
    return scope


def _check_value(value: object, max_bytes: int) -> None:
    size = len(to_text(value, around=2).encode("utf-8"))
    if 0 < max_bytes < size:
        raise TooLarge(size, max_bytes)


def _is_held(claim: Data, now: float) -> bool:
    expires = claim.get("expiresAt")
    return not isinstance(expires, (int, float)) or expires > now


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _greater(value: Any, than: Any) -> bool:
    both_numbers = _is_number(value) and _is_number(than)
    if not both_numbers and not (isinstance(value, str) and isinstance(than, str)):
        if not _differ(value, than):
            return False
        raise Incomparable(than, value)
    return bool(value > than)


def _differ(one: Any, other: Any) -> bool:
    return bool(isinstance(one, bool) != isinstance(other, bool) or one != other)
