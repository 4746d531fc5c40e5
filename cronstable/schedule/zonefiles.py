"""
Finds compiled zone files: in the system's zone trees, else in the tzdata package.
"""

from __future__ import annotations

import os
import pkgutil
import re
import zoneinfo
from functools import lru_cache
from importlib import import_module
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*")
_LONGEST_NAME = 255
_LARGEST_FILE = 1 << 20


class Unreadable(Exception):
    """
    A zone file that is there and cannot be read; the message says where and why.
    """


def is_plausible(name: str) -> bool:
    """
    Whether a text could be the name of a zone: no dots, no empty parts, nothing but ASCII.
    """
    return len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None


def find(name: str) -> tuple[bytes, str] | None:
    """
    The bytes of a zone's file and where they are from; None if there is no such zone.

    Raises Unreadable for a file that cannot be read.
    """
    if not is_plausible(name):
        return None
    for root in zoneinfo.TZPATH:
        path = os.path.join(root, *name.split("/"))
        if os.path.isfile(path) and _spelled_so(root, name):
            return read(path), path
    if name in _package_names():
        data = _package_data(name)
        if data is not None:
            return data, f"tzdata package, {name}"
    return None


def read(path: str) -> bytes:
    """
    The bytes of a file of at most 1 MiB; raises Unreadable.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror or error}") from error
    if len(data) > _LARGEST_FILE:
        raise Unreadable(f"{path}: too large for a zone file")
    return data


def names() -> frozenset[str]:
    """
    The names of all zones that can be found.
    """
    return frozenset(zoneinfo.available_timezones()) | {"UTC"}


def locate() -> tuple[str, str | None, str | None]:
    """
    Which data `find` looks at first: `system`, `package` or `none`, its path, its version.
    """
    for root in zoneinfo.TZPATH:
        if _holds_zones(root):
            return "system", root, _tree_version(Path(root))
    version = _package_version()
    if version is None:
        return "none", None, None
    return "package", "tzdata", version


def forget() -> None:
    """
    Drop what is remembered of search paths and names, so that it is looked up again.
    """
    zoneinfo.reset_tzpath()
    zoneinfo.ZoneInfo.clear_cache()
    _package_names.cache_clear()


def _spelled_so(root: str, name: str) -> bool:
    """
    Whether the tree spells a name exactly so, which a file system may not care about.
    """
    where = root
    for part in name.split("/"):
        try:
            if part not in os.listdir(where):
                return False
        except OSError:
            return True
        where = os.path.join(where, part)
    return True


def _holds_zones(root: str) -> bool:
    for directory, _, files in os.walk(root):
        for name in files:
            try:
                with open(os.path.join(directory, name), "rb") as file:
                    if file.read(4) == b"TZif":
                        return True
            except OSError:
                continue
    return False


def _tree_version(root: Path) -> str | None:
    try:
        with open(root / "tzdata.zi", encoding="ascii", errors="replace") as file:
            first = file.readline(200).split()
    except OSError:
        first = []
    if first[:2] == ["#", "version"] and len(first) == 3:
        return first[2]
    try:
        return (root / "+VERSION").read_text(encoding="ascii", errors="replace")[:40].strip()
    except OSError:
        return None


def _package_version() -> str | None:
    try:
        return str(import_module("tzdata").IANA_VERSION)
    except (ImportError, AttributeError):
        return None


@lru_cache(maxsize=1)
def _package_names() -> frozenset[str]:
    listed = _package_resource("zones")
    return frozenset(listed.decode("ascii", "replace").split()) if listed else frozenset()


def _package_data(name: str) -> bytes | None:
    return _package_resource(f"zoneinfo/{name}")


def _package_resource(resource: str) -> bytes | None:
    try:
        return pkgutil.get_data("tzdata", resource)
    except (ImportError, OSError):
        return None
