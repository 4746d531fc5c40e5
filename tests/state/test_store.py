"""The store as a whole."""

from __future__ import annotations

import errno
import json
import os
import shutil
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state import names
from cronstable.state.errors import TROUBLE, StoreMissing
from cronstable.state.faults import READING, WRITING, FaultyFiles
from cronstable.state.folds import latest
from cronstable.state.memory import MemoryFiles
from cronstable.state.store import Store, StoreSettings, View, open_store
from cronstable.state.tree import AREAS
from tests.state.support import (
    StandingClock,
    disk_store,
    memory_store,
    reopened,
    unpack_tree,
    vector,
)

NFS = "server:/x /state nfs4 rw,vers=4.2 0 0\n"


class StartTests(SynchronousTestCase):
    """Making a store usable."""

    def test_new_store(self) -> None:
        """A new store gets its directories and one stamp, however often it is started."""
        store = memory_store()
        with self.assertLogs("cronstable.state", "INFO") as logs:
            view = store.start()
        reopened(store)
        self.assertEqual(view, View("/state/default", "default", "single-node", False))
        self.assertEqual(store.records.read("meta"), [{"storeVersion": "v1"}])
        self.assertEqual(
            "".join(logs.output),
            "INFO:cronstable.state:state: filesystem backend ready at /state/default"
            " (namespace=default, topology=single-node, shared_locking=False)",
        )
        self.assertEqual(store.tree.files.names("/state/default/tmp"), [])

    def test_namespace(self) -> None:
        """Deployments of one path have directories of their own."""
        one = disk_store(self.mktemp(), deployment_id="My-App")
        self.assertTrue(one.view.path.endswith("/%4Dy-%41pp"))
        other = disk_store(one.settings.path)
        one.records.append("s", {"k": 1})
        self.assertEqual(other.records.read("s"), [])
        self.assertEqual(other.view.namespace, "default")

    def test_cannot_write(self) -> None:
        """A store that cannot be written does not start, and starts once it can be."""
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files, start=False)
        for error in (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.ESTALE):
            files.fail("make_directory", "create", error=error)
            self.assertRaises(OSError, store.start)
            files.heal()
        store.start()

    def test_newer_stamp(self) -> None:
        """A store of a newer scheme is warned about, its stamp stays, and no other is added."""
        for stamp in (
            b'{"data":{"storeVersion":"v2"},"schemaVersion":"v1"}',
            b'{"data":{"storeVersion":"v2"},"schemaVersion":"v2"}',
        ):
            clock = StandingClock()
            files = MemoryFiles(clock.now)
            store = memory_store(clock, files, start=False)
            store.tree.create()
            store.tree.make_directory("/state/default/records/meta")
            path = "/state/default/records/meta/0000000000001.000000-a-1.json"
            files.create(path, stamp, True)
            with self.assertLogs("cronstable.state", "WARNING") as logs:
                store.start()
                store.records.read("meta")
            self.assertIn("'v2'", logs.output[0])
            self.assertEqual(files.read(path), stamp)
            self.assertEqual(len(files.names("/state/default/records/meta")), 1)

    def test_newer_stamps(self) -> None:
        """Nodes that stamped a store at the same moment are one warning, not one each."""
        clock = StandingClock()
        files = MemoryFiles(clock.now)
        store = memory_store(clock, files, start=False)
        store.tree.create()
        store.tree.make_directory("/state/default/records/meta")
        for number, version in enumerate(("v2", "v2", "v3")):
            stamp = b'{"data":{},"schemaVersion":"%s"}' % version.encode()
            path = f"/state/default/records/meta/000000000000{number}.000000-a-1.json"
            files.create(path, stamp, True)
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            store.start()
        self.assertEqual(len(logs.output), 2)

    def test_damaged_stamp(self) -> None:
        """A stamp that tells nothing does not keep a store from starting; it is stamped anew."""
        clock = StandingClock()
        files = MemoryFiles(clock.now)
        store = memory_store(clock, files, start=False)
        store.tree.create()
        store.tree.make_directory("/state/default/records/meta")
        files.create("/state/default/records/meta/0000000000001.000000-a-1.json", b"{", True)
        store.start()
        with self.assertLogs("cronstable.state", "WARNING"):
            self.assertEqual(store.records.read("meta"), [{"storeVersion": "v1"}])

    def test_missing_later(self) -> None:
        """A store that goes while it is used is missed until it is started again."""
        store = disk_store(self.mktemp())
        store.records.append("s", {"k": 1})
        shutil.rmtree(store.settings.path)
        self.assertRaises(StoreMissing, store.records.append, "s", {"k": 2})
        self.assertRaises(StoreMissing, store.leases.acquire, "l", "h", 5.0)
        self.assertFalse(os.path.exists(store.settings.path))
        store.start()
        store.records.append("s", {"k": 3})
        self.assertEqual(store.records.read("s"), [{"k": 3}])


