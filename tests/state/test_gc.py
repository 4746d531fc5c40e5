"""Garbage collection."""

from __future__ import annotations

import errno
import json
import os
from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.state import gc, jobstate, names
from cronstable.state.documents import Put, Remove
from cronstable.state.faults import FaultyFiles
from cronstable.state.instants import to_text
from cronstable.state.manifests import Names, manifest
from cronstable.state.memory import MemoryFiles
from cronstable.state.store import Store
from tests.state.support import (
    NOW,
    StandingClock,
    disk_store,
    memory_store,
    reopened,
    vector,
)

GRACE = 1000.0
ROOT = "/state/default"


def memory_of(store: Store) -> MemoryFiles:
    """Return the files in memory below a store."""
    files = store.tree.files
    inner = files._inner if isinstance(files, FaultyFiles) else files
    assert isinstance(inner, MemoryFiles)
    return inner


class CapturedPassTests(SynchronousTestCase):
    """One pass of the reference."""

    def test_same_removals(self) -> None:
        """The same files go, the same stay, and the counts agree; a dry run counts the same."""
        case = vector("gc.json")["pass"]
        for dry_run in (True, False):
            store = self.build(case)
            keep = {prefix: frozenset(kept) for prefix, kept in case["keep"].items()}
            result = gc.sweep(store, keep, case["now"] - case["grace"], dry_run)
            expected = case["result"]
            self.assertEqual(list(result.removed), expected["removed"])
            for count in (
                "records_removed",
                "streams_kept",
                "idem_docs_removed",
                "leases_removed",
                "tmp_removed",
                "quarantine_removed",
            ):
                self.assertEqual(getattr(result, count), expected[count], count)
            if not dry_run:
                self.assertEqual(result.locks_removed, expected["locks_removed"])
            left = case["before"] if dry_run else case["after"]
            self.assertEqual(self.found(store), sorted(p for p in left if not p.endswith("/")))

    def build(self, case: dict[str, Any]) -> Store:
        """Make the captured tree; times as its note tells."""
        now = case["now"]
        store = memory_store(StandingClock(now), start=False)
        store.tree.create()
        for path in case["before"]:
            if path.endswith("/"):
                store.tree.make_directory(f"{ROOT}/{path[:-1]}")
                continue
            directory, _, file = path.rpartition("/")
            store.tree.make_directory(f"{ROOT}/{directory}")
            store.tree.files.create(f"{ROOT}/{path}", self.content(path, now), True)
            old = now - (100_000 if file == "w-zz-000000000001.tmp" else 500)
            store.tree.files.touch(
                f"{ROOT}/{path}", now if file == "w-zz-000000000002.tmp" else old
            )
        return store

    def content(self, path: str, now: float) -> bytes:
        if path.endswith("stream-name.txt"):
            return ("runs/" + "L" * 80).encode()
        if path.endswith(".doc"):
            data: dict[str, Any] = {"key": "k", "claimedAt": 1.0}
            if "exp" in path:
                data["expiresAt"] = now - 300
            if "young" in path:
                data["expiresAt"] = now - 50
            return json.dumps({"data": data, "schemaVersion": "v1"}).encode()
        if path.endswith(".lease"):
            expires = now - 10 if "r2" in path else 0.0
            lease = {"name": "n", "holder": "h", "fence": 1, "expiresAt": expires}
            return json.dumps(lease).encode()
        if path.endswith(".json"):
            return b'{"data":{},"schemaVersion":"v1"}'
        return b"\0"

    def found(self, store: Store) -> list[str]:
        return sorted(path[len(ROOT) + 1 :] for path in memory_of(store).paths())


def _die() -> None:
    raise KeyboardInterrupt


