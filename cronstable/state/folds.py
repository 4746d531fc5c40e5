"""
What a job's ledger says when its rows are in no particular order.

Peers append to one stream without knowing of each other, so the newest row is the one that
finished last, not the one that stands last (docs/store-format.md, "The ledger").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import attrs

from cronstable.state.instants import from_text

AHEAD = 3 * 3600.0
"""Seconds by which a row may be ahead of now and still count: a clock that was set back."""

Row = Mapping[str, Any]
R = TypeVar("R", bound=Row)


def finished(row: Row) -> float | None:
    """Return when a run finished, epoch seconds; None if that is not known."""
    return from_text(row.get("finished_at"))


def stands_at(row: Row) -> float | None:
    """Return the instant a row stands in: its finish, or the start of an interrupted run."""
    for field in ("finished_at", "ranAt", "interruptedAt"):
        instant = from_text(row.get(field))
        if instant is not None:
            return instant
    return None


def really_ran(row: Row) -> float | None:
    """Return when a real run ended; skipped slots and runs still owed have no such time."""
    if "ranAt" in row:
        return from_text(row.get("ranAt"))
    return None if row.get("outcome") == "skipped" else finished(row)


def in_finish_order(rows: Iterable[R], now: float = float("inf")) -> list[R]:
    """
    Return the rows by the instant they stand in, stream order among equals, undated first.

    One that is hours ahead of C{now} stands right after those that precede it in the stream.
    """
    placed: list[tuple[float, R]] = []
    newest = _or_never(None)
    for row in rows:
        at = _or_never(stands_at(row))
        if at <= now + AHEAD:
            newest = max(newest, at)
        else:
            at = newest
        placed.append((at, row))
    return [row for _, row in sorted(placed, key=lambda each: each[0])]


def latest(rows: Iterable[R]) -> R | None:
    """Return the row that finished last; of equals the later one in the stream."""
    best: R | None = None
    for row in rows:
        if best is None or _or_never(stands_at(row)) >= _or_never(stands_at(best)):
            best = row
    return best


@attrs.frozen
class Watermark:
    """A greatest instant over a ledger, and how many rows were too far ahead of now to count."""

    instant: float | None = None
    ahead: int = 0


def watermark(rows: Iterable[Row], now: float) -> Watermark:
    """Return up to when a job's slots are accounted for: the latest finish of any outcome."""
    return _greatest((finished(row) for row in rows), now)


def last_real_run(rows: Iterable[Row], now: float) -> Watermark:
    """Return when a run last really ended, skipped slots left out."""
    return _greatest((really_ran(row) for row in rows), now)


def _greatest(instants: Iterable[float | None], now: float) -> Watermark:
    greatest: float | None = None
    ahead = 0
    for instant in instants:
        if instant is None:
            continue
        if instant > now + AHEAD:
            ahead += 1
        elif greatest is None or instant > greatest:
            greatest = instant
    return Watermark(greatest, ahead)


def _or_never(instant: float | None) -> float:
    return float("-inf") if instant is None else instant
