"""
Named points inside the store's writes, where a test can let a process die.

The store calls the callable it was given with the name of each point it passes; the default does
nothing.
"""

from __future__ import annotations

from collections.abc import Callable

Failpoint = Callable[[str], object]

KINDS = ("record", "document", "lease", "blob", "name")
STAGES = ("begin", "written", "renamed", "synced")
POINTS = tuple(f"{kind}.{stage}" for kind in KINDS for stage in STAGES) + (
    "lock.taken",
    "document.removed",
    "prune.removed",
    "quarantine.moved",
    "gc.record",
    "gc.stream",
    "gc.removed",
)
"""
Every name: before the temp file, after it was written, after the rename, after the directory was
forced to the medium; then single points after what they are called.
"""


def passed(point: str) -> None:
    """Do nothing: what a store outside of tests calls."""