class CollectTests(SynchronousTestCase):
    """A whole pass, from manifests to blobs."""

    def setUp(self) -> None:
        self.clock = StandingClock()
        self.files = FaultyFiles(MemoryFiles(self.clock.now))
        self.store = memory_store(self.clock, self.files)

    def say(self, host: str = "a", *jobs: str, **more: Any) -> None:
        """Let a host write a manifest."""
        used = Names(
            frozenset(jobs),
            scopes=more.get("scopes", frozenset()),
            dags=more.get("dags", frozenset()),
        )
        record = manifest("v1:x", host, used, self.clock.wall)
        for key in more.get("without", ()):
            del record[key]
        self.store.records.append(f"manifests/{host}", record)

    def old(self, *streams: str, **record: Any) -> None:
        """Write records that are old once L{collect} runs."""
        for stream in streams:
            self.store.records.append(stream, record)

    def collect(self, *jobs: str, dry_run: bool = False, **more: Any) -> gc.Collected:
        """Run a pass two graces later, with a fresh manifest of host a."""
        if more.pop("later", True):
            self.say()
            self.clock.advance(2 * GRACE)
            self.say(*more.pop("recent", ("a",)))
        own = Names(frozenset(jobs), frozenset({"a"}), **more)
        return gc.collect(self.store, own, GRACE, dry_run=dry_run)

    def test_deferred_without_history(self) -> None:
        """Nothing goes before manifests span a whole grace."""
        self.old("runs/gone")
        self.say()
        self.clock.advance(GRACE - 1)
        result = self.collect(later=False)
        self.assertEqual(result.deferred, gc.DEFERRED)
        self.clock.advance(1)
        self.assertIs(self.collect(later=False).deferred, None)

    def test_gone_jobs(self) -> None:
        """Streams of jobs that nobody has go, those of ours and of recent manifests stay."""
        prefixes = ("runs", "logs", "catchup", "retries", "reboot", "inflight", "slots")
        for job in ("ours", "theirs", "gone"):
            self.old(*(f"{prefix}/{job}" for prefix in prefixes))
        result = self.collect("ours", recent=("b", "theirs"))
        self.assertEqual(
            sorted(result.removed), sorted(names.token(f"{prefix}/gone") for prefix in prefixes)
        )
        self.assertEqual(result.records_removed, 7)

    def test_hosts(self) -> None:
        """Counters and manifests of hosts that say nothing any more go, ours stay."""
        self.old("counters/a", "counters/b", "counters/gone")
        self.say("gone")
        result = self.collect(recent=("b",))
        self.assertEqual(result.removed, ("counters%2Fgone", "manifests%2Fgone"))

    def test_never_touched(self) -> None:
        """The stamp, elections and streams that are not understood stay at any age."""
        self.old("manifests", "cluster/reboot-ran", "runsx/gone", "other/thing", "runs")
        self.assertEqual(self.collect().removed, ())

    def test_young_stay(self) -> None:
        """A stream of nobody stays until its newest record is old."""
        self.old("runs/gone")
        self.say()
        self.clock.advance(2 * GRACE)
        self.store.records.append("runs/gone", {})
        self.say()
        self.assertEqual(self.collect(later=False).removed, ())

    def test_unreadable_names_stay(self) -> None:
        """A stream whose name cannot be told, or a record without a date, stays."""
        self.old("runs/" + "X" * 90, "runs/odd")
        token = names.token("runs/" + "X" * 90)
        self.files.unlink(f"{ROOT}/records/{token}/stream-name.txt")
        self.store.tree.make_directory(f"{ROOT}/records/runs%2FSTRAY")
        self.files.touch(f"{ROOT}/records/runs%2FSTRAY", 0.0)
        self.files.create(f"{ROOT}/records/runs%2Fodd/hand-written.json", b"{}", True)
        self.assertEqual(self.collect().removed, ())

    def test_empty_streams(self) -> None:
        """An empty directory goes by its own age."""
        self.store.tree.make_directory(f"{ROOT}/records/runs%2Fempty")
        self.assertEqual(self.collect().removed, ("runs%2Fempty",))

    def test_artifacts_unmanaged_by_old_peers(self) -> None:
        """While a recent manifest does not know of scopes, artifacts and checkpoints stay."""
        self.old("artifacts/gone", "catchup-dag/gone", name="n", sha256="x")
        self.say()
        self.clock.advance(2 * GRACE)
        self.say("a")
        self.say("old", without=("scopes",))
        self.assertEqual(self.collect(later=False).removed, ())

    def test_artifacts(self) -> None:
        """Scopes that are a job, named by a manifest, or of a run that is there, stay."""
        for scope in ("job", "global", "named", "dagxcom/d/run", "dagxcom/d/gone", "gone"):
            self.old(f"artifacts/{scope}", name="n", sha256="x")
        self.old("catchup-dag/d", "catchup-dag/gone")
        self.store.documents.mutate("dagrun/d", "key", lambda body: Put({"runId": "run"}))
        result = self.collect("job", scopes=frozenset({"named"}), dags=frozenset({"d"}))
        self.assertEqual(
            result.removed,
            ("artifacts%2Fdagxcom%2Fd%2Fgone", "artifacts%2Fgone", "catchup-dag%2Fgone"),
        )

    def test_artifacts_while_runs_cannot_be_listed(self) -> None:
        """A workflow run that cannot be read may own any artifact."""
        self.old("artifacts/gone", name="n", sha256="x")
        for namespace, body in (
            ("dagrun/d", Put({"runId": 5})),
            ("dagrun/" + "D" * 90, Put({"runId": "r"})),
        ):
            self.store.documents.mutate(namespace, "key", lambda current, body=body: body)
            self.assertEqual(self.collect().removed, ())
            self.store.documents.mutate(namespace, "key", lambda current: Remove())
        self.store.documents.mutate("dagrun/d", "key", lambda current: Put({"runId": "r"}))
        self.files.fail("read", error=errno.EIO, match="docs/dagrun")
        self.assertEqual(self.collect().removed, ())

    def test_pauses(self) -> None:
        """A pause of a gone job stays while it lasts; of a known job in any case."""
        until = to_text(NOW + 100 * GRACE)
        self.old("paused/live", kind="paused", until=until)
        self.old("paused/known", "paused/over", kind="paused", until=to_text(NOW + 1))
        self.old("paused/resumed", kind="resumed")
        result = self.collect("known")
        self.assertEqual(result.removed, ("paused%2Fover", "paused%2Fresumed"))

    def test_dry_run(self) -> None:
        """A dry run tells what would go and takes nothing."""
        self.old("runs/gone")
        jobstate.claim(self.store, "s", "k", 1.0)
        self.store.blobs.put(b"orphan")
        before = memory_of(self.store).paths()
        result = self.collect(dry_run=True)
        self.assertEqual(result.removed, ("runs%2Fgone",))
        self.assertEqual((result.idem_docs_removed, result.blobs_removed), (1, 1))
        self.assertTrue(set(before) <= set(memory_of(self.store).paths()))

    def test_dry_run_thinks_ahead(self) -> None:
        """A dry run counts payloads that only streams name which would go."""
        jobstate.artifact_put(self.store, "gone", "n", b"payload")
        self.assertEqual(self.collect(dry_run=True).blobs_removed, 1)
        self.assertEqual(self.collect().blobs_removed, 1)

    def test_trouble_with_manifests(self) -> None:
        """If what is in use cannot be read, nothing is collected."""
        self.old("runs/gone")
        self.say()
        self.clock.advance(2 * GRACE)
        self.files.fail("read", error=errno.EIO, match="manifests")
        self.assertRaises(OSError, self.collect, later=False)
        self.assertEqual(len(self.store.records.read("runs/gone")), 1)

    def test_trouble_with_one_stream(self) -> None:
        """A stream that cannot be removed is left for the next pass, the others go."""
        self.old("runs/gone", "runs/stuck")
        self.files.fail("unlink", error=errno.EIO, match="runs%2Fstuck")
        self.assertEqual(self.collect().removed, ("runs%2Fgone",))
        self.files.heal()
        self.assertEqual(self.collect(later=False).removed, ("runs%2Fstuck",))

    def test_newer_release_at_work(self) -> None:
        """While records of a newer scheme turn up, what its nodes use is not known."""
        self.old("runs/gone", "runs/other")
        self.say()
        self.clock.advance(2 * GRACE)
        self.say()
        path = f"{ROOT}/records/runs%2Fother/0000000000001.000000-a-1.json"
        self.files.create(path, b'{"data":{},"schemaVersion":"v2"}', True)
        self.store.records.read("runs/other")
        result = self.collect(later=False)
        self.assertIn("newer scheme", result.deferred or "")
        self.clock.advance(2 * GRACE)
        self.say()
        self.assertEqual(self.collect(later=False).removed, ("runs%2Fgone", "runs%2Fother"))

    def test_manifest_of_a_newer_release(self) -> None:
        """A manifest of a newer scheme puts collection off as any record of it does, at once."""
        self.old("runs/gone")
        path = f"{ROOT}/records/manifests%2Fb/0000000000001.000000-a-1.json"
        self.store.tree.make_directory(os.path.dirname(path))
        self.files.create(path, b'{"data":{},"schemaVersion":"v2"}', True)
        first, second = self.collect(dry_run=True), self.collect(later=False)
        self.assertIn("newer scheme", first.deferred or "")
        self.assertIn("newer scheme", second.deferred or "")
        self.assertEqual(len(self.store.records.read("runs/gone")), 1)

    def test_cut_pass(self) -> None:
        """A pass that is killed anywhere leaves what the next one needs to go on."""
        for kind in ("runs%2Fgone", "runs%2Fmore", "quarantine/"):
            self.setUp()
            self.say("gone", "b")
            self.old("runs/gone", "runs/more")
            self.files.create(f"{ROOT}/quarantine/x.bad", b"", True)
            self.clock.advance(2 * GRACE)
            self.files.call("unlink", act=_die, match=kind, times=1)
            self.assertRaises(KeyboardInterrupt, self.collect, later=False)
            removed = self.collect(later=False).removed
            self.assertIn("manifests%2Fgone", removed)
            self.assertEqual(self.store.stream_tokens("runs/"), [])

    def test_append_during_removal(self) -> None:
        """A record that comes while its stream is removed stays, under its name."""
        stream = "runs/" + "X" * 90
        self.old(stream)
        token = names.token(stream)
        peer = reopened(self.store)
        path = f"records/{token}"
        self.files.call(
            "unlink", act=lambda: peer.records.append(stream, {"k": 2}), match=path, times=1
        )
        self.collect()
        self.assertEqual(self.store.records.read(stream), [{"k": 2}])
        self.assertEqual(self.store.stream_name(token), stream)

    def test_counted(self) -> None:
        """A pass and its sweep are operations of their own."""
        self.collect()
        self.assertEqual(self.store.stats.ops["gc"].count, 1)
        self.assertEqual(self.store.stats.ops["blob-sweep"].count, 1)


