"""
Whether the directories and programs that a launch needs answer.

A process begins in its directory, and whoever starts it waits for that: on a mount whose server is
away, for as long as it is.  So what lies on a mount that is served is looked at on a thread first,
and only the jobs that need it wait.

docs/executors.md, "When a place does not answer", specifies it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from twisted.internet.defer import Deferred

from cronstable.clock import Clock
from cronstable.executors.interfaces import LaunchSpec
from cronstable.platform import DEFAULT_SHELL

MOUNTS = "/proc/mounts"

READ_AGAIN = 5.0
"""Seconds after which the mount table is read anew at the next launch."""

_SERVED = frozenset(
    (
        "9p afs autofs beegfs ceph cifs coda glusterfs gpfs lustre nfs nfs4 orangefs smb3 smbfs"
        " virtiofs"
    ).split()
)
_OCTAL = re.compile(r"\\([0-7]{3})")


def served_mounts(path: str = MOUNTS) -> tuple[str, ...]:
    """Return where a server or a process serves the files, as the mount table at C{path} says."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as table:
            lines = [line.split(" ") for line in table]
    except OSError:
        return ()
    return tuple(
        _OCTAL.sub(lambda code: chr(int(code[1], 8)), fields[1])
        for fields in lines
        if len(fields) > 2 and (fields[2] in _SERVED or fields[2].startswith("fuse"))
    )


class Reach:
    """
    Looks at places on threads, one for each place however many ask.

    A place that was found elsewhere than on a served mount needs no look until the mounts change.
    """

    def __init__(
        self,
        clock: Clock,
        in_thread: Callable[..., Deferred[str]],
        mounts: Callable[[], tuple[str, ...]] = served_mounts,
        look: Callable[[str], str] | None = None,
    ) -> None:
        self._clock = clock
        self._in_thread = in_thread
        self._read_mounts = mounts
        self._look = look or _look
        self._mounts: tuple[str, ...] = ()
        self._read_at = float("-inf")
        self._near: set[str] = set()
        self._asking: dict[str, list[Deferred[None]]] = {}

    def unsure(self, spec: LaunchSpec) -> list[str]:
        """Return the places of C{spec} that may not answer."""
        now = self._clock.seconds()
        if now >= self._read_at + READ_AGAIN:
            self._read_at = now
            mounts = self._read_mounts()
            if mounts != self._mounts:
                self._mounts = mounts
                self._near.clear()
        if not self._mounts:
            return []
        return [place for place in _places(spec) if place not in self._near]

    def when_reached(self, place: str) -> Deferred[None]:
        """Fire when C{place} has been looked at, be it there or not."""
        waiter: Deferred[None] = Deferred()
        asking = self._asking.get(place)
        if asking is not None:
            asking.append(waiter)
            return waiter
        self._asking[place] = [waiter]
        looked = self._in_thread(self._look, place)
        looked.addCallbacks(lambda real: self._found(place, real), lambda failure: None)
        looked.addCallback(lambda _: self._tell(place))
        return waiter

    def _found(self, place: str, real: str) -> None:
        if not any(_inside(real, point) for point in self._mounts):
            self._near.add(place)

    def _tell(self, place: str) -> None:
        for waiter in self._asking.pop(place):
            waiter.callback(None)


def _look(place: str) -> str:
    """Return where C{place} really is, after it has answered."""
    real = os.path.realpath(place)
    os.stat(real)
    return real


def _places(spec: LaunchSpec) -> list[str]:
    places = [] if spec.cwd is None else [os.path.abspath(spec.cwd)]
    program = spec.argv[0] if spec.argv else ""
    if "/" in program and program != DEFAULT_SHELL:
        places.append(os.path.join(*places, program) if places else os.path.abspath(program))
    return places


def _inside(path: str, point: str) -> bool:
    return path == point or path.startswith(point.rstrip("/") + "/")