class TopologyTests(SynchronousTestCase):
    """What the mount makes of a store."""

    def view(self, topology: str, mounts: str, files: Any = None) -> View:
        return memory_store(files=files, topology=topology, mounts=mounts).view

    def test_auto(self) -> None:
        """The mount decides; where it is not known the store is this host's alone."""
        self.assertEqual(self.view("auto", NFS).topology, "shared")
        self.assertTrue(self.view("auto", NFS).shared_locking)
        self.assertEqual(self.view("auto", "/dev/x / ext4 rw 0 0").topology, "single-node")
        self.assertEqual(self.view("auto", "").topology, "single-node")

    def test_configured(self) -> None:
        """The configuration is believed, with a warning where the mount looks otherwise."""
        self.assertEqual(self.view("single-node", NFS).topology, "single-node")
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            view = self.view("shared", "/dev/x / ext4 rw 0 0")
        self.assertEqual((view.topology, view.shared_locking), ("shared", True))
        self.assertIn("ext4", logs.output[0])
        with self.assertNoLogs("cronstable.state", "WARNING"):
            self.view("shared", NFS)

    def test_fictitious_locks(self) -> None:
        """Locks that stay on the host, or exclude nobody, are refused for coordination."""
        view = self.view("auto", NFS.replace("rw,", "rw,nolock,"))
        self.assertFalse(view.shared_locking)
        self.assertIn("nolock", view.locks_refused or "")

        class Lax(MemoryFiles):
            def lock(self, path: str, wait: bool) -> Any:
                lock = super().lock(path, wait)
                return lock or super().lock(path + "x", wait)

        view = self.view("auto", NFS, Lax(StandingClock().now))
        self.assertFalse(view.shared_locking)
        self.assertIn("exclusive", view.locks_refused or "")


class StreamNamesTests(SynchronousTestCase):
    """Which streams there are."""

    def test_names(self) -> None:
        """Streams are listed by name and prefix; stray files are none."""
        store = memory_store()
        for stream in ("runs/b", "runs/A", "logs/b"):
            store.records.append(stream, {})
        store.tree.files.create("/state/default/records/note.txt", b"", True)
        self.assertEqual(store.streams("runs/").names, ("runs/A", "runs/b"))
        self.assertTrue(store.streams().complete)
        store.tree.make_directory("/state/default/records/runs%2FB")
        self.assertFalse(store.streams().complete)
        self.assertTrue(store.streams("logs/").complete)


class TreeVectorTests(SynchronousTestCase):
    """A store that two daemons of the reference wrote."""

    def setUp(self) -> None:
        path = unpack_tree(self.mktemp())
        self.store = disk_store(path, StandingClock(1795955640.0), deployment_id="Vectors")
        self.index = vector("tree-index.json")["files"]

    def test_every_record_is_understood(self) -> None:
        """All records of all streams are read as they were written, and none is set aside."""
        streams: dict[str, list[Any]] = {}
        for file in self.index:
            if file["area"] == "records" and "data" in file:
                streams.setdefault(os.path.dirname(file["path"]), []).append(file)
        self.assertEqual(len(streams), 54)
        for directory, files in streams.items():
            token = directory.partition("/")[2]
            stream = self.store.stream_name(token)
            assert stream is not None
            self.assertEqual(names.token(stream), token)
            expected = [file["data"] for file in sorted(files, key=lambda f: f["path"])]
            found = self.store.records.read(stream, strict=True)
            self.assertEqual(len(found), len(expected))
            for data, said in zip(found, expected, strict=True):
                self.assertEqual(said, {k: _spelled(said[k], v) for k, v in data.items()})
        self.assertEqual(self.store.streams().complete, True)
        self.assertEqual(os.listdir(self.store.tree.path("quarantine")), [])

    def test_every_document_and_lease_is_understood(self) -> None:
        """All documents and leases are read as they were written."""
        documents = [file for file in self.index if file.get("kind") == "doc"]
        for file in documents:
            body = self.store.documents.read(file["namespace"], file["key"])
            self.assertEqual(body, file["data"])
            self.assertIn(file["key"], self.store.documents.keys(file["namespace"]).names)
        leases = {file["name"]: file["data"] for file in self.index if file.get("kind") == "lease"}
        found, complete = self.store.leases.all()
        self.assertTrue(complete)
        self.assertEqual({lease.name for lease in found}, set(leases))
        for lease in found:
            told = leases[lease.name]
            said = (lease.holder, lease.fence, lease.expires_at)
            self.assertEqual(said, (told["holder"], told["fence"], told["expiresAt"]))

    def test_blobs_are_what_they_say(self) -> None:
        """Every artifact record's payload is there."""
        for stream in self.store.streams("artifacts/").names:
            for record in self.store.records.read(stream):
                payload = self.store.blobs.get(record["sha256"])
                self.assertEqual(len(payload or b""), record["size"])

    def test_nothing_but_the_start_is_written(self) -> None:
        """Reading everything changes no byte; the present stamp is enough."""
        known = {file["path"] for file in self.index}
        found = set()
        for area in AREAS:
            for directory, _, files in os.walk(self.store.tree.path(area)):
                found |= {
                    os.path.join(os.path.relpath(directory, self.store.tree.root), f) for f in files
                }
        self.assertEqual(found, known)

    def test_going_on(self) -> None:
        """Our appends come after the reference's, its last leader's lease is waited for."""
        before = self.store.records.items("runs/ok")[-1][0]
        self.store.tree.clock.wall = 1795955000.0  # type: ignore[attr-defined]
        self.assertGreater(self.store.records.append("runs/ok", {"outcome": "success"}), before)
        denied = self.store.leases.acquire("cluster/leader", "node-c#1", 6.0)
        self.assertEqual(getattr(denied, "why", None), "held")
        self.store.tree.clock.wall = 1795955640.0  # type: ignore[attr-defined]
        held = self.store.leases.acquire("cluster/leader", "node-c#1", 6.0)
        self.assertEqual(getattr(held, "fence", None), 4)

    def test_latest_run(self) -> None:
        """The interrupted run's row is the latest of its job."""
        row = latest(self.store.records.read("runs/interrupted"))
        self.assertEqual(row and row["outcome"], "unknown")


