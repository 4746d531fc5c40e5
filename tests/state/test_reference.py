"""
One store, two implementations.

It runs the program that C{CRONSTABLE_REFERENCE} names, and is skipped without one.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import SkipTest

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state import admin, jobstate
from cronstable.state.instants import to_text
from cronstable.state.leases import Denied, Held
from cronstable.state.manifests import Names, manifest
from cronstable.state.store import Store, StoreSettings, open_store
from tests.state.support import unpack_tree
from tests.state.test_sharing import RealClock

CONFIG = """
state:
  path: {path}
  deploymentId: {deployment}
  topology: shared
  maxRunsPerJob: 4
  slotTtlSeconds: 5
jobs:
{jobs}
web:
  listen:
    - http://127.0.0.1:{port}
"""
JOB = """
  - name: {name}
    command: {command}
    schedule: "{schedule}"
"""
NEVER = "0 0 1 1 *"


class ReferenceCase(SynchronousTestCase):
    """A reference, a directory, and a store of ours in it."""

    def setUp(self) -> None:
        self.program = os.environ.get("CRONSTABLE_REFERENCE", "")
        if not self.program:
            raise SkipTest("CRONSTABLE_REFERENCE does not name a program to share a store with")
        self.base = os.path.abspath(self.mktemp())
        os.mkdir(self.base)
        self.settings = StoreSettings(f"{self.base}/state", "Name Space", "shared")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    def store(self) -> Store:
        store = open_store(self.settings, RealClock())
        store.start()
        return store

    def config(self, *jobs: str, extra: str = "", path: str | None = None) -> str:
        text = CONFIG.format(
            path=path or self.settings.path,
            deployment=self.settings.namespace,
            jobs="".join(jobs) or JOB.format(name="none", command="'true'", schedule=NEVER),
            port=self.port,
        )
        file = Path(self.base, "config.yaml")
        file.write_text(text + extra)
        return str(file)

    def reference(self, *argv: str) -> str:
        """Run the reference to its end; return its stdout."""
        done = subprocess.run(
            [self.program, *argv], capture_output=True, text=True, timeout=60, cwd=self.base
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    @contextmanager
    def daemon(self, config: str) -> Iterator[None]:
        """Run the reference's daemon until the block ends."""
        log = Path(self.base, "daemon.log").open("wb")
        environment = {**os.environ}
        environment["PATH"] = f"{os.path.dirname(self.program)}:{environment['PATH']}"
        process = subprocess.Popen(
            [self.program, "-c", config], stdout=log, stderr=log, env=environment
        )
        try:
            self.wait(lambda: process.poll() is not None or self.get("/version") is not None)
            self.assertIs(process.poll(), None, Path(log.name).read_text())
            yield
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait(30)
            log.close()

    def get(self, path: str) -> Any:
        """Return the JSON (or text) at a path of the daemon, None if there is none."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}{path}", timeout=10
            ) as answer:
                text = answer.read().decode()
        except (OSError, urllib.error.HTTPError):
            return None
        try:
            return json.loads(text)
        except ValueError:
            return text

    def wait(self, happened: Any) -> None:
        """Wait until something is so, 20 s at most."""
        deadline = time.monotonic() + 20
        while not happened():
            self.assertLess(time.monotonic(), deadline, "it did not happen in time")
            time.sleep(0.05)

    def same_check(self, config: str) -> None:
        """Both say the same of the store, and nothing is quarantined."""
        ours = "".join(f"{line}\n" for line in admin.check(self.store()).out)
        self.assertEqual(self.reference("state", "check", "-c", config), ours)
        self.assertIn("quarantined: 0 record(s)", ours)


class OursReadByReferenceTests(ReferenceCase):
    """What we write, the reference understands."""

    def filled(self) -> Store:
        """Return a store in which we wrote something of every kind."""
        store = self.store()
        now = time.time()
        names = ("job", "Ünï/Weird Job", "con", "L" * 90)
        for name in names:
            for number in range(3):
                at = to_text(now - 100 + number)
                row = {
                    "outcome": "success",
                    "exit_code": 0,
                    "started_at": at,
                    "finished_at": at,
                    "ranAt": at,
                    "duration": 0.5,
                    "fail_reason": None,
                    "skip_reason": None,
                    "resources": None,
                }
                store.records.append(f"runs/{name}", row, keep=4)
        jobstate.kv_set(store, "job", "Ké", {"a": [1.5, None, "é"]})
        jobstate.cursor_advance(store, "job", "c", 5)
        jobstate.claim(store, "job", "k", 60.0)
        jobstate.artifact_put(store, "job", "n", b"payload")
        store.leases.acquire("slots/job", "elsewhere#1", 60.0)
        return store

    def test_check_and_migrate_schema(self) -> None:
        """Its inventory of our store is ours, and all our records are current to it."""
        self.filled()
        config = self.config()
        self.same_check(config)
        said = self.reference("state", "migrate-schema", "--dry-run", "-c", config)
        self.assertIn("0 unknown, 0 unreadable, 0 failed", said)

    def test_daemon_serves_our_records(self) -> None:
        """Its daemon has our runs in its history and our records in its inspector."""
        store = self.filled()
        names = ("job", "Ünï/Weird Job", "con", "L" * 90)
        jobs = [JOB.format(name=json.dumps(n), command="'true'", schedule=NEVER) for n in names]
        with self.daemon(self.config(*jobs)):
            for name in names:
                quoted = urllib.request.quote(name, safe="")  # type: ignore[attr-defined]
                self.wait(lambda q=quoted: (self.get(f"/jobs/{q}/runs") or {}).get("runs"))
                rows = self.get(f"/jobs/{quoted}/runs")["runs"]
                ours = store.records.read(f"runs/{name}")
                self.assertEqual(
                    sorted(row["finished_at"] for row in rows),
                    [row["finished_at"] for row in ours],
                )
                found = self.get(f"/state/records?stream=runs%2F{quoted}")["records"]
                self.assertEqual(found[::-1], ours)
            state = self.get("/state")
            self.assertEqual((state["enumerable"], state["quarantine"]), (True, 0))
            leases = {lease["name"]: lease for lease in state["leases"]}
            self.assertEqual(leases["slots/job"]["holder"], "elsewhere#1")
            kv = self.get("/state/documents?ns=kv%2Fjob")["documents"]
            self.assertEqual([document["key"] for document in kv], ["Ké"])
            cursor = self.get("/state/documents?ns=cursor%2Fjob")["documents"]
            self.assertEqual(cursor[0]["value"], 5)
            idem = self.get("/state/documents?ns=idem%2Fjob")["documents"]
            self.assertEqual(idem[0]["key"], "k")
        self.assertEqual(os.listdir(store.tree.path("quarantine")), [])

    def test_our_backup(self) -> None:
        """It restores an archive of ours to the same store."""
        store = self.filled()
        archive = f"{self.base}/b.tar.gz"
        admin.backup(self.settings, archive)
        before = contents(store.tree.root)
        shutil.rmtree(self.settings.path)
        self.reference("state", "restore", archive, "-c", self.config())
        self.assertEqual(contents(store.tree.root), before)


class ReferenceReadByUsTests(ReferenceCase):
    """What the reference writes, we understand."""

    def test_a_few_seconds_of_its_life(self) -> None:
        """We count and read what its daemon wrote, its archive restores to the same store."""
        script = "cronstable state set k v; cronstable artifact put n /etc/hostname"
        jobs = [
            JOB.format(name="tick", command="echo x", schedule="* * * * * * *"),
            JOB.format(name="Boot Job", command=json.dumps(script), schedule="@reboot"),
        ]
        config = self.config(*jobs)
        store = open_store(self.settings, RealClock())
        with self.daemon(config):
            self.wait(lambda: len(store.records.read("runs/tick")) >= 3)
            self.wait(lambda: store.records.read("runs/Boot Job"))
        self.same_check(config)
        self.assertEqual((jobstate.kv_get(store, "Boot Job", "k") or {})["value"], "v")
        (artifact,) = jobstate.artifact_list(store, "Boot Job")
        self.assertEqual(len(store.blobs.get(artifact.sha256) or b""), artifact.size)
        archive = f"{self.base}/b.tar.gz"
        self.reference("state", "backup", "-o", archive, "-c", config)
        elsewhere = StoreSettings(f"{self.base}/other", self.settings.deployment_id)
        self.assertEqual(admin.restore(elsewhere, archive, False, RealClock()).status, 0)
        self.assertEqual(contents(elsewhere.root), contents(self.settings.root))


class TogetherTests(ReferenceCase):
    """Both at once."""

    def test_one_stream(self) -> None:
        """Both append to one ledger and prune it; each one's newest stay, nothing is torn."""
        config = self.config(JOB.format(name="tick", command="'true'", schedule="* * * * * * *"))
        store = self.store()
        with self.daemon(config):
            for number in range(400):
                row = {"outcome": "success", "finished_at": to_text(time.time()), "k": number}
                store.records.append("runs/tick", row, keep=4)
                store.records.read("runs/tick", strict=True)
            self.wait(lambda: any("k" not in row for row in store.records.read("runs/tick")))
            rows = self.get("/state/records?stream=runs%2Ftick")["records"]
            self.assertLessEqual(len(rows), 4 + 2 * 8)
            self.assertIn(399, [row.get("k") for row in rows])
        self.same_check(config)

    def test_one_lease(self) -> None:
        """A slot that its daemon holds is denied to us, ours to it, and fences go on."""
        slot = "    concurrencyPolicy: Forbid\n    concurrencyScope: cluster\n"
        job = JOB.format(name="slot", command="sleep 1.5", schedule=NEVER) + slot
        store = self.store()
        mine = store.leases.acquire("slots/slot", "ours#1", 30.0)
        assert isinstance(mine, Held)
        with self.daemon(self.config(job)):
            self.assertEqual(self.start("slot"), 409)
            self.assertEqual(store.leases.read("slots/slot"), mine.lease)
            self.assertTrue(store.leases.release("slots/slot", "ours#1", mine.fence))
            self.assertLess(self.start("slot"), 300)
            self.wait(lambda: getattr(store.leases.read("slots/slot"), "fence", 0) == 2)
            self.assertIsInstance(store.leases.acquire("slots/slot", "ours#1", 5.0), Denied)
            self.wait(lambda: getattr(store.leases.read("slots/slot"), "expires_at", 1) == 0)
            again = store.leases.acquire("slots/slot", "ours#1", 5.0)
            self.assertEqual(getattr(again, "fence", None), 3)

    def start(self, job: str) -> int:
        """Start a job by hand; return the status of the answer."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/jobs/{job}/start", method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code


class GcTests(ReferenceCase):
    """What each would collect."""

    def test_same_streams(self) -> None:
        """Of an old store both would remove the same, but for pauses of jobs that are gone."""
        self.settings = StoreSettings(str(unpack_tree(f"{self.base}/v")), "Vectors", "shared")
        store = open_store(self.settings, RealClock())
        age(store, time.time() - 40 * 86_400)
        now = time.time()
        for days in (20, 0):
            known = Names(frozenset({"ok", "claimable"}), dags=frozenset({"etl"}))
            record = manifest("v1:x", "node-a", known, now - days * 86_400)
            store.records.append("manifests/node-a", record)
        config = self.config(JOB.format(name="catchup", command="'true'", schedule=NEVER))
        theirs = self.reference("state", "gc", "--dry-run", "-c", config).splitlines()
        own = Names(frozenset({"catchup"}), frozenset({socket.gethostname()}))
        ours = admin.gc(store, own, 604_800.0, True).out
        only_ours = {"  - paused%2Fmonitored", "  - paused%2Fpaused-job"}
        self.assertEqual(set(ours[1:]) - only_ours, set(theirs[1:]))
        self.assertGreater(len(theirs), 20)


def contents(root: str) -> dict[str, bytes]:
    """Return what a store consists of, lock files left out."""
    found = {}
    for area in ("records", "docs", "blobs", "leases"):
        for path in Path(root, area).rglob("*"):
            if path.is_file() and path.suffix != ".lock":
                found[str(path.relative_to(root))] = path.read_bytes()
    return found


def age(store: Store, when: float) -> None:
    """Let everything in a store be of C{when} (epoch seconds)."""
    for path in sorted(Path(store.tree.root).rglob("*"), reverse=True):
        if path.suffix == ".json":
            path = path.rename(path.with_name(f"{when:020.6f}{path.name[20:]}"))
        os.utime(path, (when, when))
    for stream in ("manifests%2Fnode-a", "manifests%2Fnode-b"):
        for path in Path(store.tree.root, "records", stream).glob("*.json"):
            envelope = json.loads(path.read_text())
            envelope["data"]["at"] = to_text(when)
            path.write_text(json.dumps(envelope))
