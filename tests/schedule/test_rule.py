"""
The engine against a plain reading of the fire-set rule, over random schedules, zones and years.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import date, datetime, timedelta, timezone
from random import Random
from zoneinfo import ZoneInfo

from twisted.trial.unittest import SynchronousTestCase

from cronstable.schedule import parse, zone_named
from tests.schedule.generate import Sample, sample
from tests.schedule.support import EPOCH

ZONES = (
    *("America/New_York", "Europe/Berlin", "Europe/Dublin", "Australia/Lord_Howe"),
    *("Antarctica/Troll", "America/Santiago", "Africa/Casablanca", "Pacific/Apia"),
    *("Asia/Beirut", "America/St_Johns", "Pacific/Chatham", "America/Havana"),
    *("Asia/Pyongyang", "Atlantic/Azores", "Africa/Monrovia", "Pacific/Kwajalein"),
)
HOUR = 3600
FIRST, LAST = 10 * 24 * HOUR, 4_102_000_000


def instants_of(label: datetime, zone: ZoneInfo, straight: bool) -> list[int]:
    """
    When a label fires: once, at its first occurrence, or in both if the hour is unrestricted.
    """
    found = []
    for fold in (0, 1):
        moment = label.replace(tzinfo=zone, fold=fold)
        real = moment.astimezone(timezone.utc)
        if real.astimezone(zone).replace(tzinfo=None) == label or not fold:
            found.append(int((real - EPOCH).total_seconds()))
        if not straight:
            break
    return found


def fires(what: Sample, zone: ZoneInfo, first: date, days: int) -> list[int]:
    """
    All fires of the labels of some days, ascending and distinct.
    """
    found: set[int] = set()
    for at in range(days):
        for label in what.labels(first + timedelta(days=at)):
            found.update(instants_of(label, zone, what.hour_unrestricted))
    return sorted(found)


class FireSetTests(SynchronousTestCase):
    """
    next, previous and occurrences agree with the rule read literally.
    """

    def _check(self, random: Random, centre: int, name: str) -> None:
        what = sample(random, seconds=0.05, years=0.05)
        if len(what.hours) * len(what.minutes) * len(what.seconds) > 1500:
            return
        schedule = parse(what.text, zone=name)
        middle = datetime.fromtimestamp(centre, timezone.utc).date()
        expected = fires(what, ZoneInfo(name), middle - timedelta(days=4), 9)
        case = f"{what.text} in {name} around {middle}"
        low, high = centre - 40 * HOUR, centre + 40 * HOUR
        inside = expected[bisect_right(expected, low) : bisect_right(expected, high)]
        self.assertEqual(list(schedule.occurrences(low, high)), inside, case)
        self.assertEqual(schedule.count(low, high), len(inside), case)
        moments = [random.uniform(low, high) for _ in range(4)]
        moments += random.sample(inside, min(3, len(inside)))
        for moment in moments:
            after = expected[bisect_right(expected, moment) :]
            fire = schedule.next(moment)
            if after and after[0] <= high:
                self.assertEqual(fire, after[0], f"{case}: next after {moment}")
            else:
                self.assertTrue(fire is None or fire > high, f"{case}: next after {moment}")
            before = expected[: bisect_left(expected, moment)]
            fire = schedule.previous(moment)
            if before and before[-1] >= low:
                self.assertEqual(fire, before[-1], f"{case}: previous to {moment}")
            else:
                self.assertTrue(fire is None or fire < low, f"{case}: previous to {moment}")

    def test_around_changes(self) -> None:
        """
        Around clock changes of many zones, from 1970 to the last year.
        """
        random = Random(20260329)
        for _ in range(700):
            name = random.choice(ZONES)
            changes = [at for at in zone_named(name).offsets.starts if FIRST < at < LAST]
            self._check(random, random.choice(changes), name)

    def test_at_random(self) -> None:
        """
        At random instants, in random zones.
        """
        random = Random(19700101)
        for _ in range(200):
            centre = random.randrange(FIRST, LAST)
            self._check(random, centre, random.choice(ZONES))


class DateTests(SynchronousTestCase):
    """
    Sparse schedules, whose next date may be years away.
    """

    def test_dates(self) -> None:
        """
        The next and the previous date are what a walk over the days finds, or never at all.
        """
        random = Random(28)
        for _ in range(250):
            what = sample(random, seconds=0.0, years=0.3)
            schedule = parse(what.text)
            start = date(random.randint(1971, 2098), random.randint(1, 12), random.randint(1, 28))
            noon = (start - date(1970, 1, 1)).days * 86400
            expected = self._walk(what, start, 1)
            fire = schedule.next(noon - 1)
            self.assertEqual(fire and fire // 86400, expected, f"{what.text} from {start}")
            expected = self._walk(what, start - timedelta(days=1), -1)
            fire = schedule.previous(noon)
            self.assertEqual(fire and fire // 86400, expected, f"{what.text} before {start}")

    def _walk(self, what: Sample, day: date, step: int) -> int | None:
        while 1970 <= day.year <= 2099:
            if what.selects(day):
                return (day - date(1970, 1, 1)).days
            day += timedelta(days=step)
        return None


class LabelTests(SynchronousTestCase):
    """
    test() on wall-clock labels.
    """

    def test_labels(self) -> None:
        """
        A label matches exactly if every field selects it.
        """
        random = Random(7)
        for _ in range(400):
            what = sample(random)
            schedule = parse(what.text)
            for _ in range(20):
                moment = random.randrange(4_102_000_000)
                label = datetime.fromtimestamp(moment, timezone.utc).replace(tzinfo=None)
                if random.random() < 0.5:
                    minute = random.choice(sorted(what.minutes))
                    second = random.choice(sorted(what.seconds))
                    label = label.replace(minute=minute, second=second, microsecond=5)
                expected = (
                    what.selects(label.date())
                    and label.hour in what.hours
                    and label.minute in what.minutes
                    and label.second in what.seconds
                )
                self.assertIs(schedule.test(label), expected, f"{what.text} at {label}")
