"""Ledgers read for statistics."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.trial.unittest import SynchronousTestCase

from cronstable.runs.record import RunRecord
from cronstable.runs.rows import row_of
from cronstable.runs.trends import WINDOWS, LedgerRun, Ledgers, windowed
from cronstable.state.errors import Unreadable
from cronstable.state.streams import runs
from tests.state.support import NOW, memory_store


def run(ago: float) -> LedgerRun:
    """Return a run that finished C{ago} seconds before now."""
    return LedgerRun("success", NOW - ago, 1.0, None)


class LedgersTests(SynchronousTestCase):
    """What is read, and what is remembered of it."""

    def setUp(self) -> None:
        self.store = memory_store()
        self.reads: list[str] = []
        read = self.store.tree.files.read

        def counted(path: str) -> bytes:
            self.reads.append(path)
            return read(path)

        self.patch(self.store.tree.files, "read", counted)

    def save(self, job: str, *finished: float) -> None:
        """Append rows of runs that finished then."""
        for at in finished:
            self.store.records.append(runs(job), row_of(RunRecord(job, "success", NOW + at)))

    def finishes(self, ledgers: Ledgers, job: str = "a") -> Sequence[float]:
        """Return when the runs of a job finished, in stream order, and forget earlier reads."""
        self.reads.clear()
        return [each.finished_at - NOW for each in ledgers.runs(self.store, job)]

    def test_only_new_rows_are_read(self) -> None:
        """A row is read once, however often the ledger is."""
        ledgers = Ledgers()
        self.save("a", 1.0, 3.0)
        self.assertEqual(self.finishes(ledgers), [1.0, 3.0])
        self.assertEqual(len(self.reads), 2)
        self.save("a", 2.0)
        self.assertEqual(self.finishes(ledgers), [1.0, 3.0, 2.0])
        self.assertEqual(len(self.reads), 1)

    def test_rows_that_went(self) -> None:
        """A row that was pruned is not remembered as being there."""
        ledgers = Ledgers()
        self.save("a", 1.0, 2.0, 3.0)
        self.finishes(ledgers)
        self.store.records.prune(runs("a"), 1)
        self.assertEqual(self.finishes(ledgers), [3.0])
        self.assertEqual(self.reads, [])

    def test_what_is_remembered_is_bounded(self) -> None:
        """When too many rows are remembered, the job asked for longest ago is read anew."""
        ledgers = Ledgers(remembered=4)
        for job in ("a", "b"):
            self.save(job, 1.0, 2.0)
            self.finishes(ledgers, job)
        self.save("c", 1.0)
        self.finishes(ledgers, "a")
        self.assertEqual(self.reads, [])
        self.finishes(ledgers, "c")
        self.finishes(ledgers, "a")
        self.assertEqual(self.reads, [])
        self.finishes(ledgers, "b")
        self.assertEqual(len(self.reads), 2)

    def test_nothing_readable(self) -> None:
        """Rows of which none can be read are trouble; no rows at all are none."""

        def fail(path: str) -> bytes:
            raise OSError(5, "Input/output error", path)

        ledgers = Ledgers()
        self.assertEqual(self.finishes(ledgers), [])
        self.save("a", 1.0)
        self.patch(self.store.tree.files, "read", fail)
        self.assertRaises(Unreadable, ledgers.runs, self.store, "a")

    def test_rows_without_sense(self) -> None:
        """A row that tells of no run is left out, the second time as well."""
        ledgers = Ledgers()
        self.store.records.append(runs("a"), {"outcome": "success"})
        self.save("a", 1.0)
        self.assertEqual(self.finishes(ledgers), [1.0])
        self.assertEqual(self.finishes(ledgers), [1.0])


class WindowedTests(SynchronousTestCase):
    """Runs by window."""

    def test_each_window(self) -> None:
        """A window has the runs that finished less than its span ago."""
        found = windowed([run(10.0), run(7200.0), run(10.0**9)], NOW, len)
        self.assertEqual(found, {"1h": 1, "24h": 2, "7d": 2, "30d": 2, "all": 3})
        self.assertEqual(list(found), [name for name, _ in WINDOWS])

    def test_nothing(self) -> None:
        """Without runs each window has none."""
        self.assertEqual(set(windowed([], NOW, len).values()), {0})

    def test_clock_ahead(self) -> None:
        """A run that a peer's clock dated ahead of now is in every window."""
        self.assertEqual(set(windowed([run(-60.0)], NOW, len).values()), {1})
