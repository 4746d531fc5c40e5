"""What the system tells of processes, from outside (Linux: /proc)."""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


def cpu(pid: int) -> float:
    """Return the CPU seconds of a process, its children left out; good to 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def fine_cpu(pid: int) -> float:
    """Return the CPU seconds of the live threads of a process; good to a microsecond."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text()
            total += int(text.split()[0])
    return total / 1e9


def wakeups(pid: int) -> int:
    """Return how often the threads of a process went to sleep by themselves."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{pid}/task/{thread}/status").read_text()
            total += int(_field(text, "voluntary_ctxt_switches"))
    return total


def memory(pid: int) -> tuple[float, float]:
    """Return resident megabytes, now and at the most since the peak was reset."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(_field(text, "VmRSS")) / 1024, int(_field(text, "VmHWM")) / 1024


def reset_peak(pid: int) -> None:
    """Let the most memory count from now on."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def busy() -> float:
    """Return the CPU seconds that the whole machine has spent so far."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICK


def wait_for_calm(limit: float) -> None:
    """Wait until half a second passes in which the machine is mostly idle, or C{limit} seconds."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        before = busy()
        time.sleep(0.5)
        if busy() - before < 0.2:
            return


def _field(text: str, name: str) -> str:
    match = re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE)
    if match is None:
        raise ValueError(f"/proc tells no {name}")
    return match[1]
