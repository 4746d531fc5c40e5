"""
Requests as this API reads them: a raw path split before it is decoded, a body with a bound.

docs/http-api.md, "Requests", tells clients what is read and what is refused.
"""

from __future__ import annotations

import io
import json
import logging
import re
from typing import Any, Protocol
from urllib.parse import quote_from_bytes

from twisted.web.http import datetimeToString
from twisted.web.resource import IResource

from cronstable.httpsite import KnownChannel, PlainRequest, PlainSite, path_of
from cronstable.web.refusal import Refused

log = logging.getLogger("cronstable.web.access")

BODY_LIMIT = 1 << 20
"""Bytes of a request body that are kept; of a longer one it is only known that it was longer."""

_METHOD = re.compile(rb"[A-Z]{1,20}\Z")
_TOKEN = re.compile(rb"((?:\A|[?&;])token=)[^&;]*", re.IGNORECASE)


class Dresser(Protocol):
    """The application that serves a request, as far as an answer needs it."""

    def dress(self, request: ApiRequest, keep: tuple[str, ...] = ()) -> None:
        """Set the headers of the operator, but for those in C{keep}, named in lower case."""


class ApiRequest(PlainRequest):
    """One request to an L{ApiSite}."""

    caller: Any = None
    """Who asks, once that is known (a L{cronstable.web.auth.Caller})."""
    front: Dresser
    reactor: Any
    oversize = False
    content: io.BytesIO
    postpath: list[bytes]

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - the name is Twisted's
        """Make room for the body in memory, whatever length is announced."""
        self.content = io.BytesIO()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 - the name is Twisted's
        """Keep a piece of the body, up to its limit."""
        if self.oversize or self.content.tell() + len(data) > BODY_LIMIT:
            self.oversize = True
            return
        self.content.write(data)

    def process(self) -> None:
        """Hand the request to the front of the API, its path still as it was sent."""
        site: ApiSite = self._channel.site
        self.site = site
        self.front, self.reactor = site.resource, site.reactor
        self.setHeader(b"Date", datetimeToString())
        self.path = path_of(self.path)
        self.prepath = []
        self.postpath = [_ascii(segment) for segment in self.path[1:].split(b"/")]
        self.render(site.resource)

    @property
    def _channel(self) -> Any:
        return self.channel

    @property
    def well_formed(self) -> bool:
        """Whether method and path can name a route at all."""
        path = self.path
        return (
            _METHOD.match(self.method) is not None
            and path.startswith(b"/")
            and (path == b"/" or all(self.postpath))
        )

    @property
    def reads_only(self) -> bool:
        """Whether the method changes nothing."""
        return self.method in (b"GET", b"HEAD", b"OPTIONS")

    def clamped(self, name: str, low: int, high: int, default: int) -> int:
        """Return an integer parameter within bounds; text that is no integer is the default."""
        text = self.query(name)
        try:
            return min(max(int(text or ""), low), high)
        except ValueError:
            return default

    def accepts(self, media: str) -> bool:
        """Return whether the Accept header names C{media} itself as one of its ranges."""
        wanted = (self.getHeader("accept") or "").lower()
        return any(part.split(";")[0].strip() == media for part in wanted.split(","))

    @property
    def accepts_gzip(self) -> bool:
        """Whether the answer may be compressed."""
        for part in (self.getHeader("accept-encoding") or "").lower().split(","):
            coding, _, parameters = part.partition(";")
            if coding.strip() in ("gzip", "x-gzip", "*"):
                return _quality(parameters) > 0
        return False

    def json_object(self) -> dict[str, Any]:
        """Return the body as a JSON object, {} when there is none; raises L{Refused}."""
        raw = self.content.getvalue()
        if self.oversize:
            raise Refused(400, f"request body is larger than {BODY_LIMIT} bytes")
        if not raw.strip():
            return {}
        try:
            value = json.loads(raw, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise Refused(400, "request body is not valid JSON") from None
        if not isinstance(value, dict):
            raise Refused(400, "request body must be a JSON object")
        return value


class ApiChannel(KnownChannel):
    """One connection."""

    retired = False

    def checkPersistence(self, request: Any, version: bytes) -> bool:  # noqa: N802 - Twisted's
        """Return whether another request may follow on this connection."""
        return not self.retired and super().checkPersistence(request, version)

    def retire(self) -> None:
        """Close the connection once it has no request to answer."""
        self.retired = True
        self.persistent = False
        if not self.requests:
            self.loseConnection()


class ApiSite(PlainSite):
    """
    What a listener serves: its C{resource} may be exchanged while the port stays bound.

    Requests are logged at DEBUG on C{cronstable.web.access}, query tokens masked.
    """

    protocol: Any = ApiChannel
    reactor: Any
    resource: Any

    def __init__(self, resource: IResource, reactor: Any) -> None:
        super().__init__(resource, ApiRequest, reactor, log)

    def retire_connections(self) -> None:
        """Let every open connection end with the request that it serves."""
        for channel in tuple(self.channels):
            channel.retire()

    def shown(self, request: Any) -> bytes:
        """Return the target of a request as it came, but for its token."""
        return masked(request.uri)


def masked(uri: bytes) -> bytes:
    """Return C{uri} with the values of C{token} parameters replaced."""
    path, mark, query = uri.partition(b"?")
    return path + mark + _TOKEN.sub(rb"\1***", query)


def _ascii(segment: bytes) -> bytes:
    """Return a path segment with every byte beyond ASCII percent-encoded."""
    return segment if segment.isascii() else quote_from_bytes(segment, safe="%").encode("ascii")


def _quality(parameters: str) -> float:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def _no_constant(text: str) -> Any:
    raise ValueError(text)
