"""
Tests of cronstable.schedule.zones and zonefiles: names, sources and reloads.
"""

from __future__ import annotations

import pickle

from cronstable.schedule import (
    NoZoneData,
    ScheduleError,
    UnknownZone,
    parse,
    reload_zones,
    zone_named,
    zone_source,
)
from tests.schedule.support import ZoneTreeTestCase, at, utc, zone_file


class ZoneNameTests(ZoneTreeTestCase):
    """
    Names and where they lead.
    """

    def test_unknown(self) -> None:
        """
        An unknown name is named in the error, with near ones where there are any.
        """
        error = self.assertRaises(UnknownZone, parse, "@daily", zone="America/Mexico_Cty")
        self.assertEqual(error.name, "America/Mexico_Cty")
        self.assertIn("unknown timezone: America/Mexico_Cty", str(error))
        self.assertIn("America/Mexico_City", str(error))
        error = self.assertRaises(UnknownZone, parse, "@daily", zone="berlin")
        self.assertIn("Europe/Berlin", str(error))
        error = self.assertRaises(UnknownZone, parse, "@daily", zone="Mars/X")
        self.assertEqual(str(error), "unknown timezone: Mars/X")
        self.assertIsInstance(error, ScheduleError)

    def test_pickle(self) -> None:
        """
        The error crosses to another process with its name and its message.
        """
        error = self.assertRaises(UnknownZone, parse, "@daily", zone="America/Mexico_Cty")
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((copy.name, str(copy)), (error.name, str(error)))

    def test_case_counts(self) -> None:
        """
        The case of a name counts.
        """
        self.put("Europe/Here", zone_file("CET-1"))
        parse("@daily", zone="Europe/Here")
        self.assertRaises(UnknownZone, parse, "@daily", zone="europe/here")
        self.assertRaises(UnknownZone, parse, "@daily", zone="utc")

    def test_no_escape(self) -> None:
        """
        No name leads out of the tree, and odd names do no harm.
        """
        outside = self.tree.parent / "outside"
        outside.write_bytes(zone_file("CET-1"))
        self.put("Area/Here", zone_file("CET-1"))
        for name in (
            *(
                "../outside",
                "Area/../Area/Here",
                str(outside),
                "/etc/localtime",
                "../../etc/passwd",
            ),
            *("", ".", "..", "Area", "Area/", "/Area/Here", "Area//Here", "Area\\Here", " UTC"),
            *("Area/Here\x00", "\x00", "Area/Here\n", "Ärea/Here", "a" * 5000, "a/" * 200 + "a"),
        ):
            error = self.assertRaises(UnknownZone, parse, "@daily", zone=name)
            self.assertEqual(error.name, name)
            self.assertLess(len(str(error)), 200)

    def test_garbage(self) -> None:
        """
        A file that holds no zone is an unknown zone, and the error says which file and why.
        """
        self.put("Area/Garbage", b"\x00garbage" * 50)
        self.put("Area/Cut", zone_file("EST5EDT,M3.2.0,M11.1.0")[:60])
        self.put("Area/Huge", b"TZif2" + bytes(2_000_000))
        for name in ("Area/Garbage", "Area/Cut", "Area/Huge"):
            error = self.assertRaises(UnknownZone, parse, "@daily", zone=name)
            self.assertIn(f"unknown timezone: {name}", str(error))
            self.assertIn(str(self.tree / name), str(error))

    def test_tree_before_package(self) -> None:
        """
        The system's tree is asked first, the tzdata package for what the tree lacks.
        """
        self.put("Europe/Berlin", zone_file("XXX-5"))
        self.assertEqual(zone_named("Europe/Berlin").offsets.at(0), 18000)
        self.assertEqual(zone_named("Europe/Paris").offsets.at(at("2026-01-01")), 3600)

    def test_utc_needs_no_data(self) -> None:
        """
        UTC works without any zone data; any other name is one clear error.
        """
        self.hide_package()
        self.assertEqual(parse("@daily").next(0), 86400)
        errors = {
            str(self.assertRaises(NoZoneData, parse, "@daily", zone=name))
            for name in ("Europe/Berlin", "Asia/Tokyo")
        }
        self.assertEqual(len(errors), 1)
        self.assertIn("no time zone data", errors.pop())
        self.assertRaises(UnknownZone, parse, "@daily", zone="../x")


