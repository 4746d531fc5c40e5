"""
Tests of cronstable.schedule.expression, fields and hashed: what a schedule's text may say.
"""

from __future__ import annotations

from hashlib import sha256

from twisted.trial.unittest import SynchronousTestCase

from cronstable.schedule import ScheduleError, parse
from cronstable.schedule.expression import LONGEST_TEXT, collapse


class ErrorTests(SynchronousTestCase):
    """
    What a refusal says.
    """

    def check_refused(self, text: str, *parts: str, key: str | None = None) -> None:
        """
        The text is refused in a message that holds all the parts.
        """
        message = str(self.assertRaises(ScheduleError, parse, text, key=key))
        for part in parts:
            self.assertIn(part, message)

    def test_names_field_item_and_range(self) -> None:
        """
        A message names the field, the item and the allowed range.
        """
        for text, field, item, allowed in (
            ("61 * * * *", "minute field", "'61'", "0-59"),
            ("* 24 * * *", "hour field", "'24'", "0-23"),
            ("0 0 1,32 * *", "day-of-month field", "'32'", "1-31"),
            ("0 0 * jan,13 *", "month field", "'13'", "1-12 or jan-dec"),
            ("0 0 * * 1,8", "day-of-week field", "'8'", "0-7 or sun-sat"),
            ("0 0 * * * 2100", "year field", "'2100'", "1970-2099"),
            ("99 * * * * * *", "second field", "'99'", "0-59"),
        ):
            self.check_refused(text, field, item, f"(allowed: {allowed}")

    def test_hints(self) -> None:
        """
        Forms in the wrong place, or the wrong way round, are met with the right one.
        """
        self.check_refused("5#3 * * * *", "belongs in day-of-week")
        self.check_refused("0 0 fri#3 * *", "belongs in day-of-week")
        self.check_refused("0 0 * 15W *", "belongs in day-of-month")
        self.check_refused("0 0 * * 15W", "belongs in day-of-month")
        self.check_refused("0 0 * * 5L", "write L5")
        self.check_refused("0 ? * * *", "write '*'")
        self.check_refused("0 0 12 ? * fri", "Quartz", "'0 0 12 ? * fri *'")
        self.check_refused("0 0 * * fri-mon", "does not wrap around", "write two ranges")

    def test_counts(self) -> None:
        """
        Five, six and seven fields are read, any other number is refused with what it is.
        """
        self.check_refused("", "no fields")
        self.check_refused("* * *", "3 fields", "'* * *'")
        self.check_refused("* * * * * * * *", "8 fields")
        for text, seconds in (
            ("0 0 * * *", False),
            ("0 0 * * * *", False),
            ("0 " * 3 + "* * * *", True),
        ):
            self.assertIs(parse(text).seconds_level, seconds)

    def test_strict_numerals(self) -> None:
        """
        Signs, underscores, other scripts' digits and other blanks are refused.
        """
        for text in (
            *("+5 * * * *", "1_0 * * * *", "٣ * * * *", "\uff15 * * * *", "² * * * *"),
            *("0\u00a00 * * *", "0\u20030 * * *", "0\x850 * * *", "0\x1c0 * * *", "*/+5 * * * *"),
            *("H(1_0-20) * * * *", "0 0 * * 5#٣", "0 0 L-٣ * *", "0 0 ٣W * *", "0 0 * \u017fep *"),
        ):
            self.check_refused(text, key="k")

    def test_huge_numbers(self) -> None:
        """
        A number of thousands of digits is out of range, quickly.
        """
        self.check_refused(f"{'9' * 4000} * * * *", "out of range")
        self.check_refused(f"*/{'9' * 4000} * * * *", "greater than 59")
        self.check_refused(f"H/{'9' * 4000} * * * *", "not a hashed slot", key="k")

    def test_length(self) -> None:
        """
        A text longer than any sensible schedule is refused before it is read.
        """
        self.check_refused("*," * LONGEST_TEXT, str(LONGEST_TEXT))

    def test_nicknames(self) -> None:
        """
        Unknown nicknames are met with the known ones; @reboot is no timetable.
        """
        self.check_refused("@midnight", "'@midnight'", "@daily")
        self.check_refused("@every 5m", "@hourly")
        self.check_refused("@reboot", "once per boot")

    def test_messages_stay_short(self) -> None:
        """
        A long text is not repeated whole.
        """
        error = self.assertRaises(ScheduleError, parse, "x" * 3000 + " * * * *")
        self.assertLess(len(str(error)), 400)


