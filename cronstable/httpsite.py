"""What the HTTP endpoints of a daemon have in common: requests, connections, and their log."""

from __future__ import annotations

import logging
import re
from typing import Any
from urllib.parse import parse_qsl

from twisted.internet.protocol import connectionDone
from twisted.web.http import HTTPChannel
from twisted.web.resource import IResource
from twisted.web.server import Request, Site

_AUTHORITY = re.compile(rb"\Ahttps?://[^/?#]*", re.IGNORECASE)


def path_of(target: bytes) -> bytes:
    """Return the path of a request's target, which proxies are sent as a whole URL."""
    return _AUTHORITY.sub(b"", target).partition(b"?")[0] or b"/"


class PlainRequest(Request):
    """A request to a L{PlainSite}."""

    undecodable = "replace"
    """What becomes of bytes in its query that are no UTF-8: the name of an error handler."""

    def getRequestHostname(self) -> bytes:  # noqa: N802 - the name is Twisted's
        """Return a constant: routes do not depend on the Host header, which may hold anything."""
        return b"localhost"

    def query(self, name: str) -> str | None:
        """Return the first query parameter called C{name}, None when there is none."""
        return self.parameters.get(name)

    @property
    def parameters(self) -> dict[str, str]:
        """The query, each parameter as it came first; only C{&} stands between two."""
        # Twisted's own C{args} are cut at semicolons too, which belong to names and keys.
        query = self.uri.partition(b"?")[2].decode("ascii", "replace")
        pairs = parse_qsl(query, keep_blank_values=True, errors=self.undecodable)
        return dict(reversed(pairs))

    def abort(self) -> None:
        """Give the client up, with its connection."""
        channel: Any = self.channel
        if channel is not None:
            channel.transport.abortConnection()


class KnownChannel(HTTPChannel):
    """A connection that its site knows of."""

    site: Any
    _secure: bool | None = None

    def isSecure(self) -> bool:  # noqa: N802 - the name is Twisted's
        """Return whether this is TLS, which is slow to find out and asked twice per request."""
        if self._secure is None:
            self._secure = super().isSecure()
        return self._secure

    def connectionMade(self) -> None:  # noqa: N802 - the name is Twisted's
        """Let the site know of the connection."""
        super().connectionMade()
        self.site.channels.add(self)

    def connectionLost(self, reason: Any = connectionDone) -> None:  # noqa: N802 - Twisted's
        """Let the site forget it."""
        super().connectionLost(reason)
        self.site.channels.discard(self)


class PlainSite(Site):
    """
    A site that speaks HTTP/1.1 and tells no client of its tracebacks.

    Finished requests are logged at DEBUG on C{access}, as L{shown} has them.
    """

    channels: set[Any]
    """The open connections."""

    def __init__(
        self, resource: IResource, request: type[PlainRequest], reactor: Any, access: logging.Logger
    ) -> None:
        super().__init__(
            resource, requestFactory=request, reactor=reactor, parsePOSTFormSubmission=False
        )
        self.displayTracebacks = False
        self.channels = set()
        self._access = access

    def startFactory(self) -> None:  # noqa: N802 - the name is Twisted's
        """Start without an access log of Twisted's."""

    def stopFactory(self) -> None:  # noqa: N802 - the name is Twisted's
        """There is nothing to stop."""

    def acceptableProtocols(self) -> list[bytes]:  # noqa: N802 - the name is Twisted's
        """Speak HTTP/1.1 only."""
        return [b"http/1.1"]

    def log(self, request: Any) -> None:
        """Log a finished request, if somebody wants to know."""
        if self._access.isEnabledFor(logging.DEBUG):
            self._access.debug(
                "%s %s %s %s",
                request.method.decode("latin-1"),
                self.shown(request).decode("latin-1"),
                request.code,
                request.sentLength,
            )

    def shown(self, request: Any) -> bytes:
        """Return what a log may hold of the request's target: no query, which may hold a token."""
        path: bytes = request.path
        return path
