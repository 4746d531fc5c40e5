"""The tables of admission and consequences."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock
from cronstable.runs import tables
from cronstable.runs.gates import JobGates, Solo
from cronstable.runs.history import History
from cronstable.runs.pauses import Pauses

PAGE = Path(__file__).parents[2] / "docs" / "admission.md"


class TablesTests(SynchronousTestCase):
    def test_printed_in_the_docs(self) -> None:
        """The page of the docs ends with the tables as the code has them."""
        self.assertTrue(PAGE.read_text().endswith(tables.as_markdown()))

    def test_every_row_has_its_gate(self) -> None:
        """Each row names a gate that exists, and each gate has its row."""
        gates = JobGates(ManualClock(), Pauses(), History(), Solo(), lambda name: ())
        self.assertEqual({row.gate for row in tables.JUDGEMENTS}, set(gates.table()))

    def test_rows_are_complete(self) -> None:
        """Each row has an answer for each cause, with a known meaning."""
        for row in tables.JUDGEMENTS:
            self.assertEqual(len(row.answers), len(tables.CAUSES), row.gate)
            self.assertLessEqual(set(row.answers), set(tables.MEANINGS), row.gate)
