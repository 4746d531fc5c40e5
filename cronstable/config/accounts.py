"""
Whose rights a job runs with: C{user} and C{group} turned into numbers, at load.

docs/executors.md, "Users and groups", tells users what a process gets.
"""

from __future__ import annotations

from typing import Any

import attrs

_LARGEST_ID = 2**32 - 2


class AccountTrouble(Exception):
    """An account that cannot be used; C{key} is C{user} or C{group}."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key
        self.message = message


@attrs.frozen
class Account:
    """What a child becomes; C{login} None means that it gets no supplementary groups."""

    uid: int | None
    gid: int | None
    login: str | None


def resolve(
    user: str | int | None, group: str | int | None, *, is_root: bool, windows: bool
) -> Account:
    """Return the numbers of C{user} and C{group}, of which one is given; L{AccountTrouble}."""
    key = "group" if user is None else "user"
    if windows:
        raise AccountTrouble(key, "cannot be changed on Windows")
    if not is_root:
        given = group if user is None else user
        message = f"can only be changed by a daemon that runs as root, got {given!r}"
        raise AccountTrouble(key, message)
    gid = None if group is None else _gid(group)
    if user is None:
        return Account(None, gid, None)
    uid, primary, login = _user(user)
    if gid is None:
        if primary is None:
            raise AccountTrouble(
                "user", f"has no passwd entry, so that it needs an explicit group, got {user}"
            )
        gid = primary
    return Account(uid, gid, login)


def _user(user: str | int) -> tuple[int, int | None, str | None]:
    import pwd

    entry: Any
    try:
        if isinstance(user, int):
            _check_number("user", user)
            entry = pwd.getpwuid(user)
        else:
            entry = pwd.getpwnam(user)
    except (KeyError, ValueError):
        if isinstance(user, int):
            return user, None, None
        raise AccountTrouble("user", f"no such user, got {user!r}") from None
    return entry.pw_uid, entry.pw_gid, entry.pw_name


def _gid(group: str | int) -> int:
    import grp

    if isinstance(group, int):
        _check_number("group", group)
        return group
    try:
        return grp.getgrnam(group).gr_gid
    except (KeyError, ValueError):
        raise AccountTrouble("group", f"no such group, got {group!r}") from None


def _check_number(key: str, number: int) -> None:
    if not 0 <= number <= _LARGEST_ID:
        raise AccountTrouble(key, f"out of range, got {number}; 0 to {_LARGEST_ID}")
