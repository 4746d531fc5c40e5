"""Tests for what every answer has in common."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.web import refusal
from cronstable.web.refusal import Refused
from cronstable.web.routing import get, routes
from tests.fakes import IDENTITY, job
from tests.web.api import VIEW, Api, locked, section

HEADERS = (("X-Demo", "yes"), ("content-TYPE", "text/evil"), ("Content-Length", "1"))


class InstanceTests(SynchronousTestCase):
    """Which process answered."""

    def test_everywhere(self) -> None:
        """Every answer names the process, refusals too, as whoami does."""
        api = Api(job("a"), web=locked())
        bearer = f"Bearer {VIEW}"
        for answer in (
            api.get("/jobs"),
            api.get("/nope"),
            api.get("/"),
            api.get("/nope", Authorization=bearer),
            api.post("/jobs", Authorization=bearer),
            api.post("/jobs/a/start", Origin="null"),
            api.get("/jobs/a/logs", Authorization=bearer),
            api.get("/jobs", Authorization=bearer),
        ):
            self.assertEqual(answer.headers["cronstable-instance"], IDENTITY.instance)
        shown = api.get("/whoami", Authorization=bearer).json()
        self.assertEqual(shown["instance"], IDENTITY.instance)


class OperatorHeadersTests(SynchronousTestCase):
    """Headers of the configuration."""

    def setUp(self) -> None:
        self.api = Api(job("a"), job("off", enabled=False), web=section(headers=HEADERS))

    def test_where(self) -> None:
        """They go with answers that succeed and with what start and cancel refuse."""
        for answer, expected in (
            (self.api.get("/jobs/a"), "yes"),
            (self.api.get("/jobs"), "yes"),
            (self.api.get("/version"), "yes"),
            (self.api.get("/"), "yes"),
            (self.api.get("/jobs/a/logs"), "yes"),
            (self.api.post("/jobs/off/start"), "yes"),
            (self.api.post("/jobs/a/cancel"), "yes"),
            (self.api.get("/jobs/nope"), None),
            (self.api.get("/nope"), None),
            (self.api.post("/jobs"), None),
            (self.api.ask("POST", "/jobs/a/pause", b"{nope"), None),
        ):
            self.assertEqual(answer.headers.get("x-demo"), expected)
        self.assertIsNone(Api(web=locked(headers=HEADERS)).get("/jobs").headers.get("x-demo"))

    def test_message_is_ours(self) -> None:
        """They cannot say what the body is."""
        answer = self.api.get("/jobs/a")
        self.assertEqual(answer.headers["content-type"], "application/json")
        self.assertEqual(answer.headers["content-length"], str(len(answer.body)))

    def test_protocol_is_ours(self) -> None:
        """They replace none of the headers that a stream or a cache needs."""
        clash = (
            ("ETag", '"x"'), ("Cache-Control", "max-age=9"), ("X-Accel-Buffering", "yes"),
            ("Vary", "*"), ("Content-Encoding", "br"), ("Transfer-Encoding", "gzip"),
        )  # fmt: skip
        api = Api(job("a"), web=section(headers=clash))
        listed = api.get("/jobs")
        self.assertEqual(len(listed.headers["etag"]), 34)
        self.assertEqual(listed.headers["vary"], "Accept-Encoding")
        self.assertNotIn("content-encoding", listed.headers)
        streamed = api.get("/jobs/a/logs")
        self.assertEqual(streamed.headers["cache-control"], "no-cache")
        self.assertEqual(streamed.headers["x-accel-buffering"], "no")
        self.assertEqual(streamed.headers["transfer-encoding"], "chunked")
        self.assertEqual(api.get("/").headers["cache-control"], "no-cache")

    def test_page(self) -> None:
        """On the page they replace its own of the same name."""
        policy = (("content-security-policy", "default-src 'none'"),)
        answer = Api(web=section(headers=policy)).get("/")
        self.assertEqual(answer.headers["content-security-policy"], "default-src 'none'")
        self.assertEqual(answer.headers["x-frame-options"], "DENY")


class PageTests(SynchronousTestCase):
    """The page is sent once."""

    def test_conditional(self) -> None:
        """A client that has the page gets 304, with the headers of the page."""
        api = Api()
        got = api.get("/", Accept_Encoding="gzip")
        self.assertEqual(got.headers["content-encoding"], "gzip")
        answer = api.get("/", If_None_Match=got.headers["etag"])
        self.assertEqual((answer.status, answer.body), (304, b""))
        self.assertEqual(answer.headers["etag"], got.headers["etag"])
        self.assertIn("content-security-policy", answer.headers)

    def test_off(self) -> None:
        """Switched off it is as unknown as any path."""
        answer = Api(web=section(ui=False)).get("/")
        self.assertEqual((answer.status, answer.json()), (404, {"error": "404: Not Found"}))


class MethodTests(SynchronousTestCase):
    """HEAD, and methods that a path does not have."""

    def setUp(self) -> None:
        self.api = Api(job("a"))

    def test_head(self) -> None:
        """HEAD has the status and the headers of GET, and no body."""
        for path in ("/jobs", "/version", "/jobs/a", "/", "/nope", "/jobs/a/logs", "/cluster"):
            got, head = self.api.get(path), self.api.ask("HEAD", path)
            self.assertEqual((head.status, head.body), (got.status, b""), path)
            for name in ("content-type", "content-length", "etag", "vary", "cache-control"):
                self.assertEqual(head.headers.get(name), got.headers.get(name), (path, name))

    def test_not_allowed(self) -> None:
        """A method that the path does not have is 405 and names those it has."""
        for method, path, allowed in (
            ("POST", "/jobs/a", "GET,HEAD"),
            ("OPTIONS", "/jobs", "GET,HEAD"),
            ("DELETE", "/", "GET,HEAD"),
            ("GET", "/jobs/a/start", "POST"),
            ("GET", "/shutdown", "POST"),
            ("PUT", "/push/devices", "GET,HEAD,POST"),
        ):
            answer = self.api.ask(method, path)
            self.assertEqual((answer.status, answer.headers["allow"]), (405, allowed), path)
            self.assertEqual(answer.json(), {"error": "405: Method Not Allowed"})

    def test_every_get_answers_head(self) -> None:
        """There is no route that answers GET and not HEAD."""
        for method, path in routes(self.api.running.front.app):
            if method == "GET":
                path = path.replace("{", "").replace("}", "")
                self.assertNotEqual(self.api.ask("HEAD", path).status, 405, path)


class FailureTests(SynchronousTestCase):
    """Errors inside."""

    def test_internal(self) -> None:
        """A handler that fails is a fixed 500; what happened is in the log only."""
        api = Api()

        def fails(request: object) -> bytes:
            raise RuntimeError("a secret detail")

        async def fails_later(request: object) -> bytes:
            raise RuntimeError("a secret detail")

        get(api.running.front.app, "/fails", fails)
        get(api.running.front.app, "/fails-later", fails_later)
        for path in ("/fails", "/fails-later"):
            with self.assertLogs("cronstable", "ERROR") as logs:
                answer = api.get(path)
            self.assertEqual(answer.status, 500)
            self.assertEqual(answer.json(), {"error": refusal.INTERNAL})
            self.assertIn("please report this as a bug (4)", logs.output[0])
            self.assertIn("a secret detail", logs.output[0])
        self.assertEqual(api.get("/version").status, 200)

    def test_gate(self) -> None:
        """A gate that fails lets nobody in."""
        api = Api(job("a"))

        def fails(request: object) -> None:
            raise RuntimeError("broken")

        api.running.front._gate.admit = fails  # type: ignore[method-assign,assignment]
        with self.assertLogs("cronstable", "ERROR"):
            self.assertEqual(api.post("/jobs/a/start").status, 500)
        self.assertEqual(api.executor.launches, [])

    def test_refusal(self) -> None:
        """A handler refuses with a status, a reason and headers of its choice."""
        api = Api()

        def refuses(request: object) -> bytes:
            raise Refused(418, "no coffee", {"X-Why": "teapot"})

        get(api.running.front.app, "/coffee", refuses)
        answer = api.get("/coffee")
        self.assertEqual((answer.status, answer.json()), (418, {"error": "no coffee"}))
        self.assertEqual(answer.headers["x-why"], "teapot")
        self.assertEqual(answer.headers["content-type"], "application/json; charset=utf-8")
