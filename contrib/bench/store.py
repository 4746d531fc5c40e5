"""
Measures appends and reads of the store beside bare loops that do the same system calls.

Both write one small record per turn into the same number of directories, with the same flushes;
rounds alternate, and the best of each is shown, so that a noisy machine spoils neither.

Usage: python contrib/bench/store.py [DIRECTORY] [ROUNDS], from the root of the repository;
DIRECTORY (default: a temporary one) tells which disk is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial

from cronstable.commands.hosttime import HostTime
from cronstable.state.encoding import enveloped
from cronstable.state.store import Store, StoreSettings, open_store
from cronstable.state.tree import FsyncMode, sync_of

WRITES = 500
ROW = {
    "outcome": "success",
    "exit_code": 0,
    "started_at": "2026-01-02T03:04:05.678901+00:00",
    "finished_at": "2026-01-02T03:04:06.789012+00:00",
    "ranAt": "2026-01-02T03:04:06.789012+00:00",
    "duration": 1.110111,
    "fail_reason": None,
    "skip_reason": None,
    "resources": None,
}
RAW = enveloped(ROW)
MODES: tuple[FsyncMode, ...] = ("never", "rename", "always")


def bare(base: str, streams: int, mode: FsyncMode) -> None:
    """Write, flush and rename as the store does, and nothing else."""
    sync = sync_of(mode, acknowledges=True)
    for turn in range(WRITES):
        temporary = f"{base}/tmp/{turn}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(descriptor, RAW)
        if sync.file:
            os.fsync(descriptor)
        os.close(descriptor)
        directory = f"{base}/{turn % streams}"
        os.replace(temporary, f"{directory}/{turn}.json")
        if sync.directory:
            descriptor = os.open(directory, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


def timed(act: Callable[[], object]) -> tuple[float, float]:
    """Return wall and CPU seconds of C{act}."""
    wall, cpu = time.perf_counter(), time.process_time()
    act()
    return time.perf_counter() - wall, time.process_time() - cpu


def appends(base: str, streams: int, mode: FsyncMode) -> dict[str, tuple[float, float]]:
    """Return wall and CPU seconds of one round of each."""
    shutil.rmtree(base, ignore_errors=True)
    for name in ("tmp", *map(str, range(streams))):
        os.makedirs(f"{base}/bare/{name}")
    store = opened(f"{base}/store", mode)
    for stream in range(streams):
        store.records.append(f"runs/{stream}", ROW)

    def ours() -> None:
        for turn in range(WRITES):
            store.records.append(f"runs/{turn % streams}", ROW)

    return {"bare": timed(lambda: bare(f"{base}/bare", streams, mode)), "store": timed(ours)}


def opened(path: str, mode: FsyncMode) -> Store:
    """Return a started store."""
    store = open_store(StoreSettings(path, fsync=mode), HostTime())
    store.start()
    return store


def reads(base: str) -> dict[str, tuple[float, float]]:
    """Return wall and CPU seconds of reading a ledger of 1,000 rows."""
    shutil.rmtree(base, ignore_errors=True)
    store = opened(f"{base}/store", "never")
    for _ in range(1000):
        store.records.append("runs/j", ROW)
    directory = store.tree.path("records", "runs%2Fj")

    def plain() -> None:
        for name in sorted(os.listdir(directory)):
            with open(f"{directory}/{name}", "rb") as file:
                json.load(file)

    return {"bare": timed(plain), "store": timed(lambda: store.records.read("runs/j"))}


def best(measure: Callable[[], dict[str, tuple[float, float]]], rounds: int) -> str:
    """Return the least of each column over some rounds, in microseconds, as text."""
    found = [measure() for _ in range(rounds)]
    cells = []
    for who in ("bare", "store"):
        wall, cpu = (min(round_[who][part] for round_ in found) for part in (0, 1))
        cells.append(f"{who}: wall {wall * 1e6:8.0f} us, CPU {cpu * 1e6:8.0f} us")
    return "; ".join(cells)


def main(base: str, rounds: int) -> None:
    """Print what was measured."""
    for streams in (1, 100):
        for mode in MODES:
            what = f"{WRITES} appends to {streams} stream(s), fsync {mode}"
            print(f"{what:45}", best(partial(appends, base, streams, mode), rounds))
    print(f"{'1,000 rows read':45}", best(lambda: reads(base), rounds))
    shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", nargs="?", default=tempfile.gettempdir())
    parser.add_argument("rounds", nargs="?", type=int, default=5)
    options = parser.parse_args()
    main(os.path.join(options.directory, f"store-{os.getpid()}"), options.rounds)
