"""Administering a store without a daemon."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state import admin, archive, jobstate, schema
from cronstable.state.faults import FaultyFiles
from cronstable.state.files import Files
from cronstable.state.instants import to_text
from cronstable.state.manifests import Names, manifest
from cronstable.state.memory import MemoryFiles
from cronstable.state.schema import Migration
from cronstable.state.store import Store, StoreSettings, open_store
from tests.state.support import NOW, StandingClock, disk_store, memory_store


def files_of(settings: StoreSettings) -> dict[str, bytes]:
    """Return what a store consists of, by path below its root."""
    found = {}
    for area in ("records", "docs", "blobs", "leases"):
        for path in Path(settings.root, area).rglob("*"):
            if path.is_file():
                found[str(path.relative_to(settings.root))] = path.read_bytes()
    return found


def archive_of(path: str, members: dict[str, bytes], **links: str) -> str:
    """Write a gzipped tar with plain members and symbolic links; return its path."""
    with tarfile.open(path, "w:gz") as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for name, target in links.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
    return path


class AdminCase(SynchronousTestCase):
    """A store with a bit of everything, and room beside it."""

    def setUp(self) -> None:
        self.base = os.path.abspath(self.mktemp())
        os.mkdir(self.base)
        self.clock = StandingClock()
        self.store = self.filled("source")
        self.settings = self.store.settings

    def filled(self, name: str) -> Store:
        store = disk_store(os.path.join(self.base, name), self.clock)
        for number in range(3):
            store.records.append("runs/j", {"k": number})
        jobstate.kv_set(store, "s", "k", "é")
        jobstate.artifact_put(store, "s", "n", b"payload")
        store.leases.acquire("slots/j", "h", 30.0)
        Path(store.tree.path("tmp", "w-x.tmp")).write_bytes(b"t")
        Path(store.tree.path("quarantine", "x.bad")).write_bytes(b"q")
        return store

    def path(self, name: str) -> str:
        return os.path.join(self.base, name)

    def other(self, name: str = "target", deployment: str | None = None) -> StoreSettings:
        return StoreSettings(self.path(name), deployment)

    def backup(self) -> str:
        path = self.path("backup.tar.gz")
        self.assertEqual(admin.backup(self.settings, path).status, 0)
        return path

    def assert_private(self, root: str) -> None:
        """Everything below C{root} is for its owner only."""
        for directory, _, files in os.walk(root):
            self.assertEqual(stat.S_IMODE(os.stat(directory).st_mode), 0o700, directory)
            for name in files:
                mode = os.stat(os.path.join(directory, name)).st_mode
                self.assertEqual(stat.S_IMODE(mode), 0o600, name)


class BackupTests(AdminCase):
    """Writing archives."""

    def test_contents(self) -> None:
        """The four areas are in it, nothing else, and the archive is private."""
        path = self.path("backup.tar.gz")
        Path(path).write_bytes(b"old")
        os.chmod(path, 0o644)
        outcome = admin.backup(self.settings, path)
        expected = files_of(self.settings)
        self.assertEqual(
            outcome.out,
            (f"state: backed up {len(expected)} file(s) from {self.settings.root} to {path}",),
        )
        with tarfile.open(path) as tar:
            self.assertEqual(sorted(tar.getnames()), sorted(expected))
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(sorted(os.listdir(self.base)), ["backup.tar.gz", "source"])

    def test_payloads_come_after_what_names_them(self) -> None:
        """Records are read before payloads, so that a copy beside a writer lacks none."""
        with tarfile.open(self.backup()) as tar:
            areas = [name.partition("/")[0] for name in tar.getnames()]
        self.assertLess(areas.index("records"), areas.index("blobs"))

    def test_nothing_there(self) -> None:
        """A store that does not exist is refused, and nothing is created."""
        outcome = admin.backup(self.other("gone"), self.path("b.tar.gz"))
        self.assertEqual(outcome.status, 1)
        self.assertIn("nothing to back up", outcome.err[0])
        self.assertEqual(os.listdir(self.base), ["source"])

    def test_not_writable(self) -> None:
        """An archive that cannot be written is an error that names it, and leaves nothing."""
        path = self.path("no/such/dir/b.tar.gz")
        error = self.assertRaises(FileNotFoundError, admin.backup, self.settings, path)
        self.assertEqual(error.filename, path)

    def test_not_a_file(self) -> None:
        """A pipe, a device or a directory is never replaced by an archive."""
        os.mkfifo(self.path("pipe"))
        os.mkdir(self.path("directory"))
        os.symlink("pipe", self.path("link"))
        for name in ("pipe", "directory", "link"):
            with self.assertRaises(OSError) as raised:
                admin.backup(self.settings, self.path(name))
            self.assertIn(self.path(name), str(raised.exception))
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path("link")).st_mode))
        self.assertEqual(len(os.listdir(self.base)), 4)

    def test_through_a_link(self) -> None:
        """Where a link says that archives go, they go."""
        os.mkdir(self.path("shelf"))
        os.symlink("shelf/today.tar.gz", self.path("b.tar.gz"))
        self.assertEqual(admin.backup(self.settings, self.path("b.tar.gz")).status, 0)
        self.assertEqual(os.listdir(self.path("shelf")), ["today.tar.gz"])
        self.assertTrue(os.path.islink(self.path("b.tar.gz")))

    def test_link_of_somebody_else(self) -> None:
        """A link that is neither the caller's nor root's is not followed."""
        os.symlink(self.path("precious"), self.path("b.tar.gz"))
        real = os.lstat
        for owner, caller, allowed in ((7, 7, True), (0, 7, True), (7, 8, False), (7, 0, False)):
            self.patch(os, "lstat", lambda path, uid=owner: OwnedBy(real(path), uid))
            self.patch(os, "geteuid", lambda uid=caller: uid)
            if allowed:
                self.assertEqual(admin.backup(self.settings, self.path("b.tar.gz")).status, 0)
                os.unlink(self.path("precious"))
            else:
                with self.assertRaises(PermissionError):
                    admin.backup(self.settings, self.path("b.tar.gz"))
        self.assertFalse(os.path.exists(self.path("precious")))

    def test_longest_name(self) -> None:
        """An archive may be called whatever a file may be called."""
        self.assertEqual(admin.backup(self.settings, self.path("x" * 255)).status, 0)

    def test_full_disk_is_named(self) -> None:
        """An archive that does not fit is told by its own name."""

        def full(*ignored: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        self.patch(archive, "_fill", full)
        with self.assertRaises(OSError) as raised:
            admin.backup(self.settings, self.path("b.tar.gz"))
        self.assertIn(self.path("b.tar.gz"), str(raised.exception))

    def test_store_behind_a_closed_door(self) -> None:
        """A store that may not be looked at is not said to be absent."""

        def closed(path: object, **ignored: object) -> os.stat_result:
            raise PermissionError(errno.EACCES, "Permission denied", path)

        self.patch(os, "stat", closed)
        self.assertRaises(PermissionError, admin.backup, self.settings, self.path("b.tar.gz"))

    def test_failure_keeps_the_older_archive(self) -> None:
        """A backup that fails half-way leaves an older archive whole and nothing beside it."""
        path = Path(self.path("b.tar.gz"))
        path.write_bytes(b"older")
        self.patch(archive, "stored_files", lambda root: 1 / 0)
        self.assertRaises(ZeroDivisionError, admin.backup, self.settings, str(path))
        self.assertEqual(path.read_bytes(), b"older")
        self.assertEqual(sorted(os.listdir(self.base)), ["b.tar.gz", "source"])

    def test_beside_a_pruning_daemon(self) -> None:
        """Files that vanish while the archive is written are passed over."""
        vanishing = self.store.tree.path("records", "runs%2Fj")
        is_file = os.path.isfile

        def vanish(path: str) -> bool:
            found = is_file(path)
            if os.path.dirname(path) == vanishing:
                os.unlink(path)
            return found

        self.patch(os.path, "isfile", vanish)
        with tarfile.open(self.backup()) as tar:
            self.assertFalse([name for name in tar.getnames() if "runs%2Fj" in name])

    def test_area_on_another_disk(self) -> None:
        """A directory that is a link is backed up; one that leads nowhere is an error."""
        whole = files_of(self.settings)
        os.rename(self.store.tree.path("blobs"), self.path("disk"))
        os.symlink(self.path("disk"), self.store.tree.path("blobs"))
        with tarfile.open(self.backup()) as tar:
            self.assertEqual(set(tar.getnames()), set(whole))
        os.rename(self.path("disk"), self.path("unmounted"))
        self.assertRaises(FileNotFoundError, self.backup)

    def test_odd_entries(self) -> None:
        """Links and pipes in a store are passed over, which is said."""
        os.symlink("/etc/passwd", self.store.tree.path("records", "runs%2Fj", "link.json"))
        os.symlink("runs%2Fj", self.store.tree.path("records", "runs%2Flink"))
        os.mkfifo(self.store.tree.path("records", "runs%2Fj", "pipe.json"))
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            archived = self.backup()
        self.assertEqual(len(logs.output), 3)
        with tarfile.open(archived) as tar:
            self.assertFalse([name for name in tar.getnames() if "link" in name or "pipe" in name])


class RestoreTests(AdminCase):
    """Reading archives."""

    def restore(self, source: str, settings: StoreSettings, force: bool = False) -> admin.Outcome:
        return admin.restore(settings, source, force, self.clock)

    def test_into_nothing(self) -> None:
        """A restored store has all files, private, and works."""
        target = self.other(deployment="My-App")
        outcome = self.restore(self.backup(), target)
        count = len(files_of(self.settings))
        self.assertEqual(outcome.status, 0)
        self.assertEqual(
            outcome.out,
            (
                (
                    f"state: restored {count} file(s) from {self.path('backup.tar.gz')} into"
                    f" {target.root}"
                ),
            ),
        )
        self.assertEqual(files_of(target), files_of(self.settings))
        self.assert_private(target.path)
        self.assertEqual(os.listdir(os.path.join(target.root, "tmp")), [])
        store = open_store(target, self.clock)
        store.start()
        self.assertEqual([row["k"] for row in store.records.read("runs/j")], [0, 1, 2])
        self.assertEqual(getattr(store.leases.acquire("slots/j", "x", 5.0), "why", None), "held")

    def test_not_empty(self) -> None:
        """A store that has anything is refused before the archive is looked at."""
        outcome = self.restore(self.path("gone.tar.gz"), self.settings)
        self.assertEqual(outcome.status, 1)
        self.assertIn("is not empty", outcome.err[0])
        self.assertIn("--force", outcome.err[0])

    def test_merge(self) -> None:
        """Merging adds what is missing; locks stay, and no lease goes back to an older fence."""
        backup = self.backup()
        target = self.filled("target")
        target.records.append("runs/other", {"k": 9})
        held = target.leases.acquire("slots/j", "h", 30.0)
        self.clock.advance(100)
        held = target.leases.acquire("slots/j", "x", 30.0)
        self.assertEqual(getattr(held, "fence", None), 2)
        lock = Path(target.tree.path("leases", "slots%2Fj.lock"))
        inode = lock.stat().st_ino
        outcome = self.restore(backup, target.settings, force=True)
        self.assertIn("kept 1 lease(s)", outcome.out[1])
        self.assertEqual(target.leases.read("slots/j"), held.lease)  # type: ignore[union-attr]
        self.assertEqual(lock.stat().st_ino, inode)
        self.assertEqual(target.records.read("runs/other"), [{"k": 9}])
        self.assertEqual(len(target.records.read("runs/j")), 6)

    def test_lease_that_proves_nothing(self) -> None:
        """A lease that cannot be read on either side is not replaced; a newer one is."""
        fences = {"a": (b"{", 9), "b": (1, b"{"), "c": (1, 2), "d": (2, 2), "e": (3, 2)}
        target = self.other()
        store = open_store(target, self.clock)
        store.start()
        members = {}
        for name, (present, archived) in fences.items():
            for value, put in ((present, True), (archived, False)):
                raw = value if isinstance(value, bytes) else lease(name, value)
                if put:
                    store.tree.files.create(store.tree.path("leases", f"{name}.lease"), raw, True)
                else:
                    members[f"leases/{name}.lease"] = raw
        archived = archive_of(self.path("a.tar.gz"), members)
        outcome = self.restore(archived, target, force=True)
        self.assertIn("kept 3 lease(s)", outcome.out[1])
        found = {held.name: held.fence for held in store.leases.all()[0]}
        self.assertEqual(found, {"b": 1, "c": 2, "d": 2, "e": 3})

    def test_hostile_members(self) -> None:
        """Nothing but plain files inside the areas of a store is taken from an archive."""
        good = {"records/s/1-x.json": b"{}"}
        bad = dict.fromkeys(
            (
                "/etc/evil",
                "../evil",
                "records/../../evil",
                "records/./evil",
                "evil",
                "records",
                "tmp/evil",
                "quarantine/evil",
                "other/evil",
                "records//evil",
                "records\\..\\evil",
            ),
            b"evil",
        )
        hostile = archive_of(
            self.path("a.tar.gz"), {**good, **bad}, **{"records/link": "/etc", "docs/x": "../.."}
        )
        target = self.other()
        outcome = self.restore(hostile, target)
        self.assertEqual(files_of(target), good)
        self.assertIn(f"left out {len(bad) + 2} member(s)", outcome.out[1])
        self.assertEqual(sorted(os.listdir(self.base)), ["a.tar.gz", "source", "target"])

    def test_made_by_tar(self) -> None:
        """An archive that C{tar} made of the namespace directory is as good as one of ours."""
        members = {f"./{name}": raw for name, raw in files_of(self.settings).items()}
        target = self.other()
        outcome = self.restore(archive_of(self.path("a.tar.gz"), members), target)
        self.assertEqual((outcome.status, len(outcome.out)), (0, 1))
        self.assertEqual(files_of(target), files_of(self.settings))

    def test_nothing_of_a_store(self) -> None:
        """An archive of something else is refused, and nothing is written."""
        members = {f"default/{name}": raw for name, raw in files_of(self.settings).items()}
        outcome = self.restore(archive_of(self.path("a.tar.gz"), members), self.other())
        self.assertEqual(outcome.status, 1)
        self.assertIn("holds nothing of a store", outcome.err[0])
        self.assertFalse(os.path.exists(self.path("target")))

    def test_not_a_file(self) -> None:
        """What could be read only once is refused before it is."""
        os.mkfifo(self.path("pipe"))
        outcome = self.restore(self.path("pipe"), self.other())
        self.assertEqual(outcome.status, 1)
        self.assertIn("is not a regular file", outcome.err[0])

    def test_broken_archive(self) -> None:
        """A cut, damaged or foreign archive is one clear line, and nothing is written."""
        whole = Path(self.backup()).read_bytes()
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 0xFF
        for name, raw in {
            "cut": whole[: len(whole) // 2],
            "tail": whole[:-4],
            "flipped": bytes(flipped),
            "junk": b"junk\n",
            "empty": b"",
            "not a tar": gzip.compress(b"hello" * 1000),
        }.items():
            path = self.path("broken.tar.gz")
            Path(path).write_bytes(raw)
            outcome = self.restore(path, self.other())
            self.assertEqual((outcome.status, len(outcome.err)), (1, 1), name)
            self.assertIn(path, outcome.err[0])
            self.assertFalse(os.path.exists(self.path("target")), name)

    def test_missing_archive(self) -> None:
        """An archive that is not there is the system's error."""
        call = lambda: self.restore(self.path("gone"), self.other())  # noqa: E731
        self.assertRaises(FileNotFoundError, call)


