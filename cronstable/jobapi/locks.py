"""
Locks and semaphores: asked for by a run, held for it by the daemon.

docs/job-state.md, "Locks", tells jobs what they may rely on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from cronstable.identity import Identity
from cronstable.jobapi.desk import Call
from cronstable.jobapi.holds import Holds
from cronstable.jobapi.hunts import Hunt, Wanted
from cronstable.jobapi.refusal import bad
from cronstable.state.errors import TROUBLE

MOST_PERMITS = 1024
SHORTEST_TTL = 5.0
"""Seconds that a lock may be asked for, at least."""

LONGEST_TTL = 30 * 86400.0
"""The same, at most."""


class Locks:
    """Handlers of the lock endpoints."""

    def __init__(self, identity: Identity, holds: Holds) -> None:
        self._identity = identity
        self._holds = holds

    async def acquire(self, call: Call) -> dict[str, Any]:
        """Take a permit, if one is to be had in the time that the job gives."""
        desk, caller = call.desk, call.caller
        wanted = wanted_by(call, desk.config.lock_ttl)
        desk.check_locks()
        hunt = Hunt(caller, wanted, desk.clock, desk.store, self._holds, self._identity)
        try:
            hold = await hunt.begin()
        except TROUBLE as error:
            raise desk.unavailable(error) from None
        if hold is None:
            ended = {"runEnded": True} if caller.over else {}
            return {"acquired": False, **ended}
        return {
            "acquired": True,
            "token": hold.token,
            "slot": hunt.permit,
            "fence": hold.fence,
            "ttl": hold.ttl,
        }

    async def release(self, call: Call) -> dict[str, Any]:
        """Give back a lock of this run."""
        try:
            return {"released": await self._holds.release(call.caller, call.text("token"))}
        except TROUBLE as error:
            raise call.desk.unavailable(error) from None


def wanted_by(call: Call, default_ttl: float) -> Wanted:
    """Return the lock that a request asks for; raises L{Refused}."""
    name, scope = call.text("name"), call.scope
    permits = _permits(call.said.get("permits", 1))
    ttl, block = call.said.get("ttl"), call.said.get("blockSeconds")
    seconds = default_ttl if ttl is None else _number(ttl, "ttl")
    patience = _number(block or 0.0, "blockSeconds")
    return Wanted(
        scope,
        name,
        permits,
        min(max(seconds, SHORTEST_TTL), LONGEST_TTL),
        max(patience, 0.0) if call.said.get("wait") else 0.0,
    )


def _permits(asked: Any) -> int:
    permits = _converted(int, asked, "permits must be an integer")
    if permits < 1:
        raise bad("permits must be >= 1")
    if permits > MOST_PERMITS:
        raise bad(f"permits must be <= {MOST_PERMITS}")
    return int(permits)


def _number(asked: Any, name: str) -> float:
    seconds = _converted(float, asked, "ttl and blockSeconds must be numbers")
    if not math.isfinite(seconds):
        raise bad(f"{name} must be a finite number")
    return float(seconds)


def _converted(kind: Callable[[Any], Any], asked: Any, otherwise: str) -> Any:
    try:
        return kind(asked)
    except (TypeError, ValueError, OverflowError):
        raise bad(otherwise) from None
