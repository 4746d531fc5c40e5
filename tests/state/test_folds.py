"""What a ledger says when its rows are in no order."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state import folds, streams
from cronstable.state.folds import Watermark
from cronstable.state.instants import to_text
from tests.properties import given, st
from tests.state.support import NOW


def row(finish: float | None, **more: object) -> dict[str, object]:
    """Return a row that finished C{finish} seconds after NOW."""
    text = None if finish is None else to_text(NOW + finish)
    return {"outcome": "success", "finished_at": text, "ranAt": text, **more}


class LatestTests(SynchronousTestCase):
    """Which run was the last."""

    def test_by_finish(self) -> None:
        """The newest finish wins wherever it stands, of equals the later in the stream."""
        rows = [row(5, n=1), row(9, n=2), row(9, n=3), row(7, n=4)]
        self.assertEqual((folds.latest(rows) or {})["n"], 3)
        self.assertEqual([r["n"] for r in folds.in_finish_order(rows)], [1, 4, 2, 3])
        self.assertIs(folds.latest([]), None)

    def test_hours_ahead(self) -> None:
        """A row hours ahead of the clock stands where it was written."""
        rows = [row(5, n=1), row(90000, n=2), row(9, n=3), row(3, n=4), row(90001, n=5)]
        ordered = [r["n"] for r in folds.in_finish_order(rows, NOW + 10)]
        self.assertEqual(ordered, [4, 1, 2, 3, 5])

    def test_interrupted_run(self) -> None:
        """A run that was cut and is still owed stands in the instant it started."""
        cut = {"outcome": "unknown", "finished_at": None, "interruptedAt": to_text(NOW + 6)}
        self.assertEqual(folds.latest([row(5), cut]), cut)
        self.assertEqual(folds.latest([cut, row(7)]), row(7))

    def test_undated_rows_come_first(self) -> None:
        """A row without any instant is never the latest while another is there."""
        self.assertEqual(folds.latest([row(1), {"outcome": "x"}]), row(1))
        self.assertEqual(folds.latest([{"outcome": "x"}]), {"outcome": "x"})

    @given(st.permutations(range(6)))
    def test_any_order(self, order: list[int]) -> None:
        """However peers' appends interleave, the latest is the same."""
        self.assertEqual(folds.latest(row(n, n=n) for n in order), row(5, n=5))


class WatermarkTests(SynchronousTestCase):
    """Up to when a job is accounted for."""

    def test_finish(self) -> None:
        """The latest finish of any outcome counts, skipped slots too; cut runs do not."""
        rows = [
            row(3),
            {"outcome": "skipped", "finished_at": to_text(NOW + 8)},
            {"outcome": "unknown", "interruptedAt": to_text(NOW + 9)},
        ]
        self.assertEqual(folds.watermark(rows, NOW + 100), Watermark(NOW + 8))
        self.assertEqual(folds.last_real_run(rows, NOW + 100), Watermark(NOW + 3))

    def test_old_rows(self) -> None:
        """A row from before C{ranAt} was written counts by its finish."""
        old = {"outcome": "failure", "finished_at": to_text(NOW + 4)}
        self.assertEqual(folds.last_real_run([row(3), old], NOW), Watermark(NOW + 4))

    def test_ahead_of_now(self) -> None:
        """Rows more than three hours ahead are flagged and left out, nearer ones count."""
        rows = [row(0), row(folds.AHEAD), row(folds.AHEAD + 1)]
        self.assertEqual(folds.watermark(rows, NOW), Watermark(NOW + folds.AHEAD, ahead=1))

    def test_nothing(self) -> None:
        """An empty ledger has no watermark."""
        self.assertEqual(folds.watermark([], NOW), Watermark(None))


class RetentionTests(SynchronousTestCase):
    """How many rows stay."""

    def test_runs(self) -> None:
        """Zero and less keep all, one is raised to two."""
        kept = [streams.runs_to_keep(n) for n in (-1, 0, 1, 2, 1000)]
        self.assertEqual(kept, [None, None, 2, 2, 1000])
