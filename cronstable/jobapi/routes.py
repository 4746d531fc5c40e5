"""
The route table of the job API: JSON for every answer, and the token before anything else.

docs/job-api.md lists the endpoints.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from cronstable.identity import Identity
from cronstable.jobapi import artifacts, documents, own, refusal
from cronstable.jobapi.bodies import Body, Payload
from cronstable.jobapi.desk import Call, Desk, encoded
from cronstable.jobapi.holds import Holds
from cronstable.jobapi.locks import Locks
from cronstable.jobapi.refusal import Refused
from cronstable.jobapi.requests import JobRequest

log = logging.getLogger("cronstable.jobapi")

Handler = Callable[[Call], Awaitable["dict[str, Any] | bytes"]]

PUT = b"/v1/artifact/put"
"""The one endpoint whose body is no JSON."""

READING = (b"GET", b"HEAD")
CHANGING = (b"POST",)


class Routes(Resource):
    """What the endpoint serves."""

    isLeaf = True  # noqa: N815 - the name is Twisted's

    def __init__(self, desk: Desk, identity: Identity, holds: Holds) -> None:
        super().__init__()
        self._desk = desk
        reading, changing = _reading(identity), _changing(Locks(identity, holds))
        self._routes = {
            **{path.encode(): (READING, handler) for path, handler in reading.items()},
            **{path.encode(): (CHANGING, handler) for path, handler in changing.items()},
        }

    def render(self, request: JobRequest) -> int:
        """Begin to answer a request; a client that goes away calls that off."""
        answering = Deferred.fromCoroutine(self._serve(request))
        request.notifyFinish().addErrback(lambda _: answering.cancel())
        return NOT_DONE_YET

    def body_for(self, request: JobRequest, method: bytes, path: bytes) -> Body:
        """Return where the body of a request goes: nobody's is kept who is not let in."""
        desk = self._desk
        if method != b"POST" or desk.callers.find(request.authorization) is None:
            return Body(0)
        if path == PUT:
            limit = desk.config.max_artifact_bytes or None
            return Payload(limit, desk.store.ask, request.hold)
        return Body(desk.json_limit)

    async def _serve(self, request: JobRequest) -> None:
        try:
            body = _answer(request, await self._handle(request))
        except CancelledError:
            return
        except Refused as refused:
            body = _refuse(request, refused)
        except Exception:
            log.exception(
                "please report this as a bug (8): %s %s failed",
                request.method.decode("latin-1"),
                request.path.decode("latin-1"),
            )
            body = _refuse(request, Refused(500, refusal.INTERNAL))
        if request.channel is not None:
            request.write(body)
            request.finish()

    async def _handle(self, request: JobRequest) -> dict[str, Any] | bytes:
        methods, handler = self._routes.get(request.path, ((), None))
        if handler is None:
            raise Refused(404, refusal.NOT_FOUND, charset=True)
        if request.method not in methods:
            allowed = {"Allow": b",".join(methods).decode()}
            raise Refused(405, refusal.METHOD_NOT_ALLOWED, allowed, charset=True)
        caller = self._desk.callers.admit(request.authorization)
        as_query = methods is READING or request.path == PUT
        said = request.parameters if as_query else request.json_object()
        return await handler(Call(self._desk, caller, said, request))


def _reading(identity: Identity) -> dict[str, Handler]:
    return {
        "/v1/run": lambda call: own.run(call, identity),
        "/v1/kv/get": documents.kv_get,
        "/v1/kv/list": documents.kv_list,
        "/v1/cursor/get": documents.cursor_get,
        "/v1/artifact/get": artifacts.get,
        "/v1/artifact/list": artifacts.listing,
        "/v1/secret/get": own.secret_get,
        "/v1/secret/list": own.secret_list,
    }


def _changing(locks: Locks) -> dict[str, Handler]:
    return {
        "/v1/kv/set": documents.kv_set,
        "/v1/kv/delete": documents.kv_delete,
        "/v1/cursor/advance": documents.cursor_advance,
        "/v1/idempotency/claim": documents.claim,
        "/v1/idempotency/release": documents.release,
        "/v1/artifact/put": artifacts.put,
        "/v1/lock/acquire": locks.acquire,
        "/v1/lock/release": locks.release,
    }


def _answer(request: JobRequest, answer: dict[str, Any] | bytes) -> bytes:
    if not request.responseHeaders.hasHeader(b"content-type"):
        body = answer if isinstance(answer, bytes) else encoded(answer)
        request.setHeader("Content-Type", "application/json")
        request.setHeader("Content-Length", str(len(body)))
        return body
    assert isinstance(answer, bytes)
    return answer


def _refuse(request: JobRequest, refused: Refused) -> bytes:
    body = encoded({"error": refused.reason})
    request.setResponseCode(refused.status)
    kind = "application/json; charset=utf-8" if refused.charset else "application/json"
    request.setHeader("Content-Type", kind)
    request.setHeader("Content-Length", str(len(body)))
    for name, value in refused.headers.items():
        request.setHeader(name, value)
    return body