class TroubleTests(SynchronousTestCase):
    """Every operation on a store in trouble."""

    def operations(self, store: Store) -> dict[str, Any]:
        """Return calls that read or write something that is there."""
        return {
            "append": lambda: store.records.append("s", {"k": 2}),
            "read": lambda: store.records.read("s", strict=True),
            "streams": store.streams,
            "document": lambda: store.documents.read("ns", "key"),
            "mutate": lambda: store.documents.mutate("ns", "key", lambda body: _put()),
            "keys": lambda: store.documents.keys("ns"),
            "blob put": lambda: store.blobs.put(b"new"),
            "lease": lambda: store.leases.release("l", "h", 1),
        }

    def filled(self) -> tuple[Store, FaultyFiles]:
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files)
        store.records.append("s", {"k": 1})
        store.documents.mutate("ns", "key", lambda body: _put())
        store.leases.acquire("l", "h", 100.0)
        return store, files

    def test_dead_store(self) -> None:
        """With every call failing each operation fails as expected, and recovers by itself."""
        for error in (errno.EIO, errno.EACCES, errno.ESTALE, errno.ETIMEDOUT):
            store, files = self.filled()
            operations = self.operations(store)
            files.fail(*READING, *WRITING, error=error)
            for name, operation in operations.items():
                with self.assertRaises(TROUBLE, msg=f"{name} {error}"):
                    operation()
            files.heal()
            for operation in operations.values():
                operation()
            self.assertEqual(store.records.read("s"), [{"k": 1}, {"k": 2}])

    def test_full_disk(self) -> None:
        """A full disk fails writes whole, leaves reads alone, and no torn file behind."""
        store, files = self.filled()
        before = MemoryFiles.paths(files._inner)  # type: ignore[arg-type]
        operations = self.operations(store)
        files.fail("create", error=errno.ENOSPC, torn=True)
        for name in ("append", "mutate", "blob put", "lease"):
            self.assertRaises(OSError, operations[name])
        for name in ("read", "streams", "document", "keys"):
            operations[name]()
        files.heal()
        self.assertEqual(MemoryFiles.paths(files._inner), before)  # type: ignore[arg-type]
        for operation in operations.values():
            operation()

    def test_read_only(self) -> None:
        """A mount that turned read-only serves what it has."""
        store, files = self.filled()
        files.fail(*WRITING, error=errno.EROFS)
        self.assertEqual(store.records.read("s", strict=True), [{"k": 1}])
        self.assertEqual(store.documents.read("ns", "key"), {"v": 1})
        self.assertIsNot(store.leases.read("l"), None)
        self.assertRaises(OSError, store.records.append, "s", {"k": 2})


class OpenStoreTests(SynchronousTestCase):
    """How a store is made."""

    def test_real_files(self) -> None:
        """A store of the system's files touches nothing before it is started."""
        path = os.path.abspath(self.mktemp())
        store = open_store(StoreSettings(path, "ns"), StandingClock())
        self.assertFalse(os.path.exists(path))
        store.start()
        stem = store.records.append("s", {"k": 1})
        with open(f"{path}/ns/records/s/{stem}.json") as file:
            self.assertEqual(json.load(file)["data"], {"k": 1})


def _spelled(said: Any, value: Any) -> Any:
    """Return a value as the index spells it, which leaves out what is long."""
    return said if said == "(see the file)" and isinstance(value, dict) and value else value


def _put() -> Any:
    from cronstable.state.documents import Put

    return Put({"v": 1})
