"""
The route table of the job API: Klein, JSON for every answer, and the token before anything else.

docs/job-api.md lists the endpoints.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from klein import Klein
from twisted.python.failure import Failure
from twisted.web.resource import Resource
from werkzeug.exceptions import HTTPException

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

_PATH = re.compile(rb"(/[A-Za-z0-9._-]+)+\Z")
_METHOD = re.compile(rb"[A-Z]{1,20}\Z")


class Routes(Resource):
    """What the endpoint serves."""

    isLeaf = True  # noqa: N815 - the name is Twisted's

    def __init__(self, desk: Desk, identity: Identity, holds: Holds) -> None:
        super().__init__()
        self._desk = desk
        locks = Locks(identity, holds)
        app = self.app = Klein()
        app.handle_errors(Exception)(_failed)
        for path, handler in _reading(identity).items():
            self._serve("GET", path, handler)
        for path, handler in _changing(locks).items():
            self._serve("POST", path, handler)
        self._routes: Any = app.resource()

    def render(self, request: JobRequest) -> Any:
        """Answer a request, or begin to."""
        if not _METHOD.match(request.method) or not _PATH.match(request.path):
            return _refuse(request, Refused(404, refusal.NOT_FOUND, charset=True))
        return self._routes.render(request)

    def body_for(self, request: JobRequest, method: bytes, path: bytes) -> Body:
        """Return where the body of a request goes: nobody's is kept who is not let in."""
        desk = self._desk
        if method != b"POST" or desk.callers.find(request.authorization) is None:
            return Body(0)
        if path == PUT:
            limit = desk.config.max_artifact_bytes or None
            return Payload(limit, desk.store.ask, request.hold)
        return Body(desk.json_limit)

    def _serve(self, method: str, path: str, handler: Handler) -> None:
        async def serve(request: JobRequest) -> bytes:
            try:
                # The run may have ended while its body came.
                caller = self._desk.callers.admit(request.authorization)
                said = request.json_object() if method == "POST" and path != PUT.decode() else None
                query = _Query(request)
                call = Call(self._desk, caller, query if said is None else said, request)
                return _answer(request, await handler(call))
            finally:
                request.body.lost()

        self.app.route(path, methods=[method], endpoint=f"{method} {path}")(serve)


class _Query(Mapping[str, str]):
    """The query of a request, each parameter as it came first."""

    def __init__(self, request: JobRequest) -> None:
        self._request = request

    def __getitem__(self, name: str) -> str:
        value = self._request.query(name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Any:
        return (name.decode("utf-8", "replace") for name in self._request.args)

    def __len__(self) -> int:
        return len(self._request.args)


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


def _failed(request: Any, failure: Failure) -> bytes:
    error = failure.value
    if isinstance(error, Refused):
        return _refuse(request, error)
    if isinstance(error, HTTPException):
        return _refuse(request, _no_route(error))
    log.error(
        "please report this as a bug (8): %s %s failed",
        request.method.decode("latin-1"),
        request.path.decode("latin-1"),
        exc_info=error,
    )
    return _refuse(request, Refused(500, refusal.INTERNAL))


def _no_route(error: HTTPException) -> Refused:
    allowed = getattr(error, "valid_methods", None)
    if error.code == 405 and allowed:
        headers = {"Allow": ",".join(sorted(allowed))}
        return Refused(405, refusal.METHOD_NOT_ALLOWED, headers, charset=True)
    return Refused(404, refusal.NOT_FOUND, charset=True)
