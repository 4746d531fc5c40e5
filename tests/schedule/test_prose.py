"""
Tests of cronstable.schedule.prose: schedules in words.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.schedule import describe, parse


class DescribeTests(SynchronousTestCase):
    """
    Schedules in words.
    """

    def test_sentences(self) -> None:
        """
        Each part of a schedule has its place in the sentence.
        """
        for text, sentence in (
            ("* * * * *", "Every minute, every day"),
            ("*/5 * * * *", "Every 5 minutes, every day"),
            ("0-59/5 * * * *", "Every 5 minutes, every day"),
            ("5 * * * *", "Every hour at :05, every day"),
            ("0 9 * * 1,5", "At 09:00, on Monday and Friday"),
            ("0 9,17 * * 1-5", "At 09:00 and 17:00, on Monday to Friday"),
            ("0 0 * * *", "At 00:00, every day"),
            ("0 0 13 * 5", "At 00:00, on the 13th, and only on Friday"),
            ("0 0 L-3 * *", "At 00:00, on 3 days before the last day of the month"),
            ("0 0 LW 1 *", "At 00:00, on the last weekday of the month, in January"),
            (
                "*/7 * * * *",
                "At minutes 00, 07, 14, 21, 28, 35, 42, 49, 56 past every hour, every day",
            ),
            ("*/15 * * * * * *", "Every 15 seconds"),
            ("* * * * * mon *", "Every second, on Monday"),
            ("15 30 9 * * * *", "At 09:30, every day, at second 15"),
            ("*/15 9-17 * * *", "At minutes 00, 15, 30, 45 past hours 09-17, every day"),
            ("* 9 * * *", "At every minute past hour 09, every day"),
            ("30 */2 * * *", "At :30 every 2 hours, every day"),
            (
                "0 0 15W,L * *",
                "At 00:00, on the weekday nearest the 15th and the last day of the month",
            ),
            (
                "0 0 * * L5,mon#2",
                "At 00:00, on the last Friday of the month and the 2nd Monday of the month",
            ),
            ("0 0 1,L-1 * *", "At 00:00, on the 1st and the day before the last day of the month"),
            ("0 0 21,22,23 * *", "At 00:00, on the 21st to 23rd of the month"),
            ("0 0 11,12,22 * *", "At 00:00, on the 11th, 12th and 22nd of the month"),
            ("0 0 1 1-3 * 2027", "At 00:00, on the 1st of the month, in January to March, in 2027"),
            ("@daily", "Every day at midnight"),
            (" @DAILY", "Every day at midnight"),
            ("@reboot", "Once, when cronstable starts (@reboot)"),
            ("61 * * * *", "Custom schedule: 61 * * * *"),
            ("0 0 * * L3-1", "Custom schedule: 0 0 * * L3-1"),
            ("H * * * *", "Custom schedule: H * * * *"),
        ):
            self.assertEqual(describe(text), sentence)

    def test_hashed(self) -> None:
        """
        A hashed slot is described by what it resolved to, and says that it was hashed.
        """
        self.assertEqual(
            describe(parse("H * * * *", key="nightly")),
            "Every hour at :27, every day (H slots hashed from the job name)",
        )
