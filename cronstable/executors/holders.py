"""
Who still holds a pipe: which processes have a captured stream open after the job has exited.

Reads /proc, which can take a while on a busy host: call it from a thread.

docs/executors.md, "Streams that stay open", tells users when that is asked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from cronstable.executors.interfaces import Leftover

MOST = 8
"""Holders that are named; more of them say nothing new."""

_PIPE = re.compile(r"pipe:\[(\d+)\]")


def find_holders(
    session: int, inodes: frozenset[int], proc: Path = Path("/proc")
) -> tuple[Leftover, ...]:
    """
    Return up to C{MOST} processes with one of these pipes open, lowest pid first.

    Looks at the members of the job's C{session} first and at all others only if none of them
    has it.  Empty where /proc does not tell.
    """
    others = []
    found = []
    for pid in _pids(proc):
        if pid == os.getpid():
            continue
        if _session(proc, pid) != session:
            others.append(pid)
        elif _holds(proc, pid, inodes):
            found.append(pid)
    if not found:
        found = [pid for pid in others if _holds(proc, pid, inodes)]
    return tuple(Leftover(pid, _name(proc, pid)) for pid in sorted(found)[:MOST])


def _pids(proc: Path) -> Iterator[int]:
    try:
        names = os.listdir(proc)
    except OSError:
        return
    for name in names:
        if name.isdigit():
            yield int(name)


def _session(proc: Path, pid: int) -> int | None:
    try:
        fields = (proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        return int(fields[3])
    except (OSError, ValueError, IndexError):
        return None


def _holds(proc: Path, pid: int, inodes: frozenset[int]) -> bool:
    directory = f"{proc}/{pid}/fd"
    try:
        names = os.listdir(directory)
    except OSError:
        return False
    for name in names:
        try:
            match = _PIPE.fullmatch(os.readlink(f"{directory}/{name}"))
        except OSError:
            continue
        if match is not None and int(match[1]) in inodes:
            return True
    return False


def _name(proc: Path, pid: int) -> str:
    """The process's short name: its arguments may hold secrets."""
    try:
        return (proc / str(pid) / "comm").read_text(errors="replace").rstrip("\n")
    except OSError:
        return "?"
