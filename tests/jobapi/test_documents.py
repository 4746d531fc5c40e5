"""Keys, cursors and idempotency keys, as a job asks for them."""

from __future__ import annotations

import errno
import itertools
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state.store import View
from tests.fakes import job
from tests.jobapi.support import World


class DocumentCase(SynchronousTestCase):
    """One world."""

    def setUp(self) -> None:
        self.world = World(max_value_bytes=100)

    def post(self, path: str, **said: Any) -> Any:
        answer = self.world.post(f"/v1/{path}", said)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json()

    def status(self, path: str, **said: Any) -> int:
        return self.world.post(f"/v1/{path}", said).status


class KeyTests(DocumentCase):
    """Values under keys."""

    def test_life(self) -> None:
        """The last value wins, null is a value, and what is deleted is absent."""
        world = self.world
        self.assertEqual(world.get("/v1/kv/get?key=k").status, 404)
        for value in ("text", 5, None, {"a": [1, "é"]}, 2**64 - 1, True):
            set_at = self.post("kv/set", key="k", value=value)
            got = world.get("/v1/kv/get?key=k").json()
            self.assertEqual((set_at["ok"], got["value"]), (True, value))
            self.assertEqual(got["updatedAt"], set_at["updatedAt"])
        self.assertEqual(self.post("kv/delete", key="k"), {"existed": True})
        self.assertEqual(self.post("kv/delete", key="k"), {"existed": False})

    def test_without_value(self) -> None:
        """A request without a value stores null; one without a body names no key."""
        self.post("kv/set", key="k")
        self.assertIs(self.world.get("/v1/kv/get?key=k").json()["value"], None)
        self.assertEqual(self.world.ask("POST", "/v1/kv/set").error, "key is required")

    def test_in_a_query(self) -> None:
        """What is a query's is cut at ampersands only, and the first of a name counts."""
        self.post("kv/set", key="a;b=c", value=1)
        for query in ("key=a;b=c", "key=a%3Bb%3Dc&key=z", "scope=&key=a;b=c&x"):
            self.assertEqual(self.world.get(f"/v1/kv/get?{query}").json()["value"], 1, query)

    def test_gone(self) -> None:
        """Nobody hears of a client that goes away before the store has answered."""
        self.world.store.hold()
        connection = self.world.send("GET", "/v1/kv/get?key=k")
        connection.lose()
        with self.assertNoLogs("cronstable.jobapi"):
            self.world.store.go_on()

    def test_list(self) -> None:
        """All keys of a scope are listed in their order, with their values."""
        for key in ("b", "a/b", "A"):
            self.post("kv/set", key=key, value=key)
        listed = self.world.get("/v1/kv/list").json()["keys"]
        self.assertEqual([each["key"] for each in listed], ["A", "a/b", "b"])
        self.assertEqual(set(listed[0]), {"key", "value", "updatedAt"})

    def test_any_name(self) -> None:
        """A key is any text, and told from all others."""
        for key in ("../x", "a b", "a+b", "%2F", "é", "k" * 3000):
            self.post("kv/set", key=key, value=key[:90])
        quoted = {"../x": "..%2Fx", "a b": "a+b", "a+b": "a%2Bb", "%2F": "%252F", "é": "%C3%A9"}
        for key, sent in quoted.items():
            self.assertEqual(self.world.get(f"/v1/kv/get?key={sent}").json()["value"], key)

    def test_limits(self) -> None:
        """A value has so many bytes as JSON; no limit at all is a limit of 0."""
        self.assertEqual(self.status("kv/set", key="k", value="x" * 98), 200)
        self.assertEqual(self.status("kv/set", key="k", value="x" * 99), 413)
        self.assertEqual(self.status("kv/set", key="k", value="é" * 49), 200)
        free = World(max_value_bytes=0)
        self.assertEqual(free.post("/v1/kv/set", {"key": "k", "value": "x" * 200_000}).status, 200)

    def test_not_portable(self) -> None:
        """What some reader could not read back is refused, whatever the limits."""
        free = World(max_value_bytes=0)
        for raw in ("NaN", "1e400", "-Infinity", str(2**64), str(-(2**63) - 1), '"\\ud800"'):
            answer = free.ask("POST", "/v1/kv/set", f'{{"key":"k","value":{raw}}}'.encode())
            self.assertEqual(answer.status, 400, raw)
            self.assertTrue(answer.error.startswith("value is not portable across the fleet: "))
        deep = b'{"key":"k","value":' + b"[" * 5000 + b"]" * 5000 + b"}"
        self.assertEqual(free.ask("POST", "/v1/kv/set", deep).status, 400)

    def test_bad_bodies(self) -> None:
        """A body that is no JSON object is told so."""
        for raw in (b"{bad", b"\xff\xfe", b" ", b"[" * 200_000, b'{"a":1' + b"0" * 5000 + b"}"):
            answer = World(max_value_bytes=0).ask("POST", "/v1/kv/set", raw)
            self.assertEqual(answer.error, "request body is not valid JSON")
        for raw in (b"[]", b"null", b"5", b'"x"'):
            answer = self.world.ask("POST", "/v1/kv/set", raw)
            self.assertEqual(answer.error, "request body must be a JSON object")

    def test_bad_names(self) -> None:
        """A key must be there, be text, and be UTF-8."""
        for key, error in (
            (None, "key is required"),
            ("", "key is required"),
            (5, "key must be a string"),
            (["k"], "key must be a string"),
        ):
            self.assertEqual(self.world.post("/v1/kv/set", {"key": key}).error, error)
        self.assertEqual(self.status("kv/set", key="\ud800"), 400)
        self.post("kv/set", key="a\ufffd", value=1)
        for key in ("a%FF", "a%ED%A0%80", "a%C3"):
            self.assertEqual(self.world.get(f"/v1/kv/get?key={key}").status, 400, key)

    def test_head(self) -> None:
        """HEAD answers as GET does, without the body."""
        self.post("kv/set", key="k", value=1)
        answer = self.world.ask("HEAD", "/v1/kv/get?key=k")
        self.assertEqual((answer.status, answer.body), (200, b""))
        self.assertGreater(int(answer.headers["content-length"]), 10)