class MigrateTests(AdminCase):
    """Copying to another place."""

    def migrate(
        self, target: str, deployment: str | None = None, force: bool = False
    ) -> admin.Outcome:
        return admin.migrate(self.settings, target, deployment, force, self.clock)

    def test_copy(self) -> None:
        """All files are copied, private, under the same or another namespace."""
        for deployment, token in ((None, "default"), ("B", "%42")):
            target = self.path(f"target-{token}")
            outcome = self.migrate(target, deployment)
            self.assertEqual(outcome.status, 0)
            self.assertIn(f"from {self.settings.root} to {target}/{token}", outcome.out[0])
            self.assertIn("state.path", outcome.out[1])
            copy = StoreSettings(target, deployment)
            self.assertEqual(files_of(copy), files_of(self.settings))
            self.assert_private(target)

    def test_back_to_the_default_namespace(self) -> None:
        """An empty name of a namespace is what it is in a configuration."""
        self.migrate(self.path("b"), "B")
        outcome = admin.migrate(self.other("b", "B"), self.path("c"), "", False, self.clock)
        self.assertEqual(outcome.status, 0)
        self.assertEqual(files_of(self.other("c")), files_of(self.settings))

    def test_other_namespace_of_the_same_path(self) -> None:
        """A namespace beside the source is a fine destination."""
        self.assertEqual(self.migrate(self.settings.path, "other").status, 0)

    def test_refusals(self) -> None:
        """The source itself, a place inside it, and a store that has anything, are refused."""
        for target, deployment, word in (
            (self.settings.path, None, "outside"),
            (os.path.join(self.settings.root, "docs"), None, "outside"),
            (self.filled("full").settings.path, None, "not empty"),
            (" ", "other", "blank"),
        ):
            outcome = self.migrate(target, deployment)
            self.assertEqual(outcome.status, 1)
            self.assertIn(word, outcome.err[0])
        link = self.path("link")
        os.symlink(self.settings.path, link)
        self.assertEqual(self.migrate(link).status, 1)

    def test_missing_source(self) -> None:
        """A source that is not there is refused, and nothing is created."""
        outcome = admin.migrate(self.other("gone"), self.path("t"), None, False, self.clock)
        self.assertEqual(outcome.status, 1)
        self.assertFalse(os.path.exists(self.path("t")))

    def test_force(self) -> None:
        """With force the files go over those that are there."""
        full = self.filled("full").settings
        jobstate.kv_set(self.store, "s", "k", "new")
        self.assertEqual(self.migrate(full.path, force=True).status, 0)
        store = open_store(full, self.clock)
        self.assertEqual((jobstate.kv_get(store, "s", "k") or {})["value"], "new")


