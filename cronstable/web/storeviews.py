"""
What is in a store, as JSON: counts and metadata, never the values that jobs keep there.

Pure.  docs/http-api.md, "The store", specifies the fields.
"""

from __future__ import annotations

import json

from cronstable.config.sections_values import StateConfig
from cronstable.state.encoding import Data
from cronstable.state.inventory import Group, Inventory
from cronstable.state.leases import Lease
from cronstable.state.service import StoreService
from cronstable.state.store import StoreSettings, View
from cronstable.web.views import Json, iso

MOST_SCOPES = 200
"""Scopes of one prefix, and leases, that are shown; counts are always of all."""

SLOTS = "slots/"


def contents(found: Inventory | None, now: float) -> Json:
    """Return what is in a store, nothing where that could not be found out."""
    if found is None:
        found = Inventory({}, {}, (), 0, complete=False)
    return {
        "records": {prefix: _group(group) for prefix, group in found.records.items()},
        "documents": {prefix: _group(group) for prefix, group in found.documents.items()},
        "leases": [_lease(each, now) for each in found.leases[:MOST_SCOPES]],
        "quarantine": found.quarantined,
        "enumerable": found.complete,
    }


def slots_of(holder: str, found: Inventory | None) -> list[Lease]:
    """Return the cluster slots that C{holder} had when the inventory was taken."""
    leases = () if found is None else found.leases
    return [each for each in leases if each.name.startswith(SLOTS) and each.holder == holder]


def slot(lease: Lease, refs: int) -> Json:
    """Return a cluster slot held here, for C{refs} live runs."""
    return {
        "slot": lease.name[len(SLOTS) :],
        "holder": lease.holder,
        "fence": lease.fence,
        "expiresAt": lease.expires_at,
        "refs": refs,
    }


def armed_retry(job: str, attempt: int, not_before: float, delay: float) -> Json:
    """Return a retry that waits on this node."""
    return {
        "job": job,
        "attempt": attempt,
        "nextRetryAt": iso(not_before),
        "delaySeconds": delay,
    }


def view(store: StoreService, job_set_id: str) -> Json:
    """Return where the store is and what kind of mount it is on."""
    found = store.view or _unseen(store.config)
    return {
        "backend": found.backend,
        "path": found.path,
        "namespace": found.namespace,
        "topology": found.topology,
        "shared_locking": found.shared_locking,
        "job_set_id": job_set_id,
    }


def stats(store: StoreService) -> Json:
    """Return how often the store did what since this process opened it."""
    throttled, throttle_wait = store.throttled
    locks = store.locks
    workers: dict[str, int] = {}
    for name, lane in store.lanes.items():
        workers[f"{name}_inflight"] = lane.inflight
        workers[f"{name}_peak"] = lane.peak
        workers[f"{name}_capacity"] = lane.capacity
    return {
        "ops": {
            name: {"count": op.count, "errors": op.errors, "seconds": op.seconds}
            for name, op in store.ops.items()
        },
        "lock": {"acquisitions": locks.acquisitions, "wait_seconds": locks.wait_seconds},
        "throttle": {"count": throttled, "wait_seconds": throttle_wait},
        "workers": workers,
        "writes": {"pending": store.pending, "dropped": dict(store.dropped)},
    }


def key_value(key: str, body: Data) -> Json:
    """Return what may be told of a stored value: its kind and size."""
    value = body.get("value")
    return {
        "key": key,
        "updatedAt": body.get("updatedAt"),
        "valueSize": len(json.dumps(value)),
        "valueType": type(value).__name__,
    }


def cursor(name: str, body: Data) -> Json:
    """Return a cursor."""
    return {"name": name, "value": body.get("value"), "updatedAt": body.get("updatedAt")}


def claim(key: str, body: Data) -> Json:
    """Return an idempotency claim."""
    shown = {"key": key, "claimedAt": body.get("claimedAt")}
    if "expiresAt" in body:
        shown["expiresAt"] = body["expiresAt"]
    return shown


def _group(group: Group) -> Json:
    return {
        "count": group.count,
        "streams": group.streams,
        "scopes": [
            {"scope": each.name, "count": each.count} for each in group.scopes[:MOST_SCOPES]
        ],
    }


def _lease(lease: Lease, now: float) -> Json:
    return {
        "name": lease.name,
        "holder": lease.holder,
        "fence": lease.fence,
        "expiresAt": lease.expires_at,
        "expired": lease.expires_at <= now,
    }


def _unseen(config: StateConfig | None) -> View:
    """Return what is known of a store that has not been started."""
    config = config or StateConfig("")
    settings = StoreSettings.of(config)
    shared = config.topology == "shared"
    return View(settings.root, settings.namespace, "shared" if shared else "single-node", False)
