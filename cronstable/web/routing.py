"""
The route table: Klein, with names that are percent-decoded after the path was split, and JSON
for every error.

A module of routes offers C{register(app, context)}, which calls L{get} and L{post} for each of
its routes; C{cronstable.web.front} lists those modules.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote_to_bytes

from klein import Klein
from twisted.python.failure import Failure
from werkzeug.exceptions import HTTPException
from werkzeug.routing import BaseConverter, ValidationError

from cronstable.web import refusal
from cronstable.web.answers import refuse
from cronstable.web.refusal import Refused
from cronstable.web.requests import ApiRequest

log = logging.getLogger("cronstable")

Handler = Callable[..., Any]


class Segment(BaseConverter):
    """One path segment as text: C{a%2Fb} is C{a/b}; what is no UTF-8 names nothing."""

    def to_python(self, value: str) -> str:
        """Decode a segment as it was sent."""
        try:
            return unquote_to_bytes(value).decode("utf-8")
        except UnicodeDecodeError:
            raise ValidationError from None


def empty_app() -> Klein:
    """Return an application without routes that answers every error as the API does."""
    app = Klein()
    app.url_map.merge_slashes = False
    app.url_map.converters = {**app.url_map.converters, "segment": Segment}

    app.handle_errors(Exception)(_failed)
    return app


def get(app: Klein, path: str, handler: Handler) -> None:
    """Serve GET and HEAD of C{path}; names in it are written C{<segment:name>}."""
    _add(app, "GET", path, handler)


def post(app: Klein, path: str, handler: Handler) -> None:
    """Serve POST of C{path}."""
    _add(app, "POST", path, handler)


def routes(app: Klein) -> list[tuple[str, str]]:
    """Return (method, path) of everything served, names in paths in braces."""
    found: list[tuple[str, str]] = []
    for rule in app.url_map.iter_rules():
        path = rule.rule.replace("<segment:", "{").replace(">", "}")
        methods = sorted((rule.methods or set()) - {"HEAD"})
        found.extend((method, path) for method in methods)
    return sorted(found, key=lambda route: (route[1], route[0]))


def routing_refusal(error: HTTPException) -> Refused:
    """Return what the API answers where the route table has nothing."""
    allowed = getattr(error, "valid_methods", None)
    if error.code == 405 and allowed:
        return Refused(405, refusal.METHOD_NOT_ALLOWED, {"Allow": ",".join(sorted(allowed))})
    return Refused(404, refusal.NOT_FOUND)


def internal_error(request: ApiRequest, failure: Failure) -> bytes:
    """Log an unexpected failure with its traceback and answer with a fixed sentence."""
    log.error(
        "please report this as a bug (4): %s %s failed",
        request.method.decode("latin-1"),
        request.path.decode("latin-1"),
        exc_info=failure.value,
    )
    return refuse(request, Refused(500, refusal.INTERNAL))


def _failed(request: Any, failure: Failure) -> bytes:
    error = failure.value
    if isinstance(error, Refused):
        return refuse(request, error)
    if isinstance(error, HTTPException):
        return refuse(request, routing_refusal(error))
    return internal_error(request, failure)


def _add(app: Klein, method: str, path: str, handler: Handler) -> None:
    app.route(path, methods=[method], endpoint=f"{method} {path}")(handler)
