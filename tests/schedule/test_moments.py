"""
Tests of cronstable.schedule.moments.
"""

from __future__ import annotations

from datetime import datetime

from twisted.trial.unittest import SynchronousTestCase

from cronstable.schedule import zone_named
from cronstable.schedule.moments import iso, parse_moment, place
from tests.schedule.support import at


class MomentTests(SynchronousTestCase):
    """
    Texts, instants and labels.
    """

    def test_parse(self) -> None:
        """
        Dates, short fractions, Z in either case and a plus that a query has turned into a blank.
        """
        for text, expected in (
            ("2026-07-14", "2026-07-14T00:00:00"),
            ("2026-07-14T09:00", "2026-07-14T09:00:00"),
            ("2026-07-14 09:00", "2026-07-14T09:00:00"),
            ("2026-07-14T09:00:00.5Z", "2026-07-14T09:00:00.500000+00:00"),
            ("2026-07-14T09:00:00z", "2026-07-14T09:00:00+00:00"),
            ("2026-07-14T09:00:00.123456789", "2026-07-14T09:00:00.123456"),
            ("2026-07-14T09:00:00 02:00", "2026-07-14T09:00:00+02:00"),
            ("2026-07-14T09:00-05:30", "2026-07-14T09:00:00-05:30"),
        ):
            self.assertEqual(parse_moment(text).isoformat(), expected)

    def test_place(self) -> None:
        """
        A label occurs once, twice, or not at all.
        """
        offsets = zone_named("America/New_York").offsets
        for label, kind, instant in (
            ("2026-01-01T00:00", "once", "2026-01-01T05:00Z"),
            ("2026-03-08T02:00", "gap", "2026-03-08T07:00Z"),
            ("2026-03-08T02:59:59", "gap", "2026-03-08T07:59:59Z"),
            ("2026-03-08T03:00", "once", "2026-03-08T07:00Z"),
            ("2026-11-01T01:00", "twice", "2026-11-01T05:00Z"),
            ("2026-11-01T02:00", "once", "2026-11-01T07:00Z"),
            ("2200-01-01T00:00", "once", "2200-01-01T05:00Z"),
        ):
            placed = place(offsets, datetime.fromisoformat(label))
            self.assertEqual((placed.kind, placed.instant), (kind, at(instant)), label)

    def test_iso(self) -> None:
        """
        Offsets are shown with minutes, and seconds if they have any.
        """
        self.assertEqual(iso(0, 0), "1970-01-01T00:00:00+00:00")
        self.assertEqual(iso(0.5, -12600), "1969-12-31T20:30:00.500000-03:30")
        self.assertEqual(iso(0, -2670), "1969-12-31T23:15:30-00:44:30")
