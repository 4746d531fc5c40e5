"""
Tests of cronstable.schedule.tzif: compiled zone files and POSIX rules.
"""

from __future__ import annotations

import os
import time
from datetime import datetime, timezone
from random import Random
from unittest import mock
from zoneinfo import ZoneInfo

from twisted.trial.unittest import SynchronousTestCase

from cronstable.schedule import zone_named
from cronstable.schedule.tzif import (
    BadZoneData,
    Offsets,
    offsets_from,
    parse_rule,
    parse_zone_file,
)
from cronstable.schedule.zonefiles import names
from tests.schedule.support import utc, zone_file

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
