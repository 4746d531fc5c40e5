"""
What has broken for people who run schedulers, each case with its right answer.
"""

from __future__ import annotations

import time
from itertools import islice, pairwise

from twisted.trial.unittest import SynchronousTestCase

from cronstable.schedule import (
    NoZoneData,
    Schedule,
    ScheduleError,
    UnknownZone,
    describe,
    lint,
    parse,
    reload_zones,
    vixie_reading,
    zone_source,
)
from tests.schedule.support import ZoneTreeTestCase, at, build_tree, utc


def fires(schedule: Schedule, after: str, count: int) -> list[str]:
    """
    The next fires as ISO texts, shortened where they are at full minutes in UTC.
    """
    found = islice(schedule.occurrences(at(after)), count)
    return [(utc(fire) or "").replace(":00+00:00", "Z") for fire in found]


class RepeatedHourTests(SynchronousTestCase):
    """
    Interval schedules when the clocks go back.
    """

    def test_quarter_hours(self) -> None:
        """
        A quarter-hourly job in London is never more than a quarter of an hour apart.
        """
        schedule = parse("*/15 * * * *", zone="Europe/London")
        found = list(islice(schedule.occurrences(at("2026-10-25T00:20Z")), 10))
        self.assertEqual(utc(found[0]), "2026-10-25T00:30:00+00:00")
        self.assertEqual([after - before for before, after in pairwise(found)], [900] * 9)

    def test_hourly(self) -> None:
        """
        An hourly job in Helsinki fires in every real hour.
        """
        schedule = parse("30 * * * *", zone="Europe/Helsinki")
        self.assertEqual(
            fires(schedule, "2026-10-24T23:00Z", 4),
            ["2026-10-24T23:30Z", "2026-10-25T00:30Z", "2026-10-25T01:30Z", "2026-10-25T02:30Z"],
        )

    def test_seconds(self) -> None:
        """
        A job on every twentieth second never pauses.
        """
        schedule = parse("*/20 * * * * * *", zone="Europe/London")
        start = at("2026-10-25T00:20Z")
        found = list(schedule.occurrences(start, start + 7200))
        self.assertEqual(found, [int(start) + 20 * step for step in range(1, 361)])


class DailyTests(SynchronousTestCase):
    """
    Daily jobs on the days of a clock change.
    """

    def test_autumn(self) -> None:
        """
        A nightly job at 02:00 in Berlin runs once when 02:00 comes twice.
        """
        schedule = parse("0 2 * * *", zone="Europe/Berlin")
        self.assertEqual(
            fires(schedule, "2026-10-24T12:00Z", 2), ["2026-10-25T00:00Z", "2026-10-26T01:00Z"]
        )

    def test_spring(self) -> None:
        """
        A job at 02:30 in New York runs once when there is no 02:30, an hour's shift later.
        """
        schedule = parse("30 2 * * *", zone="America/New_York")
        self.assertEqual(
            fires(schedule, "2027-03-13T12:00Z", 2), ["2027-03-14T07:30Z", "2027-03-15T06:30Z"]
        )

    def test_spring_twice(self) -> None:
        """
        Two wall times of which one is missing fall on one instant: one run, and the note says so.
        """
        schedule = parse("30 2,3 * * *", zone="America/New_York")
        self.assertEqual(
            fires(schedule, "2027-03-13T12:00Z", 3),
            ["2027-03-14T07:30Z", "2027-03-15T06:30Z", "2027-03-15T07:30Z"],
        )
        codes = [finding.code for finding in lint(schedule, at("2027-03-01"))]
        self.assertEqual(codes, ["dst-skipped-time"])

    def test_missing_midnight(self) -> None:
        """
        A midnight job in Santiago runs once on the day that has no midnight.
        """
        schedule = parse("0 0 * * *", zone="America/Santiago")
        self.assertEqual(
            fires(schedule, "2026-09-05T12:00Z", 2), ["2026-09-06T04:00Z", "2026-09-07T03:00Z"]
        )


MEXICO_OLD = """\
Rule Mexico 2002 max - Apr Sun>=1 2:00 1:00 D
Rule Mexico 2002 max - Oct lastSun 2:00 0 S
Zone America/Mexico_City -6:00 Mexico C%sT
"""
MEXICO_NEW = """\
Zone America/Mexico_City -6:00 - CST
"""


class ZoneRulesTests(ZoneTreeTestCase):
    """
    Zone rules that a government has changed.
    """

    def test_reload(self) -> None:
        """
        After the tree was replaced and reloaded the next fire moves, and the change is named.
        """
        build_tree(self.tree, MEXICO_OLD, {"America/Mexico_City": "CST6CDT,M4.1.0,M10.5.0"})
        schedule = parse("0 9 * * *", zone="America/Mexico_City")
        before = zone_source()
        self.assertEqual(fires(schedule, "2026-07-01T00:00Z", 1), ["2026-07-01T14:00Z"])
        build_tree(self.tree, MEXICO_NEW, {"America/Mexico_City": "CST6"})
        self.assertEqual(reload_zones(), ("America/Mexico_City",))
        self.assertEqual(fires(schedule, "2026-07-01T00:00Z", 1), ["2026-07-01T15:00Z"])
        self.assertEqual(before.path, str(self.tree))
        self.assertNotEqual(zone_source().digest, before.digest)

    def test_names(self) -> None:
        """
        Near matches are offered, garbage and ways out are refused, old names with files work.
        """
        build_tree(self.tree, MEXICO_NEW, {"America/Mexico_City": "CST6"})
        error = self.assertRaises(UnknownZone, parse, "@daily", zone="America/Mexico_Cty")
        self.assertIn("America/Mexico_City", str(error))
        self.put("Area/Garbage", b"\x93\x00garbage")
        self.assertRaises(UnknownZone, parse, "@daily", zone="Area/Garbage")
        self.assertRaises(UnknownZone, parse, "@daily", zone="../../etc/passwd")
        self.assertEqual(
            fires(parse("0 9 * * *", zone="EST5EDT"), "2026-07-01T00:00Z", 1),
            ["2026-07-01T13:00Z"],
        )

    def test_empty_tree(self) -> None:
        """
        An empty tree is one clear error for all names, when they are read.
        """
        self.hide_package()
        for name in ("America/Mexico_City", "EST5EDT"):
            error = self.assertRaises(NoZoneData, parse, "@daily", zone=name)
            self.assertNotIn(name, str(error))


