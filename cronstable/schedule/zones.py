"""
The time zones that schedules run in, each with its rules, which can be read again.
"""

from __future__ import annotations

import difflib
from functools import lru_cache
from hashlib import sha256

import attrs

from cronstable.schedule import zonefiles
from cronstable.schedule.errors import NoZoneData, UnknownZone
from cronstable.schedule.localzone import LocalZone
from cronstable.schedule.tzif import BadZoneData, Offsets, fixed, parse_zone_file


class Zone:
    """
    A named frame of time; its offsets are replaced when changed zone data is read.
    """

    __slots__ = ("digest", "name", "offsets")

    def __init__(self, name: str | None, offsets: Offsets, digest: str = "") -> None:
        self.name = name
        self.offsets = offsets
        self.digest = digest

    def __repr__(self) -> str:
        return f"<Zone {self.name or 'naive'}>"

    def replace(self, data: bytes) -> bool:
        """
        Take the rules of new zone data, and say whether it differs; raises BadZoneData.
        """
        digest = _digest(data)
        if digest == self.digest:
            return False
        self.offsets, self.digest = parse_zone_file(data), digest
        return True


AnyZone = Zone | LocalZone

UTC = Zone("UTC", fixed(0))
NAIVE = Zone(None, fixed(0))
LOCAL = LocalZone()

_zones: dict[str, Zone] = {}


@attrs.frozen
class ZoneSource:
    """
    Which zone data is in use: `system`, `package` or `none`, with its place and version.

    The version is None where the data does not tell it; `digest` is a short hash over the data
    of the zones that have been read, so that two sets of rules can be told apart even then.
    """

    kind: str
    path: str | None
    version: str | None
    digest: str


def zone_named(name: str) -> Zone:
    """
    The zone of an IANA name, case counting; raises UnknownZone or NoZoneData.
    """
    if name == "UTC":
        return UTC
    zone = _zones.get(name)
    if zone is None:
        zone = _zones[name] = _read(name)
    return zone


def reload_zones() -> tuple[str, ...]:
    """
    Read all zones in use again and answer the names of those whose rules have changed.

    Schedules follow new rules at once. A zone that has vanished, or whose data is damaged,
    keeps its old rules in the schedules that exist, and is unknown to new ones.
    """
    zonefiles.forget()
    _suggestions.cache_clear()
    changed = [name for name in sorted(_zones) if _changed(name)]
    if LOCAL.refresh():
        changed.append(LOCAL.name)
    return tuple(changed)


def zone_source() -> ZoneSource:
    """
    Which zone data is in use, for status pages and logs.
    """
    kind, path, version = zonefiles.locate()
    joined = "".join(f"{name} {zone.digest}\n" for name, zone in sorted(_zones.items()))
    return ZoneSource(kind, path, version, _digest(joined.encode()))


def _changed(name: str) -> bool:
    try:
        found = zonefiles.find(name)
        if found is not None:
            return _zones[name].replace(found[0])
    except (BadZoneData, zonefiles.Unreadable):
        pass
    del _zones[name]
    return True


def _read(name: str) -> Zone:
    try:
        found = zonefiles.find(name)
    except zonefiles.Unreadable as error:
        raise UnknownZone(name, f" ({error})") from error
    if found is None:
        raise _unknown(name)
    data, place = found
    try:
        return Zone(name, parse_zone_file(data), _digest(data))
    except BadZoneData as error:
        raise UnknownZone(name, f" ({place}: {error})") from error


def _unknown(name: str) -> UnknownZone | NoZoneData:
    if zonefiles.is_plausible(name) and zonefiles.locate()[0] == "none":
        return NoZoneData(
            "no time zone data: no zone files on this host and no tzdata package, "
            "so only UTC and local time can be used"
        )
    near = _suggestions(name)
    return UnknownZone(name, f" (did you mean {' or '.join(near)}?)" if near else "")


@lru_cache(maxsize=256)
def _suggestions(name: str) -> tuple[str, ...]:
    if len(name) > 80:
        return ()
    known = sorted(zonefiles.names())
    lower = name.lower().replace(" ", "_")
    same = [zone for zone in known if zone.lower() == lower]
    city = [zone for zone in known if zone.lower().rpartition("/")[2] == lower]
    return tuple(same or city[:3] or difflib.get_close_matches(name, known, n=3, cutoff=0.75))


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:12]
