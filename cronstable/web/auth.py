"""
Who asks, and whether they may: bearer tokens, their scopes, anonymous readers.

docs/http-api.md, "Authentication", specifies the rules.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable

import attrs

from cronstable.config.sections_values import WebConfig
from cronstable.config.values import Secret
from cronstable.web.refusal import Refused, unauthorized
from cronstable.web.requests import ApiRequest

SCOPES = ("approve", "control", "view")

_BEARER = re.compile(rb"bearer(?:[ \t]+|\Z)", re.IGNORECASE)
_DECISION = re.compile(rb"/dags/[^/]+/runs/[^/]+/tasks/[^/]+/decision\Z")
_BADGE = re.compile(rb"/badge\.svg\Z|/jobs/[^/]+/badge\.svg\Z")
_NEVER_ANONYMOUS = {b"push": "device access", b"mcp": "MCP access"}
_PROBES = (b"/healthz", b"/readyz")


class TokensUnavailable(Exception):
    """A token cannot be resolved, or two are the same; the text names the keys, no secret."""


@attrs.frozen
class Caller:
    """Who sent a request, and what they may do."""

    label: str | None
    scopes: frozenset[str]
    authenticated: bool = False

    @property
    def anonymous(self) -> bool:
        """Whether this caller is let in without a credential where others need one."""
        return self.label == "anonymous"


ANYBODY = Caller(None, frozenset(SCOPES))
"""Who asks where no token is configured."""


@attrs.frozen
class Token:
    """A token by the hash of its secret."""

    digest: bytes = attrs.field(repr=False)
    caller: Caller


Resolve = Callable[[Secret, str], str]


def load_tokens(web: WebConfig, resolve: Resolve) -> tuple[Token, ...]:
    """
    Resolve all tokens of the section; this may read files.

    Raises L{TokensUnavailable} for two with one secret; C{resolve} raises its own error for one
    that gives nothing.
    """
    tokens = []
    if web.auth_token is not None:
        secret = resolve(web.auth_token, "web.authToken")
        tokens.append(_token(secret, "authToken", SCOPES))
    for number, each in enumerate(web.auth_tokens):
        key = f"web.authTokens[{number}]"
        secret = resolve(each.secret, key)
        tokens.append(_token(secret, each.label or f"authTokens[{number}]", each.scopes))
    seen: dict[bytes, str] = {}
    for token in tokens:
        label = str(token.caller.label)
        if token.digest in seen:
            raise TokensUnavailable(
                f"the tokens {seen[token.digest]!r} and {label!r} have the same secret"
            )
        seen[token.digest] = label
    return tuple(tokens)


def _token(secret: str, label: str, scopes: tuple[str, ...]) -> Token:
    granted = set(scopes)
    if granted:
        granted.add("view")
    return Token(
        _digest(secret.encode("utf-8", "surrogateescape")),
        Caller(label, frozenset(granted), authenticated=True),
    )


def _digest(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()


class Gate:
    """Lets requests in, for one set of tokens."""

    def __init__(self, web: WebConfig, tokens: tuple[Token, ...]) -> None:
        self._tokens = tokens
        self._anonymous = (
            Caller("anonymous", frozenset(web.anonymous_scopes)) if web.anonymous_scopes else None
        )
        self._public_metrics = web.metrics.enabled and web.metrics.public
        self._public_badges = web.badges.enabled and web.badges.public

    def admit(self, request: ApiRequest) -> Caller:
        """Return who asks; L{Refused} with 401 or 403 when they may not."""
        if not self._tokens:
            return ANYBODY
        if self._exempt(request):
            return Caller(None, frozenset())
        caller = self._caller(request)
        needed = needed_scope(request)
        if caller.anonymous:
            self._allow_anonymous(request, needed, caller)
        elif needed not in caller.scopes:
            raise Refused(
                403,
                f"token '{caller.label}' does not grant the '{needed}' permission required for "
                "this action",
            )
        return caller

    def _exempt(self, request: ApiRequest) -> bool:
        path = request.path
        if request.method == b"OPTIONS":
            return request.requestHeaders.hasHeader("access-control-request-method")
        if request.method not in (b"GET", b"HEAD"):
            return False
        return (
            path == b"/"
            or path in _PROBES
            or (self._public_metrics and path == b"/metrics")
            or (self._public_badges and _BADGE.match(path) is not None)
        )

    def _caller(self, request: ApiRequest) -> Caller:
        headers = request.requestHeaders.getRawHeaders(b"authorization", ())
        queried = request.args.get(b"token", ())
        if not headers and not queried and self._anonymous is not None:
            return self._anonymous
        presented = None
        if headers:
            presented = bearer(headers[0]) if len(headers) == 1 else None
        elif request.path.endswith(b"/calendar.ics") and len(queried) == 1:
            presented = queried[0]
        found = self._match(presented or b"")
        if not presented or found is None:
            raise unauthorized()
        return found

    def _match(self, presented: bytes) -> Caller | None:
        """Compare with every token, in the same time whichever it is."""
        digest = _digest(presented)
        found = None
        for token in self._tokens:
            if hmac.compare_digest(token.digest, digest):
                found = token.caller
        return found

    def _allow_anonymous(self, request: ApiRequest, needed: str, caller: Caller) -> None:
        area = _NEVER_ANONYMOUS.get(request.path[1:].split(b"/")[0])
        if area is not None:
            raise Refused(403, f"{area} requires a bearer token with the '{needed}' permission")
        if needed not in caller.scopes:
            raise Refused(
                403,
                f"anonymous access grants only 'view' permission; this action requires '{needed}'."
                " Provide a bearer token with that permission",
            )


def bearer(header: bytes) -> bytes | None:
    """Return the token of an Authorization header, None when the scheme is another."""
    scheme = _BEARER.match(header)
    return None if scheme is None else header[scheme.end() :].strip()


def needed_scope(request: ApiRequest) -> str:
    """Return the scope that a request needs, whether or not there is such a route."""
    if request.reads_only or request.path == b"/mcp":
        return "view"
    if request.method == b"POST" and _DECISION.match(request.path):
        return "approve"
    return "control"