class OwnerTests(AdminCase):
    """What root makes for somebody else."""

    def warnings(self, act: Callable[[], object], owner: int = 1000, root: bool = True) -> int:
        """Return how often C{act} says that its files will not be readable."""
        real = os.stat
        self.patch(admin, "is_root", lambda: root)
        self.patch(admin.os, "stat", lambda path: OwnedBy(real(path), owner))
        with self.assertLogs("cronstable.state", "INFO") as logs:
            admin.log.info("something")
            act()
        return sum(f"belongs to user id {owner}" in line for line in logs.output)

    def test_whose_place_it_is(self) -> None:
        """Root that makes a store where everything is another user's is told."""
        backup = self.backup()
        restore = lambda: admin.restore(self.other("a"), backup, False, self.clock)  # noqa: E731
        self.assertEqual(self.warnings(restore), 1)
        path = self.path("b")
        migrate = lambda: admin.migrate(self.settings, path, None, False, self.clock)  # noqa: E731
        self.assertEqual(self.warnings(migrate), 1)
        check = lambda: admin.check(open_store(self.other("c"), self.clock))  # noqa: E731
        self.assertEqual(self.warnings(check), 1)
        self.assertEqual(self.warnings(check), 0, "it is there now, and nothing is made")
        for dry_run in (True, False):
            store = open_store(self.other("c"), self.clock)
            collect = lambda: admin.gc(store, Names(), 604_800.0, dry_run)  # noqa: B023, E731
            self.assertEqual(self.warnings(collect), 0 if dry_run else 1)

    def test_nothing_to_say(self) -> None:
        """One's own place, and root's, are as they should be."""
        for owner, root in ((1000, False), (0, True)):
            made = open_store(self.other(str(owner)), self.clock)
            self.assertEqual(self.warnings(lambda: admin.check(made), owner, root), 0)  # noqa: B023