class CursorTests(DocumentCase):
    """Marks that go up."""

    def test_life(self) -> None:
        """A cursor moves up; a value that does not move it answers where it stands."""
        self.assertEqual(self.world.get("/v1/cursor/get?name=c").status, 404)
        for value, stands, moved in ((10, 10, True), (9, 10, False), (10.5, 10.5, True)):
            answer = self.post("cursor/advance", name="c", value=value)
            self.assertEqual(answer, {"value": stands, "advanced": moved})
        self.assertEqual(self.world.get("/v1/cursor/get?name=c").json()["value"], 10.5)

    def test_force(self) -> None:
        """With force it goes anywhere, and has moved if it was not there."""
        self.post("cursor/advance", name="c", value=10)
        for value, moved in ((5, True), (5, False), ("a", True)):
            answer = self.post("cursor/advance", name="c", value=value, force=True)
            self.assertEqual(answer, {"value": value, "advanced": moved})

    def test_kinds(self) -> None:
        """Text and numbers do not compare; the answer says what there is."""
        self.post("cursor/advance", name="c", value="2026-06")
        answer = self.world.post("/v1/cursor/advance", {"name": "c", "value": 7})
        self.assertEqual(answer.status, 409)
        for part in ("'c'", "text", "a number", "force"):
            self.assertIn(part, answer.error)
        for value, kind in (
            (None, "null"),
            (True, "a truth value"),
            ([], "a list"),
            ({}, "an obj"),
        ):
            answer = self.world.post("/v1/cursor/advance", {"name": "c", "value": value})
            self.assertIn(f"advanced with {kind}", answer.error)

    def test_value(self) -> None:
        """A value must be sent, null too; the limits are those of keys."""
        self.assertEqual(self.status("cursor/advance", name="c"), 400)
        self.assertEqual(self.status("cursor/advance", name="c", value=None), 200)
        self.assertEqual(self.status("cursor/advance", name="c", value="x" * 99), 413)
        self.assertEqual(self.status("cursor/advance", name="c", value=2**64), 400)