class LeaseTests(SynchronousTestCase):
    """Leases and claims."""

    def setUp(self) -> None:
        self.clock = StandingClock()
        self.store = memory_store(self.clock)

    def sweep(self) -> gc.Collected:
        return gc.sweep(self.store, {}, self.clock.wall - GRACE)

    def test_only_finished_workflow_leases(self) -> None:
        """Leases of workflow runs go once expiry and file are old; all others stay for ever."""
        for name in ("dagadvance/d/r", "slots/j", "retry-claim/j", "cluster/leader", "lock/s/n#0"):
            self.store.leases.acquire(name, "h", 30.0)
        self.store.leases.acquire("dagadvance/d/long", "h", 3 * GRACE)
        self.clock.advance(GRACE)
        self.assertEqual(self.sweep().leases_removed, 0)
        self.clock.advance(GRACE)
        self.assertEqual(self.sweep().leases_removed, 1)
        self.assertIs(self.store.leases.read("dagadvance/d/r"), None)
        self.assertEqual(len(self.store.leases.all()[0]), 5)
        self.assertNotIn("dagadvance%2Fd%2Fr.lock", self.store.tree.files.names(f"{ROOT}/leases"))

    def test_lease_in_use(self) -> None:
        """A lease whose lock somebody has is left."""
        self.store.leases.acquire("dagadvance/d/r", "h", 30.0)
        self.clock.advance(2 * GRACE)
        lock = self.store.tree.try_lock(f"{ROOT}/leases/dagadvance%2Fd%2Fr.lock")
        self.assertEqual(self.sweep().leases_removed, 0)
        assert lock is not None
        lock.release()
        self.assertEqual(self.sweep().leases_removed, 1)

    def test_unreadable_lease_stays(self) -> None:
        """A lease that cannot be read may be anybody's."""
        path = f"{ROOT}/leases/dagadvance%2Fd%2Fr.lease"
        self.store.tree.files.create(path, b"{", True)
        self.clock.advance(2 * GRACE)
        self.assertEqual(self.sweep().leases_removed, 0)

    def test_claims(self) -> None:
        """Claims that ran out long ago go with their locks; permanent and young ones stay."""
        jobstate.claim(self.store, "s", "for-ever")
        jobstate.claim(self.store, "s", "over", 5.0)
        jobstate.claim(self.store, "s", "running", 1.5 * GRACE)
        self.clock.advance(2 * GRACE)
        result = self.sweep()
        self.assertEqual((result.idem_docs_removed, result.locks_removed), (1, 1))
        self.assertEqual(self.store.documents.keys("idem/s").names, ("for-ever", "running"))

    def test_claim_won_again_meanwhile(self) -> None:
        """A claim that is won again while it is about to go stays."""
        files = FaultyFiles(memory_of(self.store))
        store = memory_store(self.clock, files)
        jobstate.claim(store, "s", "k", 5.0)
        self.clock.advance(2 * GRACE)
        peer = reopened(self.store)
        files.call("lock", act=lambda: jobstate.claim(peer, "s", "k", 5.0), match="idem", times=1)
        self.assertEqual(gc.sweep(store, {}, self.clock.wall - GRACE).idem_docs_removed, 0)
        self.assertEqual(store.documents.keys("idem/s").names, ("k",))

    def test_locks_of_removed_documents(self) -> None:
        """A lock whose document is gone goes once nobody used it for long."""
        self.store.documents.mutate("kv/s", "k", lambda body: Put({}))
        self.store.documents.mutate("kv/s", "k", lambda body: Remove())
        self.clock.advance(0.5 * GRACE)
        self.assertEqual(self.sweep().locks_removed, 0)
        self.clock.advance(GRACE)
        self.assertEqual(self.sweep().locks_removed, 1)
        self.assertEqual(self.store.tree.files.names(f"{ROOT}/docs/kv%2Fs"), [])


