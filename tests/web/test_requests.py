"""Tests for what is read of a request: paths, queries, headers, bodies."""

from __future__ import annotations

import logging
from urllib.parse import quote

from twisted.trial.unittest import SynchronousTestCase

from cronstable.web.requests import masked
from tests.fakes import job
from tests.properties import given, settings, st
from tests.web.api import Api
from tests.web.served import Connection


class PathTests(SynchronousTestCase):
    """A path is split first and decoded then."""

    def setUp(self) -> None:
        names = ("a/b", "a", "\u00f1", "a%20b", "a b", "..", "x\0y", "\u65e5\u672c", "?#&=+")
        self.api = Api(*(job(name) for name in names))

    def name(self, path: str) -> object:
        """Return the job that a path leads to, or the status."""
        answer = self.api.get(path)
        return answer.json()["name"] if answer.status == 200 else answer.status

    def test_slash_is_data(self) -> None:
        """An encoded slash belongs to the name, a plain one ends a segment."""
        self.assertEqual(self.name("/jobs/a%2Fb"), "a/b")
        self.assertEqual(self.name("/jobs/a%2fb"), "a/b")
        self.assertEqual(self.name("/jobs/a/b"), 404)

    def test_decoded_once(self) -> None:
        """A percent sign in a name is encoded itself, and decoded only once."""
        self.assertEqual(self.name("/jobs/a%20b"), "a b")
        self.assertEqual(self.name("/jobs/a%2520b"), "a%20b")
        self.assertEqual(self.name("/jobs/a+b"), 404)

    def test_any_text(self) -> None:
        """Every name can be asked for, control characters and signs included."""
        self.assertEqual(self.name("/jobs/%C3%B1"), "\u00f1")
        self.assertEqual(self.name("/jobs/%E6%97%A5%E6%9C%AC"), "\u65e5\u672c")
        self.assertEqual(self.name("/jobs/x%00y"), "x\0y")
        self.assertEqual(self.name("/jobs/%3F%23%26%3D%2B"), "?#&=+")

    def test_dots_are_data(self) -> None:
        """A dot segment is a name like any other and never leads elsewhere."""
        self.assertEqual(self.name("/jobs/.."), "..")
        self.assertEqual(self.name("/jobs/%2e%2e"), "..")
        self.assertEqual(self.name("/jobs/../jobs"), 404)
        self.assertEqual(self.name("/static/..%2f..%2fetc/passwd"), 404)

    def test_what_names_nothing(self) -> None:
        """Text that is no UTF-8, empty segments and slashes at the end are 404."""
        for path in ("/jobs/%F1", "/jobs/%C3", "/jobs/%ED%A0%80", "/jobs/%zz", "//jobs", "/jobs/"):
            self.assertEqual(self.name(path), 404, path)
        for path in ("/jobs//", "//", "/jobs//runs", "*", "jobs", "/jobs/a/", "/%2Fjobs"):
            self.assertEqual(self.name(path), 404, path)

    def test_raw_utf8(self) -> None:
        """A path with bytes beyond ASCII is refused or served, as Twisted's parser has it."""
        for name in ("\u00f1".encode(), b"\xf1"):
            answer = self.api.raw(b"GET /jobs/" + name + b" HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertIn(answer.status, (200, 400, 404))

    def test_absolute_form(self) -> None:
        """A request line with a whole URL is served by its path."""
        answer = self.api.raw(b"GET http://node-a:8080/jobs/a HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual(answer.json()["name"], "a")
        answer = self.api.raw(b"GET http://node-a HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual(answer.headers["content-type"], "text/html; charset=utf-8")

    @given(st.binary(max_size=40))
    def test_never_500(self, noise: bytes) -> None:
        """Whatever a path holds, the answer is never an internal error."""
        path = noise.translate(None, b" \r\n\t\x0b\x0c")
        answer = self.api.raw(b"GET /" + path + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertLess(answer.status, 500)

    @settings(max_examples=40)
    @given(st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=20))
    def test_every_name_comes_back(self, name: str) -> None:
        """A fully quoted name leads to its job, whatever it is."""
        answer = Api(job(name)).get(f"/jobs/{quote(name, safe='')}")
        self.assertEqual(answer.json()["name"], name)


class HeaderTests(SynchronousTestCase):
    """Headers that change how a request is answered."""

    def setUp(self) -> None:
        self.api = Api(job("a"), *(job(f"job-{number}") for number in range(20)))

    def test_host_does_not_matter(self) -> None:
        """Whatever the Host header holds, routes are found."""
        for host in (
            b"",
            b"node-a",
            b"\xff\xfe",
            b"..",
            b"a" * 300,
            b"[::1",
            b"x:y:z",
            b"[::1]:80",
        ):
            answer = self.api.raw(b"GET /version HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
            self.assertEqual(answer.status, 200, host)
        self.assertEqual(self.api.raw(b"GET /version HTTP/1.1\r\n\r\n").status, 200)

    def test_odd_methods(self) -> None:
        """A method that is no capital word is answered like an unknown path, others with 405."""
        self.assertEqual(self.api.raw(b"get /version HTTP/1.1\r\n\r\n").status, 404)
        self.assertEqual(self.api.raw(b"G\xffT /version HTTP/1.1\r\n\r\n").status, 400)
        self.assertEqual(self.api.raw(b"BREW /version HTTP/1.1\r\n\r\n").status, 405)

    def test_expectation(self) -> None:
        """An expectation that nobody can meet is 417; the usual one is met."""
        self.assertEqual(self.api.get("/version", Expect="wonders").status, 417)
        connection = Connection(self.api)
        connection.send("POST", "/jobs/a/pause", b"{}", Expect="100-continue")
        self.assertTrue(connection.received.startswith(b"HTTP/1.1 100 Continue\r\n\r\n"))

    def test_gzip(self) -> None:
        """A large answer is compressed for who takes it, weights of zero honoured."""
        for accepted, expected in (
            ("gzip", "gzip"),
            ("deflate, gzip;q=0.5", "gzip"),
            ("*", "gzip"),
            ("GZIP", "gzip"),
            ("gzip;q=0", None),
            ("gzip; q=0.000", None),
            ("gzip;q=oops", None),
            ("deflate", None),
            ("", None),
        ):
            answer = self.api.get("/jobs", Accept_Encoding=accepted)
            self.assertEqual(answer.headers.get("content-encoding"), expected, accepted)
            self.assertEqual(answer.headers["vary"], "Accept-Encoding")
            self.assertEqual(len(answer.json()), 21)

    def test_small_answers_stay_plain(self) -> None:
        """An answer under a kilobyte is not compressed."""
        answer = self.api.get("/cluster", Accept_Encoding="gzip")
        self.assertNotIn("content-encoding", answer.headers)

    def test_integers_are_clamped(self) -> None:
        """Integers out of bounds count as the bound, text that is none as the default."""
        for text, expected in (("0", 1), ("7", 7), ("-3", 1), ("99", 21), ("x", 21), ("", 21)):
            shown = self.api.get(f"/activity?jobs={text}").json()["jobs"]
            self.assertEqual(len(shown), expected, text)


class BodyTests(SynchronousTestCase):
    """Bodies are JSON objects of bounded size, whatever they are called."""

    def setUp(self) -> None:
        self.api = Api(job("a"))

    def pause(self, body: bytes, **headers: str) -> tuple[int, str]:
        """Return the status and the reason of an answer to a pause."""
        answer = self.api.ask("POST", "/jobs/a/pause", body, **headers)
        return answer.status, answer.json().get("error", "")

    def test_content_type_is_not_asked(self) -> None:
        """JSON is read under every content type, a form is not."""
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            self.assertEqual(self.pause(b'{"note": "n"}', Content_Type=kind), (200, ""))
        answer = self.pause(b"note=n", Content_Type="application/x-www-form-urlencoded")
        self.assertEqual(answer, (400, "request body is not valid JSON"))

    def test_nothing_is_an_empty_object(self) -> None:
        """No body, and a blank one, stand for {}."""
        self.assertEqual(self.pause(b""), (200, ""))
        self.assertEqual(self.pause(b" \n"), (200, ""))

    def test_no_object(self) -> None:
        """Anything but an object is refused."""
        for body in (b"[1]", b"1", b'"x"', b"null", b"true"):
            self.assertEqual(self.pause(body), (400, "request body must be a JSON object"))

    def test_no_json(self) -> None:
        """What cannot be parsed is refused, however it is broken."""
        bodies = (b"{nope", b"\xff", b"{}{}", b"[" * 100_000, b'{"durationSeconds": NaN}')
        for body in (*bodies, b'{"durationSeconds": ' + b"9" * 10_000 + b"}"):
            self.assertEqual(self.pause(body)[0], 400, body[:20])

    def test_too_large(self) -> None:
        """A body over a megabyte is refused and not kept."""
        connection = Connection(self.api)
        connection.send("POST", "/jobs/a/pause", Content_Length=str(3 << 20))
        for _ in range(48):
            connection.channel.dataReceived(b" " * (1 << 16))
        kept = connection.channel.requests
        answer = self.api.answered(connection)
        self.assertEqual(answer.status, 400)
        self.assertIn("larger than", answer.json()["error"])
        self.assertEqual(kept, [])

    def test_too_large_in_chunks(self) -> None:
        """A chunked body is bounded as well."""
        connection = Connection(self.api)
        connection.send("POST", "/jobs/a/pause", Transfer_Encoding="chunked")
        for _ in range(32):
            connection.channel.dataReceived(b"10000\r\n" + b" " * 65536 + b"\r\n")
        request = connection.channel.requests[0]
        self.assertLessEqual(request.content.tell(), 1 << 20)
        connection.channel.dataReceived(b"0\r\n\r\n")
        self.assertEqual(self.api.answered(connection).status, 400)

    def test_ignored_where_it_means_nothing(self) -> None:
        """A start takes no notice of its body."""
        self.assertEqual(self.api.ask("POST", "/jobs/a/start", b"{nope").status, 200)


class AccessLogTests(SynchronousTestCase):
    """The access log is quiet unless wanted, and never shows a token."""

    def setUp(self) -> None:
        self.seen: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: self.seen.append(record.getMessage())  # type: ignore[method-assign]
        self.log = logging.getLogger("cronstable.web.access")
        self.log.addHandler(handler)
        self.addCleanup(self.log.removeHandler, handler)
        self.addCleanup(self.log.setLevel, self.log.level)

    def test_quiet(self) -> None:
        """At INFO nothing is logged."""
        self.log.setLevel(logging.INFO)
        Api().get("/version")
        self.assertEqual(self.seen, [])

    def test_masked(self) -> None:
        """At DEBUG a line tells method, path, status and size, the query token hidden."""
        self.log.setLevel(logging.DEBUG)
        Api().get("/calendar.ics?days=3&token=s3cret&x=1")
        self.assertEqual(len(self.seen), 1)
        self.assertTrue(self.seen[0].startswith("GET /calendar.ics?days=3&token=***&x=1 "))

    def test_masking(self) -> None:
        """Every spelling of the parameter is masked, other parameters are not."""
        self.assertEqual(masked(b"/x?token=a&token=b"), b"/x?token=***&token=***")
        self.assertEqual(masked(b"/x?Token=a;token=b"), b"/x?Token=***;token=***")
        self.assertEqual(masked(b"/x?mytoken=a"), b"/x?mytoken=a")
        self.assertEqual(masked(b"/token=a"), b"/token=a")
