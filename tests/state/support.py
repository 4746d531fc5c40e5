"""What the tests of the store share: a clock that stands, stores in memory and on disk, vectors."""

from __future__ import annotations

import json
import logging
import os
import tarfile
from pathlib import Path
from typing import Any

import attrs

from cronstable.state.failpoints import Failpoint, passed
from cronstable.state.files import Files
from cronstable.state.memory import MemoryFiles
from cronstable.state.store import Store, StoreSettings, open_store

VECTORS = Path(__file__).parent.parent / "vectors" / "store"
NOW = 1_767_225_600.0

# Warnings are asserted where they matter; elsewhere they are part of what is tried.
logging.getLogger("cronstable.state").addHandler(logging.NullHandler())


@attrs.define
class StandingClock:
    """A clock that shows what it is set to."""

    wall: float = NOW
    monotonic: float = 1000.0
    asleep: float = 0.0

    def seconds(self) -> float:
        return self.monotonic

    def now(self) -> float:
        return self.wall

    def awake_and_asleep(self) -> float:
        return self.monotonic + self.asleep

    def advance(self, seconds: float) -> None:
        self.wall += seconds
        self.monotonic += seconds


def vector(name: str) -> Any:
    """Return the JSON of one file of vectors."""
    return json.loads((VECTORS / name).read_text("utf-8"))


def memory_store(
    clock: StandingClock | None = None,
    files: Files | None = None,
    *,
    fsync: Any = "always",
    topology: str = "auto",
    mounts: str = "",
    at: Failpoint = passed,
    start: bool = True,
) -> Store:
    """Return a store on a file system in memory."""
    clock = clock or StandingClock()
    settings = StoreSettings("/state", None, topology, fsync)
    store = open_store(settings, clock, files=files or MemoryFiles(clock.now), at=at)
    store.mounts = mounts
    if start:
        store.start()
    return store


def reopened(store: Store, files: Files | None = None) -> Store:
    """Return the store as another process would open it."""
    clock = store.tree.clock
    assert isinstance(clock, StandingClock)
    return memory_store(clock, files or store.tree.files, fsync=store.tree.fsync)


def disk_store(path: str | Path, clock: Any = None, **settings: Any) -> Store:
    """Return a started store in a directory."""
    wanted = StoreSettings(os.path.abspath(path), **settings)
    store = open_store(wanted, clock or StandingClock())
    store.mounts = ""
    store.start()
    return store


def unpack_tree(into: str | Path) -> Path:
    """Unpack the store that two reference daemons wrote; return its state path."""
    with tarfile.open(VECTORS / "store-tree.tar.gz") as archive:
        archive.extractall(into, filter="data")
    return Path(into) / "store-tree"
