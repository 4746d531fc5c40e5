"""Instants as records spell them."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state.instants import from_text, to_text
from tests.properties import given, st


class InstantTests(SynchronousTestCase):
    """ISO 8601 there and back."""

    def test_spelling(self) -> None:
        """Six digits of fraction, none when it is zero, and the offset written out."""
        self.assertEqual(to_text(1795955510.25), "2026-11-29T12:31:50.250000+00:00")
        self.assertEqual(to_text(1795955510.0), "2026-11-29T12:31:50+00:00")

    def test_reading(self) -> None:
        """Any offset is understood, none means UTC."""
        for text in (
            "2026-11-29T12:31:50+00:00",
            "2026-11-29T12:31:50",
            "2026-11-29T12:31:50Z",
            "2026-11-29T13:31:50+01:00",
            "2026-11-29T12:31:50.000000+00:00",
        ):
            self.assertEqual(from_text(text), 1795955510.0, text)
        self.assertEqual(from_text("2026-11-29"), 1795910400.0)

    def test_not_an_instant(self) -> None:
        """Whatever else stands there is no instant, and no error."""
        for value in (None, "", "Z", "garbage", 5, 5.0, [], "2026-13-01T00:00:00+00:00"):
            self.assertIs(from_text(value), None, repr(value))

    def test_edges(self) -> None:
        """What is read at the edge of the calendar can be told again; the rest is none."""
        for text in (
            "0001-01-01T00:00:00+23:00",
            "9999-12-31T23:59:59-23:00",
            "9999-12-31T23:59:59.999999+00:00",
        ):
            self.assertIs(from_text(text), None, text)
        for text in ("0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00"):
            self.assertEqual(to_text(from_text(text) or 0.0), text)

    @given(st.integers(0, 4_000_000_000_000_000))
    def test_there_and_back(self, microseconds: int) -> None:
        """An instant survives to the microsecond."""
        epoch = microseconds / 1e6
        again = from_text(to_text(epoch))
        self.assertIsNot(again, None)
        self.assertAlmostEqual(again or 0.0, epoch, delta=1e-6)
