"""M1, M2, M9: what it costs to start, to be there, and to ask the tool something."""

from __future__ import annotations

import json
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import machine
from daemons import NEVER, Daemon, Scratch, Target, environment, idle_jobs, yaml
from table import Found

TWISTED = "from twisted.internet import reactor; import twisted.web.server"
LIBYAML = "import sys, yaml; yaml.load(open(sys.argv[1]), yaml.CSafeLoader)"


def start(target: Target, scratch: Scratch, quick: bool) -> Found:
    """M1: seconds to the first answer, and memory a second later, by number of jobs."""
    found = {}
    for jobs in (10, 1000, 10_000):
        with Daemon(target, scratch, idle_jobs(jobs)) as daemon:
            daemon.get("/jobs")
            time.sleep(1)
            found[f"ready_{jobs}"] = daemon.ready
            found[f"rss_{jobs}"] = machine.memory(daemon.pid)[0]
    return found


def start_limit(scratch: Scratch, quick: bool) -> Found:
    """Importing Twisted's reactor and server; parsing the file of 10,000 jobs by libyaml."""
    config = scratch.path / "big.yaml"
    config.write_text(yaml(idle_jobs(10_000), 1))
    return {
        "ready_10": timed([sys.executable, "-c", TWISTED]),
        "ready_10000": timed([sys.executable, "-c", LIBYAML, str(config)]),
    }


def rest(target: Target, scratch: Scratch, quick: bool) -> Found:
    """M2: CPU milliseconds and wake-ups per minute with ten jobs that are not due."""
    seconds = 60 if quick else 120
    with Daemon(target, scratch, idle_jobs(10)) as daemon:
        time.sleep(5)
        cpu, wakeups = machine.fine_cpu(daemon.pid), machine.wakeups(daemon.pid)
        time.sleep(seconds)
        minutes = seconds / 60
        return {
            "cpu": 1e3 * (machine.fine_cpu(daemon.pid) - cpu) / minutes,
            "wakeups": (machine.wakeups(daemon.pid) - wakeups) / minutes,
        }


def tool(target: Target, scratch: Scratch, quick: bool) -> Found:
    """M9: milliseconds of the command line tool, also from within a job, and writes of that job."""
    config = scratch.path / "check.yaml"
    config.write_text(yaml(idle_jobs(1000), 1))
    check = [target.tool, "--validate-config", "-c", str(config)]
    return {
        "version": 1e3 * statistics.median(timed([target.tool, "--version"]) for _ in range(9)),
        "validate": 1e3 * statistics.median(timed(check) for _ in range(3)),
        **in_a_job(target, scratch),
    }


def in_a_job(target: Target, scratch: Scratch) -> Found:
    """Return what contrib/bench/inside.py finds in a job of the daemon."""
    out = scratch.path / f"inside-{target.name}"
    out.unlink(missing_ok=True)
    script = str(Path(__file__).with_name("inside.py"))
    command = shlex.join([sys.executable, script, str(out), target.tool])
    job = {"name": "inside", "command": command, "schedule": NEVER}
    with Daemon(target, scratch, [job], store=scratch.new_store()) as daemon:
        daemon.get("/jobs/inside/start", method="POST")
        end = time.monotonic() + 60
        while not out.exists():
            if time.monotonic() > end:
                raise RuntimeError(f"{target.name}: a job could not use its state")
            time.sleep(0.05)
    found: Found = json.loads(out.read_text())
    return found


def tool_limit(scratch: Scratch, quick: bool) -> Found:
    """Starting and ending Python without a site."""
    bare = [sys.executable, "-I", "-S", "-c", ""]
    return {"version": 1e3 * statistics.median(timed(bare) for _ in range(9))}


def timed(command: list[str], variables: Mapping[str, str] | None = None) -> float:
    """Return the wall seconds of a command, which has to succeed."""
    variables = environment() if variables is None else variables
    begun = time.perf_counter()
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=variables
    )
    return time.perf_counter() - begun
