"""M5, M6: large answers beside small ones, many readers of one job, and a reload."""

from __future__ import annotations

import json
import selectors
import signal
import socket
import statistics
import time
from collections.abc import Callable

import machine
import stamps
from daemons import EACH_SECOND, NEVER, Daemon, Scratch, Target, Watcher, idle_jobs
from starting import stamping
from table import Found

COLD = 1.15
"""Seconds after which an answer may not come from memory any more."""

LINES = 20
"""Lines in each second of the job that is read by many."""


def pages(target: Target, scratch: Scratch, quick: bool) -> Found:
    """M5: milliseconds of the large answers, and of others meanwhile."""
    found = {}
    asked = 3 if quick else 6
    with Daemon(target, scratch, idle_jobs(1000)) as daemon:
        found["jobs_1000"] = cold(daemon, "/jobs", asked)
    with Daemon(target, scratch, idle_jobs(10_000)) as daemon:
        for name in ("jobs", "metrics"):
            found[name] = cold(daemon, f"/{name}", asked)
            found[f"{name}_stall"] = stall(daemon, f"/{name}", asked)
        tag = daemon.get("/jobs")[2].get("etag")
        if tag is not None:
            found["unchanged"] = cold(daemon, "/jobs", asked, {"If-None-Match": tag})
    found.update(readers(target, scratch, 50 if quick else 500, 5 if quick else 10))
    return found


def cold(daemon: Daemon, path: str, asked: int, headers: dict[str, str] | None = None) -> float:
    """Return the median of requests that are apart, in milliseconds."""
    connection = daemon.connect()
    took = []
    for _ in range(asked):
        time.sleep(COLD)
        took.append(daemon.get(path, connection, headers)[0])
    connection.close()
    return 1e3 * statistics.median(took)


def stall(daemon: Daemon, path: str, asked: int) -> float:
    """Return the median of the slowest other answers while C{path} is made, in milliseconds."""
    worst = []
    for _ in range(asked):
        time.sleep(COLD)
        with Watcher(daemon) as watcher:
            daemon.get(path)
            time.sleep(0.05)
        worst.append(watcher.worst)
    return 1e3 * statistics.median(worst)


def readers(target: Target, scratch: Scratch, count: int, seconds: int) -> Found:
    """Many follow one job's lines: the slowest other answer in ms, CPU us per line and reader."""
    command = f"while :; do echo {'x' * 60}; sleep {1 / LINES}; done"
    job = {"name": "chatty", "command": command, "schedule": NEVER, "captureStdout": True}
    with Daemon(target, scratch, [job]) as daemon:
        daemon.get("/jobs/chatty/start", method="POST")
        time.sleep(0.5)
        with selectors.DefaultSelector() as selector:
            for _ in range(count):
                follower = socket.create_connection(("127.0.0.1", daemon.port))
                follower.sendall(b"GET /jobs/chatty/logs?follow=1 HTTP/1.1\r\nHost: x\r\n\r\n")
                selector.register(follower, selectors.EVENT_READ)
            drain(selector, 2)
            cpu = machine.cpu(daemon.pid)
            with Watcher(daemon, 0.02) as watcher:
                lines = drain(selector, seconds)
            spent = machine.cpu(daemon.pid) - cpu
            for key in tuple(selector.get_map().values()):
                key.fileobj.close()  # type: ignore[union-attr]
    if not lines:
        return {}
    return {"readers_stall": 1e3 * watcher.worst, "readers_cpu": 1e6 * spent / lines}


def drain(selector: selectors.BaseSelector, seconds: float) -> int:
    """Read all that comes for some seconds; return how many lines of the job that was."""
    end, lines = time.monotonic() + seconds, 0
    while (left := end - time.monotonic()) > 0:
        for key, _ in selector.select(left):
            data = key.fileobj.recv(65_536)  # type: ignore[union-attr]
            lines += data.count(b"x" * 60)
            if not data:
                selector.unregister(key.fileobj)
    return lines


def reload(target: Target, scratch: Scratch, quick: bool) -> Found:
    """M6: one job is added to ten thousand."""
    log = scratch.path / f"probe-{target.name}"
    jobs = [*stamping(scratch, log, 1, EACH_SECOND), *idle_jobs(10_000)]
    with Daemon(target, scratch, jobs) as daemon:
        time.sleep(3)
        begun = time.time()
        daemon.configure([*jobs, {"name": "new", "command": "true", "schedule": NEVER}])
        with Watcher(daemon) as watcher:
            asked = time.perf_counter()
            daemon.signal(signal.SIGHUP)
            visible = await_true(lambda: daemon.get("/jobs/new")[1] == 200) - asked
            time.sleep(1.5)
        late = [at % 1 for at, _ in stamps.parse(log.read_bytes()) if at >= begun]
        seconds = int(time.time()) - int(begun)
    log.unlink()
    # A second that passed without a start was late for as long as the next start took.
    lost = max(0, seconds - len(late))
    return {"visible": visible, "late": 1e3 * (max(late) + lost), "gap": 1e3 * watcher.worst}


def await_true(true: Callable[[], bool]) -> float:
    """Return the time (of perf_counter) at which C{true} was so; asks 50 times a second."""
    while not true():
        time.sleep(0.02)
    return time.perf_counter()


def page_limit(scratch: Scratch, quick: bool) -> Found:
    """Copying the bytes of the list from one process's socket to another's, and nothing else."""
    size = len(json.dumps({"name": "idle00000", "schedule": NEVER})) * 10_000 * 6
    ours, theirs = socket.socketpair()
    body = b"x" * size
    took = []
    for _ in range(5):
        begun = time.perf_counter()
        left = memoryview(body)
        ours.setblocking(False)
        got = 0
        while got < size:
            if left:
                try:
                    left = left[ours.send(left) :]
                except BlockingIOError:
                    pass
            got += len(theirs.recv(1 << 20))
        took.append(time.perf_counter() - begun)
    ours.close()
    theirs.close()
    return {"jobs": 1e3 * statistics.median(took)}
