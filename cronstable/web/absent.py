"""
Routes of sections that this release reads but does not serve, or that are not configured.

They answer what clients of such a daemon expect.  docs/http-api.md lists them.
"""

from __future__ import annotations

from klein import Klein

from cronstable.web.answers import answer_compressed, answer_conditional, answer_json, encode
from cronstable.web.context import Context
from cronstable.web.refusal import Refused, not_found
from cronstable.web.requests import ApiRequest
from cronstable.web.routing import get, post

NO_RUNS = "workflow run history requires a configured `state:` store"
NO_PUSH = "push notifications are not configured on this server (missing `push:` section)"

RUN = "/dags/<segment:name>/runs/<segment:run_key>"
TASK = f"{RUN}/tasks/<segment:task>"


def register(app: Klein, context: Context) -> None:
    """Add the routes."""

    def no_dag_runs(request: ApiRequest, name: str, **rest: str) -> bytes:
        """Answer why no runs of such a workflow are kept."""
        kept = context.house.store.configured
        raise not_found(f"workflow '{name}' not found" if kept else NO_RUNS)

    get(app, "/cluster", cluster)
    get(app, "/fleet", fleet)
    get(app, "/dags", no_dags)
    for path in ("/dags/<segment:name>/runs", RUN, f"{RUN}/xcom", f"{TASK}/logs"):
        get(app, path, no_dag_runs)
    post(app, "/dags/<segment:name>/trigger", no_dag)
    post(app, "/dags/<segment:name>/backfill", no_backfill)
    post(app, "/dags/<segment:name>/recover", no_recovery)
    post(app, f"{RUN}/recover", no_recovery)
    post(app, f"{TASK}/decision", no_decision)
    get(app, "/pools", no_pools)
    post(app, "/pools/<segment:name>/queue/<segment:key>/cancel", no_pool_entry)
    get(app, "/push/devices", no_push)
    post(app, "/push/devices", no_push)
    post(app, "/push/devices/<segment:device>/test", no_push)
    app.route("/push/devices/<segment:device>", methods=["DELETE"], endpoint="push")(no_push)


async def cluster(request: ApiRequest) -> bytes:
    """Answer that this node is on its own."""
    return await answer_compressed(request, encode({"enabled": False, "peers": []}).encode())


async def fleet(request: ApiRequest) -> bytes:
    """Answer that no other node is known."""
    return await answer_conditional(request, {"enabled": False, "nodes": []})


async def no_dags(request: ApiRequest) -> bytes:
    """Answer that there are no workflows."""
    return await answer_conditional(request, [])


def no_dag(request: ApiRequest, name: str) -> bytes:
    """Answer that there is no such workflow."""
    raise not_found(f"workflow '{name}' not found")


def no_backfill(request: ApiRequest, name: str) -> bytes:
    """Answer that there is no such workflow, as a backfill says it."""
    body = request.json_object()
    if not all(isinstance(body.get(key), str) for key in ("from", "to")):
        raise Refused(400, "from and to are required")
    raise Refused(400, "scheduled workflow not found")


def no_recovery(request: ApiRequest, **names: str) -> bytes:
    """Answer that there is nothing to recover."""
    request.json_object()
    raise Refused(409, "workflow run not found")


def no_decision(request: ApiRequest, **names: str) -> bytes:
    """Answer that nothing waits for this decision."""
    if request.json_object().get("decision") not in ("approve", "reject"):
        raise Refused(400, "decision must be 'approve' or 'reject'")
    raise Refused(409, "workflow not found")


def no_pools(request: ApiRequest) -> bytes:
    """Answer that there are no pools."""
    return answer_json(request, [])


def no_pool_entry(request: ApiRequest, name: str, key: str) -> bytes:
    """Answer that nothing waits in such a pool."""
    raise Refused(409, "queue entry not found")


def no_push(request: ApiRequest, device: str = "") -> bytes:
    """Answer that no devices are paired with this daemon."""
    raise not_found(NO_PUSH)