class ReloadTests(ZoneTreeTestCase):
    """
    Zone data that changes under a long-running daemon.
    """

    def test_existing_schedules_follow(self) -> None:
        """
        After a reload, and not before, schedules follow the new rules; the change is named.
        """
        self.put("Area/Here", zone_file("AAA5BBB,M3.2.0,M11.1.0"))
        self.put("Area/There", zone_file("AAA5"))
        schedule = parse("0 9 * * *", zone="Area/Here")
        parse("0 9 * * *", zone="Area/There")
        now = at("2026-07-01T00:00:00Z")
        self.assertEqual(utc(schedule.next(now)), "2026-07-01T13:00:00+00:00")
        self.put("Area/Here", zone_file("AAA5"))
        self.assertEqual(utc(schedule.next(now)), "2026-07-01T13:00:00+00:00")
        self.assertEqual(reload_zones(), ("Area/Here",))
        self.assertEqual(utc(schedule.next(now)), "2026-07-01T14:00:00+00:00")
        self.assertEqual(reload_zones(), ())
        self.assertEqual(parse("0 9 * * *", zone="Area/Here"), schedule)

    def test_vanished(self) -> None:
        """
        A zone that is gone keeps its rules in old schedules and is unknown to new ones.
        """
        self.put("Area/Here", zone_file("AAA5"))
        schedule = parse("0 9 * * *", zone="Area/Here")
        (self.tree / "Area" / "Here").unlink()
        self.assertEqual(reload_zones(), ("Area/Here",))
        self.assertEqual(utc(schedule.next(0)), "1970-01-01T14:00:00+00:00")
        self.assertRaises(UnknownZone, parse, "0 9 * * *", zone="Area/Here")
        self.put("Area/Here", zone_file("AAA6"))
        self.assertEqual(
            utc(parse("0 9 * * *", zone="Area/Here").next(0)), "1970-01-01T15:00:00+00:00"
        )

    def test_damaged(self) -> None:
        """
        Damaged data does not reach the schedules that run.
        """
        self.put("Area/Here", zone_file("AAA5"))
        schedule = parse("0 9 * * *", zone="Area/Here")
        self.put("Area/Here", b"TZif2 damaged")
        self.assertEqual(reload_zones(), ("Area/Here",))
        self.assertEqual(utc(schedule.next(0)), "1970-01-01T14:00:00+00:00")


class SourceTests(ZoneTreeTestCase):
    """
    Which data is in use.
    """

    def test_tree(self) -> None:
        """
        A tree is named by its path, with its version where it tells one.
        """
        self.put("Area/Here", zone_file("AAA5"))
        source = zone_source()
        self.assertEqual(
            (source.kind, source.path, source.version), ("system", str(self.tree), None)
        )
        self.put("+VERSION", b"2026x\n")
        self.assertEqual(zone_source().version, "2026x")
        self.put("tzdata.zi", b"# version 2026y\n# more\n")
        self.assertEqual(zone_source().version, "2026y")

    def test_package(self) -> None:
        """
        Where there is no tree, the package and its version are named.
        """
        source = zone_source()
        self.assertEqual((source.kind, source.path), ("package", "tzdata"))
        self.assertRegex(source.version or "", r"^20[0-9]{2}[a-z]$")

    def test_none(self) -> None:
        """
        Where there is neither, that is said.
        """
        self.hide_package()
        source = zone_source()
        self.assertEqual((source.kind, source.path, source.version), ("none", None, None))

    def test_digest(self) -> None:
        """
        Two sets of rules have two digests even if neither tells its version.
        """
        self.put("Area/Here", zone_file("AAA5"))
        parse("@daily", zone="Area/Here")
        before = zone_source().digest
        self.put("Area/Here", zone_file("AAA6"))
        reload_zones()
        self.assertNotEqual(zone_source().digest, before)
