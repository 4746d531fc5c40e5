"""
HTTP requests of reports: one connection each, no redirects, bounded in time and in bytes.

What goes wrong is told without the URL, which may be a secret.
"""

from __future__ import annotations

import base64
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit, urlunsplit

import attrs
from hyperlink import URL
from twisted.internet.defer import Deferred, TimeoutError
from twisted.internet.endpoints import wrapClientTLS
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.python.failure import Failure
from twisted.web.client import Agent, BrowserLikePolicyForHTTPS
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgentEndpointFactory, IBodyProducer
from zope.interface import implementer

from cronstable.clock import Clock
from cronstable.config.addresses import can_be_looked_up
from cronstable.reports.lookup import endpoint_of
from cronstable.reports.trouble import ReportFailed, network_trouble, one_line

SNIPPET = 1024
"""Bytes of an answer that are read at all."""

_MOST_RECEIVED = 262144


@attrs.frozen
class Request:
    """One request; C{timeout} in seconds covers it all, from the look-up to the answer."""

    url: str = attrs.field(repr=False)
    body: bytes = attrs.field(repr=False)
    headers: tuple[tuple[str, str], ...] = attrs.field(default=(), repr=False)
    method: str = "POST"
    timeout: float = 10.0


@attrs.frozen
class Answer:
    """A response: its status, and where that is an error the beginning of its body."""

    status: int
    snippet: str = attrs.field(repr=False)


class HttpClient:
    """
    Sends single requests.

    @param policy: an C{IPolicyForHTTPS}; None = verified against the system's roots.
    """

    def __init__(self, reactor: Any, clock: Clock, policy: Any = None) -> None:
        self._reactor = reactor
        self._clock = clock
        self._policy = policy

    async def send(self, request: Request, within: float) -> Answer:
        """
        Send C{request}, in at most C{within} seconds and its own timeout; return what came back.

        @raise ReportFailed: no answer; the text names the host only.
        """
        host, url, headers = _prepared(request)
        where = f"host {one_line(host)}"
        policy = self._policy or BrowserLikePolicyForHTTPS()
        connection = _Connection(self._reactor, policy, min(request.timeout, within))
        agent = Agent.usingEndpointFactory(self._reactor, connection)
        exchange = Deferred.fromCoroutine(_exchange(agent, request, url, headers))
        exchange.addTimeout(
            min(request.timeout, within),
            self._clock,  # type: ignore[arg-type]
            _timed_out,
        )
        try:
            return await exchange
        except ReportFailed:
            raise
        except (ValueError, UnicodeError):
            raise ReportFailed(f"{where}: the method, URL or a header is not valid") from None
        except Exception as error:
            raise network_trouble(where, error) from None
        finally:
            connection.drop()


async def _exchange(agent: Agent, request: Request, url: bytes, headers: Headers) -> Answer:
    method = request.method.encode("ascii")
    response = await agent.request(method, url, headers, _Body(request.body))
    if response.code < 400:
        return Answer(response.code, "")
    head = _Head()
    response.deliverBody(head)
    return Answer(response.code, (await head.done).decode("utf-8", "replace"))


def _timed_out(result: object, seconds: float) -> NoReturn:
    raise TimeoutError(seconds)


