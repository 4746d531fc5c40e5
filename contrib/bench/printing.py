"""M8: jobs that print a lot."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import machine
import stamps
from daemons import EACH_SECOND, NEVER, Daemon, Job, Scratch, Target
from starting import stamping
from table import Found

LONG_LINE = "x" * 99


def output(target: Target, scratch: Scratch, quick: bool) -> Found:
    """MB/s of one job that prints long or short lines; memory and lateness while 50 print."""
    size = 20 if quick else 200
    long = f"yes {LONG_LINE} | head -c {size}000000"
    short = "yes | head -c 10000000"
    several = f"yes {LONG_LINE} | head -c 5000000"
    return {
        "long": size / one(target, scratch, long),
        "short": 10 / one(target, scratch, short),
        **many(target, scratch, several, 10 if quick else 50),
    }


def output_limit(scratch: Scratch, quick: bool) -> Found:
    """Reading the same from a pipe and counting its lines, and nothing else."""
    size = 20 if quick else 200
    return {
        "long": size / counted(f"yes {LONG_LINE} | head -c {size}000000"),
        "short": 10 / counted("yes | head -c 10000000"),
    }


def one(target: Target, scratch: Scratch, command: str) -> float:
    """Return the seconds from the order to start a printing job to the end of its last process."""
    done = scratch.path / "done"
    jobs = [printing("job", f"{command}; touch {done}")]
    with Daemon(target, scratch, jobs, quiet=True) as daemon:
        time.sleep(1)
        begun = time.perf_counter()
        daemon.get("/jobs/job/start", method="POST")
        await_files([done])
        took = time.perf_counter() - begun
    done.unlink()
    return took


def many(target: Target, scratch: Scratch, command: str, count: int) -> Found:
    """Return what many printing jobs at once do to memory and to a job of each second."""
    log = scratch.path / f"probe-{target.name}"
    done = [scratch.path / f"done{number}" for number in range(count)]
    jobs = [printing(f"job{n}", f"{command}; touch {file}") for n, file in enumerate(done)]
    jobs += stamping(scratch, log, 1, EACH_SECOND)
    with Daemon(target, scratch, jobs, quiet=True) as daemon:
        time.sleep(3)
        base = machine.memory(daemon.pid)[0]
        machine.reset_peak(daemon.pid)
        begun = time.time()
        for number in range(count):
            daemon.get(f"/jobs/job{number}/start", method="POST")
        await_files(done)
        time.sleep(1.2)
        growth = machine.memory(daemon.pid)[1] - base
        late = [at % 1 for at, _ in stamps.parse(log.read_bytes()) if at >= begun]
    for file in (*done, log):
        file.unlink()
    return {"growth": growth, "late": 1e3 * max(late)}


def printing(name: str, command: str) -> Job:
    """Return a job whose output is captured."""
    return {
        "name": name,
        "command": command,
        "schedule": NEVER,
        "captureStdout": True,
        "saveLimit": 1000,
    }


def counted(command: str) -> float:
    """Return the seconds that reading and counting takes a loop that does nothing else."""
    begun = time.perf_counter()
    with subprocess.Popen(["/bin/sh", "-c", command], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while block := process.stdout.read(65_536):
            block.count(b"\n")
    return time.perf_counter() - begun


def await_files(files: list[Path]) -> None:
    """Wait until all are there, two minutes at most."""
    end = time.monotonic() + 120
    while not all(file.exists() for file in files):
        if time.monotonic() > end:
            raise RuntimeError("the jobs did not end")
        time.sleep(0.005)
