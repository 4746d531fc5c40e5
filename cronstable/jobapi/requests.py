"""
Connections and requests of the job API: who asks is known before a body is taken.

docs/job-api.md tells jobs what may be asked.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from twisted.web.http import datetimeToString
from twisted.web.resource import IResource

from cronstable.httpsite import KnownChannel, PlainRequest, PlainSite, path_of
from cronstable.jobapi.bodies import Body, Payload
from cronstable.jobapi.refusal import bad

log = logging.getLogger("cronstable.jobapi")

PAUSE = 3600.0
"""Seconds for which a payload may stop coming: whoever makes it may take a while."""


class JobRequest(PlainRequest):
    """One request to a L{JobSite}."""

    undecodable = "surrogateescape"  # Replaced, two names could become the same.
    line = b""
    """The request line, known before the body comes."""
    body: Body
    content: Any
    postpath: list[bytes]
    channel: Any

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - the name is Twisted's
        """Decide what becomes of the body that will come now."""
        method, _, target = self.line.partition(b" ")
        path = path_of(target.partition(b" ")[0])
        self.content = _NOTHING
        self.body = self.channel.site.body_for(self, method, path)
        self.body.announce(length)
        if isinstance(self.body, Payload):
            self.channel.setTimeout(PAUSE)

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 - the name is Twisted's
        """Take a piece of the body."""
        self.body.take(data)
        if self.body.hopeless:
            self.abort()

    def process(self) -> None:
        """Hand the request to the routes, its path still as it was sent."""
        self.site = self.channel.site
        self.setHeader(b"Date", datetimeToString())
        self.path = path_of(self.path)
        self.prepath = []
        self.postpath = self.path[1:].split(b"/")
        self.render(self.site.resource)

    def connectionLost(self, reason: Any) -> None:  # noqa: N802 - the name is Twisted's
        """Leave nothing of a body that nobody will use."""
        body: Body | None = getattr(self, "body", None)
        if body is not None:
            body.lost()
        super().connectionLost(reason)

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


class JobChannel(KnownChannel):
    """One connection."""

    requests: list[JobRequest]

    def lineReceived(self, line: bytes) -> None:  # noqa: N802 - the name is Twisted's
        """Let a request know its first line as soon as it is there."""
        known = len(self.requests)
        super().lineReceived(line)
        if len(self.requests) > known:
            self.requests[-1].line = line

    def allContentReceived(self) -> None:  # noqa: N802 - the name is Twisted's
        """Wait no longer for another request than for the first."""
        if self.timeOut == PAUSE:
            self.setTimeout(self.site.timeOut)
        super().allContentReceived()


BodyFor = Callable[["JobRequest", bytes, bytes], Body]


class JobSite(PlainSite):
    """What the endpoint serves; C{body_for} says what becomes of a request's body."""

    protocol: Any = JobChannel

    def __init__(self, resource: IResource, reactor: Any, body_for: BodyFor) -> None:
        super().__init__(resource, JobRequest, reactor, log)
        self.body_for = body_for

    def close_connections(self) -> None:
        """Give every client up."""
        for channel in tuple(self.channels):
            channel.transport.abortConnection()


class _Nothing:
    """Stands where Twisted would keep the body."""

    def tell(self) -> int:
        return 0

    def seek(self, position: int, whence: int = 0) -> None:
        pass

    def close(self) -> None:
        pass


_NOTHING = _Nothing()
