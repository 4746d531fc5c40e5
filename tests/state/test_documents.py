"""Mutable documents."""

from __future__ import annotations

import errno
import threading
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state.documents import Change, Leave, Put, Remove
from cronstable.state.errors import NotPortable, Unreadable
from cronstable.state.faults import FaultyFiles
from cronstable.state.memory import MemoryFiles
from tests.state.support import StandingClock, memory_store


def set_to(value: object) -> Any:
    """Return a change that stores C{value}."""
    return lambda current: Put({"value": value}, current)


class MutateTests(SynchronousTestCase):
    """Changing documents."""

    def test_life_of_a_document(self) -> None:
        """It is stored, changed from what it was, left alone, and removed."""
        documents = memory_store().documents
        self.assertIs(documents.mutate("ns", "key", set_to(1)), None)
        self.assertEqual(documents.mutate("ns", "key", set_to(2)), {"value": 1})
        self.assertEqual(documents.mutate("ns", "key", lambda body: Leave(body)), {"value": 2})
        self.assertEqual(documents.mutate("ns", "key", lambda body: Remove("gone")), "gone")
        self.assertIs(documents.read("ns", "key"), None)
        self.assertEqual(documents.mutate("ns", "key", lambda body: Remove("again")), "again")

    def test_files(self) -> None:
        """A body has the envelope of a record; its lock stays when it goes."""
        store = memory_store()
        store.documents.mutate("kv/Job", "key", set_to("é"))
        directory = "/state/default/docs/kv%2F%4Aob"
        self.assertEqual(
            store.tree.files.read(f"{directory}/key.doc").decode(),
            '{"data":{"value":"é"},"schemaVersion":"v1"}',
        )
        store.documents.mutate("kv/Job", "key", lambda body: Remove())
        self.assertEqual(store.tree.files.names(directory), ["key.lock"])
        self.assertEqual(store.tree.files.read(f"{directory}/key.lock"), b"\0")

    def test_unreadable_body_is_not_overwritten(self) -> None:
        """A body that cannot be understood, or read, fails the change and stays."""
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files)
        path = "/state/default/docs/ns/key.doc"
        for body in (b"{", b'{"data":{},"schemaVersion":"v2"}', b"[]"):
            store.tree.write("document", path, body, store_sync())
            self.assertRaises(Unreadable, store.documents.mutate, "ns", "key", set_to(1))
            self.assertRaises(Unreadable, store.documents.read, "ns", "key")
            self.assertEqual(files.read(path), body)
        files.fail("read", error=errno.EIO, match="key.doc")
        self.assertRaises(OSError, store.documents.mutate, "ns", "key", set_to(1))

    def test_failed_change_changes_nothing(self) -> None:
        """An error in deciding, encoding or writing leaves the body, and the lock free."""
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files)
        store.documents.mutate("ns", "key", set_to(1))

        def explode(current: object) -> Change:
            raise KeyError

        self.assertRaises(KeyError, store.documents.mutate, "ns", "key", explode)
        self.assertRaises(NotPortable, store.documents.mutate, "ns", "key", set_to(float("nan")))
        files.fail("create", error=errno.ENOSPC, torn=True)
        self.assertRaises(OSError, store.documents.mutate, "ns", "key", set_to(2))
        files.heal()
        self.assertEqual(store.documents.mutate("ns", "key", set_to(3)), {"value": 1})

    def test_read_needs_no_lock(self) -> None:
        """A reader sees the old body while a change is being decided."""
        store = memory_store()
        store.documents.mutate("ns", "key", set_to(1))
        seen = []

        def decide(current: object) -> Change:
            seen.append(store.documents.read("ns", "key"))
            return Put({"value": 2})

        store.documents.mutate("ns", "key", decide)
        self.assertEqual(seen, [{"value": 1}])

    def test_no_change_is_lost(self) -> None:
        """Changes of several threads all count."""
        store = memory_store()

        def count(current: dict[str, Any] | None) -> Change:
            return Put({"n": (current or {"n": 0})["n"] + 1})

        threads = [
            threading.Thread(
                target=lambda: [store.documents.mutate("ns", "key", count) for _ in range(50)]
            )
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(store.documents.read("ns", "key"), {"n": 200})

    def test_survives_power_loss(self) -> None:
        """What was stored and what was removed stays so."""
        files = MemoryFiles(StandingClock().now)
        store = memory_store(files=files)
        store.documents.mutate("ns", "stays", set_to(1))
        store.documents.mutate("ns", "goes", set_to(1))
        store.documents.mutate("ns", "goes", lambda body: Remove())
        left = memory_store(files=files.power_loss())
        self.assertEqual(left.documents.read("ns", "stays"), {"value": 1})
        self.assertIs(left.documents.read("ns", "goes"), None)


class ListingTests(SynchronousTestCase):
    """What there is."""

    def test_keys(self) -> None:
        """Keys are listed by name; locks and removed documents are no keys."""
        store = memory_store()
        for key in ("b", "A", "c/d"):
            store.documents.mutate("ns", key, set_to(1))
        store.documents.mutate("ns", "b", lambda body: Remove())
        listing = store.documents.keys("ns")
        self.assertEqual((listing.names, listing.complete), (("A", "c/d"), True))
        self.assertEqual(store.documents.keys("none").names, ())

    def test_cut_key(self) -> None:
        """A key whose file name was cut makes the listing incomplete, not wrong."""
        store = memory_store()
        store.documents.mutate("ns", "K" * 90, set_to(1))
        store.documents.mutate("ns", "a", set_to(1))
        listing = store.documents.keys("ns")
        self.assertEqual((listing.names, listing.complete), (("a",), False))
        self.assertEqual(store.documents.read("ns", "K" * 90), {"value": 1})

    def test_namespaces(self) -> None:
        """Namespaces are listed by prefix; one with a cut name makes that incomplete."""
        store = memory_store()
        for namespace in ("kv/b", "kv/A", "idem/x", "kvx"):
            store.documents.mutate(namespace, "key", set_to(1))
        self.assertEqual(store.documents.namespaces("kv/").names, ("kv/A", "kv/b"))
        self.assertTrue(store.documents.namespaces("kv/").complete)
        store.documents.mutate("kv/" + "N" * 90, "key", set_to(1))
        self.assertFalse(store.documents.namespaces("kv/").complete)
        self.assertTrue(store.documents.namespaces("idem/").complete)

    def test_entries(self) -> None:
        """Entries come with their bodies; a bad one is an error, a vanishing one is not there."""
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files)
        for key in ("a", "b"):
            store.documents.mutate("ns", key, set_to(key))
        path = store.tree.path("docs", "ns", "a.doc")
        files.call("read", act=lambda: files._inner.unlink(path), match="a.doc", times=1)
        found = [(entry.key, entry.body) for entry in store.documents.entries("ns")]
        self.assertEqual(found, [("b", {"value": "b"})])
        store.tree.files.create(path, b"{", True)
        self.assertRaises(Unreadable, store.documents.entries, "ns")


def store_sync() -> Any:
    """Return what a test write forces: everything."""
    from cronstable.state.tree import Sync

    return Sync()
