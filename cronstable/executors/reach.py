"""
Whether the directories and programs that a launch needs answer.

A process begins in its directory, and whoever starts it waits for that: on a mount whose server is
away, for as long as it is.  So what lies on a mount that is served is looked at on a thread first,
and only the jobs that need it wait.

docs/executors.md, "When a place does not answer", specifies it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from twisted.internet.defer import Deferred

from cronstable.clock import Clock
from cronstable.executors.interfaces import LaunchSpec
from cronstable.mounts import MOUNTS, entries, inside, read_mounts
from cronstable.platform import DEFAULT_SHELL

READ_AGAIN = 5.0
"""Seconds after which the mount table is read anew at the next launch."""

_SERVED = frozenset(
    (
        "9p afs autofs beegfs ceph cifs coda glusterfs gpfs lustre nfs nfs4 orangefs smb3 smbfs"
        " virtiofs"
    ).split()
)


def served_mounts(path: str = MOUNTS) -> tuple[str, ...]:
    """Return where a server or a process serves the files, as the mount table at C{path} says."""
    return tuple(
        each.point
        for each in entries(read_mounts(path))
        if each.kind in _SERVED or each.kind.startswith("fuse")
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
        if not any(inside(real, point) for point in self._mounts):
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