class TextTests(SynchronousTestCase):
    """
    What is shown of a schedule.
    """

    def test_collapsed(self) -> None:
        """
        Runs of blanks become one, ends are trimmed, case is kept but in nicknames.
        """
        self.assertEqual(collapse("  0\t0 *\n* MON-Fri \r\n"), "0 0 * * MON-Fri")
        self.assertEqual(parse(" @DAILY ").text, "@daily")
        self.assertEqual(str(parse("0  0 * jan   *")), "0 0 * jan *")

    def test_equality(self) -> None:
        """
        Schedules are equal by what they select and by zone, not by spelling.
        """
        same = [
            ("@daily", "0 0 * * *"),
            ("0 0 * * 7", "0 0 * * sun"),
            ("0 0 1-31 * *", "0 0 * * 0-6"),
            ("0 0 *,L * *", "0 0 ? * ?"),
            ("0 0 * * * *", "0 0 * * *"),
            ("0 0 0 * * * *", "0 0 * * *"),
        ]
        for first, second in same:
            self.assertEqual(parse(first), parse(second))
            self.assertEqual(hash(parse(first)), hash(parse(second)))
        different = [
            ("0 0 * * *", "0 0 * * * 1970-2099"),
            ("0 0 L * *", "0 0 LW * *"),
            ("0 0 1W * *", "0 0 1 * *"),
            ("0 0 * * L5", "0 0 * * 5"),
            ("0 0 * * 5#1", "0 0 * * 5#2"),
        ]
        for first, second in different:
            self.assertNotEqual(parse(first), parse(second))
        self.assertNotEqual(parse("@daily", zone="Europe/Paris"), parse("@daily"))
        self.assertNotEqual(parse("@daily", zone="Etc/UTC"), parse("@daily", zone="UTC"))
        self.assertNotEqual(parse("@daily", zone=None), parse("@daily", local=True))
        self.assertNotEqual(parse("@daily"), "@daily")


class HashedTests(SynchronousTestCase):
    """
    Hashed slots.
    """

    def test_documented_values(self) -> None:
        """
        The documented key gives the documented slots, and equals what it resolves to.
        """
        schedule = parse("H H * * *", key="refresh-cache")
        self.assertEqual(schedule.resolved, "29 17 * * *")
        self.assertEqual(schedule, parse("29 17 * * *"))
        self.assertTrue(schedule.hashed)
        self.assertEqual(str(schedule), "H H * * *")
        self.assertEqual(parse("h/15 * * * *", key="refresh-cache").resolved, "14,29,44,59 * * * *")

    def test_by_hand(self) -> None:
        """
        The value is the documented hash of the field's label and the key.
        """
        octets = sha256(b"day-of-month\nnightly").digest()[:8]
        day = 1 + int.from_bytes(octets, "big") % 28
        self.assertEqual(parse("0 0 H * *", key="nightly").resolved, f"0 0 {day} * *")

    def test_needs_key(self) -> None:
        """
        Without a key an H is refused; with one, the next text without a key is refused still.
        """
        self.assertIn("key", str(self.assertRaises(ScheduleError, parse, "H * * * *")))
        parse("H * * * *", key="a")
        self.assertRaises(ScheduleError, parse, "H * * * *")
        self.assertNotEqual(parse("H H * * *", key="a"), parse("H H * * *", key="b"))

    def test_plain_text_ignores_key(self) -> None:
        """
        A schedule without an H is not hashed, whatever the key.
        """
        schedule = parse("0 0 * * thu", key="a")
        self.assertFalse(schedule.hashed)
        self.assertEqual(schedule.text, schedule.resolved)

    def test_strange_key(self) -> None:
        """
        A key that cannot be encoded is an error of the schedule, not a crash.
        """
        self.assertRaises(ScheduleError, parse, "H * * * *", key="\ud800")