class SweepTroubleTests(SynchronousTestCase):
    """Sweeps on a disk in trouble."""

    def test_goes_on(self) -> None:
        """What cannot be removed is said and left; everything else goes."""
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files)
        for key in ("stuck", "k"):
            jobstate.claim(store, "s", key, 5.0)
        for name in ("stuck.tmp", "x.tmp"):
            files.create(f"{ROOT}/tmp/{name}", b"", True)
        clock.advance(200_000)
        files.fail("unlink", error=errno.EIO, match="stuck")
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            result = gc.sweep(store, {}, clock.wall - GRACE)
        self.assertEqual((result.idem_docs_removed, result.tmp_removed), (1, 1))
        self.assertEqual(len(logs.output), 2)
        files.heal()
        result = gc.sweep(store, {}, clock.wall - GRACE)
        self.assertEqual((result.idem_docs_removed, result.tmp_removed), (1, 1))

    def test_vanishing(self) -> None:
        """What a peer removes at the same time is nobody's trouble."""
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files)
        files.create(f"{ROOT}/tmp/x.tmp", b"", True)
        digest = store.blobs.put(b"orphan")
        store.records.append("runs/gone", {})
        clock.advance(200_000)
        inner = memory_of(store)
        for match in (".tmp", digest, "runs%2Fgone"):
            path = next(path for path in inner.paths() if match in path)
            files.call("unlink", act=lambda p=path: inner.unlink(p), match=match, times=1)
        with self.assertNoLogs("cronstable.state", "WARNING"):
            result = gc.sweep(store, {"runs/": frozenset()}, clock.wall - GRACE)
        counts = (result.tmp_removed, result.blobs_removed, result.records_removed)
        self.assertEqual(counts, (0, 0, 0))


