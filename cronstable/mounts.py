"""
The mount table of this host.

docs/durability.md and docs/executors.md, "When a place does not answer", tell what depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

MOUNTS = "/proc/mounts"

_OCTAL = re.compile(r"\\([0-7]{3})")


class Entry(NamedTuple):
    """One line of the table: where what kind of file system is mounted, and how."""

    point: str
    kind: str
    options: str


def read_mounts(path: str = MOUNTS) -> str:
    """Return the text of the mount table, empty where the system has none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as table:
            return table.read()
    except OSError:
        return ""


def entries(table: str) -> Iterator[Entry]:
    """Yield the lines of the text of a mount table, in its order."""
    for line in table.splitlines():
        fields = line.split(" ")
        if len(fields) >= 4:
            point = _OCTAL.sub(lambda code: chr(int(code[1], 8)), fields[1])
            yield Entry(point, fields[2], fields[3])


def inside(path: str, point: str) -> bool:
    """Return whether C{path}, a real one, is C{point} or below it."""
    return path == point or path.startswith(point.rstrip("/") + "/")
