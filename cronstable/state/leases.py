"""
Leases: claims that end by themselves, each with a fence that only grows.

docs/store-format.md, "Leases", specifies file and protocol.  The file counts in wall-clock
seconds, as its rivals on other hosts must; a holder counts its own deadline in seconds that go on
while the host sleeps, from before the write, so that it never believes in a lease for too long.
"""

from __future__ import annotations

import logging
import math
from typing import Any, Literal

import attrs

from cronstable.state import names
from cronstable.state.encoding import GREATEST, LEAST, bare, parsed
from cronstable.state.errors import Malformed
from cronstable.state.stats import measured
from cronstable.state.tree import Part, Sync, names_in

log = logging.getLogger("cronstable.state")

FILE = ".lease"
LOCK = ".lock"


@attrs.frozen
class Lease:
    """What a lease file says; C{expires_at} in epoch seconds, 0 when released."""

    name: str
    holder: str
    fence: int
    expires_at: float

    def held(self, now: float) -> bool:
        """Return whether somebody holds it at wall-clock C{now}."""
        return self.expires_at > 0 and self.expires_at > now


@attrs.frozen
class Held:
    """
    A lease that the caller holds.

    C{deadline} is when to stop believing in it, on the clock that counts suspended seconds
    (C{awake_and_asleep}).
    """

    lease: Lease
    deadline: float

    @property
    def fence(self) -> int:
        """The number that no later holder's is below."""
        return self.lease.fence


@attrs.frozen
class Denied:
    """
    Why a lease was not had.

    C{held}: another holder's time runs, or it is no longer the caller's.  C{unreadable} and
    C{unwritable}: its file is there and could not be used, so nobody may take it.
    """

    why: Literal["held", "unreadable", "unwritable"]
    current: Lease | None = None
    error: str | None = None