def _prepared(request: Request) -> tuple[str, bytes, Headers]:
    """Return the host, the URL without credentials, and headers that carry these instead."""
    try:
        parts = urlsplit(request.url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ReportFailed("the URL is not valid") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ReportFailed("the URL is not http or https")
    if not can_be_looked_up(host):
        raise ReportFailed(f"host {one_line(host)}: the host name is not valid")
    userinfo, _, netloc = parts.netloc.rpartition("@")
    headers = Headers()
    for name, value in request.headers:
        headers.setRawHeaders(name, [value])
    if not headers.hasHeader("User-Agent"):
        headers.setRawHeaders("User-Agent", ["cronstable"])
    if userinfo and not headers.hasHeader("Authorization"):
        login = base64.b64encode(unquote(userinfo).encode("utf-8"))
        headers.setRawHeaders("Authorization", [b"Basic " + login])
    url = urlunsplit((parts.scheme, netloc, parts.path or "/", parts.query, ""))
    if not url.isascii():
        try:
            url = URL.from_text(url).to_uri().to_text()
        except ValueError:
            raise ReportFailed("the URL is not valid") from None
    return host, url.encode("ascii"), headers


@implementer(IBodyProducer)
class _Body:
    """A body that is at hand."""

    def __init__(self, body: bytes) -> None:
        self.length = len(body)
        self._body = body

    def startProducing(self, consumer: Any) -> Deferred[None]:  # noqa: N802 - the interface's name
        """Write it all."""
        consumer.write(self._body)
        done: Deferred[None] = Deferred()
        done.callback(None)
        return done

    def pauseProducing(self) -> None:  # noqa: N802 - the interface's name
        """There is nothing more to come."""

    def resumeProducing(self) -> None:  # noqa: N802 - the interface's name
        """There is nothing more to come."""

    def stopProducing(self) -> None:  # noqa: N802 - the interface's name
        """There is nothing more to come."""


class _Head(Protocol):
    """Reads the beginning of a body, and no more."""

    def __init__(self) -> None:
        self.done: Deferred[bytes] = Deferred()
        self._data = b""

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Protocol's name
        """Keep what is wanted."""
        self._data = (self._data + data)[:SNIPPET]
        if len(self._data) == SNIPPET:
            self._finish()

    def connectionLost(self, reason: Failure = connectionDone) -> None:  # noqa: N802
        """The body is over, or cut: its beginning is good either way."""
        self._finish()

    def _finish(self) -> None:
        if not self.done.called:
            self.done.callback(self._data)


class _Guarded(ProtocolWrapper):
    """Passes at most L{_MOST_RECEIVED} bytes on, and drops a connection that sends more."""

    received = 0

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Protocol's name
        """Count, and pass on."""
        self.received += len(data)
        if self.received > _MOST_RECEIVED:
            self.transport.abortConnection()  # type: ignore[attr-defined,union-attr]
        else:
            super().dataReceived(data)


@implementer(IAgentEndpointFactory)
class _Connection:
    """Makes the one connection of a request, and can drop it."""

    def __init__(self, reactor: Any, policy: Any, timeout: float) -> None:
        self._reactor = reactor
        self._policy = policy
        self._timeout = timeout
        self._wrapper: _Guarded | None = None

    def endpointForURI(self, uri: Any) -> Any:  # noqa: N802 - the interface's name
        """Return an endpoint for C{uri} that reports its connection here."""
        endpoint = endpoint_of(self._reactor, uri.host.decode("ascii"), uri.port, self._timeout)
        if uri.scheme == b"https":
            creator = self._policy.creatorForNetloc(uri.host, uri.port)
            endpoint = wrapClientTLS(creator, endpoint)
        return _Watched(endpoint, self)

    def made(self, wrapper: _Guarded) -> Any:
        """Remember the connection; return the protocol that speaks on it."""
        self._wrapper = wrapper
        return wrapper.wrappedProtocol

    def drop(self) -> None:
        """Close the connection at once, if there is one."""
        if self._wrapper is not None and self._wrapper.transport is not None:
            self._wrapper.transport.abortConnection()  # type: ignore[attr-defined]


@attrs.frozen
class _Watched:
    """An endpoint whose connection is guarded."""

    _endpoint: Any
    _connection: _Connection

    def connect(self, factory: Factory) -> Deferred[Any]:
        """Connect, and hand the connection to its owner on the way."""
        wrapping = WrappingFactory(factory)
        wrapping.protocol = _Guarded
        wrapping.noisy = False
        connected: Deferred[Any] = self._endpoint.connect(wrapping)
        return connected.addCallback(self._connection.made)
