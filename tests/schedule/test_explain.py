"""
Tests of cronstable.schedule.explain, against recorded answers.
"""

from __future__ import annotations

from datetime import datetime, timezone
from random import Random
from typing import Any, ClassVar

from twisted.trial.unittest import SynchronousTestCase

from cronstable.schedule import parse
from cronstable.schedule.explain import why, why_reboot
from cronstable.schedule.moments import BadTimestamp
from cronstable.schedule.zones import UTC
from tests.schedule.fleet import FLEET, ZONES, query, recorded
from tests.schedule.generate import sample


class WhyTests(SynchronousTestCase):
    """
    Why a schedule does or does not select a moment.
    """

    NAMES: ClassVar = {"off": "0 5 * * *", **dict(FLEET)}

    def test_recorded(self) -> None:
        """
        Every value is the recorded one, but for texts in our own words.
        """
        for name in (
            *("schedule-why", "schedule-why-dag", "schedule-why-disabled"),
            *("schedule-why-hashed-paused", "schedule-why-match-dst"),
        ):
            expected, asked = recorded(name), query(name)
            job = asked["job"]
            schedule = parse(self.NAMES[job], key=job, zone=ZONES.get(job, "UTC"))
            paused = [note["message"] for note in expected["notes"] if note["code"] == "paused"]
            answer = why(
                job,
                schedule,
                asked["at"],
                enabled=expected["enabled"],
                paused=paused[0] if paused else None,
            )
            self.assertEqual(answer, expected)

    def test_reboot(self) -> None:
        """
        A job that runs once per boot is selected by no moment.
        """
        expected, asked = recorded("schedule-why-reboot"), query("schedule-why-reboot")
        answer = why_reboot(asked["job"], UTC, asked["at"])
        for side in (answer, expected):
            self.assertTrue(side["notes"][0].pop("message"))
        self.assertEqual(answer, expected)

    def test_matches_is_test(self) -> None:
        """
        The verdict, the failed fields and the field checks agree with each other and with test().
        """
        random = Random(11)
        for _ in range(400):
            what = sample(random)
            schedule = parse(what.text)
            moment = datetime.fromtimestamp(random.randrange(4_102_000_000), timezone.utc)
            if random.random() < 0.7:
                moment = moment.replace(
                    hour=random.choice(sorted(what.hours)),
                    minute=random.choice(sorted(what.minutes)),
                    second=random.choice(sorted(what.seconds)),
                )
            answer = why("job", schedule, moment.isoformat())
            self.assertIs(answer["matches"], schedule.test(moment.replace(tzinfo=None)), what.text)
            failed = [check["field"] for check in answer["checks"] if not check["matched"]]
            self.assertEqual(answer["failed"], failed)
            self.assertIs(answer["matches"], not failed, what.text)

    def test_day_note(self) -> None:
        """
        A date on which classic cron would have run the job is pointed out, and no other.
        """

        def codes(text: str, moment: str) -> list[str]:
            return [note["code"] for note in why("job", parse(text), moment)["notes"]]

        self.assertEqual(codes("0 0 13 * 5", "2026-01-13T00:00"), ["day-fields-and-rule"])
        self.assertEqual(codes("0 0 13 * 5", "2026-01-16T00:00"), ["day-fields-and-rule"])
        self.assertEqual(codes("0 0 13 * 5", "2026-01-16T00:01"), [])
        self.assertEqual(codes("0 0 13 * 5", "2026-01-14T00:00"), [])
        self.assertEqual(codes("0 0 13 * 5", "2026-02-13T00:00"), [])
        self.assertEqual(codes("0 0 */2 * 1", "2026-01-03T00:00"), [])

    def test_clock_notes(self) -> None:
        """
        A matching time in a gap or in a repeated hour is pointed out, with what happens.
        """

        def answer(text: str, moment: str) -> dict[str, Any]:
            return why("job", parse(text, zone="America/New_York"), moment)

        gap = answer("30 2 * * *", "2027-03-14T02:30")
        self.assertEqual([note["code"] for note in gap["notes"]], ["dst-skipped-time"])
        self.assertEqual(gap["at_in_zone"], "2027-03-14T02:30:00-05:00")
        self.assertIs(gap["matches"], True)
        for text, part in (("30 1 * * *", "first time only"), ("30 * * * *", "both times")):
            for moment in ("2026-11-01T01:30", "2026-11-01T05:30Z", "2026-11-01T06:30Z"):
                notes = answer(text, moment)["notes"]
                self.assertEqual([note["code"] for note in notes], ["dst-repeated-time"])
                self.assertIn(part, notes[0]["message"])
        self.assertEqual(answer("30 1 * * *", "2026-11-02T01:30")["notes"], [])
        second = answer("30 1 * * *", "2026-11-01T06:30:00.5Z")
        self.assertEqual(second["at_in_zone"], "2026-11-01T01:30:00.500000-05:00")

    def test_allowed(self) -> None:
        """
        What is allowed is spelled out, with three or more in a row as a range.
        """
        text = "*/15 9-17 1,L-3,15W,LW jan,mar-may mon-wed,L5,fri#2 2026-2030"
        checks = why("job", parse(text), "2027-03-15T12:34")["checks"]
        allowed = [check["allowed"] for check in checks]
        self.assertEqual(allowed[:3], ["0", "0, 15, 30 and 45", "9-17"])
        for part in ("1", "15W", "L-3", "LW"):
            self.assertIn(part, allowed[3])
        self.assertEqual(allowed[4], "January and March-May")
        for part in ("Monday-Wednesday", "last Friday", "2nd Friday"):
            self.assertIn(part, allowed[5])
        self.assertEqual(allowed[6], "2026-2030")
        never = why("job", parse("0 0 * * L3-1"), "2027-03-15")["checks"]
        self.assertEqual(never[5]["allowed"], "none")

    def test_bad_moment(self) -> None:
        """
        What is no moment is an error that shows what would be.
        """
        schedule = parse("@daily")
        expected = recorded("schedule-why-400-at")["error"]
        error = self.assertRaises(BadTimestamp, why, "job", schedule, "yesterday")
        self.assertEqual(str(error), expected)
        for text in ("", "2026-13-01", "2026-01-01T25:00", "now", "0001-01-01T00:00+14:00", "1e9"):
            self.assertRaises(BadTimestamp, why, "job", schedule, text)
