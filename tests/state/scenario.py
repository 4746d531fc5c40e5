"""A little life of a store, what it was told to be done, and what must be so afterwards."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from cronstable.state import jobstate
from cronstable.state.documents import Change, Leave, Put, Remove
from cronstable.state.failpoints import POINTS
from cronstable.state.gc import sweep
from cronstable.state.leases import Held
from cronstable.state.store import Store
from tests.state.support import StandingClock, disk_store

Tell = Callable[[str, Any], object]
LONG = "runs/" + "L" * 90


def perform(store: Store, clock: StandingClock, tell: Tell) -> None:
    """Do a bit of everything; C{tell} what has returned."""
    for number in range(4):
        clock.advance(1)
        store.records.append("runs/j", {"k": number}, keep=2)
        tell("append", number)
    store.records.prune("runs/j", 2)
    store.records.append("logs/gone", {})
    store.records.append(LONG, {"k": 0})
    tell("long", 0)
    for number in range(2):
        store.documents.mutate("kv/s", "k", lambda body, n=number: Put({"n": n}))
        tell("document", number)
    store.documents.mutate("kv/s", "gone", lambda body: Put({"n": 0}))
    tell("gone", 0)
    store.documents.mutate("kv/s", "gone", lambda body: Remove())
    tell("gone", 1)
    held = store.leases.acquire("slots/j", "a", 10.0)
    assert isinstance(held, Held)
    tell("fence", held.fence)
    store.leases.release("slots/j", "a", held.fence)
    held = store.leases.acquire("slots/j", "b", 10.0)
    assert isinstance(held, Held)
    tell("fence", held.fence)
    artifact = jobstate.artifact_put(store, "s", "n", b"payload" * 100)
    tell("artifact", artifact.sha256)
    broken = store.tree.path("records", "runs%2Fj", "0000000000001.000000-x-1.json")
    store.tree.files.create(broken, b"{", True)
    store.records.read("runs/j")
    store.leases.acquire("dagadvance/d/r", "a", 10.0)
    clock.advance(10_000)
    store.blobs.put(b"orphan")
    store.tree.files.touch(store.blobs.path(_digest(store, b"orphan")), 1.0)
    keep = {"artifacts/": frozenset("s"), "logs/": frozenset[str]()}
    sweep(store, keep, clock.wall - 1000)
    tell("swept", 0)


def told(tell_list: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the last that was told of each kind."""
    return dict(tell_list)


def complaints(store: Store, said: dict[str, Any], clock: StandingClock) -> list[str]:
    """Return what is not as it must be in a store that was cut anywhere in L{perform}."""
    wrong = []
    rows = [data["k"] for data in store.records.read("runs/j", strict=True)]
    if rows != sorted(set(rows)):
        wrong.append(f"rows out of order: {rows}")
    if "append" in said and said["append"] not in rows:
        wrong.append(f"row {said['append']} was acknowledged, there are {rows}")
    if "long" in said and store.records.latest(LONG) is None:
        wrong.append("the acknowledged row of the long name is gone")
    body = store.documents.read("kv/s", "k")
    if "document" in said and (body is None or body["n"] < said["document"]):
        wrong.append(f"document {said['document']} was acknowledged, there is {body}")
    if said.get("gone") == 1 and store.documents.read("kv/s", "gone") is not None:
        wrong.append("the removed document is back")
    wrong += _lease_complaints(store, said, clock)
    found = jobstate.artifact_find(store, "s", "n")
    if "artifact" in said and found is None:
        wrong.append("the acknowledged artifact is gone")
    if found is not None and store.blobs.get(found.sha256) != b"payload" * 100:
        wrong.append("an artifact has no payload")
    store.records.append("runs/j", {"k": 99})
    if store.records.latest("runs/j") != {"k": 99}:
        wrong.append("a new row is not the newest")
    store.documents.mutate("kv/s", "k", _touch)
    return wrong


def _lease_complaints(store: Store, said: dict[str, Any], clock: StandingClock) -> list[str]:
    clock.advance(1_000_000)
    held = store.leases.acquire("slots/j", "c", 10.0)
    if not isinstance(held, Held):
        return [f"the lease cannot be had: {held}"]
    if held.fence <= said.get("fence", 0):
        return [f"fence {said['fence']} was acknowledged, now {held.fence} is given"]
    return []


def _touch(body: dict[str, Any] | None) -> Change:
    return Leave() if body is None else Put(body)


def _digest(store: Store, data: bytes) -> str:
    return store.blobs.put(data)


def main(base: str) -> None:
    """Let a process die at each point, in a directory of that name; tell on stdout."""
    for point in POINTS:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            _die_at(point, os.path.join(base, point), write)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as lines:
            said = lines.read().replace("\n", "|")
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(f"{point} {status} {said}", flush=True)


def _die_at(point: str, path: str, write: int) -> None:
    clock = StandingClock()
    store = disk_store(path, clock)

    def at(passed: str) -> None:
        if passed == point:
            os.kill(os.getpid(), signal.SIGKILL)

    store.tree.at = at
    perform(store, clock, lambda what, value: os.write(write, f"{what} {value}\n".encode()))


if __name__ == "__main__":
    main(sys.argv[1])
