"""
Tests of cronstable.schedule.timetable: the operations on a schedule.
"""

from __future__ import annotations

import pickle
from datetime import datetime
from itertools import islice
from random import Random

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.schedule import Schedule, parse, vixie_reading
from tests.schedule.support import at, utc


class NextTests(SynchronousTestCase):
    """
    next and previous at the edges.
    """

    def test_strictly(self) -> None:
        """
        A fire is after, and before, itself by any fraction of a second, and not at zero.
        """
        noon = int(at("2026-01-07T12:00:00"))
        schedule = parse("0 12 * * *")
        self.assertEqual(schedule.next(noon), noon + 86400)
        self.assertEqual(schedule.next(noon - 0.000001), noon)
        self.assertEqual(schedule.next(noon + 0.000001), noon + 86400)
        self.assertEqual(schedule.previous(noon), noon - 86400)
        self.assertEqual(schedule.previous(noon + 0.000001), noon)
        self.assertEqual(schedule.previous(noon - 0.000001), noon - 86400)

    def test_floor(self) -> None:
        """
        Nothing fires before 1970 by label, whichever way one looks.
        """
        schedule = parse("0 0 * * *", zone="Europe/Berlin")
        first = int(at("1970-01-01T00:00:00+01:00"))
        self.assertEqual(schedule.next(-1e10), first)
        self.assertIsNone(schedule.previous(first))
        self.assertEqual(schedule.previous(first + 1), first)
        self.assertEqual(parse("0 0 * * *").previous(0.5), 0)
        self.assertIsNone(parse("0 0 * * *").previous(0))

    def test_horizon(self) -> None:
        """
        The last label is in 2099, also when its instant lies in 2100; later there is none.
        """
        schedule = parse("59 59 23 31 12 * *", zone="America/New_York")
        last = int(at("2100-01-01T04:59:59Z"))
        self.assertEqual(schedule.next(last - 1), last)
        self.assertIsNone(schedule.next(last))
        self.assertEqual(schedule.previous(last + 1), last)
        self.assertEqual(schedule.previous(1e12), last)
        self.assertIsNone(schedule.next(1e12))
        self.assertEqual(list(schedule.occurrences(last - 1)), [last])

    def test_never(self) -> None:
        """
        An impossible schedule answers none to everything.
        """
        schedule = parse("0 0 30 2 *", zone="Europe/Paris")
        self.assertTrue(schedule.never)
        self.assertIsNone(schedule.next(0))
        self.assertIsNone(schedule.previous(4e9))
        self.assertEqual(list(schedule.occurrences(0)), [])
        self.assertEqual(schedule.count(0, 4e9), 0)
        self.assertFalse(schedule.matches(at("2026-02-28")))

    def test_finished(self) -> None:
        """
        A schedule whose years are over is not impossible: it has a past.
        """
        schedule = parse("0 0 1 1 * 2020")
        self.assertFalse(schedule.never)
        self.assertIsNone(schedule.next(at("2026-01-01")))
        self.assertEqual(schedule.previous(at("2026-01-01")), at("2020-01-01"))

    def test_naive(self) -> None:
        """
        Without a zone, labels are counted as if they were UTC.
        """
        schedule = parse("30 2 * * *", zone=None)
        self.assertIsNone(schedule.zone)
        self.assertEqual(utc(schedule.next(at("2026-03-08T00:00:00"))), "2026-03-08T02:30:00+00:00")


class OccurrencesTests(SynchronousTestCase):
    """
    occurrences and count.
    """

    def test_bounds(self) -> None:
        """
        The first instant is left out, the last one is not.
        """
        schedule = parse("*/10 * * * *")
        start = int(at("2026-01-01T00:00:00"))
        self.assertEqual(
            list(schedule.occurrences(start, start + 1200)), [start + 600, start + 1200]
        )
        self.assertEqual(list(schedule.occurrences(start - 0.5, start + 599.9)), [start])
        self.assertEqual(list(schedule.occurrences(start, start)), [])
        self.assertEqual(list(schedule.occurrences(start + 99, start)), [])

    def test_endless(self) -> None:
        """
        Without an end the iterator goes on, lazily, to the end of 2099.
        """
        schedule = parse("0 0 1 1 *")
        fires = list(schedule.occurrences(at("2026-06-01")))
        self.assertEqual(len(fires), 2099 - 2026)
        every_second = parse("* * * * * * *").occurrences(at("2026-01-01"))
        self.assertEqual(len(list(islice(every_second, 5))), 5)

    def test_shifted_labels_that_meet(self) -> None:
        """
        Labels that a gap moves onto the same instant are one fire.
        """
        schedule = parse("0,30 2-3 * * *", zone="America/New_York")
        fires = schedule.occurrences(at("2026-03-08T06:00:00Z"), at("2026-03-08T09:00:00Z"))
        self.assertEqual(
            list(map(utc, fires)), ["2026-03-08T07:00:00+00:00", "2026-03-08T07:30:00+00:00"]
        )

    def test_count(self) -> None:
        """
        A count is of what is after the one instant and not after the other.
        """
        schedule = parse("* * * * *")
        start = at("2026-01-01")
        self.assertEqual(schedule.count(start, start + 3600), 60)
        self.assertEqual(schedule.count(start - 1, start + 3600), 61)
        self.assertEqual(schedule.count(start, start), 0)
        self.assertEqual(schedule.count(start, start - 1), 0)
        self.assertEqual(schedule.count(start, start + 600_000_000.5), 10_000_000)

    def test_count_agrees(self) -> None:
        """
        A count is the number of occurrences, over gaps, repeated labels and ends of all kinds.
        """
        random = Random(11)
        texts = (
            "* * * * *",
            "*/7 * * * *",
            "30 2 * * *",
            "0,59 0-3,22-23 * * *",
            "15 1-4 * 3,10-11 0",
            "*/20 * 3 31,L * * *",
            "7 5 2 28-29 2 * 2024-2032",
        )
        zones = (None, "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Gaza")
        for text in texts:
            for zone in zones:
                schedule = parse(text, zone=zone)
                for _ in range(12):
                    low = random.uniform(-3e7, 1.9e9)
                    high = low + random.choice((60, 4e3, 9e4, 3e6, 4e7)) * random.random()
                    found = schedule.count(low, high)
                    listed = sum(1 for _ in schedule.occurrences(low, high))
                    self.assertEqual(found, listed, (text, zone, low, high))