class BlobSweepTests(SynchronousTestCase):
    """Payloads that nobody names."""

    def setUp(self) -> None:
        self.clock = StandingClock()
        self.files = FaultyFiles(MemoryFiles(self.clock.now))
        self.store = memory_store(self.clock, self.files)
        self.kept = jobstate.artifact_put(self.store, "s", "n", b"kept").sha256
        self.orphan = self.store.blobs.put(b"orphan")
        self.clock.advance(2 * GRACE)

    def sweep(self, dry_run: bool = False) -> gc.Collected:
        return gc.sweep(self.store, {}, self.clock.wall - GRACE, dry_run)

    def test_orphans_go(self) -> None:
        """An old payload that no record names goes; young and named ones stay."""
        young = self.store.blobs.put(b"young")
        self.assertEqual(self.sweep().blobs_removed, 1)
        self.assertIs(self.store.blobs.get(self.orphan), None)
        self.assertEqual(self.store.blobs.get(self.kept), b"kept")
        self.assertEqual(self.store.blobs.get(young), b"young")

    def test_put_again_in_time(self) -> None:
        """A payload that is published again is young again."""
        self.store.blobs.put(b"orphan")
        self.assertEqual(self.sweep().blobs_removed, 0)

    def test_one_that_stays(self) -> None:
        """A payload that cannot be removed is said, and does not keep the others."""
        self.store.blobs.put(b"another")
        self.clock.advance(2 * GRACE)
        self.files.fail("unlink", error=errno.EPERM, match=self.orphan)
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            result = self.sweep()
        self.assertEqual((result.blobs_removed, result.blobs_kept), (1, None))
        self.assertIn(self.orphan, logs.output[0])

    def test_stands_down(self) -> None:
        """If one record or one stream's name cannot be read, no payload goes."""
        self.files.fail("read", error=errno.EIO, match="records/artifacts")
        result = self.sweep()
        self.assertEqual(result.blobs_removed, 0)
        self.assertIn("Input/output error", result.blobs_kept or "")
        self.files.heal()
        stream = "artifacts/" + "X" * 90
        self.store.records.append(stream, {"name": "n"})
        self.files.unlink(f"{ROOT}/records/{names.token(stream)}/stream-name.txt")
        self.assertIn("has no name", self.sweep().blobs_kept or "")
        self.assertEqual(self.store.blobs.get(self.orphan), b"orphan")

    def test_named_by_what_was_set_aside(self) -> None:
        """A payload that a quarantined record may name stays as long as that record."""
        path = f"{ROOT}/records/artifacts%2Fs/0000000000001.000000-a-1.json"
        self.files.create(path, b'{"data":{"sha256":"%s",' % self.orphan.encode(), True)
        self.store.records.read("artifacts/s")
        self.assertEqual(self.sweep().blobs_removed, 0)
        self.clock.advance(2 * GRACE)
        would = self.sweep(dry_run=True)
        self.assertEqual((would.quarantine_removed, would.blobs_removed), (1, 1))
        first, second = self.sweep(), self.sweep()
        self.assertEqual((first.quarantine_removed, second.blobs_removed), (1, 0))
        self.assertEqual(first.blobs_removed, 1)