class OwnedBy:
    """A file's status, but for its owner."""

    def __init__(self, real: os.stat_result, owner: int) -> None:
        self._real, self.st_uid = real, owner

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)


class GcTests(SynchronousTestCase):
    """One pass of collection."""

    def aged(self, files: Files | None = None) -> Store:
        """Return a store with one gone job whose manifests span the default grace."""
        clock = StandingClock()
        store = memory_store(clock, files)
        record = manifest("v1:x", "h", Names(), NOW)
        store.records.append("manifests/h", record)
        store.records.append("runs/gone", {})
        store.blobs.put(b"orphan")
        clock.advance(2 * 604_800)
        store.records.append("manifests/h", {**record, "at": to_text(clock.wall)})
        return store

    def test_texts(self) -> None:
        """Counts and tokens are told, for a dry run as what would be."""
        store = self.aged()
        own = Names(hosts=frozenset({"h"}))
        self.assertEqual(
            admin.gc(store, own, 604_800.0, True).out,
            (
                (
                    "state: gc would remove 1 stream(s) (1 record(s)), 0 temp file(s),"
                    " 0 quarantined record(s); kept 2 stream(s)"
                ),
                "state: gc would remove 1 orphaned artifact blob(s)",
                "  - runs%2Fgone",
            ),
        )
        self.assertEqual(
            admin.gc(store, own, 604_800.0, False).out,
            (
                (
                    "state: gc removed 1 stream(s) (1 record(s)), 0 temp file(s),"
                    " 0 quarantined record(s); kept 2 stream(s)"
                ),
                "state: gc removed 1 orphaned artifact blob(s)",
                "  - runs%2Fgone",
            ),
        )

    def test_deferred(self) -> None:
        """A young store defers, which is no error."""
        outcome = admin.gc(memory_store(), Names(), 604_800.0, False)
        self.assertEqual(outcome.status, 0)
        self.assertTrue(outcome.out[0].startswith("state: gc deferred: the manifest history"))

    def test_switched_off_for_daemons(self) -> None:
        """A grace of nothing means the default here, and that is said."""
        outcome = admin.gc(self.aged(), Names(hosts=frozenset({"h"})), 0.0, False)
        self.assertIn("604800 s", outcome.err[0])
        self.assertIn("removed 1 stream(s)", outcome.out[0])
        self.assertEqual(outcome.status, 0)

    def test_full_disk(self) -> None:
        """A disk that is full is a reason to collect; one that is broken is none."""
        for error, done in ((errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EROFS, False)):
            files = FaultyFiles(MemoryFiles(lambda: NOW))
            store = self.aged(files)
            files.fail("create", error=error)
            collect = lambda: admin.gc(store, Names(hosts=frozenset({"h"})), 604_800.0, False)  # noqa: B023, E731
            if done:
                with self.assertLogs("cronstable.state", "WARNING") as logs:
                    outcome = collect()
                self.assertIn("which may make room", logs.output[0])
                self.assertIn("removed 1 stream(s)", outcome.out[0])
            else:
                self.assertRaises(OSError, collect)

    def test_skipped_sweep(self) -> None:
        """A sweep that stands down says why."""
        store = self.aged()
        stream = "artifacts/" + "X" * 90
        store.records.append(stream, {"name": "n"})
        (token,) = store.stream_tokens("artifacts/")
        store.tree.files.unlink(store.tree.path("records", token, "stream-name.txt"))
        outcome = admin.gc(store, Names(hosts=frozenset({"h"})), 604_800.0, False)
        self.assertTrue(outcome.out[1].startswith("state: orphan-blob sweep skipped: "))