@attrs.define(eq=False)
class Leases(Part):
    """The leases of one store namespace; any thread may call."""

    @measured("lease-acquire")
    def acquire(self, name: str, holder: str, ttl: float) -> Held | Denied:
        """
        Take C{name} for C{ttl} seconds if it is free, or extend it if C{holder} has it.

        Raises OSError if the store cannot be asked at all.
        """
        with self._tree.locked(self._path(name, LOCK), touch=False):
            began = self._tree.clock.awake_and_asleep()
            now = self._tree.clock.now()
            try:
                current = self._read(name)
            except (OSError, Malformed) as error:
                return self._unreadable(name, error)
            if current is None:
                return self._store(Lease(name, holder, 1, now + ttl), None, began + ttl)
            running = current.expires_at > now
            if running and current.holder != holder:
                return Denied("held", current)
            fence = current.fence if running else current.fence + 1
            return self._store(Lease(name, holder, fence, now + ttl), current, began + ttl)

    @measured("lease-renew")
    def renew(self, name: str, holder: str, fence: int, ttl: float) -> Held | Denied:
        """
        Extend a lease that C{holder} has under C{fence}, also a moment after it ran out.

        Denied once it was released or taken.  Raises OSError if the store cannot be asked.
        """
        with self._tree.locked(self._path(name, LOCK), touch=False):
            began = self._tree.clock.awake_and_asleep()
            now = self._tree.clock.now()
            try:
                current = self._read(name)
            except (OSError, Malformed) as error:
                return self._unreadable(name, error)
            if current is None or not _is_of(current, holder, fence) or current.expires_at <= 0:
                return Denied("held", current)
            renewed = attrs.evolve(current, expires_at=now + ttl)
            return self._store(renewed, current, began + ttl)

    @measured("lease-release")
    def release(self, name: str, holder: str, fence: int) -> bool:
        """
        Give C{name} back, its fence kept; False if it is no longer the caller's.

        Raises OSError if that cannot be known or written: the lease then ends with its time.
        """
        with self._tree.locked(self._path(name, LOCK), touch=False):
            try:
                current = self._read(name)
            except Malformed as error:
                self._unreadable(name, error)
                return False
            if current is None or not _is_of(current, holder, fence):
                return False
            if current.expires_at > 0:
                self._write(attrs.evolve(current, expires_at=0.0), Sync(directory=False))
            return True

    @measured("lease-read")
    def read(self, name: str) -> Lease | None:
        """
        Return what the file says, None if there is none; grants and extends nothing.

        Raises L{Malformed} or OSError.
        """
        return self._read(name)

    @measured("lease-read")
    def adopt(self, name: str, holder: str) -> Held | None:
        """
        Return the lease if C{holder} has it: what became of an acquire without an answer.

        The deadline is no later than the file's expiry.
        """
        began = self._tree.clock.awake_and_asleep()
        now = self._tree.clock.now()
        current = self._read(name)
        if current is None or current.holder != holder or not current.held(now):
            return None
        return Held(current, began + current.expires_at - now)

    @measured("lease-read")
    def all(self) -> tuple[list[Lease], bool]:
        """Return the readable leases by file name, and whether those were all."""
        found = []
        complete = True
        for file in sorted(names_in(self._tree.files, self._tree.path("leases"))):
            if not file.endswith(FILE):
                continue
            try:
                lease = lease_in(self._tree.files.read(self._tree.path("leases", file)))
            except FileNotFoundError:
                continue
            except (OSError, Malformed):
                complete = False
                continue
            found.append(lease)
        return found, complete

    def _path(self, name: str, suffix: str) -> str:
        return self._tree.path("leases", names.token(name) + suffix)

    def _read(self, name: str) -> Lease | None:
        try:
            return lease_in(self._tree.files.read(self._path(name, FILE)))
        except FileNotFoundError:
            return None

    def _store(self, lease: Lease, before: Lease | None, deadline: float) -> Held | Denied:
        # Without its last renewal a lease ends too early; without its fence it is no fence.
        kept = before is not None and before.fence == lease.fence
        try:
            self._write(lease, Sync(directory=not kept))
        except OSError as error:
            if before is None:
                raise
            if self._tree.notices.first(("lease", lease.name, error.errno)):
                log.warning("state: cannot write lease %s: %s", lease.name, error)
            return Denied("unwritable", before, str(error))
        return Held(lease, deadline)

    def _write(self, lease: Lease, sync: Sync) -> None:
        body = {
            "expiresAt": lease.expires_at,
            "fence": lease.fence,
            "holder": lease.holder,
            "name": lease.name,
        }
        self._tree.write("lease", self._path(lease.name, FILE), bare(body), sync)

    def _unreadable(self, name: str, error: Exception) -> Denied:
        if self._tree.notices.first(("lease", name, str(error))):
            log.warning("state: cannot read lease %s, nobody can take it: %s", name, error)
        return Denied("unreadable", None, str(error))


def lease_in(raw: bytes) -> Lease:
    """Return the lease that the bytes of its file tell; raises L{Malformed}."""
    body = parsed(raw)
    if not isinstance(body, dict):
        raise Malformed("it is not a JSON object")
    name, holder = body.get("name"), body.get("holder")
    if not isinstance(name, str) or not isinstance(holder, str):
        raise Malformed("its name or holder is not text")
    return Lease(name, holder, _whole(body.get("fence")), _seconds(body.get("expiresAt")))


def _is_of(lease: Lease, holder: str, fence: int) -> bool:
    return lease.holder == holder and lease.fence == fence


def _number(value: Any, kind: type, name: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise Malformed(f"its {name} is not a number")
    try:
        return kind(value)
    except (ValueError, OverflowError):
        raise Malformed(f"its {name} is not a number") from None


def _whole(value: Any) -> int:
    fence: int = _number(value, int, "fence")
    if isinstance(value, float) and value != fence:
        raise Malformed("its fence is not a whole number")
    if not LEAST <= fence < GREATEST:
        raise Malformed("its fence leaves no room for another")
    return fence


def _seconds(value: Any) -> float:
    epoch: float = _number(value, float, "expiresAt")
    if not math.isfinite(epoch):
        raise Malformed("its expiresAt is not finite")
    return epoch