class IdempotencyTests(DocumentCase):
    """Keys that one caller wins."""

    def test_once(self) -> None:
        """The first is fresh, the others learn when that was; released, it is won again."""
        first = self.post("idempotency/claim", key="i")
        self.world.clock.advance(1000)
        second = self.post("idempotency/claim", key="i", ttl=None)
        self.assertEqual((first["fresh"], second["fresh"]), (True, False))
        self.assertEqual(first["claimedAt"], second["claimedAt"])
        self.assertEqual(self.post("idempotency/release", key="i"), {"released": True})
        self.assertEqual(self.post("idempotency/release", key="i"), {"released": False})
        self.assertTrue(self.post("idempotency/claim", key="i")["fresh"])

    def test_ttl(self) -> None:
        """A claim for a time is won again when that is over, not before."""
        self.post("idempotency/claim", key="i", ttl=10)
        self.world.clock.advance(9.5)
        self.assertFalse(self.post("idempotency/claim", key="i", ttl=10)["fresh"])
        self.world.clock.advance(0.5)
        self.assertTrue(self.post("idempotency/claim", key="i", ttl="7")["fresh"])

    def test_for_ever(self) -> None:
        """Without a time above 0 it is for ever."""
        for number, ttl in enumerate((0, None, -5, False, "0")):
            self.post("idempotency/claim", key=f"i{number}", ttl=ttl)
            self.world.clock.advance(10**8)
            self.assertFalse(self.post("idempotency/claim", key=f"i{number}")["fresh"], ttl)

    def test_no_number(self) -> None:
        """What is no number of seconds is refused, and claims nothing."""
        for ttl in ("abc", {"a": 1}, [1], 10**400):
            answer = self.world.post("/v1/idempotency/claim", {"key": "i", "ttl": ttl})
            self.assertEqual(answer.error, "ttl must be a number")
        raw = b'{"key":"i","ttl":1e400}'
        answer = self.world.ask("POST", "/v1/idempotency/claim", raw)
        self.assertEqual(answer.error, "ttl must be a finite number")
        self.assertTrue(self.post("idempotency/claim", key="i")["fresh"])

    def test_apart(self) -> None:
        """Jobs do not see each other's keys unless they meet in the common scope."""
        other = self.world.let_in(job("other"), 2)
        claim = "/v1/idempotency/claim"
        for scope, fresh in ((None, True), ("global", False)):
            said = {"key": "i", "scope": scope}
            self.assertTrue(self.world.post(claim, said).json()["fresh"])
            self.assertEqual(self.world.post(claim, said, other).json()["fresh"], fresh)