class DayFieldTests(SynchronousTestCase):
    """
    Stars with steps, OR against AND, names and odd digits.
    """

    def test_and(self) -> None:
        """
        Both day fields count; the classic reading is at hand and differs.
        """
        schedule = parse("0 0 1,15 * 5")
        self.assertEqual(
            fires(schedule, "2026-01-01T00:00Z", 3),
            ["2026-05-01T00:00Z", "2026-05-15T00:00Z", "2027-01-01T00:00Z"],
        )
        self.assertEqual(
            fires(vixie_reading(schedule), "2026-01-01T00:00Z", 4),
            ["2026-01-02T00:00Z", "2026-01-09T00:00Z", "2026-01-15T00:00Z", "2026-01-16T00:00Z"],
        )

    def test_stepped_star(self) -> None:
        """
        A star with a step restricts its field, and both readings agree.
        """
        schedule = parse("0 0 */2 * 1")
        expected = ["2026-01-05T00:00Z", "2026-01-19T00:00Z", "2026-02-09T00:00Z"]
        self.assertEqual(fires(schedule, "2026-01-01T00:00Z", 3), expected)
        self.assertEqual(fires(vixie_reading(schedule), "2026-01-01T00:00Z", 3), expected)
        stepped = parse("0 0 1-31/2 * 1")
        self.assertEqual(fires(stepped, "2026-01-01T00:00Z", 3), expected)
        self.assertEqual(
            fires(vixie_reading(stepped), "2026-01-01T00:00Z", 2),
            ["2026-01-03T00:00Z", "2026-01-05T00:00Z"],
        )

    def test_full_range(self) -> None:
        """
        All days spelled out count as a star here, and as days in classic cron.
        """
        schedule = parse("0 0 1-31 * 1")
        self.assertEqual(fires(schedule, "2026-01-01T00:00Z", 1), ["2026-01-05T00:00Z"])
        classic = vixie_reading(schedule)
        self.assertEqual(fires(classic, "2026-01-01T00:00Z", 1), ["2026-01-02T00:00Z"])
        for reading in (schedule, parse("0 0 1,15 * 5")):
            self.assertNotEqual(lint(reading, 0), ())

    def test_steps_and_ranges(self) -> None:
        """
        Steps start at their value, weekday 7 is Sunday, an uneven step is remarked on.
        """
        self.assertEqual(
            fires(parse("5/15 * * * *"), "2026-01-01T00:00Z", 5)[3:],
            ["2026-01-01T00:50Z", "2026-01-01T01:05Z"],
        )
        self.assertEqual(
            fires(parse("0 0 * * 5-7"), "2026-01-01T00:00Z", 3),
            ["2026-01-02T00:00Z", "2026-01-03T00:00Z", "2026-01-04T00:00Z"],
        )
        codes = [finding.code for finding in lint(parse("*/40 * * * *"), 0)]
        self.assertEqual(codes, ["uneven-step"])

    def test_refused(self) -> None:
        """
        Wrapping ranges, zero steps, hour 24 and odd numerals are errors; a wrap says so.
        """
        for text in (
            *("*/0 * * * *", "0 24 * * *", "1_0 * * * *", "٣ * * * *", "0\u00a00 * * *"),
            "0 0 * * fri-mon",
        ):
            self.assertRaises(ScheduleError, parse, text)
            self.assertEqual(describe(text), f"Custom schedule: {text}")
        error = self.assertRaises(ScheduleError, parse, "0 0 * * fri-mon")
        self.assertIn("wrap", str(error))


class LeapDayTests(SynchronousTestCase):
    """
    29 February, and days that never come.
    """

    def test_leap_days(self) -> None:
        """
        Asked on a leap day, just before its hour, and when it must be a Monday.
        """
        schedule = parse("0 9 29 2 *")
        self.assertEqual(utc(schedule.next(at("2028-02-29T09:00Z"))), "2032-02-29T09:00:00+00:00")
        self.assertEqual(
            utc(schedule.next(at("2028-02-29T08:59:59Z"))), "2028-02-29T09:00:00+00:00"
        )
        monday = parse("0 0 29 2 1")
        self.assertEqual(utc(monday.next(at("2026-01-01"))), "2044-02-29T00:00:00+00:00")

    def test_horizon(self) -> None:
        """
        After the last leap day before the documented horizon there is none.
        """
        self.assertIsNone(parse("0 9 29 2 *").next(at("2096-03-01")))

    def test_never_costs_nothing(self) -> None:
        """
        Two thousand jobs on an impossible date are read and asked within a fraction of a second.
        """
        started = time.process_time()
        for number in range(2000):
            schedule = parse(f"{number % 60} {number // 60 % 24} 30 2 *", zone="Europe/Berlin")
            self.assertTrue(schedule.never)
            self.assertIsNone(schedule.next(at("2026-01-01")))
        self.assertTrue(parse("0 0 31 4,6,9,11 *").never)
        self.assertLess(time.process_time() - started, 1.0)
