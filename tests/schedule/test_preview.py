"""
Tests of cronstable.schedule.preview, against recorded answers.
"""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.schedule import UnknownZone
from cronstable.schedule.preview import preview
from tests.schedule.fleet import query, recorded
from tests.schedule.support import at


class PreviewTests(SynchronousTestCase):
    """
    Previews.
    """

    def answer(self, name: str, now: str = "2026-11-29T12:21:51") -> dict[str, Any]:
        """
        Our answer to a recorded request.
        """
        asked = query(name)
        return preview(
            asked["expr"],
            at(now),
            zone=asked.get("tz", "UTC"),
            limit=int(asked.get("limit", "12")),
            seed=asked.get("seed"),
        )

    def test_recorded(self) -> None:
        """
        Keys, fires and findings are the recorded ones.
        """
        for name in (
            *("schedule-preview", "schedule-preview-hash", "schedule-preview-hash-noseed"),
            *("schedule-preview-invalid", "schedule-preview-never", "schedule-preview-reboot"),
            "schedule-preview-tz-dst",
        ):
            expected, answer = recorded(name), self.answer(name)
            self.assertEqual(set(answer), set(expected), name)
            for finding in [*answer.get("lint", []), *expected.get("lint", [])]:
                self.assertTrue(finding.pop("message"))
            if "error" in expected:
                self.assertTrue(answer.pop("error"))
                del expected["error"]
            self.assertEqual(answer, expected)

    def test_unknown_zone(self) -> None:
        """
        An unknown zone is an error before the text is looked at.
        """
        error = self.assertRaises(UnknownZone, preview, "61 * * * *", 0, zone="Mars/X")
        self.assertEqual(str(error), recorded("schedule-preview-400-tz")["error"])

    def test_limits(self) -> None:
        """
        The number of fires is clamped, and may be smaller where no more are left.
        """
        for limit, count in ((-5, 1), (0, 1), (5, 5), (60, 60), (10**9, 60)):
            self.assertEqual(len(preview("* * * * *", 0, limit=limit)["fires"]), count)
        self.assertEqual(len(preview("0 0 1 1 * 2098,2099", at("2026-01-01"))["fires"]), 2)

    def test_empty_seed(self) -> None:
        """
        An empty seed is no key.
        """
        self.assertIs(preview("H * * * *", 0, seed="")["valid"], False)
