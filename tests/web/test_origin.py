"""Tests for the cross-site gate."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sections_values import WebConfig
from cronstable.web.origin import FOREIGN
from tests.fakes import job
from tests.web.api import ALL, Api, locked, section


class OriginTests(SynchronousTestCase):
    """Who may change something through a browser."""

    def status(self, origin: str, host: str = "node-a:8080", web: WebConfig | None = None) -> int:
        """Return how a pause that a page of C{origin} asks for is answered."""
        lines = ["POST /jobs/a/pause HTTP/1.1", f"Host: {host}", f"Origin: {origin}", "", ""]
        return Api(job("a"), web=web).raw("\r\n".join(lines).encode("latin-1")).status

    def test_no_origin(self) -> None:
        """What comes from no browser passes."""
        self.assertEqual(Api(job("a")).post("/jobs/a/pause").status, 200)

    def test_foreign(self) -> None:
        """Another origin is refused with a hint, and so is a hidden or an odd one."""
        for origin in (
            "http://evil.example", "null", "", "http://node-a:8081", "http://node-b:8080",
            "http://node-a:8080.evil.example", "http://evil.example/node-a:8080", "node-a:8080",
            "http://[::1", "http://node-a:99999", "\xff", "http://evil.example#@node-a:8080",
        ):  # fmt: skip
            self.assertEqual(self.status(origin), 403, origin)
        answer = Api(job("a")).post("/jobs/a/pause", Origin="null")
        self.assertEqual(answer.json(), {"error": FOREIGN})

    def test_same(self) -> None:
        """The origin that the request was sent to passes, whatever its scheme."""
        for origin in ("http://node-a:8080", "https://node-a:8080", "HTTP://NODE-A:8080"):
            self.assertEqual(self.status(origin), 200, origin)
        self.assertEqual(self.status("http://[::1]:8080", "[::1]:8080"), 200)

    def test_default_ports(self) -> None:
        """A port left out is the one that the origin's scheme stands for."""
        for origin, host, expected in (
            ("https://node-a", "node-a", 200),
            ("https://node-a", "node-a:443", 200),
            ("http://node-a:80", "node-a", 200),
            ("http://node-a", "node-a:80", 200),
            ("http://node-a", "node-a:443", 403),
            ("https://node-a:8443", "node-a", 403),
        ):
            self.assertEqual(self.status(origin, host), expected, (origin, host))

    def test_allowed(self) -> None:
        """Origins of the configuration pass, in any case and with a slash at the end."""
        web = section(allowed_origins=("https://ops.example.org", "http://other.example.org/"))
        for origin in (
            "https://ops.example.org",
            "HTTPS://ops.example.org",
            "http://other.example.org",
        ):
            self.assertEqual(self.status(origin, web=web), 200, origin)
        self.assertEqual(self.status("https://ops.example.org:444", web=web), 403)
        self.assertEqual(self.status("http://ops.example.org", web=web), 403)

    def test_cors_header(self) -> None:
        """An origin that the operator's own header allows passes; a star opens the gate."""
        web = section(headers=(("access-control-allow-origin", "https://ops.example.org"),))
        self.assertEqual(self.status("https://ops.example.org", web=web), 200)
        self.assertEqual(self.status("https://evil.example", web=web), 403)
        web = section(headers=(("Access-Control-Allow-Origin", "*"),))
        self.assertEqual(self.status("https://evil.example", web=web), 200)

    def test_star_is_no_origin(self) -> None:
        """A star among the allowed origins allows nothing."""
        web = section(allowed_origins=("*",))
        self.assertEqual(self.status("https://evil.example", web=web), 403)

    def test_reading(self) -> None:
        """Reading is not gated: the browser keeps the answer from the page."""
        self.assertEqual(Api().get("/jobs", Origin="http://evil.example").status, 200)

    def test_before_the_credential(self) -> None:
        """A foreign page is refused whether or not it shows a token."""
        api = Api(job("a"), web=locked())
        header = {"Origin": "http://evil.example"}
        self.assertEqual(api.post("/jobs/a/pause", **header).status, 403)
        answer = api.post("/jobs/a/pause", **header, Authorization=f"Bearer {ALL}")
        self.assertEqual(answer.status, 403)
        self.assertEqual(api.post("/nope", **header).status, 403)

    def test_several(self) -> None:
        """Of several Origin headers each has to pass."""
        for origins in (("http://x", "http://evil.example"), ("http://evil.example", "http://x")):
            lines = ["POST /jobs/a/pause HTTP/1.1", "Host: x", *(f"Origin: {o}" for o in origins)]
            answer = Api(job("a")).raw("\r\n".join([*lines, "", ""]).encode())
            self.assertEqual(answer.status, 403)
