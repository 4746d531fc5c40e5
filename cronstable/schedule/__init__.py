"""
When a job is due: the schedule dialect, its fires across time zones, and what can be said of it.
"""

from cronstable.schedule.errors import NoZoneData, ScheduleError, UnknownZone
from cronstable.schedule.expression import NICKNAMES, REBOOT, collapse
from cronstable.schedule.lint import Finding, lint
from cronstable.schedule.prose import describe
from cronstable.schedule.timetable import Schedule, parse, vixie_reading
from cronstable.schedule.zones import ZoneSource, reload_zones, zone_named, zone_source

__all__ = [
    "NICKNAMES",
    "REBOOT",
    "Finding",
    "NoZoneData",
    "Schedule",
    "ScheduleError",
    "UnknownZone",
    "ZoneSource",
    "collapse",
    "describe",
    "lint",
    "parse",
    "reload_zones",
    "vixie_reading",
    "zone_named",
    "zone_source",
]
