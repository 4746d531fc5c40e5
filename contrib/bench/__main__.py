"""
Measures cronstable beside a peer and beside bare code, in the same run, and prints one table.

Usage: PYTHON contrib/bench [--peer VENV] [--only M1,M3] [--rounds N] [--quick], where PYTHON is the
interpreter that cronstable is installed for.  docs/performance.md tells what each bar means.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import keeping
import machine
import printing
import resting
import serving
import starting
from bars import BARS
from daemons import Scratch, Target, ours, peer
from table import Found, Row, medians, render, rows

Run = Callable[[Target, Scratch, bool], Found]
Limit = Callable[[Scratch, bool], Found]


def no_limit(scratch: Scratch, quick: bool) -> Found:
    """Nothing bare does the same."""
    return {}


@dataclass(frozen=True)
class Measure:
    """How one measure is made, for a target and for bare code."""

    run: Run
    limit: Limit = no_limit


MEASURES = {
    "M1": Measure(resting.start, resting.start_limit),
    "M2": Measure(resting.rest),
    "M3": Measure(starting.burst, starting.burst_limit),
    "M4": Measure(starting.steady),
    "M5": Measure(serving.pages, serving.page_limit),
    "M6": Measure(serving.reload),
    "M7": Measure(keeping.kept, keeping.kept_limit),
    "M8": Measure(printing.output, printing.output_limit),
    "M9": Measure(resting.tool, resting.tool_limit),
    "M10": Measure(starting.demoted, starting.demoted_limit),
}


def measured(
    name: str, targets: list[Target], scratch: Scratch, options: argparse.Namespace
) -> list[Row]:
    """Return the rows of one measure: rounds in which each target and the limit take turns."""
    measure = MEASURES[name]
    found: dict[str, list[Found]] = {"ours": [], "peer": [], "limit": []}
    for number in range(options.rounds):
        for target in targets[:: 1 if number % 2 == 0 else -1]:
            machine.wait_for_calm(options.calm)
            found[target.name].append(measure.run(target, scratch, options.quick))
        machine.wait_for_calm(options.calm)
        found["limit"].append(measure.limit(scratch, options.quick))
    return rows(
        [bar for bar in BARS if bar.measure == name],
        *(medians(found[who]) for who in ("ours", "peer", "limit")),
    )


def main() -> int:
    """Measure, print, and return 1 if a bar was missed."""
    parser = argparse.ArgumentParser(prog="contrib/bench", description=__doc__)
    parser.add_argument("--peer", type=Path, help="its virtual environment, made if not there")
    parser.add_argument("--only", default=",".join(MEASURES), help="some measures")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calm", type=float, default=10.0, help="seconds to wait for calm")
    parser.add_argument("--quick", action="store_true", help="small loads: to see it work")
    options = parser.parse_args()
    targets = [ours(), *([peer(options.peer)] if options.peer else [])]
    scratch = Scratch()
    found: list[Row] = []
    try:
        for name in options.only.split(","):
            spent = machine.busy(), time.monotonic()
            found += measured(name, targets, scratch, options)
            cores = (machine.busy() - spent[0]) / (time.monotonic() - spent[1])
            print(f"{name} done; {cores:.2f} cores were busy", file=sys.stderr, flush=True)
    finally:
        scratch.remove()
    print(
        f"{time.strftime('%Y-%m-%d %H:%M')}, {platform.machine()}, {platform.release()},", end=" "
    )
    print(f"Python {platform.python_version()}, medians of {options.rounds} round(s)\n")
    print(render(found))
    return 1 if any(row.verdict == "missed" for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
