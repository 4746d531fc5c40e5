"""The client that commands inside a job use: what it sends, and what it makes of answers."""

from __future__ import annotations

import hashlib
import io
import os
import socket
from collections.abc import Callable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.jobapi.client import GATHERED, Absent, Endpoint, Trouble
from cronstable.jobapi.http1 import BadUrl, Url, quoted
from tests.answers import unchunked
from tests.jobapi.scripted import Scripted

TOKEN = "0123456789abcdef" * 4


def http(status: str, body: bytes = b"{}", *headers: str) -> bytes:
    """Return an answer in bytes."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class ClientCase(SynchronousTestCase):
    def trouble(self, call: Callable[[], object]) -> str:
        """Return what a call that fails says."""
        return str(self.assertRaises(Trouble, call))


class SendingTests(ClientCase):
    """What goes over the wire."""

    def sent(self, ask: Callable[[Endpoint], object], answer: bytes = http("200 OK")) -> bytes:
        with Scripted(answer) as server:
            ask(Endpoint(server.url, TOKEN))
        return server.requests[0].replace(server.url[7:].encode(), b"HOST")

    def test_get(self) -> None:
        """Parameters go in their order, those that are not given stay away."""
        query = (("scope", None), ("key", "a/b#c d&é~"))
        self.assertEqual(
            self.sent(lambda endpoint: endpoint.get("/v1/kv/get", query)).decode(),
            "GET /v1/kv/get?key=a%2Fb%23c%20d%26%C3%A9~ HTTP/1.1\r\nHost: HOST\r\n"
            f"Accept-Encoding: identity\r\nUser-Agent: cronstable\r\nAuthorization: Bearer {TOKEN}"
            "\r\nConnection: close\r\n\r\n",
        )

    def test_post(self) -> None:
        """A body is JSON, null included, and says its length."""
        sent = self.sent(lambda endpoint: endpoint.post("/v1/kv/set", {"scope": None, "key": "é"}))
        head, _, body = sent.partition(b"\r\n\r\n")
        self.assertEqual(body, b'{"scope": null, "key": "\\u00e9"}')
        self.assertIn(b"Content-Type: application/json\r\n", head)
        self.assertIn(b"Content-Length: %d\r\n" % len(body), head)

    def test_upload(self) -> None:
        """A short payload says its length, an empty one too; a long one goes in chunks."""
        for payload in (b"", b"payload", b"x" * (GATHERED - 1)):
            sent = self.sent(lambda endpoint, p=payload: endpoint.upload("/x", (), io.BytesIO(p)))  # type: ignore[misc]
            head, _, body = sent.partition(b"\r\n\r\n")
            self.assertEqual(body, payload)
            self.assertIn(b"Content-Type: application/octet-stream\r\n", head)
            self.assertIn(b"Content-Length: %d\r\n" % len(payload), head)
        payload = bytes(range(256)) * (3 * GATHERED // 256)
        sent = self.sent(lambda endpoint: endpoint.upload("/x", (), io.BytesIO(payload)))
        head, _, body = sent.partition(b"\r\n\r\n")
        self.assertIn(b"Transfer-Encoding: chunked\r\n", head)
        self.assertEqual(unchunked(body), payload)

    def test_base_path(self) -> None:
        """A path in the address stays before those of the API."""
        with Scripted(http("200 OK")) as server:
            Endpoint(server.url + "/base/", TOKEN).get("/v1/run")
        self.assertTrue(server.requests[0].startswith(b"GET /base/v1/run HTTP/1.1"))

    def test_no_proxy(self) -> None:
        """Proxies of the environment are never asked."""
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "https_proxy"):
            self.patch(os, "environ", {**os.environ, name: "http://127.0.0.1:1"})
        self.assertTrue(self.sent(lambda endpoint: endpoint.get("/v1/run")).startswith(b"GET /v1"))


class AnswerTests(ClientCase):
    """What comes back."""

    def get(self, answer: bytes) -> Any:
        with Scripted(answer) as server:
            return Endpoint(server.url, TOKEN).get("/v1/run")

    def test_forms(self) -> None:
        """A body has a length, comes in chunks, or ends with the connection."""
        for answer in (
            http("200 OK", b'{"a": 1}'),
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            b'4;x=y\r\n{"a"\r\n4\r\n: 1}\r\n0\r\n\r\n',
            b'HTTP/1.0 200\r\n\r\n{"a": 1}',
            b"HTTP/1.1 100 Continue\r\n\r\n" + http("200 OK", b'{"a": 1}'),
            b'HTTP/1.1 200 OK\nContent-Length: 8\n\n{"a": 1}',
        ):
            self.assertEqual(self.get(answer), {"a": 1})

    def test_refusals(self) -> None:
        """A refusal says what the endpoint says, and its status where that says nothing."""
        body = b'{"error": "no such luck"}'
        with Scripted(http("404 Not Found", body)) as server:
            absent = self.assertRaises(Absent, Endpoint(server.url, TOKEN).get, "/v1/x")
        self.assertEqual(str(absent), "no such luck")
        for status in ("400 x", "401 x", "403 x", "409 x", "410 x", "413 x", "500 x", "503 x"):
            with Scripted(http(status, body)) as server:
                said = self.trouble(lambda: Endpoint(server.url, TOKEN).get("/v1/x"))  # noqa: B023
            self.assertEqual(said, "no such luck")

    def test_odd_refusals(self) -> None:
        """No body of an error makes the client stumble."""
        for body in (b"", b"<html>", b"[]", b'{"error": 5}', b"[" * 100_000, b"\xff", b"null"):
            said = self.trouble(lambda: self.get(http("502 Bad", body)))  # noqa: B023
            self.assertIn("502", said)
            with Scripted(http("404 Not Found", body)) as server:
                self.assertRaises(Absent, Endpoint(server.url, TOKEN).get, "/v1/x")

    def test_redirect(self) -> None:
        """A redirect is told and not followed: the token goes nowhere else."""
        with Scripted(http("200 OK")) as elsewhere:
            answer = http("302 Found", b"", f"Location: {elsewhere.url}/x")
            said = self.trouble(lambda: self.get(answer))
        self.assertIn(f"{elsewhere.url}/x", said)
        self.assertEqual(elsewhere.requests, [])

    def test_no_answer(self) -> None:
        """What is no HTTP, or not all of it, is trouble with the endpoint."""
        for answer in (
            b"",
            b"hello\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}",
            b"HTTP/1.1 200 OK\r\nContent-Le",
            b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",
            b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
            b"HTTP/1.1 " + b"2" * 70000,
        ):
            said = self.trouble(lambda: self.get(answer))  # noqa: B023
            self.assertTrue(said.startswith("cannot reach the cronstable state endpoint"), said)

    def test_no_object(self) -> None:
        """A good answer that is no JSON object is trouble too."""
        for body in (b"", b"[]", b"{", b"\xff"):
            said = self.trouble(lambda: self.get(http("200 OK", body)))  # noqa: B023
            self.assertIn("JSON object", said)

    def test_refused_before_it_was_all_sent(self) -> None:
        """An answer that comes before the end of an upload is heard."""
        payload = io.BytesIO(b"x" * (32 << 20))
        body = b'{"error": "too large"}'
        with Scripted(http("413 x", body), unread=True) as server:
            said = self.trouble(lambda: Endpoint(server.url, TOKEN).upload("/x", (), payload))
        self.assertTrue(said == "too large" or "cannot reach" in said, said)


class DownloadTests(ClientCase):
    """Payloads."""

    def download(self, answer: bytes) -> bytes:
        with Scripted(answer) as server:
            return b"".join(Endpoint(server.url, TOKEN).download("/v1/artifact/get", ()))

    def test_whole(self) -> None:
        """A payload comes as it is, and its digest is looked at."""
        payload = bytes(range(256)) * 5000
        digest = hashlib.sha256(payload).hexdigest()
        answer = http("200 OK", payload, f"X-Cronstable-Sha256: {digest}")
        self.assertEqual(self.download(answer), payload)
        self.assertEqual(self.download(http("200 OK", payload)), payload)

    def test_damaged(self) -> None:
        """Other bytes than those that were asked for are trouble, and so are fewer."""
        answer = http("200 OK", b"payload", f"X-Cronstable-Sha256: {'0' * 64}")
        self.assertIn("SHA-256", self.trouble(lambda: self.download(answer)))
        self.assertIn("too early", self.trouble(lambda: self.download(answer[:-3])))

    def test_absent(self) -> None:
        """Absence is known before anything is written."""
        with Scripted(http("404 Not Found")) as server:
            parts = Endpoint(server.url, TOKEN).download("/v1/artifact/get", ())
            self.assertRaises(Absent, next, parts)


class EnvironmentTests(ClientCase):
    """Where the endpoint is."""

    def test_missing(self) -> None:
        """The variable that is missing is named, the token as well as the address."""
        for environ, name in (
            ({}, "CRONSTABLE_STATE_URL"),
            ({"CRONSTABLE_STATE_TOKEN": "x"}, "CRONSTABLE_STATE_URL"),
            ({"CRONSTABLE_STATE_URL": "", "CRONSTABLE_STATE_TOKEN": "x"}, "CRONSTABLE_STATE_URL"),
            ({"CRONSTABLE_STATE_URL": "http://127.0.0.1:1"}, "CRONSTABLE_STATE_TOKEN"),
        ):
            said = self.trouble(lambda: Endpoint.of(environ))  # noqa: B023
            self.assertTrue(said.startswith(f"{name} is not set"), said)
            self.assertIn("state.jobApi", said)

    def test_addresses(self) -> None:
        """An address that no request can go to is told as that."""
        for text in (
            "",
            "127.0.0.1:80",
            "ftp://127.0.0.1",
            "http://",
            "http://:80",
            "http://127.0.0.1:99999",
            "http://127.0.0.1:0",
            "http://127.0.0.1:x",
            "http://[::1",
            "http://[::1]80",
            "http://user@127.0.0.1",
            "http://a b",
            "http://a\r\nX: y",
            "unix:///x",
        ):
            self.assertRaises(BadUrl, Url, text)
            said = self.trouble(lambda: Endpoint(text, TOKEN))  # noqa: B023
            self.assertTrue(said.startswith("cannot send a request"), said)

    def test_parts(self) -> None:
        """An address is taken apart, IPv6 and default ports included."""
        url = Url("HTTPS://[::1]/a/b/")
        self.assertEqual(
            (url.secure, url.host, url.port, url.base, url.netloc),
            (True, "::1", 443, "/a/b", "[::1]"),
        )
        url = Url("http://localhost:8080")
        self.assertEqual((url.secure, url.host, url.port, url.base), (False, "localhost", 8080, ""))

    def test_token(self) -> None:
        """A token that would break the request is refused, and never shown."""
        for token in ("a\nb", "a b", "é", "\x00"):
            said = self.trouble(lambda: Endpoint("http://127.0.0.1:1", token))  # noqa: B023
            self.assertNotIn(token, said)

    def test_nobody_there(self) -> None:
        """A dead endpoint is told with its address and the system's reason."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        said = self.trouble(lambda: Endpoint(url, TOKEN).get("/v1/run"))
        self.assertTrue(said.startswith(f"cannot reach the cronstable state endpoint at {url}: "))
        self.assertIn("Connection refused", said)
        self.assertNotIn(TOKEN, said)

    def test_authority(self) -> None:
        """An authority that cannot be read is told by its variable."""
        endpoint = Endpoint("https://127.0.0.1:1", TOKEN, "/nowhere/ca.pem")
        said = self.trouble(lambda: endpoint.get("/v1/run"))
        self.assertIn("CRONSTABLE_STATE_CACERT", said)
        self.assertIn("/nowhere/ca.pem", said)

    def test_not_utf8(self) -> None:
        """A word that is no UTF-8 is told before anything is sent."""
        endpoint = Endpoint("http://127.0.0.1:1", TOKEN)
        said = self.trouble(lambda: endpoint.get("/v1/kv/get", (("key", "\udcff"),)))
        self.assertIn("not valid UTF-8", said)
        self.assertEqual(quoted("aZ09-._~"), "aZ09-._~")
