"""Several processes on one store at the same time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state.documents import Change, Put
from cronstable.state.leases import Held
from cronstable.state.store import Store
from tests.state.support import disk_store

PROCESSES = 3
ROUNDS = 60


class RealClock:
    """The clock of this host."""

    seconds = staticmethod(time.monotonic)
    now = staticmethod(time.time)
    awake_and_asleep = staticmethod(time.monotonic)


def life(path: str, number: int) -> None:
    """Append, count and take turns; print the fences that were held."""
    store = disk_store(path, RealClock(), fsync="never")
    me = f"p{number}"
    fences = []
    for turn in range(ROUNDS):
        store.records.append("all", {"by": me, "turn": turn})
        store.records.append("few", {"by": me, "turn": turn}, keep=3)
        store.records.append("named", {"name": f"n{turn % 2}", "turn": turn}, newest_per="name")
        store.documents.mutate("ns", "count", _count)
        fences += _take_turn(store, me)
        store.records.read("few")
    print(json.dumps(fences))


def _count(body: dict[str, Any] | None) -> Change:
    return Put({"n": (body or {"n": 0})["n"] + 1})


def _take_turn(store: Store, me: str) -> list[int]:
    """Hold the lease for a moment, if it is free, and prove that nobody else does meanwhile."""
    held = store.leases.acquire("turn", me, 30.0)
    if not isinstance(held, Held):
        return []
    alone = os.open(store.tree.path("tmp", "alone"), os.O_CREAT | os.O_EXCL)
    os.close(alone)
    os.unlink(store.tree.path("tmp", "alone"))
    store.leases.release("turn", me, held.fence)
    return [held.fence]


class SharingTests(SynchronousTestCase):
    """What holds when nobody knows of the others."""

    def test_nothing_is_lost(self) -> None:
        """No record, count or fence of any process is lost or given twice, and nothing is torn."""
        path = os.path.abspath(self.mktemp())
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.state.test_sharing", path, str(number)],
                cwd=Path(__file__).parents[2],
                stdout=subprocess.PIPE,
            )
            for number in range(PROCESSES)
        ]
        outputs = [process.communicate(timeout=60)[0] for process in processes]
        self.assertEqual([process.returncode for process in processes], [0] * PROCESSES)
        store = disk_store(path, RealClock())
        rows = store.records.read("all", strict=True)
        for number in range(PROCESSES):
            turns = [row["turn"] for row in rows if row["by"] == f"p{number}"]
            self.assertEqual(turns, list(range(ROUNDS)))
        self.assertEqual(store.documents.read("ns", "count"), {"n": PROCESSES * ROUNDS})
        fences = [fence for output in outputs for fence in json.loads(output)]
        self.assertEqual(sorted(fences), list(range(1, len(fences) + 1)))
        self.assertLessEqual(len(store.records.read("few")), 3 + 7 * PROCESSES)
        newest = {row["name"]: row["turn"] for row in store.records.read("named")}
        self.assertEqual(newest, {"n0": ROUNDS - 2, "n1": ROUNDS - 1})
        for area in ("quarantine", "tmp"):
            self.assertEqual(os.listdir(store.tree.path(area)), [])


if __name__ == "__main__":
    life(sys.argv[1], int(sys.argv[2]))
