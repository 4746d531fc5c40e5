"""A trial reporter that also writes the outcome of each test to $CI_OUTCOMES as JSON."""

from __future__ import annotations

import json
import os
from typing import Any

from twisted.trial.reporter import TreeReporter


class OutcomeReporter(TreeReporter):
    """As trial's usual one; in the file, each test has one outcome, the worst that it had."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._outcomes: dict[str, tuple[str, str]] = {}

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
        with open(os.environ["CI_OUTCOMES"], "w", encoding="utf-8") as file:
            json.dump(self._outcomes, file)
