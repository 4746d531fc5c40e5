"""
Starting a process as another user: by way of C{setpriv}, which a vfork can start.

A switch inside our own child would need a fork, which copies the page tables of a large daemon
for every start.  docs/executors.md, "Users and groups", tells users what happens.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs

from cronstable import platform
from cronstable.executors.interfaces import DropTo
from cronstable.executors.program import NotStarted, Program, blocked_for, show

SEARCH = ("/usr/bin/setpriv", "/bin/setpriv", "/usr/sbin/setpriv", "/usr/local/bin/setpriv")
NAME = "setpriv"
CAP_SETGID, CAP_SETUID = 6, 7

Look = Callable[[str, int], "tuple[int, ...]"]


def supplementary_groups(login: str, gid: int) -> tuple[int, ...]:
    """Return the groups that C{login} has, C{gid} among them."""
    return tuple(os.getgrouplist(login, gid))


def find_setpriv(places: Iterable[str] = SEARCH) -> str | None:
    """Return the setpriv of util-linux, None if there is none (busybox's cannot switch users)."""
    for path in places:
        if os.access(path, os.X_OK) and "box" not in os.path.basename(os.path.realpath(path)):
            return path
    return None


@attrs.define
class Become:
    """How launches of this process take another identity; what it learns once, it keeps."""

    look: Look = supplementary_groups
    proc: Path = Path("/proc")
    _setpriv: str | None = None
    _searched: bool = False
    _by_name: dict[tuple[str, int], bool] = attrs.field(factory=dict)
    _refusal: dict[str, str | None] = attrs.field(factory=dict)

    @property
    def setpriv(self) -> str | None:
        """The setpriv to use, None where there is none."""
        if not self._searched:
            self._setpriv, self._searched = find_setpriv(), True
        return self._setpriv

    def groups(self, drop: DropTo) -> tuple[int, ...]:
        """Return the supplementary groups that C{drop} gives; raises NotStarted if unknown."""
        if drop.login is None:
            return ()
        try:
            return self.look(drop.login, drop.gid)
        except (OSError, KeyError) as error:
            raise NotStarted(f"the groups of user {drop.login} cannot be read: {error}") from None

    def prefix(self, drop: DropTo) -> list[bytes]:
        """
        Return the arguments before the command that switch to C{drop}, groups before uid.

        Raises NotStarted when this process is known to lack the right.
        """
        reason = self.refusal(drop)
        if reason is not None:
            raise NotStarted(reason)
        if drop.login is None:
            groups = "--clear-groups"
        elif self._named_by_uid(drop.login, drop.uid):
            groups = "--init-groups"
        else:
            groups = "--groups=" + ",".join(map(str, self.groups(drop)))
        words = [self.setpriv or NAME, f"--reuid={drop.uid}", f"--regid={drop.gid}", groups, "--"]
        return [word.encode() for word in words]

    def _named_by_uid(self, login: str, uid: int) -> bool:
        """Whether the account data base gives this very login for the uid: setpriv asks it."""
        known = self._by_name.get((login, uid))
        if known is None:
            import pwd

            try:
                known = pwd.getpwuid(uid).pw_name == login
            except KeyError:
                known = False
            self._by_name[(login, uid)] = known
        return known

    def refusal(self, drop: DropTo) -> str | None:
        """Return why the kernel will refuse the switch, None if nothing is known against it."""
        if "rights" not in self._refusal:
            self._refusal["rights"] = self._missing_rights()
        reason = self._refusal["rights"]
        if reason is None:
            reason = self._unmapped("uid", drop.uid) or self._unmapped("gid", drop.gid)
        return reason and f"cannot become uid {drop.uid}, gid {drop.gid}: {reason}"

    def _missing_rights(self) -> str | None:
        try:
            status = (self.proc / "self/status").read_text()
        except OSError:
            return None
        for line in status.splitlines():
            if line.startswith("CapEff:"):
                effective = int(line.split()[1], 16)
                missing = [
                    name
                    for name, bit in (("CAP_SETUID", CAP_SETUID), ("CAP_SETGID", CAP_SETGID))
                    if not effective >> bit & 1
                ]
                return f"the daemon lacks {' and '.join(missing)}" if missing else None
        return None

    def _unmapped(self, kind: str, number: int) -> str | None:
        key = f"{kind} {number}"
        if key not in self._refusal:
            self._refusal[key] = self._look_up_map(kind, number)
        return self._refusal[key]

    def _look_up_map(self, kind: str, number: int) -> str | None:
        try:
            ranges = (self.proc / f"self/{kind}_map").read_text().split("\n")
        except OSError:
            return None
        for entry in filter(None, ranges):
            first, _, count = map(int, entry.split())
            if first <= number < first + count:
                return None
        return f"{kind} {number} does not exist in this user namespace"

    def check(self, drop: DropTo, program: Program) -> None:
        """
        Raise NotStarted if mode bits keep C{drop} from running C{program}.

        setpriv would run it all the same, since it keeps root's capabilities until the exec.
        """
        blocked = blocked_for(program.checked, drop.uid, (drop.gid,))
        if blocked is not None and drop.login is not None:
            blocked = blocked_for(program.checked, drop.uid, (drop.gid, *self.groups(drop)))
        if blocked is not None:
            raise NotStarted(f"{blocked} for uid {drop.uid}, gid {drop.gid}")

    def explain(self, drop: DropTo, program: Program, status: int) -> str:
        """Return why setpriv ended with C{status} instead of becoming the program."""
        return (
            f"cannot become uid {drop.uid}, gid {drop.gid} and run {show(program.checked)}: "
            f"setpriv ended with status {status}; what it said is in the run's standard error"
        )


def still_the_prefix(pid: int, program: Program) -> bool:
    """
    Return whether an ended, not yet reaped process never became its program.

    The kernel keeps the name of what was last executed.  A program that is itself called
    setpriv cannot be told apart and counts as started.
    """
    own = os.fsdecode(os.path.basename(program.path))[:15]
    return own != NAME and platform.process_name(pid) == NAME
