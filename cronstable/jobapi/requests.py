"""
Connections and requests of the job API: who asks is known before a body is taken.

docs/job-api.md tells jobs what may be asked.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from twisted.internet.protocol import connectionDone
from twisted.web.http import HTTPChannel, datetimeToString
from twisted.web.resource import IResource
from twisted.web.server import Request, Site

from cronstable.jobapi.bodies import Body
from cronstable.jobapi.refusal import bad

log = logging.getLogger("cronstable.jobapi")


class JobRequest(Request):
    """One request to a L{JobSite}."""

    line = b""
    """The request line, known before the body comes."""
    body: Body
    content: Any
    postpath: list[bytes]
    channel: Any

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - the name is Twisted's
        """Decide what becomes of the body that will come now."""
        method, _, target = self.line.partition(b" ")
        path = target.partition(b" ")[0].partition(b"?")[0]
        self.content = _NOTHING
        self.body = self.channel.site.body_for(self, method, path)
        self.body.announce(length)

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 - the name is Twisted's
        """Take a piece of the body."""
        self.body.take(data)
        if self.body.hopeless:
            self.abort()

    def process(self) -> None:
        """Hand the request to the routes, its path still as it was sent."""
        self.site = self.channel.site
        self.setHeader(b"Date", datetimeToString())
        self.prepath = []
        self.postpath = self.path[1:].split(b"/")
        self.render(self.site.resource)

    def connectionLost(self, reason: Any) -> None:  # noqa: N802 - the name is Twisted's
        """Leave nothing of a body that nobody will use."""
        body: Body | None = getattr(self, "body", None)
        if body is not None:
            body.lost()
        super().connectionLost(reason)

    def getRequestHostname(self) -> bytes:  # noqa: N802 - the name is Twisted's
        """Return a constant: routes do not depend on the Host header, which may hold anything."""
        return b"localhost"

    def abort(self) -> None:
        """Give the client up, with its connection."""
        if self.channel is not None:
            self.channel.transport.abortConnection()

    def hold(self, held: bool) -> None:
        """Let the client wait with the rest of its body, or go on."""
        if self.channel is not None:
            transport = self.channel.transport
            (transport.pauseProducing if held else transport.resumeProducing)()

    @property
    def authorization(self) -> bytes | None:
        """The Authorization header."""
        values = self.requestHeaders.getRawHeaders(b"authorization")
        return values[0] if values else None

    def query(self, name: str) -> str | None:
        """Return the first query parameter called C{name}, None when there is none."""
        values = self.args.get(name.encode("ascii"))
        return values[0].decode("utf-8", "replace") if values else None

    def json_object(self) -> dict[str, Any]:
        """Return the body as a JSON object, {} when there is none; raises L{Refused}."""
        raw = self.body.whole()
        if not raw:
            return {}
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            raise bad("request body is not valid JSON") from None
        if not isinstance(value, dict):
            raise bad("request body must be a JSON object")
        return value


class JobChannel(HTTPChannel):
    """One connection."""

    requests: list[JobRequest]
    site: JobSite

    def lineReceived(self, line: bytes) -> None:  # noqa: N802 - the name is Twisted's
        """Let a request know its first line as soon as it is there."""
        known = len(self.requests)
        super().lineReceived(line)
        if len(self.requests) > known:
            self.requests[-1].line = line

    def connectionMade(self) -> None:  # noqa: N802 - the name is Twisted's
        """Let the site know of the connection."""
        super().connectionMade()
        self.site.channels.add(self)

    def connectionLost(self, reason: Any = connectionDone) -> None:  # noqa: N802 - Twisted's
        """Let the site forget it."""
        super().connectionLost(reason)
        self.site.channels.discard(self)


BodyFor = Callable[["JobRequest", bytes, bytes], Body]


class JobSite(Site):
    """What the endpoint serves; C{body_for} says what becomes of a request's body."""

    protocol: Any = JobChannel

    def __init__(self, resource: IResource, reactor: Any, body_for: BodyFor) -> None:
        super().__init__(
            resource, requestFactory=JobRequest, reactor=reactor, parsePOSTFormSubmission=False
        )
        self.body_for = body_for
        self.displayTracebacks = False
        self.channels: set[JobChannel] = set()

    def startFactory(self) -> None:  # noqa: N802 - the name is Twisted's
        """Start without an access log of Twisted's."""

    def stopFactory(self) -> None:  # noqa: N802 - the name is Twisted's
        """There is nothing to stop."""

    def acceptableProtocols(self) -> list[bytes]:  # noqa: N802 - the name is Twisted's
        """Speak HTTP/1.1 only."""
        return [b"http/1.1"]

    def close_connections(self) -> None:
        """Give every client up."""
        for channel in tuple(self.channels):
            transport: Any = channel.transport
            transport.abortConnection()

    def log(self, request: Any) -> None:
        """Log a finished request, if somebody wants to know; never its query or its token."""
        if log.isEnabledFor(logging.DEBUG):
            log.debug(
                "%s %s %s %s",
                request.method.decode("latin-1"),
                request.path.decode("latin-1"),
                request.code,
                request.sentLength,
            )


class _Nothing:
    """Stands where Twisted would keep the body."""

    def tell(self) -> int:
        return 0

    def seek(self, position: int, whence: int = 0) -> None:
        pass

    def close(self) -> None:
        pass


_NOTHING = _Nothing()
