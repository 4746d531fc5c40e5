"""
The recorded fires of the daemon that this one replaces, and the rulings that differ from them.
"""

from __future__ import annotations

import os
from datetime import datetime
from itertools import islice
from math import floor
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from cronstable.schedule import Schedule, ScheduleError, parse
from tests.schedule.support import ROOT, VECTORS, at, load, utc

CRON = VECTORS / "cron"


def chained(schedule: Schedule, start: float, count: int) -> list[int]:
    """
    The fires found by asking for the next one again and again.
    """
    fires: list[int] = []
    moment = start
    while len(fires) < count:
        fire = schedule.next(moment)
        if fire is None:
            break
        fires.append(fire)
        moment = fire
    return fires


class NextFiresTests(SynchronousTestCase):
    """
    next_fires.json, with the entries that superseded.json replaces.
    """

    def setUp(self) -> None:
        """
        Read both files and join them.
        """
        superseded = {entry["id"]: entry for entry in load(CRON / "superseded.json")["vectors"]}
        self.vectors = load(CRON / "next_fires.json")["vectors"]
        self.vectors = [{**vector, **superseded.get(vector["id"], {})} for vector in self.vectors]

    def _parsed(self, vector: dict[str, Any]) -> Schedule:
        return parse(vector["expr"], key=vector["hash_key"], zone=vector["tz"])

    def test_errors(self) -> None:
        """
        What the recorded daemon refuses, and what it is too kind about, is refused.
        """
        refused = [
            vector
            for vector in self.vectors
            if vector["outcome"] == "error" or vector["group"] == "lenient-parse"
        ]
        self.assertGreater(len(refused), 90)
        for vector in refused:
            error = self.assertRaises(ScheduleError, self._parsed, vector)
            self.assertNotEqual(str(error), "", vector["id"])

    def _fires(self) -> list[dict[str, Any]]:
        return [
            vector
            for vector in self.vectors
            if vector["outcome"] != "error" and vector["group"] != "lenient-parse"
        ]

    def test_fires(self) -> None:
        """
        The next five fires are the recorded ones, chained and iterated.
        """
        compared = 0
        for vector in self._fires():
            if vector["fires_utc"] is None:
                continue
            schedule, start = self._parsed(vector), at(vector["start_utc"])
            expected = [int(at(fire)) for fire in vector["fires_utc"]]
            self.assertEqual(chained(schedule, start, 5), expected, vector["id"])
            self.assertEqual(list(islice(schedule.occurrences(start), 5)), expected, vector["id"])
            compared += 1
        self.assertGreater(compared, 900)

    def test_previous(self) -> None:
        """
        The fire before the start is the recorded one.
        """
        for vector in self._fires():
            if vector["fires_utc"] is None:
                continue
            expected = None if vector["prev_utc"] is None else int(at(vector["prev_utc"]))
            found = self._parsed(vector).previous(at(vector["start_utc"]))
            self.assertEqual(found, expected, vector["id"])

    def test_recomputed(self) -> None:
        """
        Entries that are to be worked out by rule fire on every real hour around the repeated one.
        """
        recomputed = [vector for vector in self._fires() if vector["fires_utc"] is None]
        self.assertGreater(len(recomputed), 0)
        for vector in recomputed:
            self.assertEqual(vector["expr"], "@hourly", vector["id"])
            schedule, start = self._parsed(vector), at(vector["start_utc"])
            expected = [
                instant
                for instant in range(floor(start / 60) * 60 + 60, floor(start) + 8 * 3600, 60)
                if (instant + schedule.offset(instant)) % 3600 == 0
            ]
            self.assertEqual(chained(schedule, start, 5), expected[:5], vector["id"])

    def test_resolved(self) -> None:
        """
        Hashed slots resolve to the recorded values, and the source text stays.
        """
        hashed = [vector for vector in self._fires() if "resolved" in vector]
        self.assertGreater(len(hashed), 80)
        for vector in hashed:
            schedule = self._parsed(vector)
            self.assertEqual(schedule.resolved, vector["resolved"], vector["id"])
            self.assertEqual(schedule.text, " ".join(vector["expr"].split()))
            self.assertTrue(schedule.hashed)

    def test_never(self) -> None:
        """
        Schedules that the calendar makes impossible are known as such from the start.
        """
        for vector in self._fires():
            schedule = self._parsed(vector)
            if vector["group"] == "never":
                self.assertEqual(schedule.never, vector["prev_utc"] is None, vector["id"])
            elif vector["fires_utc"]:
                self.assertFalse(schedule.never, vector["id"])


