"""
Tests of cronstable.schedule.lint: what is remarked on.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.schedule import Finding, lint, parse, zone_named
from tests.schedule.support import at

NOW = at("2026-11-29T12:00:00Z")


class LintTests(SynchronousTestCase):
    """
    What is remarked on.
    """

    def lint(self, text: str, zone: str = "UTC", now: float = NOW) -> list[tuple[str, str]]:
        """
        Codes and levels of the findings.
        """
        found = lint(parse(text, zone=zone, key="k"), now)
        for finding in found:
            self.assertIsInstance(finding, Finding)
            self.assertNotEqual(finding.message, "")
        return [(finding.code, finding.level) for finding in found]

    def message(self, text: str, code: str, zone: str = "UTC") -> str:
        """
        The message of the finding with a code.
        """
        (found,) = (f for f in lint(parse(text, zone=zone, key="k"), NOW) if f.code == code)
        return found.message

    def test_nothing(self) -> None:
        """
        Ordinary schedules are not remarked on.
        """
        for text in ("* * * * *", "*/5 * * * *", "0 */6 * * *", "0 9 * * 1-5", "@monthly"):
            self.assertEqual(self.lint(text, "America/New_York" if "*/5" in text else "UTC"), [])

    def test_never(self) -> None:
        """
        A schedule that will not fire again is a warning, alone among the date checks.
        """
        never = ("never-fires", "warning")
        for text in ("0 0 30 2 *", "0 0 31 4,6 *", "0 0 1 1 * 2020", "0 0 31 * * 2020"):
            self.assertEqual(self.lint(text), [never], text)
        self.assertEqual(
            self.lint("0 0 15 * L5"), [never, ("day-fields-both-restricted", "warning")]
        )
        self.assertEqual(self.lint("30 2 * * * 2020", "America/New_York"), [never])

    def test_never_blames_the_years(self) -> None:
        """
        The year column is blamed where its years are over, and not where the date is impossible.
        """
        self.assertIn("2020", self.message("0 0 1 1 * 2019,2020", "never-fires"))
        self.assertNotIn("2025", self.message("0 0 29 2 * 2025", "never-fires"))
        self.assertNotIn("2020", self.message("0 0 30 2 * 2020", "never-fires"))
        (late,) = lint(parse("0 0 29 2 *"), at("2097-01-01"))
        self.assertIn("end of 2099", late.message)

    def test_both_day_fields(self) -> None:
        """
        Two restricted day fields are a warning that gives both readings.
        """
        self.assertEqual(self.lint("0 0 13 * 5"), [("day-fields-both-restricted", "warning")])
        message = self.message("0 0 1,15 * 5", "day-fields-both-restricted")
        self.assertIn("2027-01-01", message)
        self.assertIn("2026-12-01", message)
        message = self.message("0 0 */2 * 1", "day-fields-both-restricted")
        self.assertIn("as in classic cron", message)
        for text in ("0 0 ? * 5", "0 0 *,L * 5", "0 0 13 * 0-7"):
            self.assertNotIn(("day-fields-both-restricted", "warning"), self.lint(text))

    def test_full_list_is_no_star_elsewhere(self) -> None:
        """
        A day field that lists every value means something else in classic cron.
        """
        self.assertEqual(self.lint("0 0 1-31 * 1"), [("classic-cron-differs", "warning")])
        self.assertEqual(self.lint("0 0 1-31 * *"), [])

    def test_uneven_steps(self) -> None:
        """
        A step that does not divide its field is a warning; one over days of the month a note.
        """
        warning, note = ("uneven-step", "warning"), ("uneven-step", "note")
        self.assertEqual(self.lint("*/7 * * * *"), [warning])
        self.assertIn("4 minutes", self.message("*/7 * * * *", "uneven-step"))
        self.assertIn("1 day", self.message("0 0 * * */2", "uneven-step"))
        self.assertEqual(self.lint("*/7 */5 * */5 */2"), [warning] * 4)
        self.assertEqual(self.lint("*/7 * * * * * *"), [warning])
        self.assertEqual(self.lint("0 0 */2 * *"), [note])
        self.assertEqual(self.lint("H/7 * * * *"), [("hashed-slot", "note"), warning])
        for text in ("*/1 * * * *", "1-59/7 * * * *", "3/7 * * * *", "0 0 * * */7"):
            self.assertEqual(self.lint(text), [], text)
        self.assertEqual(self.lint("0 0 1 1 * */7"), [])

    def test_skipped_months(self) -> None:
        """
        Months that are always too short are listed in one warning.
        """
        self.assertEqual(self.lint("0 0 31 * *"), [("skipped-months", "warning")])
        message = self.message("0 0 31 * *", "skipped-months")
        self.assertIn("February, April, June, September and November", message)
        self.assertEqual(self.lint("0 0 30W * *"), [("skipped-months", "warning")])
        self.assertEqual(self.lint("0 0 L-29 * *"), [("skipped-months", "warning")])
        for text in ("0 0 31,L * *", "0 0 31,LW * *", "0 0 31 1,3 *", "0 0 31,L-2 * *"):
            self.assertEqual(self.lint(text), [], text)

    def test_leap_day(self) -> None:
        """
        A February that is reached in leap years only is a note.
        """
        for text in ("0 0 29 2 *", "0 0 29W * *", "0 0 L-28 2,3 *", "0 0 29-31 * *"):
            self.assertEqual(self.lint(text), [("leap-day-only", "note")], text)
        self.assertEqual(self.lint("0 0 29,L-27 * *"), [])

    def test_clock_changes(self) -> None:
        """
        Runs in a gap or a repeated hour of the next year are noted with date, time and zone.
        """
        skipped, repeated = ("dst-skipped-time", "note"), ("dst-repeated-time", "note")
        zone = "America/New_York"
        self.assertEqual(self.lint("30 2 * * *", zone), [skipped])
        message = self.message("30 2 * * *", "dst-skipped-time", zone)
        for part in ("2027-03-14", "02:30", zone):
            self.assertIn(part, message)
        self.assertEqual(self.lint("30 1 * * *", zone), [repeated])
        self.assertIn("2027-11-07", self.message("30 1 * * *", "dst-repeated-time", zone))
        self.assertEqual(self.lint("*/15 1-3 * * *", zone), [skipped, repeated])
        june = at("2027-06-01T00:00:00Z")
        self.assertEqual(self.lint("*/15 1-3 * * *", zone, june), [repeated, skipped])
        self.assertEqual(self.lint("30 2 * * mon", zone), [])
        self.assertEqual(self.lint("*/15 * * * *", zone), [])
        self.assertEqual(self.lint("30 2 * * *", "Asia/Kolkata"), [])

    def test_at_most_two_clock_changes(self) -> None:
        """
        A zone that changes often does not flood the log.
        """
        zone, start = "Africa/Casablanca", at("2026-02-10T00:00:00Z")
        changes = [at for at in zone_named(zone).offsets.starts if 0 < at - start < 366 * 86400]
        self.assertGreater(len(changes), 2)
        self.assertEqual(
            self.lint("0 2 * * *", zone, start),
            [("dst-repeated-time", "note"), ("dst-skipped-time", "note")],
        )

    def test_order(self) -> None:
        """
        Findings come in the documented order.
        """
        codes = [code for code, _ in self.lint("H/7 2 31 * 1", "America/New_York")]
        self.assertEqual(
            codes, ["hashed-slot", "day-fields-both-restricted", "uneven-step", "skipped-months"]
        )
