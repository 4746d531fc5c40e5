"""
Artifacts: payloads that a job hands to later runs and to other nodes.

docs/job-state.md, "Artifacts", tells jobs what they may rely on.
"""

from __future__ import annotations

from typing import Any

import attrs

from cronstable.jobapi.bodies import Payload
from cronstable.jobapi.desk import Call, encoded, found
from cronstable.jobapi.refusal import Refused, absent, too_large, too_long
from cronstable.jobapi.sending import PART, Download
from cronstable.state import jobstate
from cronstable.state.errors import TROUBLE
from cronstable.state.jobstate import Artifact
from cronstable.state.store import Store

OCTETS = "application/octet-stream"


async def put(call: Call) -> dict[str, Any]:
    """Publish the body under a name."""
    body = call.request.body
    assert isinstance(body, Payload)
    _check_size(call, body)
    artifact = await _publish(call, body, call.text("name"), call.scope)
    return {"sha256": artifact.sha256, "size": artifact.size}


async def get(call: Call) -> bytes:
    """Answer with the payload of the newest artifact of a name."""
    name, scope = call.text("name"), call.scope
    kept = await call.desk.ask("artifact", lambda store: _find(store, scope, name))
    if kept is None:
        raise absent(f"artifact {name!r} not found in scope {scope!r}")
    if kept.size is None:
        raise Refused(
            410, f"the payload of artifact {name!r} is no longer there; it has been collected"
        )
    request = call.request
    request.setHeader("Content-Type", OCTETS)
    request.setHeader("Content-Length", str(kept.size))
    request.setHeader("X-Cronstable-Sha256", kept.digest)
    request.setHeader("X-Cronstable-Size", str(kept.size))
    if kept.payload is None and request.method != b"HEAD":
        await Download(call.desk, request, kept.digest, kept.size).run()
    return kept.payload or b""


async def listing(call: Call) -> bytes:
    """Answer with the newest artifact of each name in a scope."""
    scope = call.scope

    def read(store: Store) -> bytes:
        artifacts = found(store, jobstate.artifact_list(store, scope))
        return encoded({"scope": scope, "artifacts": [attrs.asdict(each) for each in artifacts]})

    return await call.desk.ask("artifact", read)


@attrs.frozen
class _Kept:
    """An artifact that has a record: its payload, if it is short; its size, None if it is gone."""

    digest: str
    size: int | None
    payload: bytes | None = attrs.field(default=None, repr=False)


def _find(store: Store, scope: str, name: str) -> _Kept | None:
    # A record that cannot be read may be the newest: an older payload would be the wrong one.
    artifact = found(store, jobstate.artifact_find(store, scope, name, strict=True))
    if artifact is None:
        return None
    status = store.blobs.stat(artifact.sha256)
    if status is None:
        return _Kept(artifact.sha256, None)
    if status.size > PART:
        return _Kept(artifact.sha256, status.size)
    payload = store.blobs.get(artifact.sha256)
    return _Kept(artifact.sha256, None if payload is None else len(payload), payload)


def _check_size(call: Call, body: Payload) -> None:
    whole, artifact = call.desk.body_limit, call.desk.config.max_artifact_bytes
    if whole is not None and body.size > whole:
        raise too_long(whole)
    if 0 < artifact < body.size:
        raise too_large("artifact", body.size, artifact)


async def _publish(call: Call, body: Payload, name: str, scope: str) -> Artifact:
    try:
        await body.ready()
    except TROUBLE as error:
        raise call.desk.unavailable(error) from None
    rest, incoming = body.rest(), body.incoming
    if incoming is None:
        return await call.desk.ask(
            "artifact", lambda store: jobstate.artifact_put(store, scope, name, rest)
        )

    begun: list[bool] = []

    def publish(store: Store) -> Artifact:
        begun.append(True)
        try:
            incoming.add(rest)
            return jobstate.artifact_put_incoming(store, scope, name, incoming)
        except BaseException:
            incoming.discard()
            raise

    try:
        return await call.desk.ask("artifact", publish)
    finally:
        if begun:
            body.published()
