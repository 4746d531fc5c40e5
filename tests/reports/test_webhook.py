"""Tests for the webhook reporter and the HTTP client under it, against toy servers."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.ssl import optionsForClientTLS
from twisted.internet.task import LoopingCall, deferLater
from twisted.trial.unittest import SynchronousTestCase, TestCase
from twisted.web.iweb import IPolicyForHTTPS
from zope.interface import implementer

from cronstable.clock import SystemClock
from cronstable.config.values import Secret, WebhookReport
from cronstable.reports.http import HttpClient, Request
from cronstable.reports.templates import Templates
from cronstable.reports.trouble import ReportFailed
from cronstable.reports.webhook import compose, parts_of, post
from tests.certs import Authority
from tests.reports.toys import Names, Servers, ToyHttpFactory, http

TOKEN = "hooktok-77aa31"


@implementer(IPolicyForHTTPS)
class Trusting:
    """Verifies against one authority."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def creatorForNetloc(self, hostname: bytes, port: int) -> Any:  # noqa: N802
        return optionsForClientTLS(hostname.decode(), self._authority.trust_root())


class ComposeTests(SynchronousTestCase):
    """The request from a reporter's configuration."""

    def request(self, **fields: Any) -> Request:
        """Compose a request; the template knows C{a}."""
        return compose(WebhookReport(**fields), "http://x/", {"a": "é"}, Templates())

    def test_body(self) -> None:
        """The body is the rendered template in UTF-8, sent as its content type says."""
        request = self.request(body="[{{ a }}]", content_type="text/plain", timeout=3)
        self.assertEqual(request.body, "[é]".encode())
        self.assertEqual(request.headers, (("Content-Type", "text/plain"),))
        self.assertEqual((request.method, request.timeout), ("POST", 3))

    def test_headers_win(self) -> None:
        """A configured header wins over the content type, in whatever case it is written."""
        request = self.request(headers=(("content-TYPE", "a/b"), ("X-Key", "{{ a }}")))
        self.assertEqual(request.headers, (("content-TYPE", "a/b"), ("X-Key", "{{ a }}")))

    def test_nothing_shown(self) -> None:
        """The representation of a request shows neither URL nor headers nor body."""
        shown = repr(
            compose(
                WebhookReport(headers=(("K", TOKEN),), body=TOKEN),
                f"http://x/{TOKEN}",
                {},
                Templates(),
            )
        )
        self.assertNotIn(TOKEN, shown)

    def test_parts(self) -> None:
        """The parts of a URL that may be secret are known, common short ones are not."""
        parts = parts_of(f"https://us:pw@host/hook/{TOKEN}?key=abcd")
        for each in (TOKEN, "abcd", "us", "pw"):
            self.assertIn(each, parts)
        self.assertNotIn("hook", parts)
        self.assertNotIn("host", parts)


