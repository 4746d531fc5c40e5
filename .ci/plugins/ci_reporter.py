"""
A trial reporter that also writes the outcome of each test to $CI_OUTCOMES as JSON.

At the end it prints which tests took the longest.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from twisted.trial.reporter import TreeReporter

SLOWEST = 25


class OutcomeReporter(TreeReporter):
    """As trial's usual one; in the file, each test has one outcome, the worst that it had."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._outcomes: dict[str, tuple[str, str]] = {}
        self._seconds: dict[str, float] = {}

    def startTest(self, test: Any) -> None:  # noqa: N802
        self._seconds[test.id()] = time.monotonic()
        super().startTest(test)

    def stopTest(self, test: Any) -> None:  # noqa: N802
        self._seconds[test.id()] = time.monotonic() - self._seconds[test.id()]
        super().stopTest(test)

    def addSuccess(self, test: Any) -> None:  # noqa: N802
        self._outcomes.setdefault(test.id(), ("passed", ""))
        super().addSuccess(test)

    def addSkip(self, test: Any, reason: Any) -> None:  # noqa: N802
        self._outcomes.setdefault(test.id(), ("skipped", str(reason)))
        super().addSkip(test, reason)

    def addError(self, test: Any, error: Any) -> None:  # noqa: N802
        self._outcomes[test.id()] = ("failed", "error")
        super().addError(test, error)

    def addFailure(self, test: Any, failure: Any) -> None:  # noqa: N802
        self._outcomes[test.id()] = ("failed", "failure")
        super().addFailure(test, failure)

    def addExpectedFailure(self, test: Any, failure: Any, todo: Any = None) -> None:  # noqa: N802
        self._outcomes[test.id()] = ("failed", "left for later")
        super().addExpectedFailure(test, failure, todo)

    def addUnexpectedSuccess(self, test: Any, todo: Any = None) -> None:  # noqa: N802
        self._outcomes[test.id()] = ("failed", "marked as failing, and passed")
        super().addUnexpectedSuccess(test, todo)

    def done(self) -> None:
        super().done()
        longest = sorted(self._seconds, key=self._seconds.__getitem__, reverse=True)[:SLOWEST]
        for test in longest:
            self._writeln("%7.1f s  %s", self._seconds[test], test)
        with open(os.environ["CI_OUTCOMES"], "w", encoding="utf-8") as file:
            json.dump(self._outcomes, file)
