"""Artifacts: short ones and long ones, coming and going."""

from __future__ import annotations

import errno
import hashlib
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from cronstable.jobapi import bodies
from cronstable.jobapi.bodies import LET_PASS, PIECE
from cronstable.jobapi.sending import PART
from cronstable.state import jobstate
from cronstable.state.workers import StoreSlow
from tests.answers import Answer
from tests.fakes import job
from tests.jobapi.support import Connection, World

PUT = "/v1/artifact/put?name=a"
GET = "/v1/artifact/get?name=a"
LONG = bytes(range(256)) * (3 * PIECE // 256) + b"the end"


class ArtifactCase(SynchronousTestCase):
    """One world, in which nothing may be left over."""

    def setUp(self) -> None:
        self.world = World(max_artifact_bytes=8 * PIECE)

    def leftovers(self) -> list[str]:
        """Return the temporary files of the store."""
        return [path for path in self.world.memory.paths() if "/tmp/" in path]

    def blobs(self) -> int:
        return sum(p.endswith(".blob") for p in self.world.memory.paths())

    def put(self, payload: bytes, name: str = "a") -> Answer:
        return self.world.ask("POST", f"/v1/artifact/put?name={name}", payload)

    def begin(self, length: int | None, path: str = PUT) -> Connection:
        """Begin an upload."""
        connection = self.world.connect()
        token = self.world.caller.token
        connection.begin("POST", path, length, authorization=f"Bearer {token}")
        return connection


class LifeTests(ArtifactCase):
    """What is put is got."""

    def test_round(self) -> None:
        """Payloads of every length come back as they went, with their digest and size."""
        for payload in (b"", b"payload", b"x" * PIECE, b"x" * (PIECE + 1), LONG):
            digest = hashlib.sha256(payload).hexdigest()
            self.assertEqual(self.put(payload).json(), {"sha256": digest, "size": len(payload)})
            answer = self.world.get(GET)
            self.assertEqual(answer.status, 200)
            self.assertEqual(answer.body, payload)
            self.assertEqual(answer.headers["x-cronstable-sha256"], digest)
            self.assertEqual(answer.headers["x-cronstable-size"], str(len(payload)))
            self.assertEqual(answer.headers["content-type"], "application/octet-stream")
            head = self.world.ask("HEAD", GET)
            self.assertEqual(head.headers["content-length"], str(len(payload)))
            self.assertEqual(head.body, b"")
        self.assertEqual(self.leftovers(), [])

    def test_whole_url(self) -> None:
        """A request may name the whole URL, as proxies are asked."""
        for path in (PUT, GET):
            where = f"HTTP://127.0.0.1:4711{path}"
            method, body = ("POST", LONG) if path == PUT else ("GET", b"")
            self.assertEqual(self.world.ask(method, where, body).status, 200)
        for where in ("http://127.0.0.1:4711", "http://127.0.0.1:4711?name=a", "/http://h/v1/run"):
            self.assertEqual(self.world.get(where).status, 404, where)

    def test_pieces(self) -> None:
        """A payload may come in any pieces, its length said before or not."""
        for length in (len(LONG), None):
            connection = self.begin(length)
            for start in range(0, len(LONG), 100_000):
                part = LONG[start : start + 100_000]
                connection.more(part if length else b"%x\r\n%s\r\n" % (len(part), part))
            if length is None:
                connection.more(b"0\r\n\r\n")
            answer = connection.answer()
            assert answer is not None
            self.assertEqual(answer.json()["sha256"], hashlib.sha256(LONG).hexdigest())
        self.assertEqual((self.blobs(), self.leftovers()), (1, []))

    def test_newest_wins(self) -> None:
        """The newest of a name is what is got and listed; equal payloads are kept once."""
        for payload, name in ((b"old", "b"), (b"same", "a"), (b"same", "b")):
            self.put(payload, name)
            self.world.clock.advance(1)
        listed = self.world.get("/v1/artifact/list").json()
        self.assertEqual(listed["scope"], "wire")
        self.assertEqual([each["name"] for each in listed["artifacts"]], ["a", "b"])
        self.assertEqual(set(listed["artifacts"][0]), {"name", "sha256", "size", "at"})
        self.assertEqual(self.world.get("/v1/artifact/get?name=b").body, b"same")
        self.assertEqual(self.blobs(), 2)

    def test_absent(self) -> None:
        """A name without an artifact is 404, one whose payload was collected 410."""
        answer = self.world.get(GET)
        self.assertEqual(answer.error, "artifact 'a' not found in scope 'wire'")
        self.assertEqual(answer.status, 404)
        digest = self.put(b"payload").json()["sha256"]
        self.world.files.unlink(self.world.store.store.blobs.path(digest))
        self.assertEqual(self.world.get(GET).status, 410)
        self.assertEqual(self.world.get("/v1/artifact/get").status, 400)

    def test_unreadable_record(self) -> None:
        """An older payload is not given where the newest record cannot be read."""
        self.put(b"old")
        self.put(b"new")
        newest = max(p for p in self.world.memory.paths() if "artifacts%2F" in p)
        self.world.files.fail("read", error=errno.EIO, match=newest)
        with self.assertLogs("cronstable.jobapi", "WARNING"):
            self.assertEqual(self.world.get(GET).status, 503)

    def test_damaged_payload(self) -> None:
        """A short payload whose bytes are not its own is not given out."""
        digest = self.put(b"payload").json()["sha256"]
        path = self.world.store.store.blobs.path(digest)
        self.world.files.unlink(path)
        self.world.files.create(path, b"PAYLOAD", False)
        with self.assertLogs("cronstable.jobapi", "WARNING"):
            self.assertEqual(self.world.get(GET).status, 503)


class LimitTests(ArtifactCase):
    """Too much."""

    def setUp(self) -> None:
        self.world = World(max_artifact_bytes=2 * PIECE, max_value_bytes=PIECE // 2)

    def test_announced(self) -> None:
        """What is announced as too long never touches the store."""
        size = 2 * PIECE + 1
        answer = self.put(b"x" * size)
        self.assertEqual(answer.status, 413)
        self.assertEqual(
            answer.error,
            f"artifact of {size} bytes exceeds the configured limit of {2 * PIECE} bytes",
        )
        self.assertEqual(self.world.store.asked, 0)
        self.assertEqual(self.put(b"x" * (2 * PIECE)).status, 200)

    def test_found_out(self) -> None:
        """What turns out to be too long is let pass, answered, and leaves nothing."""
        connection = self.begin(None)
        for _ in range(3):
            connection.more(b"%x\r\n%s\r\n" % (PIECE, b"x" * PIECE))
        connection.more(b"0\r\n\r\n")
        answer = connection.answer()
        assert answer is not None
        self.assertEqual(answer.status, 413)
        self.assertEqual((self.blobs(), self.leftovers()), (0, []))

    def test_over_all_limits(self) -> None:
        """What no request may have is answered as such."""
        limit = 6 * (PIECE // 2) + 65536
        answer = self.put(b"x" * (limit + 1))
        self.assertEqual(answer.error, f"Maximum request body size {limit} exceeded.")
        self.assertEqual(answer.headers["content-type"], "application/json; charset=utf-8")

    def test_json(self) -> None:
        """A JSON body has room for a value in escapes, and not for more."""
        limit = 6 * (PIECE // 2) + 65536
        escapes = b'{"key":"k","value":"' + b"\\u0078" * (PIECE // 2 - 2) + b'"}'
        self.assertEqual(self.world.ask("POST", "/v1/kv/set", escapes).status, 200)
        answer = self.world.ask("POST", "/v1/kv/set", b"x" * (limit + 1))
        self.assertEqual(answer.status, 413)
        self.assertEqual(answer.error, f"Maximum request body size {limit} exceeded.")

    def test_unlimited(self) -> None:
        """Without a limit of either kind anything may come."""
        world = World(max_artifact_bytes=0)
        self.assertEqual(world.ask("POST", PUT, b"x" * (3 * PIECE)).status, 200)
        world = World(max_value_bytes=0, max_artifact_bytes=10)
        self.assertEqual(world.ask("POST", PUT, b"x" * (3 * PIECE)).status, 413)

    def test_nobody(self) -> None:
        """Of who is not let in nothing is kept, and the answer comes all the same."""
        connection = self.world.connect()
        connection.begin("POST", PUT, 3 * PIECE, authorization="Bearer nope")
        connection.more(b"x" * PIECE)
        self.assertEqual(self.world.store.asked, 0)
        connection.more(b"x" * (2 * PIECE))
        answer = connection.answer()
        assert answer is not None
        self.assertEqual(answer.status, 401)

    def test_endless(self) -> None:
        """A client that never stops is given up at last."""
        connection = self.world.connect()
        connection.begin("POST", PUT, 10**12)
        block = b"x" * (16 << 20)
        sent = 0
        while sent <= LET_PASS:
            self.assertFalse(connection.aborted)
            connection.more(block)
            sent += len(block)
        self.assertTrue(connection.aborted)


class ComingTests(ArtifactCase):
    """Uploads that do not go well."""

    def test_slow_store(self) -> None:
        """A client that is faster than the store has to wait, and gets its answer."""
        self.world.store.hold()
        connection = self.begin(len(LONG))
        connection.more(LONG[:PIECE])
        self.assertFalse(connection.transport.held)
        connection.more(LONG[PIECE : 3 * PIECE])
        self.assertTrue(connection.transport.held)
        self.world.store.go_on()
        self.assertFalse(connection.transport.held)
        connection.more(LONG[3 * PIECE :])
        answer = connection.answer()
        assert answer is not None
        self.assertEqual(answer.json()["sha256"], hashlib.sha256(LONG).hexdigest())

    def test_all_there_before_the_store(self) -> None:
        """The answer waits until the store has taken everything."""
        self.world.store.hold()
        connection = self.begin(len(LONG))
        connection.more(LONG)
        self.assertIs(connection.answer(), None)
        self.world.store.go_on()
        answer = connection.answer()
        assert answer is not None
        self.assertEqual(answer.status, 200)
        self.assertEqual(self.leftovers(), [])

    def test_client_goes(self) -> None:
        """Nothing is left of an upload that its client gives up, written or being written."""
        connection = self.begin(len(LONG))
        connection.more(LONG[: 2 * PIECE])
        self.assertEqual(len(self.leftovers()), 1)
        connection.lose()
        self.assertEqual(self.leftovers(), [])
        self.world.store.hold()
        connection = self.begin(len(LONG))
        connection.more(LONG[: 2 * PIECE])
        connection.lose()
        self.world.store.go_on()
        self.assertEqual((self.leftovers(), self.blobs()), ([], 0))

    def test_pauses(self) -> None:
        """A payload may stop coming for long, what comes after it not."""
        connection = self.begin(len(LONG))
        connection.more(LONG[:10])
        self.world.clock.advance(3599)
        connection.more(LONG[10:])
        answer = connection.answer()
        assert answer is not None
        self.assertEqual(answer.status, 200)
        self.world.clock.advance(59)
        self.assertFalse(connection.transport.disconnecting)
        self.world.clock.advance(2)
        self.assertTrue(connection.transport.disconnecting)

    def test_pauses_of_others(self) -> None:
        """Nobody is waited for who is not let in, nor with anything else than a payload."""
        for path, caller in ((PUT, ""), ("/v1/kv/set", self.world.caller.token)):
            connection = self.world.connect()
            connection.begin("POST", path, 10, authorization=f"Bearer {caller}")
            self.world.clock.advance(61)
            self.assertTrue(connection.transport.disconnecting, path)

    def test_disk_full(self) -> None:
        """A store that takes no more is 503; the rest is let pass, and nothing is left."""
        self.world.files.fail("append", error=errno.ENOSPC, torn=True)
        connection = self.begin(len(LONG))
        with self.assertLogs("cronstable.jobapi", "WARNING"):
            connection.more(LONG)
        answer = connection.answer()
        assert answer is not None
        self.assertEqual(answer.status, 503)
        self.assertFalse(connection.transport.held)
        self.assertEqual(self.leftovers(), [])

    def test_last_step(self) -> None:
        """The same where only the record cannot be written."""
        self.world.files.fail("create", error=errno.EIO, match="/tmp/", times=10)
        with self.assertLogs("cronstable.jobapi", "WARNING"):
            self.assertEqual(self.put(LONG).status, 503)
        self.world.files.heal()
        self.assertEqual(self.leftovers(), [])
        self.assertEqual(self.world.get(GET).status, 404)

    def test_too_slow(self) -> None:
        """What the store was too slow for leaves nothing, whether it had been begun or not."""
        store = self.world.store
        for step in range(3):  # Two pieces, and the publication.
            for begun in (False, True):
                store.hold()
                connection = self.begin(3 * PIECE)
                for _ in range(3):
                    connection.more(b"x" * PIECE)
                for _ in range(step):
                    store.step()
                answer, work = store.held.pop(0)  # type: ignore[union-attr]
                with self.assertLogs("cronstable.jobapi", "WARNING"):
                    if begun:
                        self.fail_in_between(answer)
                        work()
                    else:
                        answer.errback(StoreSlow())
                    store.go_on()
                told = connection.answer()
                assert told is not None
                self.assertEqual(told.status, 503)
                self.assertEqual(self.leftovers(), [], (step, begun))
                self.world.advance(100, 10)

    def fail_in_between(self, answer: Deferred[Any]) -> None:
        """Let C{answer} fail when the store has begun with what is asked next."""

        def slow(function: Any) -> Any:
            def call(*arguments: Any) -> Any:
                if not answer.called:
                    answer.errback(StoreSlow())
                return function(*arguments)

            return call

        self.patch(bodies, "_add", slow(bodies._add))
        publish = jobstate.artifact_put_incoming
        self.patch(jobstate, "artifact_put_incoming", slow(publish))

    def test_run_ends(self) -> None:
        """An upload that outlasts its run is let in no more, and leaves nothing."""
        for length in (len(LONG), None):
            connection = self.begin(length)
            part = LONG if length else b"%x\r\n%s\r\n0\r\n" % (len(LONG), LONG)
            connection.more(part[:-1])
            self.assertNotEqual(self.leftovers(), [])
            self.world.end(self.world.caller)
            connection.more(part[-1:] if length else part[-1:] + b"\r\n")
            answer = connection.answer()
            assert answer is not None
            self.assertEqual(answer.status, 401)
            self.assertEqual(self.leftovers(), [])
            self.world.caller = self.world.let_in(job("wire"))

    def test_no_name(self) -> None:
        """An upload without a name, or into a foreign scope, leaves nothing."""
        for path, status in (
            ("/v1/artifact/put", 400),
            ("/v1/artifact/put?name=%FF", 400),
            (PUT + "&scope=other", 403),
            (PUT + "&scope=wire%FF", 403),
        ):
            answer = self.world.ask("POST", path, LONG)
            self.assertEqual(answer.status, status)
            self.assertEqual(self.leftovers(), [])


class GoingTests(ArtifactCase):
    """Downloads of long payloads."""

    def setUp(self) -> None:
        super().setUp()
        jobstate.artifact_put(self.world.store.store, "wire", "a", LONG)

    def begin_to_send(self) -> Connection:
        """Ask for the payload, up to where its first part is being read."""
        self.world.store.hold()
        connection = self.world.send("GET", GET)
        self.world.store.step()
        return connection

    @property
    def waiting(self) -> int:
        """How many questions to the store wait."""
        return len(self.world.store.held or ())

    def test_parts(self) -> None:
        """One part at a time is read, no more than are needed."""
        connection = self.begin_to_send()
        parts = 0
        while connection.answer() is None:
            self.assertEqual(self.waiting, 1)
            self.world.store.step()
            parts += 1
        answer = connection.answer()
        assert answer is not None
        self.assertEqual((answer.body == LONG, parts), (True, -(-len(LONG) // PART)))

    def test_slow_client(self) -> None:
        """A client that does not keep up holds the reading up."""
        connection = self.begin_to_send()
        producer = connection.channel.requests[0].producer
        producer.pauseProducing()
        self.world.store.step()
        self.assertEqual(self.waiting, 0)
        producer.pauseProducing()
        producer.resumeProducing()
        self.assertEqual(self.waiting, 1)
        self.world.store.go_on()
        answer = connection.answer()
        assert answer is not None
        self.assertEqual(answer.body, LONG)

    def test_client_goes(self) -> None:
        """Reading ends with the client, while the store works and while it is held up."""
        for paused in (False, True):
            connection = self.begin_to_send()
            producer = connection.channel.requests[0].producer
            if paused:
                producer.pauseProducing()
                self.world.store.step()
            producer.stopProducing()
            connection.lose()
            while self.waiting:
                self.world.store.step()
            self.assertIs(connection.answer(), None)

    def test_damaged(self) -> None:
        """A payload whose bytes are not its own is cut short, and the log says why."""
        digest = hashlib.sha256(LONG).hexdigest()
        path = self.world.store.store.blobs.path(digest)
        self.world.files.unlink(path)
        self.world.files.create(path, LONG[:-1] + b"X", False)
        with self.assertLogs("cronstable.jobapi", "WARNING"):
            connection = self.world.send("GET", GET)
        self.assertTrue(connection.aborted)
        self.assertIs(connection.answer(), None)

    def test_taken_away(self) -> None:
        """The same for one that goes while it is being sent."""
        self.world.files.fail("read_part", error=errno.ENOENT)
        with self.assertLogs("cronstable.jobapi", "WARNING"):
            connection = self.world.send("GET", GET)
        self.assertTrue(connection.aborted)
