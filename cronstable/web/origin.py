"""
The cross-site gate: a page of another origin may not change things through a reader's browser.

docs/http-api.md, "Requests from browsers", specifies the rule.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from cronstable.config.sections_values import WebConfig
from cronstable.web.refusal import Refused
from cronstable.web.requests import ApiRequest

_PORTS = {"http": 80, "https": 443}

FOREIGN = (
    "Origin not allowed: cross-site requests to the cronstable control API are refused; add the "
    "origin to web.allowedOrigins if it is trusted"
)


class OriginGate:
    """Refuses requests that would change something and come from a foreign origin."""

    def __init__(self, web: WebConfig) -> None:
        allowed = list(web.allowed_origins)
        for name, value in web.headers:
            if name.lower() == "access-control-allow-origin":
                allowed.append(value.strip())
        self._open = "*" in allowed[len(web.allowed_origins) :]
        self._allowed = frozenset(origin.rstrip("/").lower() for origin in allowed)

    def admit(self, request: ApiRequest) -> None:
        """Raise L{Refused} with 403 when the origin may not do this."""
        if self._open or request.reads_only or request.path == b"/mcp":
            return
        for raw in request.requestHeaders.getRawHeaders(b"origin", ()):
            origin = raw.decode("latin-1").strip()
            if origin.rstrip("/").lower() not in self._allowed and not _same(origin, request):
                raise Refused(403, FOREIGN)


def _same(origin: str, request: ApiRequest) -> bool:
    """Return whether host and port of C{origin} are those that the request was sent to."""
    host = request.getHeader("host")
    if not host:
        return False
    try:
        theirs, ours = urlsplit(origin), urlsplit(f"//{host.strip()}")
        default = _PORTS.get(theirs.scheme)
        ports = theirs.port or default, ours.port or default
    except ValueError:
        return False
    return (
        theirs.hostname is not None
        and theirs.hostname == ours.hostname
        and ports[0] is not None
        and ports[0] == ports[1]
    )
