"""
Reads what the tests gave and prints the verdict.

Usage: python .ci/report.py OUTCOMES... SKIPS-ALLOWED.  Prints the tests that failed and those that
were skipped with their reasons, and as the last line ``N passed, N failed``, with ``, N skipped``
if some were.  Exit status 1 if a test failed, none ran, outcomes are missing (a run broke off), or
a test was skipped for a reason that no pattern of SKIPS-ALLOWED matches.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from pathlib import Path


def patterns(text: str) -> list[re.Pattern[str]]:
    """Return the patterns of an allow-list: one a line, # starts a comment line."""
    lines = (line.strip() for line in text.splitlines())
    return [re.compile(line) for line in lines if line and not line.startswith("#")]


def report(outcomes: dict[str, tuple[str, str]], allowed: list[re.Pattern[str]]) -> int:
    """Print the verdict and return the exit status."""
    by_kind: dict[str, list[str]] = defaultdict(list)
    by_reason: dict[str, list[str]] = defaultdict(list)
    for test, (kind, reason) in sorted(outcomes.items()):
        by_kind[kind].append(test)
        if kind == "skipped":
            by_reason[reason].append(test)
        elif kind == "failed":
            print(f"FAILED {test} ({reason})")
    refused = 0
    for reason, tests in sorted(by_reason.items()):
        fine = any(pattern.search(reason) for pattern in allowed)
        refused += not fine
        print(f"skipped, {'allowed' if fine else 'NOT ALLOWED'}: {reason}")
        for test in tests:
            print(f"    {test}")
    passed, failed, skipped = (len(by_kind[kind]) for kind in ("passed", "failed", "skipped"))
    line = f"{passed} passed, {failed} failed"
    print(f"{line}, {skipped} skipped" if skipped else line)
    return 1 if failed or refused or not passed else 0


def main(argv: list[str]) -> int:
    """Read the files named in C{argv} and report."""
    *runs, allowed = (Path(name) for name in argv)
    outcomes: dict[str, tuple[str, str]] = {}
    for run in runs:
        try:
            outcomes |= json.loads(run.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            outcomes[run.name] = ("failed", f"the run broke off: {error}")
    return report(outcomes, patterns(allowed.read_text(encoding="utf-8")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