class CheckTests(SynchronousTestCase):
    """Looking at a store."""

    def test_texts(self) -> None:
        """The inventory is told prefix by prefix."""
        store = memory_store(start=False)
        self.assertEqual(
            admin.check(store).out,
            (
                "state: store at /state/default is writable",
                "  backend: filesystem",
                "  namespace: default",
                "  topology: single-node",
                "  shared_locking: False",
                "  streams: 1 (1 record(s))",
                "    meta: 1 record(s)",
                "  quarantined: 0 record(s)",
            ),
        )

    def test_trouble_is_told(self) -> None:
        """Locks that are none and entries without a name are said."""
        store = memory_store(topology="auto", mounts="s:/x /state nfs rw,nolock 0 0\n", start=False)
        store.tree.create()
        store.tree.make_directory("/state/default/records/runs%2FBAD")
        lines = admin.check(store).out
        self.assertIn("nolock", lines[-2])
        self.assertIn("incomplete", lines[-1])


class MigrateSchemaTests(SynchronousTestCase):
    """Bringing records up to date."""

    def filled(self) -> Store:
        store = memory_store()
        store.records.append("runs/j", {"k": 1})
        for number, version in enumerate(("v0", "v0", "v9")):
            raw = json.dumps({"data": {"old": number}, "schemaVersion": version}).encode()
            store.tree.files.create(f"/state/default/records/runs%2Fj/0-{number}.json", raw, True)
        store.tree.files.create("/state/default/records/runs%2Fj/bad.json", b"{", True)
        store.tree.files.create(
            "/state/default/quarantine/x.bad", b'{"data":{},"schemaVersion":"v9"}', True
        )
        store.tree.files.create("/state/default/quarantine/y.bad", b"{", True)
        return store

    def test_today(self) -> None:
        """With no older scheme known all others are counted as unknown, and nothing moves."""
        store = self.filled()
        before = store.tree.files.paths()  # type: ignore[attr-defined]
        self.assertEqual(
            admin.migrate_schema(store, False).out,
            (
                (
                    "state: migrate-schema converted 0 record(s); 2 current, 4 unknown,"
                    " 2 unreadable, 0 failed"
                ),
            ),
        )
        self.assertIn("would convert 0", admin.migrate_schema(store, True).out[0])
        self.assertEqual(store.tree.files.paths(), before)  # type: ignore[attr-defined]

    def test_conversion(self) -> None:
        """A known older scheme is rewritten in place; a dry run only counts."""
        store = self.filled()
        upgrades = {"v0": lambda data: {"new": data["old"]}}
        expected = Migration(converted=2, current=2, unknown=2, unreadable=2)
        self.assertEqual(schema.migrate(store, dry_run=True, upgrades=upgrades), expected)
        self.assertEqual(schema.migrate(store, upgrades=upgrades), expected)
        found = store.records.read("runs/j")
        self.assertEqual(found, [{"new": 0}, {"new": 1}, {"k": 1}])

    def test_beside_a_pruning_daemon(self) -> None:
        """A record that goes meanwhile counts as nothing."""
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files)
        store.records.append("runs/j", {})
        files.fail("read", error=errno.ENOENT, match="runs%2Fj")
        self.assertEqual(schema.migrate(store), Migration(current=1))

    def test_stream_that_cannot_be_listed(self) -> None:
        """A stream behind a closed door counts as one that cannot be read; the rest is done."""
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files)
        for job in ("open", "shut"):
            store.records.append(f"runs/{job}", {})
        for operation in ("names", "read"):
            files.fail(operation, error=errno.EACCES, match="shut")
        self.assertEqual(schema.migrate(store), Migration(current=2, unreadable=1))

    def test_failure(self) -> None:
        """A record that cannot be converted is counted, stays, and makes the action fail."""
        store = self.filled()
        upgrades = {"v0": lambda data: {"new": 1 / 0 if data["old"] else float("nan")}}
        self.assertEqual(schema.migrate(store, upgrades=upgrades).failed, 2)
        self.assertEqual(schema.migrate(store, upgrades=upgrades).failed, 2)


def lease(name: str, fence: int) -> bytes:
    """Return the bytes of a lease."""
    return json.dumps({"name": name, "holder": "h", "fence": fence, "expiresAt": 1.0}).encode()
