"""
Tests of cronstable.schedule.tzif, zones, zonefiles and localzone: rules of time zones.
"""

from __future__ import annotations

import os
import time
from datetime import datetime, timezone
from pathlib import Path
from random import Random
from unittest import mock
from zoneinfo import ZoneInfo

from twisted.trial.unittest import SynchronousTestCase

from cronstable.schedule import (
    NoZoneData,
    ScheduleError,
    UnknownZone,
    parse,
    reload_zones,
    zone_named,
    zone_source,
)
from cronstable.schedule.localzone import LocalZone, probed
from cronstable.schedule.tzif import (
    BadZoneData,
    Offsets,
    fixed,
    offsets_from,
    parse_rule,
    parse_zone_file,
)
from cronstable.schedule.zonefiles import names
from tests.schedule.support import ZoneTreeTestCase, at, utc, zone_file

NEW_YORK = "EST5EDT,M3.2.0,M11.1.0"


class OffsetsTests(SynchronousTestCase):
    """
    The tables of offsets.
    """

    def test_every_zone(self) -> None:
        """
        Every zone has the offsets that the standard library finds, from 1970 to 2099.
        """
        random = Random(1)
        for name in sorted(names() - {"UTC"}):
            if name.startswith(("right/", "posix/")):
                continue
            ours, other = zone_named(name).offsets, ZoneInfo(name)
            moments = [random.randrange(4_102_444_800) for _ in range(20)]
            for start in random.sample(ours.starts, min(12, len(ours.starts))):
                moments += [start - 1, start] if start > 0 else []
            for moment in moments:
                expected = datetime.fromtimestamp(moment, timezone.utc).astimezone(other)
                offset = expected.utcoffset()
                assert offset is not None
                self.assertEqual(ours.at(moment), offset.total_seconds(), (name, utc(moment)))

    def test_equal_neighbours_join(self) -> None:
        """
        A change that changes nothing, and one that is replaced at once, leave no trace.
        """
        offsets = offsets_from(0, [(10, 0), (20, 60), (20, 120), (30, 120)])
        self.assertEqual((offsets.starts[1:], offsets.offsets), ((20,), (0, 120)))

    def test_damage(self) -> None:
        """
        Anything but a whole zone file is refused, wherever it is cut or changed.
        """
        data = zone_file(NEW_YORK, -18000, [(100, -14400), (200, -18000)])
        parse_zone_file(data)
        for end in range(len(data)):
            self.assertRaises(BadZoneData, parse_zone_file, data[:end])
        self.assertRaises(BadZoneData, parse_zone_file, b"")
        self.assertRaises(BadZoneData, parse_zone_file, bytes(range(256)) * 4)
        random = Random(2)
        for _ in range(2000):
            spoiled = bytearray(data)
            for _ in range(random.randint(1, 4)):
                spoiled[random.randrange(len(data))] = random.randrange(256)
            try:
                parse_zone_file(bytes(spoiled))
            except BadZoneData:
                continue

    def test_leap_seconds(self) -> None:
        """
        A file that counts leap seconds is refused, since the clock does not.
        """
        data = bytearray(zone_file("UTC0"))
        second = data.index(b"TZif", 4)
        data[second + 31] = 1
        self.assertIn("leap", str(self.assertRaises(BadZoneData, parse_zone_file, bytes(data))))

    def test_old_format(self) -> None:
        """
        A file of the first format, without a closing rule, keeps its last offset.
        """
        data = bytearray(zone_file("", 0, [(1000, 3600)]))
        data[4:5] = b"\0"
        offsets = parse_zone_file(bytes(data[: data.index(b"TZif", 4)]))
        self.assertEqual([offsets.at(999), offsets.at(1000), offsets.at(4e9)], [0, 3600, 3600])

    def test_odd_offsets(self) -> None:
        """
        An offset of more than a day is refused.
        """
        self.assertRaises(BadZoneData, parse_zone_file, zone_file("", 100_000))


class RuleTests(SynchronousTestCase):
    """
    POSIX TZ texts.
    """

    def offsets(self, text: str) -> Offsets:
        """
        The offsets of a text alone.
        """
        rule = parse_rule(text)
        return offsets_from(rule.standard, rule.changes(1969))

    def test_against_library(self) -> None:
        """
        Rules of all shapes change when the C library says so.
        """
        self.addCleanup(time.tzset)
        random = Random(3)
        for text in (
            *("UTC0", "<+0330>-3:30", "XYZ+4:30:15", "AAA-23:59:59"),
            *(NEW_YORK, "CET-1CEST,M3.5.0,M10.5.0/3", "<-02>2<-01>,M3.5.0/-1,M10.5.0/0"),
            *("IST-1GMT0,M10.5.0,M3.5.0/1", "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0"),
            *("EET-2EEST,M3.4.4/50,M10.4.4/50", "AAA3BBB,J60/0,J300", "AAA3BBB,59/0,299/23"),
            *("AAA3BBB,J59,J60/3", "XXX3EDT4,0/0,J365/23", "AAA-3BBB-4:30,M9.1.6/24,M4.1.6/24"),
        ):
            with mock.patch.dict(os.environ, {"TZ": text}):
                time.tzset()
                ours = parse_zone_file(zone_file(text))
                moments = [random.randrange(4_102_000_000) for _ in range(200)]
                for start in ours.starts[3:]:
                    moments += [start - 1, start]
                for moment in moments:
                    expected = time.localtime(moment).tm_gmtoff
                    self.assertEqual(ours.at(moment), expected, (text, utc(moment)))

    def test_default_dates(self) -> None:
        """
        A rule with a summer name and no dates follows the dates that the C library takes.
        """
        self.assertEqual(self.offsets("EST5EDT"), self.offsets(NEW_YORK))

    def test_refused(self) -> None:
        """
        What is no rule is refused.
        """
        for text in (
            *(
                "",
                "EST",
                "5",
                "AAA24",
                "AAA5BBB-24",
                "EST5EDT,",
                "EST5EDT,M3.2.0",
                "EST5EDT,M13.1.0,M11.1.0",
            ),
            *("EST5EDT,M3.6.0,M11.1.0", "EST5EDT,J0,J9", "EST5EDT,366,9", "Europe/Berlin"),
            *("EST5EDT,M3.2.0,M11.1.0,M1.1.1", "EST5EDT,M3.2.7,M11.1.0"),
        ):
            self.assertRaises(BadZoneData, parse_rule, text)


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
        self.put("Area/Cut", zone_file(NEW_YORK)[:60])
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