class TroubleTests(DocumentCase):
    """A store that cannot answer."""

    ASKED = (
        ("GET", "/v1/kv/get?key=k", None),
        ("GET", "/v1/kv/list", None),
        ("GET", "/v1/cursor/get?name=c", None),
        ("GET", "/v1/artifact/get?name=a", None),
        ("GET", "/v1/artifact/list", None),
        ("POST", "/v1/kv/set", {"key": "k", "value": 1}),
        ("POST", "/v1/kv/delete", {"key": "k"}),
        ("POST", "/v1/cursor/advance", {"name": "c", "value": 1}),
        ("POST", "/v1/idempotency/claim", {"key": "i"}),
        ("POST", "/v1/idempotency/release", {"key": "i"}),
        ("POST", "/v1/lock/acquire", {"name": "l"}),
        ("POST", "/v1/artifact/put?name=a", b"payload"),
    )

    def assert_all_unavailable(self) -> None:
        for method, path, body in self.ASKED:
            answer = self.world.ask(method, path, body)
            self.assertEqual(answer.status, 503, path)
            self.assertEqual(
                answer.error, "the state store is unavailable; the cronstable log tells why"
            )

    def test_broken(self) -> None:
        """Everything is 503, with a text that tells nothing of the host."""
        with self.assertLogs("cronstable.jobapi", "WARNING"):
            self.world.files.fail(error=errno.EIO)
            self.assert_all_unavailable()

    def test_gone(self) -> None:
        """A store that is not there is an outage; absence is told only where it can be known."""
        files = self.world.files
        for path in self.world.memory.paths():
            files.unlink(path)
        files.fail("status", "names", "directories", "read", error=errno.ENOENT)
        files.fail("make_directory", error=errno.ENOENT)
        files.fail("create", "rename", "lock", error=errno.ENOENT)
        with self.assertLogs("cronstable.jobapi", "WARNING"):
            self.assert_all_unavailable()

    def test_damaged(self) -> None:
        """A document that is none is an outage too, and stays as it is."""
        self.post("kv/set", key="k", value=1)
        (path,) = [p for p in self.world.memory.paths() if p.endswith("/k.doc")]
        self.world.files.unlink(path)
        self.world.files.create(path, b"{", False)
        with self.assertLogs("cronstable.jobapi", "WARNING"):
            self.assertEqual(self.world.get("/v1/kv/get?key=k").status, 503)
            self.assertEqual(self.status("kv/set", key="k", value=2), 503)
        self.assertEqual(self.world.files.read(path), b"{")

    def test_said_once(self) -> None:
        """The log has the reason once a minute, not once a request."""
        self.world.files.fail("read", error=errno.EIO, match="kv")
        with self.assertLogs("cronstable.jobapi", "WARNING") as logged:
            for _ in range(5):
                self.world.get("/v1/kv/get?key=k")
            self.world.clock.advance(60)
            self.world.get("/v1/kv/get?key=k")
        self.assertEqual(len(logged.records), 2)

    def test_kinds_said_once(self) -> None:
        """Requests that meet other files of one trouble, or two in turn, do not flood the log."""
        numbers = itertools.count()

        def full() -> None:
            path = f"/s/tmp/w-{next(numbers)}.tmp"
            raise OSError(errno.ENOSPC, "No space left on device", path)

        self.world.files.call("create", act=full)
        self.world.files.fail("read", error=errno.EIO, match="kv")
        with self.assertLogs("cronstable.jobapi", "WARNING") as logged:
            for name in ("a", "b", "c"):
                self.assertEqual(self.status("cursor/advance", name=name, value=1), 503)
                self.world.get("/v1/kv/get?key=k")
            self.world.clock.advance(60)
            self.assertEqual(self.status("cursor/advance", name="d", value=1), 503)
        self.assertEqual(len(logged.output), 3)
        self.assertIn("/s/tmp/w-", logged.output[0])
        self.assertIn("(and 2 like it)", logged.output[2])

    def test_not_of_the_store(self) -> None:
        """Who a run is, and its secrets, need no store."""
        self.world.files.fail(error=errno.EIO)
        self.assertEqual(self.world.get("/v1/run").status, 200)
        self.assertEqual(self.world.get("/v1/secret/list").status, 200)

    def test_locks_that_exclude_nobody(self) -> None:
        """Nothing is coordinated over a mount whose locks are none; values are kept there."""
        self.world.store.view = View("/s", "default", "shared", False, "mounted with nolock")
        with self.assertLogs("cronstable.jobapi", "WARNING") as logged:
            self.assertEqual(self.status("lock/acquire", name="l"), 503)
            self.assertEqual(self.status("idempotency/claim", key="i"), 503)
        self.assertIn("nolock", logged.output[0])
        self.assertEqual(self.status("kv/set", key="k", value=1), 200)

    def test_bug(self) -> None:
        """What nobody foresaw is 500 with a fixed text, and a traceback in the log."""
        self.world.files.call("read", act=lambda: 1 / 0)
        with self.assertLogs("cronstable.jobapi", "ERROR") as logged:
            answer = self.world.get("/v1/kv/get?key=k")
        self.assertEqual(answer.status, 500)
        self.assertNotIn("division", answer.error)
        self.assertIn("ZeroDivisionError", logged.output[0])