class LeftoverTests(SynchronousTestCase):
    """Temp files and quarantined records."""

    def test_ages(self) -> None:
        """Temp files go after a day, quarantined records, even directories, after the grace."""
        clock = StandingClock()
        store = memory_store(clock)
        store.tree.files.create(f"{ROOT}/tmp/w-a-1.tmp", b"", True)
        store.tree.files.create(f"{ROOT}/quarantine/f.json.a.bad", b"", True)
        store.tree.files.make_directory(f"{ROOT}/quarantine/d.json.a.bad")
        clock.advance(GRACE + 1)
        result = gc.sweep(store, {}, clock.wall - GRACE)
        self.assertEqual((result.tmp_removed, result.quarantine_removed), (0, 2))
        clock.advance(86_400)
        self.assertEqual(gc.sweep(store, {}, clock.wall - GRACE).tmp_removed, 1)

    def test_links(self) -> None:
        """A link that was set aside goes, whatever it leads to, and that stays."""
        clock = StandingClock()
        store = disk_store(self.mktemp(), clock)
        elsewhere = os.path.abspath(self.mktemp())
        os.mkdir(elsewhere)
        os.symlink(elsewhere, store.tree.path("quarantine", "0.json.a.bad"))
        os.utime(elsewhere, (NOW, NOW))
        clock.advance(GRACE + 1)
        result = gc.sweep(store, {}, clock.wall - GRACE)
        self.assertEqual(result.quarantine_removed, 1)
        self.assertEqual(os.listdir(store.tree.path("quarantine")), [])
        self.assertTrue(os.path.isdir(elsewhere))

    def test_nothing_to_do(self) -> None:
        """A store without anything old is left as it is."""
        store = memory_store()
        before = memory_of(store).paths()
        result = gc.sweep(store, {}, store.tree.clock.now() - GRACE)
        self.assertEqual(attrs.evolve(result, streams_kept=0), gc.Collected())
        self.assertEqual(memory_of(store).paths(), before)
