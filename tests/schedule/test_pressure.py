"""
Tests of cronstable.schedule.pressure, suggest and duplicates, against recorded answers.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from cronstable.schedule import UnknownZone, parse, zone_named
from cronstable.schedule.duplicates import duplicates
from cronstable.schedule.pressure import Pressure, pressure
from cronstable.schedule.suggest import BadPeriod, suggest, suggestion
from tests.schedule.fleet import LocalUtcTestCase, fleet, recorded
from tests.schedule.generate import sample
from tests.schedule.support import at


class PressureTests(LocalUtcTestCase):
    """
    Runs per minute of the day.
    """

    def test_recorded(self) -> None:
        """
        The recorded fleet puts the recorded pressure on the recorded minutes.
        """
        expected = recorded("schedule-pressure")
        answer = pressure(
            fleet(), at(expected["start"]), hours=2, zone="Europe/London", disabled=1, reboot=1
        )
        self.assertEqual(answer, expected)

    def test_against_plain_count(self) -> None:
        """
        Counting whole minutes gives what counting every fire gives, around clock changes too.
        """
        random = Random(23)
        zones = ("America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC")
        for _ in range(60):
            what = sample(random, seconds=0.6)
            schedule = parse(what.text, zone=random.choice(zones))
            start = at("2026-10-31T20:00Z") + random.uniform(-2e5, 2e5)
            zone = random.choice(zones)
            tally = Pressure(start, 30, zone)
            tally.add("job", schedule)
            offsets, first = zone_named(zone).offsets, int(start // 60) * 60 + 60
            expected = Counter(
                (fire + offsets.at(fire)) // 60 % 1440
                for fire in schedule.occurrences(first - 1, first + 30 * 3600 - 1)
            )
            found = {cell: fires for cell, fires in enumerate(tally.cells) if fires}
            self.assertEqual(found, dict(expected), f"{what.text} from {start} in {zone}")

    def test_odd_offset(self) -> None:
        """
        Where a zone's minutes are not those of UTC, every fire is counted by itself.
        """
        tally = Pressure(at("1970-06-01"), 1)
        tally.add("job", parse("* * * * * * *", zone="Africa/Monrovia"))
        self.assertEqual(sum(tally.cells), 3600)

    def test_busiest(self) -> None:
        """
        The busiest minute is the one of most jobs, the top cells are those of most fires.
        """
        jobs = [("sec", parse("*/3 10 5 * * * *"))]
        jobs += [(name, parse(text)) for name, text in (("b", "20 6 * * *"), ("c", "20 7 * * *"))]
        answer = pressure(jobs, at("2026-01-01"))
        self.assertEqual(answer["busiest_minute"], {"minute": 20, "jobs": 2, "fires": 2})
        self.assertEqual(
            [(cell["hour"], cell["minute"], cell["fires"]) for cell in answer["top_cells"]],
            [(5, 10, 20), (6, 20, 1), (7, 20, 1)],
        )
        self.assertEqual(len(answer["empty_minutes"]), 58)

    def test_names_are_capped(self) -> None:
        """
        A cell names ten jobs at most, in the order of the configuration.
        """
        jobs = [(f"job-{number}", parse("0 0 * * *")) for number in range(30)]
        (cell,) = pressure(jobs, at("2026-01-01"))["top_cells"]
        self.assertEqual(cell["jobs"], [f"job-{number}" for number in range(10)])
        self.assertEqual(cell["fires"], 30)

    def test_empty(self) -> None:
        """
        No jobs make an answer of the same shape, with nothing in it.
        """
        answer = pressure([], 0)
        self.assertEqual(set(answer), set(recorded("schedule-pressure")))
        self.assertEqual((answer["total_fires"], answer["top_cells"]), (0, []))
        self.assertEqual(answer["empty_minutes"], list(range(60)))

    def test_clamped(self) -> None:
        """
        The window is clamped.
        """
        self.assertEqual([Pressure(0, hours).hours for hours in (-1, 0, 7, 999)], [1, 1, 7, 168])

    def test_unknown_zone(self) -> None:
        """
        An unknown zone is an error.
        """
        error = self.assertRaises(UnknownZone, pressure, [], 0, zone="Mars/X")
        self.assertEqual(str(error), recorded("schedule-pressure-400")["error"])

    def test_steps(self) -> None:
        """
        The iterator pauses after each job, with everything before it counted.
        """
        tally = Pressure(at("2026-01-01"))
        totals = [sum(tally.cells) for _ in tally.steps([("a", parse("@daily"))] * 3)]
        self.assertEqual(totals, [1, 2, 3])


class SuggestTests(LocalUtcTestCase):
    """
    Quiet minutes.
    """

    def test_recorded(self) -> None:
        """
        The recorded fleet gets the recorded suggestions.
        """
        for name in ("schedule-suggest-hourly", "schedule-suggest-daily"):
            expected = recorded(name)
            answer = suggest(
                fleet(),
                at(expected["based_on"]["start"]),
                period=expected["period"],
                zone=expected["timezone"],
            )
            self.assertEqual(answer, expected)

    def test_idle(self) -> None:
        """
        An idle fleet gets minute 30.
        """
        answer = suggest([], 0)
        self.assertEqual((answer["minute"], answer["expression"]), (30, "30 * * * *"))
        self.assertEqual([other["minute"] for other in answer["alternatives"]], [29, 31])

    def test_errors(self) -> None:
        """
        A bad zone is reported before a bad period.
        """
        error = self.assertRaises(BadPeriod, suggest, [], 0, period="weekly")
        self.assertEqual(str(error), recorded("schedule-suggest-400")["error"])
        self.assertRaises(UnknownZone, suggest, [], 0, period="weekly", zone="Mars/X")
        self.assertRaises(BadPeriod, suggestion, Pressure(0), "yearly")


class DuplicatesTests(LocalUtcTestCase):
    """
    Jobs on one schedule.
    """

    def test_recorded(self) -> None:
        """
        The recorded fleet has the recorded duplicates.
        """
        self.assertEqual(duplicates(fleet()), recorded("schedule-duplicates"))

    def test_groups(self) -> None:
        """
        Largest first, then by expression; the most common spelling, else the first; names sorted.
        """
        jobs = [
            ("z", parse("@hourly")),
            *((name, parse("0 * * * *")) for name in "yx"),
            ("w", parse("0 0 * * 7")),
            ("v", parse("@weekly")),
            ("u", parse("5 5 * * *")),
            ("t", parse("5 5 * * *", zone="Europe/Paris")),
            ("s", parse("1 1 * * *", zone="Europe/Paris")),
            ("r", parse("01 1 * * *", zone="Europe/Paris")),
        ]
        answer = duplicates(jobs)
        self.assertEqual(answer["jobs"], 9)
        self.assertEqual(
            [(group["expression"], group["jobs"]) for group in answer["groups"]],
            [("0 * * * *", ["x", "y", "z"]), ("0 0 * * 7", ["v", "w"]), ("1 1 * * *", ["r", "s"])],
        )
