"""
Tests of cronstable.schedule.localzone: the host's own clock.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from unittest import mock

from cronstable.schedule import parse
from cronstable.schedule.localzone import LocalZone, probed
from cronstable.schedule.tzif import fixed, offsets_from, parse_rule
from tests.schedule.support import ZoneTreeTestCase, utc, zone_file

NEW_YORK = "EST5EDT,M3.2.0,M11.1.0"


class LocalZoneTests(ZoneTreeTestCase):
    """
    The host's own clock.
    """

    def local(self, **environ: str) -> LocalZone:
        """
        A local frame with an environment and a local time file of its own.
        """
        self.environ = dict(environ)
        self.path = Path(self.mktemp()).absolute()
        return LocalZone(self.environ, str(self.path))

    def test_file(self) -> None:
        """
        The local time file is followed, also when it is replaced; without one it is UTC.
        """
        zone = self.local()
        self.assertEqual(zone.offsets, fixed(0))
        self.path.write_bytes(zone_file("AAA5"))
        self.assertEqual(zone.offsets.at(0), -18000)
        other = self.path.with_name("other")
        other.write_bytes(zone_file("AAA-5:30"))
        other.replace(self.path)
        self.assertEqual(zone.offsets.at(0), 19800)
        self.path.write_bytes(b"garbage")
        self.assertEqual(zone.offsets, fixed(0))

    def test_variable(self) -> None:
        """
        TZ goes before the file: a name, a path, a rule; what it cannot be is UTC.
        """
        zone = self.local(TZ="AAA-3")
        self.path.write_bytes(zone_file("AAA5"))
        self.assertEqual(zone.offsets.at(0), 10800)
        self.put("Area/Here", zone_file("AAA-4"))
        for value, offset in (
            *(("Area/Here", 14400), (":Area/Here", 14400), (str(self.path), -18000)),
            *(("EST5EDT,M3.2.0,M11.1.0", -18000), ("", 0), ("No/Such", 0), ("../x", 0)),
        ):
            self.environ["TZ"] = value
            self.assertEqual(zone.offsets.at(0), offset, value)
        del self.environ["TZ"]
        self.assertEqual(zone.offsets.at(0), -18000)

    def test_refresh(self) -> None:
        """
        A reload reads a named zone's file again and says whether the rules differ.
        """
        self.put("Area/Here", zone_file("AAA-4"))
        zone = self.local(TZ="Area/Here")
        self.assertFalse(zone.refresh())
        self.assertEqual(zone.offsets.at(0), 14400)
        self.assertFalse(zone.refresh())
        self.put("Area/Here", zone_file("AAA-5"))
        self.assertTrue(zone.refresh())
        self.assertEqual(zone.offsets.at(0), 18000)

    def test_schedule(self) -> None:
        """
        A schedule on the local clock follows the environment of the process.
        """
        with mock.patch.dict(os.environ, {"TZ": "AAA5"}):
            schedule = parse("0 9 * * *", local=True)
            self.assertEqual(schedule.zone, "local")
            self.assertEqual(utc(schedule.next(0)), "1970-01-01T14:00:00+00:00")
            os.environ["TZ"] = "AAA-5"
            self.assertEqual(utc(schedule.next(0)), "1970-01-01T04:00:00+00:00")

    def test_probed(self) -> None:
        """
        Where there is no file to read, the C library's own answers give the same offsets.
        """
        self.addCleanup(time.tzset)
        with mock.patch.dict(os.environ, {"TZ": NEW_YORK}):
            time.tzset()
            found = probed()
        rule = parse_rule(NEW_YORK)
        expected = offsets_from(
            rule.standard, [c for c in rule.changes(1970) if c[0] < 4_102_444_800]
        )
        self.assertEqual(found, expected)
