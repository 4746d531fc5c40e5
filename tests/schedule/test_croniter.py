"""
The engine against croniter, an independent one, on the part of the dialect that both share.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

from croniter import CroniterBadDateError, croniter
from twisted.trial.unittest import SynchronousTestCase

from cronstable.schedule import parse, vixie_reading
from tests.schedule.generate import Sample, sample

START, END = 946_684_800, 2_500_000_000


# croniter takes a range of one value for all values.
_ONE_VALUE_RANGE = re.compile(r"(?<![0-9])0*([0-9]+)-0*\1(?![0-9])")


def shared(random: Random, **choices: Any) -> Sample:
    """
    A random schedule that croniter reads as well.
    """
    while True:
        what = sample(random, **choices)
        week = what.columns[5 if len(what.columns) == 7 else 4]
        mixed = "," in week and ("#" in week or "L" in week)
        forms = "W" in what.text or "L-" in what.text or _ONE_VALUE_RANGE.search(what.text)
        if not mixed and not forms:
            return what


def second_opinion(what: Sample, start: int, day_or: bool) -> Any:
    """
    The same schedule in croniter, whose seconds come first and whose year comes last.
    """
    columns = what.columns if len(what.columns) != 6 else ("0", *what.columns)
    return croniter(
        " ".join(columns),
        float(start),
        day_or=day_or,
        second_at_beginning=True,
        max_years_between_matches=130,
    )


class CroniterTests(SynchronousTestCase):
    """
    Two engines, one answer.
    """

    def test_both_directions(self) -> None:
        """
        The next and the previous fire of 5,000 random schedules are the same, with the AND rule.
        """
        random = Random(5000)
        for _ in range(5000):
            what = shared(random)
            start = random.randrange(START, END)
            self._compare(what, start, parse(what.text), day_or=False)

    def test_vixie(self) -> None:
        """
        With classic cron's rule for the day fields, both agree again.
        """
        random = Random(1987)
        for _ in range(500):
            what = shared(random, forms=False, seconds=0.0, years=0.0)
            if not self._plain_stars(what):
                continue
            start = random.randrange(START, END)
            self._compare(what, start, vixie_reading(parse(what.text)), day_or=True)

    def _plain_stars(self, what: Sample) -> bool:
        # croniter takes a field that lists all its values for a star, classic cron does not.
        expression = parse(what.text).expression
        rules = (expression.of_month, expression.of_week)
        return all(
            column == "*" or not (rule.unrestricted or column[0] == "*")
            for rule, column in zip(rules, what.columns[2:5:2], strict=True)
        )

    def _compare(self, what: Sample, start: int, schedule: Any, day_or: bool) -> None:
        case = f"{what.text} from {start}"
        for direction in ("next", "prev"):
            try:
                expected = getattr(second_opinion(what, start, day_or), f"get_{direction}")(float)
            except CroniterBadDateError:
                expected = None
            found = schedule.next(start) if direction == "next" else schedule.previous(start)
            if expected is not None and not 0 <= expected < 4_102_444_800:
                expected = None
            self.assertEqual(found, expected, f"{direction}: {case}")
