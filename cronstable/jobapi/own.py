"""What a run may learn of itself: who it is, and the secrets that are staged for it."""

from __future__ import annotations

from typing import Any

from cronstable.identity import Identity
from cronstable.jobapi.desk import Call
from cronstable.jobapi.refusal import absent
from cronstable.jobapi.variables import scheduled_at


async def run(call: Call, identity: Identity) -> dict[str, Any]:
    """Answer with what the run is."""
    caller = call.caller
    return {
        "runId": caller.run_id,
        "job": caller.run.job.name,
        "attempt": caller.run.attempt,
        "scheduledAt": scheduled_at(caller.run) or None,
        "host": identity.host,
        "defaultScope": caller.run.scope,
    }


async def secret_get(call: Call) -> dict[str, Any]:
    """Answer with the value of a secret."""
    name = call.text("name")
    value = call.caller.secrets.get(name)
    if value is None:
        raise absent(f"secret {name!r} is not staged for this run")
    return {"value": value}


async def secret_list(call: Call) -> dict[str, Any]:
    """Answer with the names of the secrets, not their values."""
    return {"names": sorted(call.caller.secrets)}