class MatchTests(SynchronousTestCase):
    """
    test on labels, matches on instants.
    """

    def test_label(self) -> None:
        """
        Microseconds do not count, seconds do; without a year column any year will do.
        """
        schedule = parse("30 2 * * *")
        self.assertTrue(schedule.test(datetime(2150, 1, 1, 2, 30, 0, 999999)))
        self.assertFalse(schedule.test(datetime(2150, 1, 1, 2, 30, 1)))
        self.assertTrue(schedule.test(datetime(1950, 1, 1, 2, 30)))
        self.assertFalse(parse("30 2 * * * */1").test(datetime(2150, 1, 1, 2, 30)))

    def test_slot(self) -> None:
        """
        Any moment of a fire's minute is in its slot; with a seconds column only its second is.
        """
        schedule = parse("30 2 * * *")
        half_past = at("2026-01-01T02:30:00")
        self.assertTrue(schedule.matches(half_past))
        self.assertTrue(schedule.matches(half_past + 59.9))
        self.assertFalse(schedule.matches(half_past + 60))
        self.assertFalse(schedule.matches(half_past - 0.1))
        by_second = parse("0,20 30 2 * * * *")
        self.assertTrue(by_second.matches(half_past + 20.9))
        self.assertFalse(by_second.matches(half_past + 21))

    def test_slot_of_a_gap(self) -> None:
        """
        A fire that a gap has moved is a fire of the slot that it was moved to.
        """
        schedule = parse("30 2 * * *", zone="America/New_York")
        self.assertTrue(schedule.matches(at("2026-03-08T07:30:30Z")))
        self.assertFalse(schedule.matches(at("2026-03-08T06:30:30Z")))

    def test_second_leg(self) -> None:
        """
        In a repeated hour the second leg is a slot only where the hour is unrestricted.
        """
        moment = at("2026-11-01T06:30:30Z")
        self.assertFalse(parse("30 1 * * *", zone="America/New_York").matches(moment))
        self.assertTrue(parse("30 * * * *", zone="America/New_York").matches(moment))

    def test_odd_offset(self) -> None:
        """
        A minute is a minute of the wall clock, also where offsets have seconds.
        """
        schedule = parse("30 2 * * *", zone="Africa/Monrovia")
        fire = schedule.next(at("1970-06-01"))
        assert fire is not None
        self.assertNotEqual(fire % 60, 0)
        self.assertTrue(schedule.matches(fire + 59))
        self.assertFalse(schedule.matches(fire + 60))


class ValueTests(SynchronousTestCase):
    """
    A schedule as a value.
    """

    def test_frozen(self) -> None:
        """
        A schedule cannot be changed.
        """
        schedule = parse("@daily")
        self.assertRaises(attrs.exceptions.FrozenInstanceError, setattr, schedule, "text", "x")

    def test_pickle(self) -> None:
        """
        A schedule crosses to another process whole, in its zone, with hashed slots resolved.
        """
        for schedule in (
            parse("H H * * *", key="a", zone="Europe/Paris"),
            parse("*/5 * * * * * *", local=True),
            parse("@daily", zone=None),
            vixie_reading(parse("0 0 13 * 5")),
        ):
            copy = pickle.loads(pickle.dumps(schedule))
            self.assertEqual(copy, schedule)
            self.assertEqual(
                (copy.text, copy.resolved, copy.zone, copy.seconds_level),
                (schedule.text, schedule.resolved, schedule.zone, schedule.seconds_level),
            )

    def test_shared(self) -> None:
        """
        Schedules of one text share what was read.
        """
        first, second = parse("*/5 * * * *"), parse("*/5 * * * *", zone="Europe/Paris")
        self.assertIs(first.expression, second.expression)


class VixieReadingTests(SynchronousTestCase):
    """
    How classic cron would take a schedule.
    """

    def test_same(self) -> None:
        """
        It is the same one where at most one day field counts, or one begins with a star.
        """
        for text in (
            "0 0 13 * *",
            "0 0 * * 5",
            "0 0 */2 * 1",
            "0 0 13 * */2",
            "0 0 ? * 1",
            "@daily",
        ):
            schedule = parse(text)
            self.assertIs(vixie_reading(schedule), schedule)

    def test_either(self) -> None:
        """
        Two restricted fields are joined by OR, and a full list of days is no star.
        """
        self.assertEqual(self._days(parse("0 0 13 * 5"), 4), [2, 9, 13, 16])
        self.assertEqual(self._days(parse("0 0 1-31 * 1"), 4), [1, 2, 3, 4])
        self.assertEqual(self._days(parse("30 0 0 13 * 5 *"), 4), [2, 9, 13, 16])
        self.assertNotEqual(vixie_reading(parse("0 0 13 * 5")), parse("0 0 13 * 5"))

    def _days(self, schedule: Schedule, count: int) -> list[int]:
        fires = vixie_reading(schedule).occurrences(at("2026-01-01") - 1)
        return [datetime.fromisoformat(utc(fire) or "").day for fire in islice(fires, count)]
