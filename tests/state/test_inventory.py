"""What is in a store, counted."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state import inventory, jobstate
from cronstable.state.faults import FaultyFiles
from cronstable.state.inventory import Group, Scope
from cronstable.state.memory import MemoryFiles
from tests.state.support import StandingClock, disk_store, memory_store, unpack_tree


class InventoryTests(SynchronousTestCase):
    """Counting."""

    def test_counts(self) -> None:
        """Streams and documents are grouped by prefix, with a count for each."""
        store = memory_store()
        for job in ("b", "a/x", "a/x"):
            store.records.append(f"runs/{job}", {})
        jobstate.kv_set(store, "s", "k", 1)
        jobstate.kv_delete(store, "s", "k")
        jobstate.claim(store, "s", "k")
        store.leases.acquire("l", "h", 5.0)
        taken = inventory.take(store)
        self.assertEqual(
            taken.records,
            {
                "meta": Group(1, (Scope("", 1),)),
                "runs": Group(3, (Scope("a/x", 2), Scope("b", 1))),
            },
        )
        self.assertEqual(taken.documents["idem"], Group(1, (Scope("s", 1),)))
        self.assertEqual(taken.documents["kv"], Group(0, (Scope("s", 0),)))
        self.assertEqual([lease.name for lease in taken.leases], ["l"])
        self.assertEqual((taken.streams, taken.record_count), (3, 4))
        self.assertEqual((taken.quarantined, taken.complete), (0, True))

    def test_captured_store(self) -> None:
        """A store of the reference has the counts that the reference itself prints."""
        path = unpack_tree(self.mktemp())
        store = disk_store(path, StandingClock(1795955640.0), deployment_id="Vectors")
        taken = inventory.take(store)
        self.assertEqual((taken.streams, taken.record_count), (54, 222))
        counts = {prefix: group.count for prefix, group in taken.records.items()}
        self.assertEqual(counts["inflight"], 101)
        self.assertEqual(counts["runs"], 63)
        self.assertTrue(taken.complete)

    def test_incomplete(self) -> None:
        """What cannot be named or read is counted, and said."""
        store = memory_store()
        store.tree.make_directory("/state/default/records/runs%2FBAD")
        store.tree.files.create("/state/default/quarantine/x.bad", b"", True)
        taken = inventory.take(store)
        self.assertEqual((taken.quarantined, taken.complete), (1, False))
        self.assertEqual(taken.records["runs"].streams, 1)

    def test_one_that_cannot_be_listed(self) -> None:
        """A directory that cannot be listed does not hide the others."""
        files = FaultyFiles(MemoryFiles(lambda: 5.0))
        store = memory_store(files=files)
        for job in ("open", "shut"):
            store.records.append(f"runs/{job}", {})
            jobstate.kv_set(store, job, "k", 1)
        files.fail("names", error=errno.EACCES, match="shut")
        taken = inventory.take(store)
        self.assertEqual(taken.records["runs"], Group(1, (Scope("open", 1), Scope("shut", 0))))
        self.assertEqual(taken.documents["kv"].count, 1)
        self.assertFalse(taken.complete)
