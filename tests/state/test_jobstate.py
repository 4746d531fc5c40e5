"""What running jobs keep."""

from __future__ import annotations

import json
import re
from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.state import jobstate
from cronstable.state.documents import Put
from cronstable.state.errors import NotPortable, Unreadable
from cronstable.state.store import Store
from tests.state.support import StandingClock, memory_store, vector

PATHS = {"kv": "kv%2Fs/k", "cursor": "cursor%2Fs/c"}


def answer(call: Any) -> Any:
    """Return what a call gave, as the capture spells it."""
    try:
        result = call()
    except (NotPortable, jobstate.BadScope):
        return {"error_status": 400}
    except jobstate.Incomparable:
        return {"error_status": 409}
    except jobstate.TooLarge:
        return {"error_status": 413}
    if isinstance(result, jobstate.Claim):
        return {"fresh": result.fresh, "claimedAt": result.claimed_at}
    return attrs.asdict(result) if attrs.has(type(result)) else result


class TraceTests(SynchronousTestCase):
    """The captured calls."""

    def test_captured_trace(self) -> None:
        """Each call has the answer, and leaves the document, that the reference's has."""
        clock = StandingClock()
        store = memory_store(clock)
        for step in vector("jobstate-trace.json"):
            clock.wall = step["now"]
            self.assertEqual(answer(self.call(store, step)), step["result"], step["call"])
            self.assertEqual(self.document(store, step["call"]), step["doc"], step["call"])

    def call(self, store: Store, step: dict[str, Any]) -> Any:
        """Return the call that a step of the capture names."""
        words = step["call"]
        if words.startswith("kv_set"):
            value: Any = step["result"].get("value")
            if "NaN" in words:
                value = float("nan")
            if "2**64" in words:
                value = 2**64
            limit = 4 if "max_bytes=4" in words else 0
            scope = "s " if "trailing blank" in words else "s"
            value = "x" * 10 if limit else value
            return lambda: jobstate.kv_set(store, scope, "k", value, limit)
        if words.startswith("kv_get"):
            return lambda: jobstate.kv_get(store, "s", "k")
        if words.startswith("kv_delete"):
            return lambda: jobstate.kv_delete(store, "s", "k")
        if words.startswith("cursor"):
            text = words.split()[2].strip("'")
            value = int(text) if text.isdigit() else text
            return lambda: jobstate.cursor_advance(store, "s", "c", value, force="force" in words)
        if words.startswith("claim"):
            ttl = re.search(r"ttl=(\d+)", words)
            assert ttl is not None
            return lambda: jobstate.claim(store, "s", words.split()[1], float(ttl[1]))
        return lambda: jobstate.release(store, "s", "i")

    def document(self, store: Store, words: str) -> str | None:
        """Return the text of the document that a call is about."""
        kind = words.split("_")[0]
        path = PATHS[kind] if kind in PATHS else f"idem%2Fs/{words.split()[1]}"
        try:
            return store.tree.files.read(f"/state/default/docs/{path}.doc").decode()
        except FileNotFoundError:
            return None


class KeyTests(SynchronousTestCase):
    """Keys and values."""

    def test_list(self) -> None:
        """All keys of a scope are listed in order, those with cut file names too."""
        store = memory_store()
        for key in ("b", "A" * 90, "a"):
            jobstate.kv_set(store, "s", key, None)
        found = [body["key"] for body in jobstate.kv_list(store, "s")]
        self.assertEqual(found, ["A" * 90, "a", "b"])
        self.assertEqual(jobstate.kv_list(store, "other"), [])

    def test_list_with_a_stranger(self) -> None:
        """A cut file whose body does not have its name cannot be listed as anything."""
        store = memory_store()
        store.documents.mutate("kv/s", "B" * 90, lambda body: Put({"key": "other"}))
        self.assertRaises(Unreadable, jobstate.kv_list, store, "s")

    def test_null_is_a_value(self) -> None:
        """A stored null is not absence."""
        store = memory_store()
        jobstate.kv_set(store, "s", "k", None)
        self.assertEqual((jobstate.kv_get(store, "s", "k") or {})["value"], None)
        self.assertIs(jobstate.kv_get(store, "s", "other"), None)

    def test_size_counts_bytes(self) -> None:
        """The limit counts bytes of compact JSON, and 0 is no limit."""
        store = memory_store()
        jobstate.kv_set(store, "s", "k", "é", 4)
        self.assertRaises(jobstate.TooLarge, jobstate.kv_set, store, "s", "k", "éé", 4)
        jobstate.kv_set(store, "s", "k", "x" * 10_000, 0)

    def test_scopes(self) -> None:
        """A scope is taken exactly or not at all."""
        store = memory_store()
        for scope in ("", " s", "s ", "\ts"):
            self.assertRaises(jobstate.BadScope, jobstate.kv_get, store, scope, "k")
            self.assertRaises(jobstate.BadScope, jobstate.claim, store, scope, "k")
            self.assertRaises(jobstate.BadScope, jobstate.artifact_put, store, scope, "n", b"")


