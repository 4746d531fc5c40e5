"""
The daemon's own standard output and error as a window on what its jobs print.

Each has a writer of its own, so that a reader of one that is stuck never holds up the other; both
are one, and in order, where they go to the same file.
docs/executors.md, "Output", tells users so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from twisted.internet.defer import Deferred, DeferredList

from cronstable.runs.writer import Writer

_NAMES = {1: "standard output", 2: "standard error"}


class Mirror:
    """Writes blocks to descriptors, in order for each file."""

    def __init__(self, reactor: Any, descriptors: Mapping[int, int] | None = None) -> None:
        """
        C{descriptors} says where the targets 1 and 2 go, by default to themselves.
        """
        self._writers: dict[int, Writer] = {}
        for target, descriptor in (descriptors or {1: 1, 2: 2}).items():
            same = (known for known in self._writers.values() if known.writes_to(descriptor))
            name = _NAMES.get(target, f"descriptor {target}")
            self._writers[target] = next(same, None) or Writer(reactor, descriptor, name)

    def write(self, target: int, block: bytes) -> bool:
        """
        Take a block of whole lines for C{target}; never blocks and never fails, in any thread.

        Returns False when whoever writes should wait until L{when_room} calls.
        """
        return self._writers[target].write(block)

    def when_room(self, target: int, resume: Callable[[], object]) -> None:
        """Call C{resume} on the reactor thread, once, when C{target} has room again."""
        self._writers[target].when_room(resume)

    def flush(self, limit: float) -> Deferred[None]:
        """Fire when all is written, or after C{limit} seconds."""
        flushed = DeferredList([writer.flush(limit) for writer in set(self._writers.values())])
        return flushed.addCallback(lambda _: None)

    def close(self) -> None:
        """Take nothing any more; threads end when they have written what waits, or hang."""
        for writer in self._writers.values():
            writer.close()

    def threads(self) -> list[threading.Thread]:
        """Return the threads that were needed so far."""
        threads = (writer.thread for writer in set(self._writers.values()))
        return [thread for thread in threads if thread is not None]
