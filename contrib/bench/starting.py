"""
M3, M4, M7, M10: many starts at one instant and in each second, without a store and with one; starts
as another user.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import machine
import stamps
from daemons import EACH_SECOND, Daemon, Job, Scratch, Target, Watcher, idle_jobs
from table import Found

PERIOD = 20
"""Seconds between two bursts, so that a slow one is over before the next."""

ACCOUNT = "nobody"


def burst(target: Target, scratch: Scratch, quick: bool) -> Found:
    """M3: lateness in ms of a thousand starts at one instant, and CPU milliseconds per run."""
    return due_at_once(target, scratch, 100 if quick else 1000)


def due_at_once(target: Target, scratch: Scratch, count: int, store: Path | None = None) -> Found:
    """
    Measure C{count} starts at one instant; C{settled} is when the daemon has come to rest, in s.

    The second such instant is measured, when a store has its directories, and the third with
    somebody who asks for pages meanwhile.
    """
    log = open_log(scratch, f"burst-{target.name}")
    jobs = stamping(scratch, log, count, due_soon())
    with Daemon(target, scratch, jobs, store=store) as daemon:
        await_starts(log, count, await_instant(log) + PERIOD - 3)
        instant = await_instant(log)
        cpu = machine.cpu(daemon.pid)
        late = [at - instant for at, _ in await_starts(log, count, instant + PERIOD - 3)]
        settled = wait_until_quiet(daemon.pid) - instant
        spent = machine.cpu(daemon.pid) - cpu
        with Watcher(daemon, 0.005) as watcher:
            await_starts(log, count, await_instant(log) + PERIOD - 3)
    log.unlink()
    return {
        "first": 1e3 * min(late),
        "last": 1e3 * max(late),
        "cpu": 1e3 * spent / len(late),
        "gap": 1e3 * watcher.worst,
        "settled": settled,
    }


def burst_limit(scratch: Scratch, quick: bool) -> Found:
    """The same starts by a bare loop of posix_spawn, which reaps as it goes."""
    count = 100 if quick else 1000
    log = scratch.path / "burst-limit"
    begun, cpu = time.time(), sum(os.times()[:2])
    spawn_all([["/bin/sh", "-c", f"{scratch.stamp} {log} {number}"] for number in range(count)])
    spent = sum(os.times()[:2]) - cpu
    late = [at - begun for at, _ in stamps.parse(log.read_bytes())]
    log.unlink()
    return {"first": 1e3 * min(late), "last": 1e3 * max(late), "cpu": 1e3 * spent / count}


def steady(target: Target, scratch: Scratch, quick: bool) -> Found:
    """M4: 200 jobs due in each second."""
    return due_each_second(target, scratch, 8 if quick else 30)


def due_each_second(
    target: Target, scratch: Scratch, seconds: int, store: Path | None = None
) -> Found:
    """Measure 200 jobs due in each of some seconds."""
    jobs = 200
    log = scratch.path / f"steady-{target.name}"
    each_second = stamping(scratch, log, jobs, EACH_SECOND)
    with Daemon(target, scratch, each_second, store=store) as daemon:
        time.sleep(3)
        first = int(time.time()) + 2
        time.sleep(first - 0.1 - time.time())
        cpu = machine.cpu(daemon.pid)
        time.sleep(seconds)
        spent = machine.cpu(daemon.pid) - cpu
        time.sleep(2)
    missed, late = stamps.each_second(stamps.parse(log.read_bytes()), jobs, first, seconds)
    log.unlink()
    return {
        "missed": missed,
        "p99": 1e3 * stamps.share(late, 0.99),
        "cpu": 1e3 * spent / len(late),
    }


def demoted(target: Target, scratch: Scratch, quick: bool) -> Found:
    """M10: starts per second as another user; needs root, and is left out without."""
    if os.geteuid() != 0:
        return {}
    count = 100 if quick else 400
    log = open_log(scratch, f"demoted-{target.name}")
    jobs = [*stamping(scratch, log, count, due_soon(), user=ACCOUNT), *idle_jobs(10_000 - count)]
    with Daemon(target, scratch, jobs):
        instant = await_instant(log)
        starts = await_starts(log, count, instant + PERIOD - 2)
    log.unlink()
    return {"starts": len(starts) / (max(at for at, _ in starts) - instant)}


def demoted_limit(scratch: Scratch, quick: bool) -> Found:
    """The same by a bare loop around setpriv."""
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0 or setpriv is None:
        return {}
    count = 100 if quick else 400
    log = open_log(scratch, "demoted-limit")
    prefix = [setpriv, "--reuid", ACCOUNT, "--regid", "nogroup", "--init-groups"]
    begun = time.time()
    spawn_all(
        [[*prefix, "/bin/sh", "-c", f"{scratch.stamp} {log} {each}"] for each in range(count)]
    )
    spent = max(at for at, _ in stamps.parse(log.read_bytes())) - begun
    log.unlink()
    return {"starts": count / spent}


def stamping(scratch: Scratch, log: Path, count: int, schedule: str, **more: object) -> list[Job]:
    """Return jobs that stamp their start into C{log}."""
    return [
        {
            "name": f"stamp{number:05d}",
            "command": f"{scratch.stamp} {log} {number}",
            "schedule": schedule,
            **more,
        }
        for number in range(count)
    ]


def open_log(scratch: Scratch, name: str) -> Path:
    """Return a file that every user may append to."""
    log = scratch.path / name
    log.touch()
    log.chmod(0o666)
    return log


def due_soon() -> str:
    """Return the schedule of an instant every C{PERIOD} seconds."""
    return f"10-59/{PERIOD} * * * * * *"


def await_instant(log: Path) -> float:
    """Sleep until a second before the next such instant, drop older starts, and return it."""
    instant = (int(time.time() + 2 - 10) // PERIOD + 1) * PERIOD + 10
    time.sleep(instant - 1 - time.time())
    log.write_bytes(b"")
    return float(instant)


def await_starts(log: Path, count: int, until: float) -> Sequence[tuple[float, str]]:
    """Return the starts when all are there, or what is there at C{until}."""
    while time.time() < until:
        if log.stat().st_size >= count * stamps.SIZE:
            break
        time.sleep(0.02)
    return stamps.parse(log.read_bytes())


def wait_until_quiet(pid: int) -> float:
    """
    Return since when a process uses no CPU, once that was for 0.3 s, or now, after ten seconds.
    """
    last, since, end = machine.cpu(pid), time.time(), time.time() + 10
    while time.time() < min(since + 0.3, end):
        time.sleep(0.02)
        now = machine.cpu(pid)
        if now != last:
            last, since = now, time.time()
    return since


def spawn_all(commands: Sequence[Sequence[str]]) -> None:
    """Start each command with a pipe and a session of its own; reap them all."""
    pipes = []
    live = 0
    for command in commands:
        read, write = os.pipe2(os.O_CLOEXEC)
        actions = [(os.POSIX_SPAWN_DUP2, write, 2)]
        os.posix_spawn(command[0], command, os.environ, file_actions=actions, setsid=True)
        os.close(write)
        pipes.append(read)
        live += 1
        while live and os.waitpid(-1, os.WNOHANG)[0]:
            live -= 1
    for _ in range(live):
        os.waitpid(-1, 0)
    for read in pipes:
        os.close(read)
