"""
What a job's ledger says of the last hour, day, week, month, and of all it holds.

docs/http-api.md, "Trends", specifies the windows.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from cronstable.executors.interfaces import Usage
from cronstable.runs.rows import number
from cronstable.state import names, streams
from cronstable.state.errors import Unreadable
from cronstable.state.folds import stands_at
from cronstable.state.store import Store

MOST_ROWS = 5000
"""The newest rows of the ledger that trends look at."""

REMEMBERED = 20_000
"""Rows kept in memory, about 200 bytes each."""

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


class Ledgers:
    """
    Reads ledgers for statistics; of one that was read before only the new rows are read.

    Any thread may call.  At most C{remembered} rows are kept, those of the jobs last asked for.
    """

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._lock = threading.Lock()
        self._known: OrderedDict[str, dict[str, LedgerRun | None]] = OrderedDict()
        self._rows = 0

    def runs(self, store: Store, job: str) -> list[LedgerRun]:
        """
        Return the newest runs in a job's ledger, in stream order.

        Raises OSError, or L{Unreadable} where there are rows and none of them can be read.
        """
        stream = streams.runs(job)
        known = self._taken(job)
        found = store.records.picked(stream, _run_of, MOST_ROWS, known)
        if not found and store.records.files(names.token(stream)):
            raise Unreadable(stream, "none of its rows can be read")
        self._keep(job, found)
        return [run for file in sorted(found) if (run := found[file]) is not None]

    def _taken(self, job: str) -> dict[str, LedgerRun | None]:
        with self._lock:
            known = self._known.pop(job, {})
            self._rows -= len(known)
        return known

    def _keep(self, job: str, found: dict[str, LedgerRun | None]) -> None:
        with self._lock:
            self._rows += len(found) - len(self._known.pop(job, ()))
            self._known[job] = found
            while self._rows > self._remembered:
                self._rows -= len(self._known.popitem(last=False)[1])


def windowed(runs: Sequence[R], now: float, summary: Callable[[Sequence[R]], S]) -> dict[str, S]:
    """Return the C{summary} of the runs in each window that ends C{now}, by its name."""
    found: dict[str, S] = {}
    inside: Sequence[R] | None = None
    for name, span in WINDOWS:
        wider = _since(runs, now, span)
        if inside is None or len(wider) > len(inside):
            inside, summed = wider, summary(wider)
        found[name] = summed
    return found


def _since(runs: Sequence[R], now: float, span: float | None) -> Sequence[R]:
    if span is None:
        return runs
    first = now - span
    return [each for each in runs if each.finished_at > first]


def _run_of(row: Mapping[str, Any]) -> LedgerRun | None:
    outcome, at = row.get("outcome"), stands_at(row)
    if at is None or not isinstance(outcome, str):
        return None
    return LedgerRun(outcome, at, number(row.get("duration")), _usage_of(row.get("resources")))


def _usage_of(resources: Any) -> Usage | None:
    if not isinstance(resources, dict):
        return None
    rss = number(resources.get("max_rss_bytes"))
    return Usage(
        number(resources.get("cpu_user_seconds")) or 0.0,
        number(resources.get("cpu_system_seconds")) or 0.0,
        None if rss is None else int(rss),
    )
