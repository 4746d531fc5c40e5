"""
What a job's ledger says of the last hour, day, week, month, and of all it holds.

docs/http-api.md, "Trends", specifies the windows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from cronstable.executors.interfaces import Usage
from cronstable.state import names, streams
from cronstable.state.errors import Unreadable
from cronstable.state.folds import stands_at
from cronstable.state.store import Store

MOST_ROWS = 5000
"""The newest rows of the ledger that trends look at."""

WINDOWS: tuple[tuple[str, float | None], ...] = (
    ("1h", 3600.0),
    ("24h", 86400.0),
    ("7d", 7 * 86400.0),
    ("30d", 30 * 86400.0),
    ("all", None),
)
"""The windows, and how many seconds each goes back."""


class Ran(Protocol):
    """What statistics need of a run."""

    @property
    def outcome(self) -> str:
        """How it ended."""

    @property
    def finished_at(self) -> float:
        """When, in epoch seconds."""

    @property
    def duration(self) -> float | None:
        """How many seconds it took."""

    @property
    def usage(self) -> Usage | None:
        """What it used, if that was sampled."""


class LedgerRun(NamedTuple):
    """A row of the ledger, as far as statistics need it."""

    outcome: str
    finished_at: float
    duration: float | None
    usage: Usage | None


R = TypeVar("R", bound=Ran)
S = TypeVar("S")


def ledger_runs(store: Store, job: str) -> list[LedgerRun]:
    """
    Return the newest runs in a job's ledger, in stream order.

    Raises OSError, or L{Unreadable} where there are rows and none of them can be read.
    """
    stream = streams.runs(job)
    found = store.records.picked(stream, _run_of, MOST_ROWS)
    if not found and store.records.files(names.token(stream)):
        raise Unreadable(stream, "none of its rows can be read")
    return [run for run in found if run is not None]


def windowed(runs: Sequence[R], now: float, summary: Callable[[Sequence[R]], S]) -> dict[str, S]:
    """Return the C{summary} of the runs in each window that ends C{now}, by its name."""
    return {name: summary(_since(runs, now, span)) for name, span in WINDOWS}


def _since(runs: Sequence[R], now: float, span: float | None) -> Sequence[R]:
    if span is None:
        return runs
    first = now - span
    return [each for each in runs if each.finished_at > first]


def _run_of(row: Mapping[str, Any]) -> LedgerRun | None:
    outcome, at = row.get("outcome"), stands_at(row)
    if at is None or not isinstance(outcome, str):
        return None
    return LedgerRun(outcome, at, _number(row.get("duration")), _usage_of(row.get("resources")))


def _usage_of(resources: Any) -> Usage | None:
    if not isinstance(resources, Mapping):
        return None
    rss = _number(resources.get("max_rss_bytes"))
    return Usage(
        _number(resources.get("cpu_user_seconds")) or 0.0,
        _number(resources.get("cpu_system_seconds")) or 0.0,
        None if rss is None else int(rss),
    )


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)