class CursorTests(SynchronousTestCase):
    """Watermarks of jobs."""

    def advance(self, store: Store, value: object, force: bool = False) -> tuple[Any, bool]:
        moved = jobstate.cursor_advance(store, "s", "c", value, force=force)
        return moved.value, moved.advanced

    def test_first_value(self) -> None:
        """Anything may be the first value, null too, and whatever comes then is above null."""
        store = memory_store()
        self.assertIs(jobstate.cursor_get(store, "s", "c"), None)
        self.assertEqual(self.advance(store, None), (None, True))
        self.assertEqual(self.advance(store, None), (None, False))
        self.assertEqual(self.advance(store, 1), (1, True))
        self.assertRaises(jobstate.Incomparable, self.advance, store, None)

    def test_kinds(self) -> None:
        """Numbers compare with numbers, texts with texts, and truth values with nothing."""
        store = memory_store()
        self.assertEqual(self.advance(store, 1), (1, True))
        self.assertEqual(self.advance(store, 1.5), (1.5, True))
        self.assertEqual(self.advance(store, 1), (1.5, False))
        self.assertRaises(jobstate.Incomparable, self.advance, store, True)
        self.assertRaises(jobstate.Incomparable, self.advance, store, "2")
        self.assertEqual(self.advance(store, "2026-06", force=True), ("2026-06", True))
        self.assertEqual(self.advance(store, "2026-07"), ("2026-07", True))
        self.assertEqual(self.advance(store, "2026-07", force=True), ("2026-07", False))
        self.assertEqual(self.advance(store, True, force=True), (True, True))
        self.assertEqual(self.advance(store, 1, force=True), (1, True))


class ArtifactTests(SynchronousTestCase):
    """Published payloads."""

    def test_newest_wins(self) -> None:
        """Of each name the newest is found and listed; its payload is there."""
        clock = StandingClock()
        store = memory_store(clock)
        for name, payload in (("b", b"1"), ("a", b"2"), ("b", b"3")):
            clock.advance(1)
            jobstate.artifact_put(store, "s", name, payload)
        listed = jobstate.artifact_list(store, "s")
        self.assertEqual([a.name for a in listed], ["a", "b"])
        self.assertEqual(jobstate.artifact_find(store, "s", "b"), listed[1])
        self.assertEqual(store.blobs.get(listed[1].sha256), b"3")
        self.assertIs(jobstate.artifact_find(store, "s", "c"), None)

    def test_record(self) -> None:
        """A record says name, digest, size and time."""
        clock = StandingClock(5.5)
        store = memory_store(clock)
        put = jobstate.artifact_put(store, "s", "n", b"abc")
        (record,) = store.records.read("artifacts/s")
        self.assertEqual(record, {"name": "n", "sha256": put.sha256, "size": 3, "at": 5.5})

    def test_in_pieces(self) -> None:
        """A payload that came in pieces is recorded as one that came at once."""
        store = memory_store()
        incoming = store.blobs.incoming()
        incoming.add(b"pay")
        incoming.add(b"load")
        artifact = jobstate.artifact_put_incoming(store, "s", "a", incoming)
        self.assertEqual(jobstate.artifact_find(store, "s", "a"), artifact)
        self.assertEqual(store.blobs.get(artifact.sha256), b"payload")

    def test_swept_in_between(self) -> None:
        """A payload that a sweep took before its record was written is put again."""
        clock = StandingClock()
        armed: list[bool] = []

        def sweep(point: str) -> None:
            if armed and point == "record.synced":
                armed.clear()
                digest = next(iter(store.tree.files.directories("/state/default/blobs")))
                shelf = f"/state/default/blobs/{digest}"
                store.tree.files.unlink(f"{shelf}/{store.tree.files.names(shelf)[0]}")

        store = memory_store(clock, at=sweep)
        armed.append(True)
        put = jobstate.artifact_put(store, "s", "n", b"abc")
        self.assertEqual(store.blobs.get(put.sha256), b"abc")

    def test_foreign_records_are_passed_over(self) -> None:
        """A record that tells no artifact is none."""
        store = memory_store()
        for record in ({}, {"name": 1, "sha256": "x", "size": 1}, {"name": "n", "sha256": "x"}):
            store.records.append("artifacts/s", record)
        store.records.append("artifacts/s", json.loads('{"name":"n","sha256":"x","size":1}'))
        self.assertEqual([a.name for a in jobstate.artifact_list(store, "s")], ["n"])
