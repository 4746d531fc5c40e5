"""M7: what it costs to keep what happened, and to have it back."""

from __future__ import annotations

import json
import os
import statistics
import time
from pathlib import Path

import starting
import store as bare_store
from daemons import NEVER, Daemon, Job, Scratch, Target
from table import Found

STREAMS = 100
EPOCHS_APART = 600
"""Seconds between two runs of a ledger."""


def kept(target: Target, scratch: Scratch, quick: bool) -> Found:
    """M7: a burst and a steady load with a store, a restart with full ledgers, appends."""
    return {
        **loads(target, scratch, quick),
        **restart(target, scratch, quick),
        **(appends("store", scratch) if target.name == "ours" else {}),
    }


def kept_limit(scratch: Scratch, quick: bool) -> Found:
    """A bare loop that writes, flushes and renames."""
    return appends("bare", scratch)


def loads(target: Target, scratch: Scratch, quick: bool) -> Found:
    """Measure starts while each run is recorded, and how many times the CPU without that it is."""
    count, seconds = (50, 8) if quick else (500, 30)
    burst = starting.due_at_once(target, scratch, count, scratch.new_store())
    steady = starting.due_each_second(target, scratch, seconds, scratch.new_store())
    without = starting.due_each_second(target, scratch, seconds)
    return {
        "burst_cpu": burst["cpu"],
        "settled": burst["settled"],
        "steady_cpu": steady["cpu"],
        "steady_p99": steady["p99"],
        "share": steady["cpu"] / without["cpu"],
    }


def restart(target: Target, scratch: Scratch, quick: bool) -> Found:
    """Measure a start until history is back, and trends of ledgers that were not read before."""
    jobs, records = (20, 100) if quick else (200, 1000)
    idle: list[Job] = [
        {"name": name, "command": "/bin/true", "schedule": NEVER} for name in names(jobs)
    ]
    store = scratch.path / f"ledgers-{target.name}"
    if not store.exists():
        fill(store, jobs, records)
    with Daemon(target, scratch, idle, store=store) as daemon:
        begun = time.perf_counter()
        while daemon.json(f"/jobs/{names(jobs)[-1]}/runs")["runs"] == []:
            time.sleep(0.01)
        back = daemon.ready + time.perf_counter() - begun
        time.sleep(1)
        connection = daemon.connect()
        took = [daemon.get(f"/jobs/{name}/trends", connection)[0] for name in names(jobs)[:50]]
        connection.close()
    return {"restart": back, "trends": 1e3 * statistics.median(took)}


def appends(who: str, scratch: Scratch) -> Found:
    """Return how many rows a second the core of the store, or a bare loop, writes at its best."""
    base = str(scratch.path / "appends")
    rounds = [bare_store.appends(base, STREAMS, "always")[who][0] for _ in range(5)]
    return {"appends": bare_store.WRITES / min(rounds)}


def names(jobs: int) -> list[str]:
    """Return the names of jobs with ledgers."""
    return [f"kept{number:04d}" for number in range(jobs)]


def fill(store: Path, jobs: int, records: int) -> None:
    """Write ledgers as docs/store-format.md specifies them."""
    now = time.time()
    row = {**bare_store.ROW, "duration": 0.1}
    for job in names(jobs):
        stream = store / "default" / "records" / f"runs%2F{job}"
        stream.mkdir(parents=True, mode=0o700)
        for number in range(records):
            epoch = now - (records - number) * EPOCHS_APART
            at = time.strftime("%Y-%m-%dT%H:%M:%S.000000+00:00", time.gmtime(epoch))
            row.update(started_at=at, finished_at=at, ranAt=at)
            text = json.dumps({"data": row, "schemaVersion": "v1"}, sort_keys=True)
            (stream / f"{epoch:020.6f}-000000000001-{number:012d}.json").write_text(text)
    os.sync()
