"""Tests of the verdict that the checking run ends with."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
from pathlib import Path
from types import ModuleType
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

ROOT = Path(__file__).resolve().parents[1]


def load_report() -> ModuleType:
    """Import .ci/report.py by its path."""
    spec = importlib.util.spec_from_file_location("ci_report", ROOT / ".ci" / "report.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


report = load_report()


class ReportTests(SynchronousTestCase):
    """Verdicts on made-up outcomes."""

    def verdict(self, outcomes: Any, allowed: str = "", *more: Any) -> tuple[int, list[str]]:
        """Return the exit status and the lines for the outcomes of runs; None: it broke off."""
        work = Path(self.mktemp())
        work.mkdir()
        runs = (outcomes, *more)
        for number, given in enumerate(runs):
            if given is not None:
                (work / f"run{number}").write_text(json.dumps(given))
        (work / "allowed").write_text(allowed)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = report.main(
                [
                    *(str(work / f"run{number}") for number in range(len(runs))),
                    str(work / "allowed"),
                ]
            )
        return status, out.getvalue().splitlines()

    def test_all_passed(self) -> None:
        """Only passed tests: status 0, and one line."""
        outcomes = {"a": ["passed", ""], "b": ["passed", ""]}
        self.assertEqual(self.verdict(outcomes), (0, ["2 passed, 0 failed"]))

    def test_failed(self) -> None:
        """A failed test is named, counted, and fails the run."""
        status, lines = self.verdict({"a": ["passed", ""], "b": ["failed", "error"]})
        self.assertEqual(status, 1)
        self.assertEqual(lines, ["FAILED b (error)", "1 passed, 1 failed"])

    def test_skipped(self) -> None:
        """A skip whose reason is allowed is listed and does no harm; any other fails the run."""
        outcomes = {"a": ["passed", ""], "b": ["skipped", "macOS only"]}
        status, lines = self.verdict(outcomes, "# why\n^macOS\n")
        self.assertEqual(status, 0)
        self.assertEqual(lines[-1], "1 passed, 0 failed, 1 skipped")
        self.assertIn("    b", lines)
        self.assertEqual(self.verdict(outcomes, "^Windows\n")[0], 1)

    def test_nothing(self) -> None:
        """A run without a passed test, or that broke off, fails."""
        self.assertEqual(self.verdict({})[0], 1)
        status, lines = self.verdict(None)
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed"))

    def test_several_runs(self) -> None:
        """The outcomes of all runs count; one that broke off fails the others too."""
        passed = {"a": ["passed", ""]}
        self.assertEqual(self.verdict(passed, "", {"b": ["passed", ""]})[1], ["2 passed, 0 failed"])
        status, lines = self.verdict(passed, "", None)
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed"))
