"""How the benchmarks judge what they have measured."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.bench.support import load

table = load("table")
Bar, Row, Rule = table.Bar, table.Row, table.Rule


def row(*rules: object, ours: float | None = 1.0, peer: float | None = 2.0, limit: float = 0.5):
    """Return a row with these bounds."""
    return Row(Bar("M", "key", "what", "ms", tuple(rules)), ours, peer, limit)


class RuleTests(SynchronousTestCase):
    """Bounds."""

    def test_text(self) -> None:
        """A bound reads as it is meant."""
        self.assertEqual(str(Rule(0.5, "peer")), "<= 0.5 x peer")
        self.assertEqual(str(Rule(3, "limit", least=True)), ">= 3 x limit")
        self.assertEqual(str(Rule(20)), "<= 20")


class RowTests(SynchronousTestCase):
    """Verdicts and ratios."""

    def test_met(self) -> None:
        """A value on the bound is within it."""
        self.assertEqual(row(Rule(0.5, "peer")).verdict, "met")
        self.assertEqual(row(Rule(2, "limit", least=True)).verdict, "met")
        self.assertEqual(row(Rule(1)).verdict, "met")

    def test_missed(self) -> None:
        """One bound that is not kept is enough."""
        self.assertEqual(row(Rule(9), Rule(0.49, "peer")).verdict, "missed")
        self.assertEqual(row(Rule(2.1, "limit", least=True)).verdict, "missed")

    def test_not_judged(self) -> None:
        """Without what a bound refers to, or without a bound, there is no verdict."""
        self.assertEqual(row(Rule(0.5, "peer"), peer=None).verdict, "-")
        self.assertEqual(row().verdict, "-")
        self.assertEqual(row(Rule(1), ours=None).verdict, "-")

    def test_ratio(self) -> None:
        """The ratio is to what the bound refers to, and to the peer where it refers to nothing."""
        self.assertEqual(row(Rule(2, "limit")).ratio, "2.00 x limit")
        self.assertEqual(row(Rule(20)).ratio, "0.50 x peer")
        self.assertEqual(row(Rule(20), peer=None).ratio, "-")
        self.assertEqual(row(Rule(20), peer=0.0).ratio, "-")


class RowsTests(SynchronousTestCase):
    """From what was found to rows."""

    def test_medians(self) -> None:
        """Each key has the median of the rounds that know it."""
        found = table.medians([{"a": 1.0}, {"a": 9.0, "b": 4.0}, {"a": 2.0}])
        self.assertEqual(found, {"a": 2.0, "b": 4.0})

    def test_known_bars_only(self) -> None:
        """A bar of which nothing is known has no row."""
        bars = [Bar("M", key, key, "s") for key in "abc"]
        found = table.rows(bars, {"a": 1.0}, {}, {"c": 3.0})
        self.assertEqual([(each.bar.key, each.ours) for each in found], [("a", 1.0), ("c", None)])

    def test_numbers(self) -> None:
        """Three digits will do; nothing is a dash."""
        texts = [table.number(value) for value in (None, 0.0, 0.12345, 12.345, 1234.5)]
        self.assertEqual(texts, ["-", "0", "0.123", "12.3", "1,234"])

    def test_render(self) -> None:
        """The table is Markdown, its columns in line."""
        lines = table.render([row(Rule(0.5, "peer"))]).splitlines()
        self.assertEqual(len(lines), 3)
        self.assertEqual({len(line) for line in lines}, {len(lines[0])})
        cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
        self.assertEqual(
            cells, ["M what", "ms", "1", "2", "0.5", "0.50 x peer", "<= 0.5 x peer", "met"]
        )
