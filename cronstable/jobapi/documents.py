"""
Keys, cursors and idempotency keys: what a job keeps as documents of the store.

docs/job-state.md, "Values" and "Cursors" and "Once", tells jobs what they may rely on.
"""

from __future__ import annotations

import math
from typing import Any

from cronstable.jobapi.desk import Call, encoded, found, stored
from cronstable.jobapi.refusal import Refused, absent, bad
from cronstable.state import jobstate
from cronstable.state.store import Store


async def kv_get(call: Call) -> dict[str, Any]:
    """Answer with the value of a key."""
    key, scope = call.text("key"), call.scope
    body = await call.desk.ask(
        "value", lambda store: found(store, jobstate.kv_get(store, scope, key))
    )
    if body is None:
        raise absent(f"key {key!r} is not set in scope {scope!r}")
    return stored(body)


async def kv_set(call: Call) -> dict[str, Any]:
    """Store a value under a key."""
    key, scope, value = call.text("key"), call.scope, call.said.get("value")
    limit = call.desk.config.max_value_bytes
    body = await call.desk.ask(
        "value", lambda store: jobstate.kv_set(store, scope, key, value, limit)
    )
    return {"ok": True, "updatedAt": body["updatedAt"]}


async def kv_delete(call: Call) -> dict[str, Any]:
    """Remove a key, and say whether it was there."""
    key, scope = call.text("key"), call.scope
    existed = await call.desk.ask(
        "value", lambda store: found(store, jobstate.kv_delete(store, scope, key))
    )
    return {"existed": existed}


async def kv_list(call: Call) -> bytes:
    """Answer with all keys of a scope and their values."""
    scope = call.scope

    def listing(store: Store) -> bytes:
        bodies = found(store, jobstate.kv_list(store, scope))
        keys = [{"key": body["key"], **stored(body)} for body in bodies]
        return encoded({"scope": scope, "keys": keys})

    return await call.desk.ask("value", listing)


async def cursor_get(call: Call) -> dict[str, Any]:
    """Answer with where a cursor stands."""
    name, scope = call.text("name"), call.scope
    body = await call.desk.ask(
        "cursor value", lambda store: found(store, jobstate.cursor_get(store, scope, name))
    )
    if body is None:
        raise absent(f"cursor {name!r} is not set in scope {scope!r}")
    return stored(body)


async def cursor_advance(call: Call) -> dict[str, Any]:
    """Move a cursor up, or anywhere if that is asked for."""
    name, scope, value = call.text("name"), call.scope, call.said.get("value")
    if "value" not in call.said:
        raise bad("value is required")
    force, limit = bool(call.said.get("force")), call.desk.config.max_value_bytes
    try:
        moved = await call.desk.ask(
            "cursor value",
            lambda store: jobstate.cursor_advance(
                store, scope, name, value, force=force, max_bytes=limit
            ),
        )
    except jobstate.Incomparable as error:
        raise Refused(
            409,
            f"cursor {name!r} holds {_kind(error.stands)} but was advanced with"
            f" {_kind(error.given)}; advance it with a comparable value or pass force",
        ) from None
    return {"value": moved.value, "advanced": moved.advanced}


async def claim(call: Call) -> dict[str, Any]:
    """Claim an idempotency key; one of all that try is the first."""
    key, scope = call.text("key"), call.scope
    ttl = _seconds(call.said.get("ttl"))
    call.desk.check_locks()
    claimed = await call.desk.ask("key", lambda store: jobstate.claim(store, scope, key, ttl))
    return {"fresh": claimed.fresh, "claimedAt": claimed.claimed_at}


async def release(call: Call) -> dict[str, Any]:
    """Let an idempotency key be claimed again."""
    key, scope = call.text("key"), call.scope
    released = await call.desk.ask(
        "key", lambda store: found(store, jobstate.release(store, scope, key))
    )
    return {"released": released}


def _seconds(asked: Any) -> float:
    try:
        ttl = float(asked or 0)
    except (TypeError, ValueError, OverflowError):
        raise bad("ttl must be a number") from None
    if not math.isfinite(ttl):
        raise bad("ttl must be a finite number")
    return max(ttl, 0.0)


def _kind(value: object) -> str:
    """Return what sort of JSON value this is, for people."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a truth value"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, list) else "an object"
