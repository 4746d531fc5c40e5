"""
The front of the API: every request passes it, in this order: origin, credential, route, handler.

A module of routes offers C{register(app, context)} and is listed in L{MODULES}; see
C{cronstable.web.routing} for what it calls.  The headers that it may rely on are set here.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from klein import Klein
from twisted.python.failure import Failure
from twisted.web.resource import Resource

from cronstable.web.answers import refuse
from cronstable.web.auth import Gate, Token
from cronstable.web.context import Context
from cronstable.web.origin import OriginGate
from cronstable.web.refusal import Refused, not_found
from cronstable.web.requests import ApiRequest
from cronstable.web.routing import empty_app, internal_error

MODULES = (
    "status",
    "jobs",
    "actions",
    "slots",
    "trends",
    "state",
    "live",
    "node",
    "metrics",
    "schedule",
    "calendar",
    "badges",
    "description",
    "absent",
    "home",
)
"""Modules of this package that register routes."""


_OURS = frozenset(
    {"content-type", "content-length", "content-encoding", "transfer-encoding", "connection"}
)
"""Headers that describe the message itself, which no operator can know."""


def routed(context: Context) -> Klein:
    """Return the application that serves C{context}."""
    app = empty_app()
    for name in MODULES:
        import_module(f"cronstable.web.{name}").register(app, context)
    return app


class Front(Resource):
    """One application: its gates, its routes, and the operator's headers."""

    isLeaf = True  # noqa: N815 - the name is Twisted's

    def __init__(self, context: Context, tokens: tuple[Token, ...]) -> None:
        super().__init__()
        self.app = routed(context)
        self._routes: Any = self.app.resource()
        self._origins = OriginGate(context.web)
        self._gate = Gate(context.web, tokens)
        self._instance = context.house.identity.instance
        self._touch = context.house.registry.lag.touch
        self._headers = [
            (name, value) for name, value in context.web.headers if name.lower() not in _OURS
        ]

    def render(self, request: ApiRequest) -> Any:
        """Answer a request, or begin to."""
        self._touch()
        request.setHeader("Cronstable-Instance", self._instance)
        try:
            self._origins.admit(request)
            request.caller = self._gate.admit(request)
            _check(request)
            return self._routes.render(request)
        except Refused as refused:
            return refuse(request, refused)
        except Exception:
            return internal_error(request, Failure())

    def dress(self, request: ApiRequest, keep: tuple[str, ...] = ()) -> None:
        """Set the headers of the operator, but for those in C{keep}, named in lower case."""
        for name, value in self._headers:
            if name.lower() not in keep:
                request.setHeader(name, value)


def _check(request: ApiRequest) -> None:
    if not request.well_formed:
        raise not_found()
    expected = request.getHeader("expect")
    if expected is not None and expected.lower() != "100-continue":
        raise Refused(417, "417: Expectation Failed")
