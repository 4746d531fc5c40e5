"""What the system tells of processes: children, zombies, descriptors, memory; and waiting."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from twisted.internet import task
from twisted.internet.defer import Deferred, DeferredList

T = TypeVar("T")


async def until(what: str, look: Callable[[], T | None], timeout: float = 15.0) -> T:
    """Return what C{look} returns as soon as that is true; fail after C{timeout} seconds."""
    from twisted.internet import reactor

    clock: Any = reactor
    end = clock.seconds() + timeout
    while True:
        found = look()
        if found:
            return found
        if clock.seconds() >= end:
            raise AssertionError(f"waited {timeout} s for {what}")
        await task.deferLater(clock, 0.02)


async def together(*work: Coroutine[Any, Any, object]) -> None:
    """Do it all at once; when all of it is over, fail as the first that failed."""
    ends = await DeferredList(list(map(Deferred.fromCoroutine, work)), consumeErrors=True)
    for succeeded, failure in ends:
        if not succeeded:
            failure.raiseException()


async def written(path: Path, timeout: float = 15.0) -> str:
    """Return the text of C{path} once it is there and ends in a newline."""

    def look() -> str:
        text = path.read_text("utf-8", "replace") if path.exists() else ""
        return text if text.endswith("\n") else ""

    return await until(f"the file {path.name}", look, timeout)


def children(pid: int) -> list[int]:
    """Return the children of all threads of C{pid}."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        found.extend(map(int, (thread / "children").read_text().split()))
    return found


def defunct(pid: int) -> list[int]:
    """Return the children of C{pid} that have ended and were not waited for."""
    return [child for child in children(pid) if _state(child) in ("Z", "X")]


def exists(pid: int) -> bool:
    """Return whether C{pid} is a process that has not ended."""
    return _state(pid) not in ("", "Z", "X")


def command_line(pid: int) -> list[str]:
    """Return the arguments of C{pid}, none if it has ended."""
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return line.decode("utf-8", "replace").split("\0")[:-1]


def descriptors(pid: int) -> list[str]:
    """Return what the open descriptors of C{pid} point to."""
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(entry))
        except FileNotFoundError:
            continue  # It was closed.
    return found


def megabytes(pid: int) -> float:
    """Return the resident memory of C{pid}."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"process {pid} has no memory")


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""