class PostTests(TestCase):
    """Requests to servers."""

    def setUp(self) -> None:
        self.clock = SystemClock(reactor)
        self.servers = Servers(self, reactor)

    async def serve(self, *answers: Any, pair: Any = None) -> tuple[ToyHttpFactory, str]:
        """Serve answers; return the server and a secret URL of it."""
        factory = ToyHttpFactory(*answers)
        port = await self.servers.listen(factory, pair)
        scheme = "http" if pair is None else "https"
        return factory, f"{scheme}://127.0.0.1:{port}/{TOKEN}?q=1"

    async def post(self, url: str, within: float = 5.0, policy: Any = None, **fields: Any) -> None:
        """Post to C{url}."""
        client = HttpClient(reactor, self.clock, policy)
        await post(client, Request(**{"url": url, "body": b"{}", **fields}), within)

    async def failure(self, url: str, **fields: Any) -> ReportFailed:
        """Post what is not taken; return why, and see that the URL is not told."""
        try:
            await self.post(url, **fields)
        except ReportFailed as failed:
            self.assertNotIn(TOKEN, str(failed))
            self.assertNotIn("://", str(failed))
            self.assertNotIn("\n", str(failed))
            return failed
        self.fail("it was taken")

    async def closed(self, factory: ToyHttpFactory) -> None:
        """Wait until the server has no open connection; trial's own limit ends it."""
        while factory.open:
            await deferLater(reactor, 0.01)  # type: ignore[arg-type]

    async def test_taken(self) -> None:
        """A 2xx is success; the server gets method, path, headers and body as configured."""
        for status in ("200 OK", "202 Accepted", "204 No Content"):
            factory, url = await self.serve(http(status))
            await self.post(url, body=b'{"a": 1}', method="PUT", headers=(("X-A", "b"),))
            head, body = factory.requests[0]
            self.assertTrue(head.startswith(f"PUT /{TOKEN}?q=1 HTTP/1.1\r\n".encode()))
            self.assertIn(b"\r\nx-a: b", head.lower())
            self.assertEqual(json.loads(body), {"a": 1})
            await self.closed(factory)

    async def test_refused(self) -> None:
        """A 4xx is final, a 5xx is not; the beginning of the answer is told, in one line."""
        for status, transient in (("404 Not Found", False), ("500 Oops", True), ("503 x", True)):
            factory, url = await self.serve(http(status, b"no\nsuch\x00hook"))
            failed = await self.failure(url)
            self.assertEqual(str(failed), f"the answer was {status[:3]}: no such hook")
            self.assertEqual(failed.transient, transient)
            await self.closed(factory)

    async def test_echo(self) -> None:
        """An answer that repeats the path is told without it."""
        _, url = await self.serve(http("404 Not Found", f"Cannot POST /{TOKEN}?q=1".encode()))
        failed = await self.failure(url)
        self.assertIn("Cannot POST", str(failed))

    async def test_endless_answer(self) -> None:
        """An answer without end is read for its first kilobyte, and the connection closed."""

        def flood(transport: Any) -> None:
            transport.write(b"HTTP/1.1 500 Oops\r\nContent-Type: text/plain\r\n\r\n")

            def more() -> None:
                transport.write(b"x" * 65536)
                if transport.disconnected:
                    loop.stop()

            loop = LoopingCall(more)
            loop.start(0.001)

        factory, url = await self.serve(flood)
        failed = await self.failure(url)
        self.assertEqual(str(failed), "the answer was 500: " + "x" * 1024)
        await self.closed(factory)

    async def test_endless_head(self) -> None:
        """Headers without end are given up."""

        def flood(transport: Any) -> None:
            transport.write(b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 100_000)

        factory, url = await self.serve(flood)
        failed = await self.failure(url)
        self.assertIn("closed early", str(failed))
        await self.closed(factory)

    async def test_slow_body(self) -> None:
        """The body of a good answer is not waited for; that of an error is, within the timeout."""
        factory, url = await self.serve(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab")
        await self.post(url)
        await self.closed(factory)
        factory, url = await self.serve(b"HTTP/1.1 500 Oops\r\nContent-Length: 10\r\n\r\nab")
        failed = await self.failure(url, timeout=0.2)
        self.assertIn("no answer in time", str(failed))
        await self.closed(factory)

    async def test_silence(self) -> None:
        """A server that never answers is given up at the timeout, or at the bound."""
        for fields in ({"timeout": 0.1}, {"within": 0.1}):
            factory, url = await self.serve(b"")
            failed = await self.failure(url, **fields)
            self.assertIn("no answer in time", str(failed))
            self.assertTrue(failed.transient)
            await self.closed(factory)

    async def test_redirects(self) -> None:
        """No redirect is followed, to no scheme and no host."""
        for target in ("file:///etc/passwd", "http://127.0.0.1:1/"):
            factory, url = await self.serve(http("302 Found", b"", f"Location: {target}"))
            failed = await self.failure(url)
            self.assertIn("302: redirects are not followed", str(failed))
            self.assertFalse(failed.transient)
            self.assertEqual(len(factory.requests), 1)

    async def test_unreachable(self) -> None:
        """Trouble with the connection is told with the host, without the URL."""
        for url, part in (
            (f"http://127.0.0.1:1/{TOKEN}", "host 127.0.0.1: the connection was refused"),
            (f"http://nosuch.invalid/{TOKEN}", "host nosuch.invalid: the host name does not"),
        ):
            failed = await self.failure(url)
            self.assertIn(part, str(failed))
            self.assertTrue(failed.transient)

    async def test_impossible_host(self) -> None:
        """A host name that no resolver takes is told at once, and is not tried again."""
        for host in ("a" * 64 + ".invalid", "a..invalid", ".", "ü" * 70, "xn--ü", "\udcff.invalid"):
            failed = await self.failure(f"http://{host}/{TOKEN}")
            self.assertIn("is not valid", str(failed), host)
            self.assertFalse(failed.transient, host)
        gc.collect()
        self.assertEqual(self.flushLoggedErrors(), [])

    async def test_underscore(self) -> None:
        """A name with an underscore, as containers have them, is looked up like any other."""
        Names(self, reactor, hook_1="127.0.0.1")
        factory, url = await self.serve(http("200 OK"))
        await self.post(url.replace("127.0.0.1", "hook_1"))
        self.assertIn(b"\r\nhost: hook_1:", factory.requests[0][0].lower())
        failed = await self.failure("http://hook_2/")
        self.assertIn("host hook_2: the host name does not resolve", str(failed))

    async def test_dropped(self) -> None:
        """A connection that is dropped without an answer is transient trouble."""
        _, url = await self.serve(lambda transport: transport.loseConnection())
        failed = await self.failure(url)
        self.assertIn("closed early", str(failed))
        self.assertTrue(failed.transient)

    async def test_not_http(self) -> None:
        """A URL, a method or a header that is none is told without it."""
        for url in (
            f"ftp://host/{TOKEN}",
            f"{TOKEN}",
            f"http://host:port/{TOKEN}",
            f"http:///{TOKEN}",
            f"http://[::1/{TOKEN}",
            f"http://127.0.0.1:1/{TOKEN} \r\nX: y",
        ):
            failed = await self.failure(url)
            self.assertFalse(failed.transient, url)
        failed = await self.failure("http://127.0.0.1:1/", method=f"{TOKEN} x")
        self.assertIn("not valid", str(failed))

    async def test_credentials(self) -> None:
        """Credentials in the URL become a header, and leave the request line."""
        factory, url = await self.serve(http("200 OK"))
        await self.post(url.replace("://", "://us:p%40w@"))
        head, _ = factory.requests[0]
        self.assertIn(b"basic dXM6cEB3", head.replace(b"Basic", b"basic"))
        self.assertNotIn(b"p%40w", head)

    async def test_odd_urls(self) -> None:
        """Fragments are dropped, text that is not ASCII is encoded, the rest stays as written."""
        factory, url = await self.serve(http("200 OK"))
        await self.post(url + "+%2F&é#part")
        self.assertTrue(
            factory.requests[0][0].startswith(f"POST /{TOKEN}?q=1+%2F&%C3%A9 HTTP".encode())
        )

    async def test_tls(self) -> None:
        """https is verified: a certificate of a stranger is refused, one of ours is not."""
        authority = Authority(Path(self.mktemp()))
        _, url = await self.serve(http("200 OK"), pair=authority.issue("hook"))
        failed = await self.failure(url)
        self.assertIn("TLS: ", str(failed))
        self.assertFalse(failed.transient)
        await self.post(url, policy=Trusting(authority))

    def test_secret_value(self) -> None:
        """The URL is a secret value of the configuration."""
        self.assertNotIn(TOKEN, repr(WebhookReport(url=Secret(value=TOKEN))))
