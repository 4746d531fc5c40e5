"""
Tests of cronstable.schedule.ical, against recorded calendars.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from random import Random
from typing import Any

from cronstable.schedule import parse
from cronstable.schedule.ical import Entry, calendar_parts, escape, fold
from tests.schedule.fleet import RUNTIMES, LocalUtcTestCase, fleet
from tests.schedule.support import VECTORS, at, load


def calendar(entries: list[Entry], now: float, **asked: Any) -> str:
    """
    The whole document.
    """
    return "".join(calendar_parts(entries, now, **asked))


class CalendarTests(LocalUtcTestCase):
    """
    Calendars.
    """

    NOW = at("2026-11-29T12:21:51.500")

    def entries(self, *names: str) -> list[Entry]:
        """
        Entries of the fleet, or of the named ones.
        """
        return [
            Entry(name, schedule, RUNTIMES.get(name))
            for name, schedule in fleet()
            if not names or name in names
        ]

    def text(self, name: str) -> str:
        """
        The recorded calendar.
        """
        text = load(VECTORS / "http" / f"{name}.json")["response"]["body"]["text"]
        assert isinstance(text, str)
        return text

    def test_recorded(self) -> None:
        """
        The recorded calendars come out to the octet.
        """
        made = calendar(self.entries(), self.NOW, version="1.2.72", days=1, limit=2)
        self.assertEqual(made, self.text("calendar-fleet"))
        made = calendar(self.entries("dag:etl"), self.NOW, version="1.2.72", days=1, job="dag:etl")
        self.assertEqual(made, self.text("calendar-dag"))
        made = calendar(
            self.entries("ok-minutely"),
            self.NOW,
            version="1.2.72",
            days=1,
            limit=1,
            job="ok-minutely",
        )
        self.assertEqual(made, self.text("calendar-job"))
        made = calendar([], self.NOW, version="1.2.72", job="off")
        self.assertEqual(made, self.text("calendar-job-disabled"))

    def test_parts(self) -> None:
        """
        The parts are one for the head, at least one for each entry, one for the end.
        """
        entries = self.entries("dup-a", "dup-b")
        parts = list(calendar_parts(entries, self.NOW, version="1"))
        self.assertEqual(
            [part.splitlines()[0] for part in parts],
            ["BEGIN:VCALENDAR", "BEGIN:VEVENT", "BEGIN:VEVENT", "END:VCALENDAR"],
        )

    def test_parts_are_small(self) -> None:
        """
        An entry with many fires comes in several parts, whose lines are whole.
        """
        entry = Entry("a", parse("* * * * * * *"))
        parts = list(calendar_parts([entry], self.NOW, version="1", limit=1000))
        self.assertGreater(len(parts), 10)
        self.assertLess(max(map(len, parts)), 64 << 10)
        self.assertTrue(all(part.endswith("\r\n") for part in parts))
        self.assertEqual("".join(parts).count("BEGIN:VEVENT"), 1000)

    def test_window(self) -> None:
        """
        Fires at either end of the window are left out.
        """
        now = at("2026-01-01T00:00")
        entry = Entry("a", parse("0 0 * * *"))
        made = calendar([entry], now, version="1", days=2)
        self.assertEqual(made.count("BEGIN:VEVENT"), 1)
        self.assertIn("DTSTART:20260102T000000Z", made)

    def test_duration(self) -> None:
        """
        The mean run time is rounded up to a minute, within five minutes and a day.
        """
        for runtime, duration, typical in (
            (None, "PT5M", None),
            (299.0, "PT5M", "4m 59s"),
            (300.5, "PT6M", "5m"),
            (7200.0, "PT120M", "2h"),
            (1e6, "PT1440M", "277h 46m 40s"),
        ):
            made = calendar([Entry("a", parse("@daily"), runtime)], self.NOW, version="1", days=1)
            self.assertIn(f"DURATION:{duration}\r\n", made)
            unfolded = made.replace("\r\n ", "")
            if typical is None:
                self.assertNotIn("Typical", unfolded)
            else:
                self.assertIn(f"Typical runtime: {typical}\r\n", unfolded)

    def test_hostile_names(self) -> None:
        """
        A name cannot break out of its line, and no line is longer than 75 octets.
        """
        name = "we;ird, na\\me\r\nBEGIN:VALARM\x00\x07\x9b\ud800 " + "日本語🙂" * 30
        made = calendar([Entry(name, parse("* * * * *"))], self.NOW, version="1", limit=1, job=name)
        octets = made.encode()
        for line in octets.split(b"\r\n"):
            self.assertLessEqual(len(line), 75)
            line.decode()
            self.assertNotIn(b"\n", line)
        self.assertNotIn("\r\nBEGIN:VALARM", made)
        self.assertIn("we\\;ird\\, na\\\\me\\nBEGIN:VALARM? 日本", made.replace("\r\n ", ""))

    def test_fold(self) -> None:
        """
        Folding is undone by joining, whatever the characters.
        """
        random = Random(5)
        for _ in range(200):
            line = "".join(random.choice("aé日🙂 ") for _ in range(random.randint(0, 300)))
            folded = fold(line)
            self.assertEqual(folded.replace("\r\n ", ""), line)
            for piece in folded.split("\r\n"):
                self.assertLessEqual(len(piece.encode()), 75)
        self.assertEqual(escape("a\rb\r\nc"), "a\\nb\\nc")

    def test_bounds(self) -> None:
        """
        Days and entries are clamped.
        """
        entry = Entry("a", parse("* * * * *"))
        made = calendar([entry], self.NOW, version="1", days=10**6, limit=10**6)
        self.assertEqual(made.count("BEGIN:VEVENT"), 1000)
        self.assertIn("X-CRONSTABLE-TRUNCATED;CAP=1000:a", made)
        made = calendar([Entry("a", parse("@daily"))], self.NOW, version="1", days=10**6)
        self.assertEqual(made.count("BEGIN:VEVENT"), 60)
        made = calendar([Entry("a", parse("@daily"))], self.NOW, version="1", days=-1, limit=-1)
        self.assertEqual(made.count("BEGIN:VEVENT"), 1)
        last = datetime.fromtimestamp(self.NOW, timezone.utc) + timedelta(days=60)
        self.assertNotIn(last.strftime("%Y%m%d"), made)
