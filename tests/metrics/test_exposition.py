"""Tests for the two text formats."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.metrics.exposition import (
    OPENMETRICS,
    TEXT,
    Family,
    Sample,
    content_type,
    escape,
    gauge,
    histogram_samples,
    labelled,
    number,
    text_of,
    wanted_format,
)
from tests.metrics.world import families


class FormatTests(SynchronousTestCase):
    """What a family looks like."""

    def test_negotiation(self) -> None:
        """OpenMetrics is served to who asks for it, the text format to everybody else."""
        for accept in (None, "", "*/*", "text/plain", "text/html,*/*;q=0.8"):
            self.assertFalse(wanted_format(accept))
        for accept in (
            "application/openmetrics-text",
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3",
        ):
            self.assertTrue(wanted_format(accept))
        self.assertEqual(content_type(False), TEXT)
        self.assertEqual(content_type(True), OPENMETRICS)

    def test_counter(self) -> None:
        """A counter's type line has its C{_total} in text, and not in OpenMetrics."""
        family = Family("x_total", "counter", "Help.", (Sample(3),))
        self.assertEqual(
            text_of(family, False), "# HELP x_total Help.\n# TYPE x_total counter\nx_total 3\n"
        )
        self.assertEqual(text_of(family, True), "# HELP x Help.\n# TYPE x counter\nx_total 3\n")

    def test_info(self) -> None:
        """An info is a gauge of 1 in text."""
        family = labelled("x_info", "info", "Help.", "a", [("b", 1)])
        self.assertIn('# TYPE x_info gauge\nx_info{a="b"} 1\n', text_of(family, False))
        self.assertIn('# TYPE x info\nx_info{a="b"} 1\n', text_of(family, True))

    def test_empty(self) -> None:
        """A family without samples is absent altogether."""
        self.assertEqual(text_of(gauge("x", "Help.", None), False), "")
        self.assertEqual(text_of(labelled("x", "gauge", "Help.", "a", []), True), "")

    def test_histogram(self) -> None:
        """A histogram is cumulative and closed by infinity, a count and a sum."""
        family = Family("x", "histogram", "Help.", histogram_samples((0.1, 5), (1, 0, 2), 9.5))
        self.assertEqual(
            text_of(family, False).split("\n")[2:-1],
            [
                'x_bucket{le="0.1"} 1',
                'x_bucket{le="5.0"} 1',
                'x_bucket{le="+Inf"} 3',
                "x_sum 9.5",
                "x_count 3",
            ],
        )

    def test_labels(self) -> None:
        """Whatever a label holds, both parsers read it back, a line end apart."""
        for value in ('a"b', "a\\", "a\nb", "{}=,#", "é \u2028", "", "\t"):
            family = labelled("x", "gauge", "Help.", "a", [(value, 1)])
            for openmetrics in (False, True):
                text = text_of(family, openmetrics) + ("# EOF\n" if openmetrics else "")
                (parsed,) = families(text, openmetrics)
                self.assertEqual(parsed.samples[0].labels, {"a": value})
        self.assertEqual(escape("a\rb"), "a\\rb")
        self.assertEqual(escape("a\udcff"), "a?")

    def test_numbers(self) -> None:
        """Whole numbers stay whole, floats keep all their digits, odd ones have their names."""
        self.assertEqual(
            [number(each) for each in (1, True, 0.1, 1e300, float("inf"), -float("inf"))],
            ["1", "1", "0.1", "1e+300", "+Inf", "-Inf"],
        )
        self.assertEqual(number(float("nan")), "NaN")
