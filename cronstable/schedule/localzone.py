"""
The host's local clock as a frame for schedules, read live.

`TZ` decides where it is set: a zone name, a file, or a POSIX rule; otherwise the host's
local time file. A host with neither keeps UTC, as its C library does.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Mapping

from cronstable.schedule import zonefiles
from cronstable.schedule.calendar import DAY, END_LABEL
from cronstable.schedule.tzif import (
    BadZoneData,
    Offsets,
    fixed,
    offsets_from,
    parse_rule,
    parse_zone_file,
)

_Signature = tuple[str | None, int, int, int]


class LocalZone:
    """
    The local frame: its offsets follow a change of `TZ` or of the local time file at once.
    """

    __slots__ = ("_environ", "_offsets", "_path", "_seen")

    name = "local"

    def __init__(
        self, environ: Mapping[str, str] = os.environ, path: str = "/etc/localtime"
    ) -> None:
        self._environ = environ
        self._path = path
        self._seen: _Signature | None = None
        self._offsets = fixed(0)

    def __repr__(self) -> str:
        return "<LocalZone>"

    @property
    def offsets(self) -> Offsets:
        """
        The offsets in force now.
        """
        signature = self._signature()
        if signature != self._seen:
            self._offsets = self._read()
            self._seen = signature
        return self._offsets

    def refresh(self) -> bool:
        """
        Read the rules again if they were ever read, and say whether they differ.
        """
        if self._seen is None:
            return False
        before, self._seen = self._offsets, None
        return self.offsets != before

    def _signature(self) -> _Signature:
        zone = self._environ.get("TZ")
        if zone is not None:
            return zone, 0, 0, 0
        try:
            found = os.stat(self._path)
        except OSError:
            return None, 0, 0, 0
        return None, found.st_ino, found.st_size, found.st_mtime_ns

    def _read(self) -> Offsets:
        zone = self._environ.get("TZ")
        if zone is not None:
            return _from_variable(zone.removeprefix(":"))
        try:
            return parse_zone_file(zonefiles.read(self._path))
        except (BadZoneData, zonefiles.Unreadable):
            return probed() if os.name == "nt" else fixed(0)


def _from_variable(zone: str) -> Offsets:
    try:
        if os.path.isabs(zone):
            return parse_zone_file(zonefiles.read(zone))
        found = zonefiles.find(zone)
        if found is not None:
            return parse_zone_file(found[0])
        rule = parse_rule(zone)
    except (BadZoneData, zonefiles.Unreadable):
        return fixed(0)
    return offsets_from(rule.standard, rule.changes(1969))


def probed() -> Offsets:
    """
    The offsets of the C library's local time, found by asking it day by day.
    """
    offset = _library_offset(0)
    first, changes = offset, []
    for day in range(0, END_LABEL // DAY + 1):
        at = day * DAY
        if _library_offset(at) != offset:
            offset = _library_offset(at)
            window = range(at - DAY, at + 1)
            found = bisect_left(window, True, key=lambda t: _library_offset(t) == offset)
            changes.append((window[found], offset))
    return offsets_from(first, changes)


def _library_offset(instant: int) -> int:
    return time.localtime(instant).tm_gmtoff
