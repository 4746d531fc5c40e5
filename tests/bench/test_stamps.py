"""What the benchmarks make of the starts that jobs have written down."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.bench.support import load

stamps = load("stamps")


def record(nanoseconds: int, name: str) -> bytes:
    """Return a record as the program in C writes it."""
    return f"{nanoseconds} {name}".encode().ljust(stamps.SIZE - 1) + b"\n"


class ParseTests(SynchronousTestCase):
    """Reading records."""

    def test_records(self) -> None:
        """Instants are seconds; a record that is not whole yet is left."""
        data = record(1_700_000_000_250_000_000, "a") + record(5_000_000_000, "b") + b"17"
        self.assertEqual(stamps.parse(data), [(1_700_000_000.25, "a"), (5.0, "b")])
        self.assertEqual(stamps.parse(b""), [])


class ShareTests(SynchronousTestCase):
    """Percentiles."""

    def test_share(self) -> None:
        """A share is one of the values."""
        values = list(range(101, 0, -1))
        found = [stamps.share(values, part) for part in (0.0, 0.5, 0.99, 1.0)]
        self.assertEqual(found, [1, 51, 100, 101])


class EachSecondTests(SynchronousTestCase):
    """Jobs that are due in each second."""

    def test_all_there(self) -> None:
        """Each start serves one second, and is as late as it is after that."""
        starts = [(second + 0.25, name) for second in (9, 10, 11, 12, 13) for name in "ab"]
        missed, late = stamps.each_second(starts, jobs=2, first=10, seconds=3)
        self.assertEqual((missed, late), (0, [0.25] * 6))

    def test_missed(self) -> None:
        """One start too few is one missed, and the next one serves the oldest second that waits."""
        starts = [(10.5, "a"), (12.5, "a")]
        missed, late = stamps.each_second(starts, jobs=1, first=10, seconds=3)
        self.assertEqual((missed, late), (1, [0.5, 1.5]))

    def test_late(self) -> None:
        """A start long after its second still serves it."""
        starts = [(11.25, "a"), (11.5, "a")]
        missed, late = stamps.each_second(starts, jobs=1, first=10, seconds=2)
        self.assertEqual((missed, late), (0, [1.25, 0.5]))