class RepeatedHourTests(SynchronousTestCase):
    """
    repeated_hour.json: what holds around the repeated hour.
    """

    def setUp(self) -> None:
        """
        Read the file.
        """
        self.vectors = load(CRON / "repeated_hour.json")["vectors"]

    def test_next(self) -> None:
        """
        The recorded fires come first, chained and iterated; some lists end with their window.
        """
        for vector in self.vectors:
            schedule, start = parse(vector["expr"], zone=vector["tz"]), at(vector["start"])
            expected = [int(at(fire)) for fire in vector["next"]]
            case = (vector["expr"], vector["tz"], vector["start"])
            self.assertEqual(chained(schedule, start, len(expected)), expected, case)
            iterated = list(islice(schedule.occurrences(start), len(expected)))
            self.assertEqual(iterated, expected, case)

    def test_previous(self) -> None:
        """
        The fire before is the recorded one, where the window held one.
        """
        for vector in self.vectors:
            if vector["previous"] is not None:
                schedule = parse(vector["expr"], zone=vector["tz"])
                self.assertEqual(schedule.previous(at(vector["start"])), at(vector["previous"]))

    def test_unrestricted(self) -> None:
        """
        Whether the hour is unrestricted depends on the values, not on the spelling.
        """
        for vector in self.vectors:
            schedule = parse(vector["expr"], zone=vector["tz"])
            self.assertIs(schedule.hour_unrestricted, vector["hour_unrestricted"])


def golden_path() -> Path:
    """
    Where the other daemon's own corpus is looked for.
    """
    named = os.environ.get("CRONSTABLE_GOLDEN")
    return Path(named) if named else ROOT.parent / "shared/vectors/cron/reference_golden.json"


class GoldenTests(SynchronousTestCase):
    """
    The other daemon's own corpus, which is read in place and never copied.
    """

    def setUp(self) -> None:
        """
        Read the corpus, or skip.
        """
        path = golden_path()
        if not path.exists():
            raise SkipTest(f"no corpus at {path}; name one in CRONSTABLE_GOLDEN")
        self.golden = load(path)
        self.accepted = {text: entry for text, entry in self.golden["exprs"].items() if entry["ok"]}

    def test_refused(self) -> None:
        """
        Every text that must be refused is refused.
        """
        for text, entry in self.golden["exprs"].items():
            if not entry["ok"]:
                self.assertRaises(ScheduleError, parse, text)

    def test_naive(self) -> None:
        """
        The delay to the next label is the recorded one from every start without a zone.
        """
        for text, entry in self.accepted.items():
            schedule = parse(text, zone=None)
            for start, delay in zip(self.golden["naive_next_nows"], entry["next"], strict=True):
                fire = schedule.next(at(start))
                self._compare(fire, at(start), delay, (text, start))

    def test_match(self) -> None:
        """
        The fields match the recorded labels and no others.
        """
        for text, entry in self.accepted.items():
            schedule = parse(text)
            for label, verdict in zip(self.golden["test_dts"], entry["test"], strict=True):
                found = schedule.test(datetime.fromisoformat(label))
                self.assertIs(found, verdict, (text, label))

    def test_aware(self) -> None:
        """
        The delay is the recorded one in every zone, but for the second leg of a repeated hour.

        Excluded by rule: schedules of an unrestricted hour with a fire in a second leg before
        the recorded answer. They must fire there, and nowhere earlier.
        """
        excluded = 0
        for text, entry in self.accepted.items():
            if "aware_next" not in entry:
                continue
            for start, delay in zip(
                self.golden["aware_next_nows"], entry["aware_next"], strict=True
            ):
                schedule = parse(text, zone=start["tz"])
                now = self._instant(start)
                fire = schedule.next(now)
                if schedule.hour_unrestricted and self._in_second_leg(schedule, fire):
                    assert fire is not None
                    self.assertTrue(delay is None or fire <= round(now + delay), (text, start))
                    excluded += 1
                    continue
                self._compare(fire, now, delay, (text, start))
        self.assertGreater(excluded, 0)

    def test_equality(self) -> None:
        """
        Two spellings are one schedule exactly where the corpus says so.
        """
        for pair in self.golden["equality"]:
            first, second = parse(pair["a"]), parse(pair["b"])
            self.assertIs(first == second, pair["equal"], pair)
            if pair["equal"]:
                self.assertEqual(hash(first), hash(second))

    def _compare(self, fire: int | None, now: float, delay: float | None, case: object) -> None:
        if delay is None or fire is None:
            self.assertIs(fire, delay, case)
        else:
            self.assertAlmostEqual(fire - now, delay, delta=1e-5, msg=f"{case} {utc(fire)}")

    def _instant(self, start: dict[str, Any]) -> float:
        zone = ZoneInfo(start["tz"])
        label = datetime.fromisoformat(start["dt"]).replace(fold=start["fold"], tzinfo=zone)
        return label.timestamp()

    def _in_second_leg(self, schedule: Schedule, fire: int | None) -> bool:
        if fire is None:
            return False
        offsets = schedule.frame.offsets
        label = fire + offsets.at(fire)
        return any(
            label - offset < fire and offsets.at(label - offset) == offset
            for offset in set(offsets.offsets)
        )
