"""
Checkpoints of catch-up: what a job still owes, said in the store before it is run.

The newest record of C{catchup/JOB} decides.  C{open} names the instant after which slots are owed
and, where this implementation wrote it, the exact stretches; C{close} says that nothing is owed.
docs/store-format.md, "Streams", specifies the fields.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from cronstable.runs.missed import Stretch
from cronstable.state import folds, streams
from cronstable.state.instants import from_text, to_text
from cronstable.state.store import Store

Record = Mapping[str, Any]


@attrs.frozen
class Saved:
    """What the store says about the slots of one job."""

    watermark: float | None = None
    """The latest finish in the ledger, or None."""
    ahead: int = 0
    """Rows of the ledger that are too far ahead of the clock to count."""
    newest: float | None = None
    """The latest finish of all, those ahead of the clock among them."""
    open: Record | None = None
    """The newest checkpoint, if it is open."""
    pauses: tuple[Stretch, ...] = ()
    cut: float | None = None
    """When the first run began that was cut and is owed; told where nothing has ever finished."""
    started: float | None = None
    """The latest start of a run that has finished."""

    def owed(self, until: float, now: float = math.inf) -> list[Stretch]:
        """
        Return the stretches up to C{until} whose slots are owed, oldest first.

        What has been noted beyond C{now} is left out.
        """
        if self.open is None:
            return [] if self.watermark is None else joined([Stretch(self.watermark, until)])
        saved = _stretches(self.open.get("windows"))
        if saved is None:
            marks = [from_text(self.open.get("watermark")), self.watermark]
            known = [each for each in marks if each is not None]
            return joined([Stretch(min(known), until)] if known else [])
        past = joined([Stretch(each.after, min(each.until, now)) for each in saved])
        accounted = [each.until for each in past]
        if self.watermark is not None:
            accounted.append(self.watermark)
        return joined([*past, Stretch(max(accounted), until)] if accounted else [])

    def owed_once(self, until: float, now: float) -> list[Stretch]:
        """Return the stretches for which a start after them would do, and none has been."""
        done = -math.inf if self.started is None else self.started
        return joined(Stretch(max(each.after, done), each.until) for each in self.owed(until, now))

    def beyond(self, now: float) -> list[Stretch]:
        """Return what of the stretches that were noted as owed lies beyond C{now}."""
        saved = None if self.open is None else _stretches(self.open.get("windows"))
        return joined([Stretch(max(each.after, now), each.until) for each in saved or ()])


def read(store: Store, job: str, now: float) -> Saved:
    """Return what the store says about C{job}; raises OSError or Unreadable."""
    rows = store.records.read(streams.runs(job), strict=True)
    mark = folds.watermark(rows, now)
    newest = max((each for row in rows if (each := folds.finished(row)) is not None), default=None)
    pauses = pauses_of(store.records.read(streams.paused(job)))
    cut = _first_cut(rows) if newest is None else None
    started = _last_start(rows, now)
    opened = newest_open(store, job)
    return Saved(mark.instant, mark.ahead, newest, opened, pauses, cut, started)


def newest_open(store: Store, job: str) -> Record | None:
    """Return the newest checkpoint of C{job} if it is open; raises OSError or Unreadable."""
    checkpoint: Record | None = store.records.latest(streams.catchup(job), strict=True)
    is_open = checkpoint is not None and checkpoint.get("kind") == "open"
    return checkpoint if is_open else None


def opened(stretches: Sequence[Stretch], now: float) -> Record:
    """Return the record that says what is owed; C{stretches} is not empty."""
    return {
        "kind": "open",
        "watermark": to_text(min(each.after for each in stretches)),
        "windows": [[to_text(each.after), to_text(each.until)] for each in stretches],
        "at": to_text(now),
    }


def closed(now: float) -> Record:
    """Return the record that says that nothing is owed."""
    return {"kind": "close", "watermark": "", "at": to_text(now)}


def pauses_of(records: Sequence[Record]) -> tuple[Stretch, ...]:
    """Return the stretches that a job was paused for, as its pause records tell."""
    found: list[Stretch] = []
    for record in records:
        at, since = from_text(record.get("at")), from_text(record.get("since"))
        if found and at is not None and at < found[-1].until:
            found[-1] = Stretch(found[-1].after, at)
        until = from_text(record.get("until"))
        if record.get("kind") == "paused" and since is not None and until is not None:
            found.append(Stretch(since, until))
    return tuple(found)


def _first_cut(rows: Iterable[Record]) -> float | None:
    cut = (row for row in rows if row.get("interruptedAt") is not None)
    began = (from_text(row.get("started_at") or row.get("interruptedAt")) for row in cut)
    return min((each for each in began if each is not None), default=None)


def _last_start(rows: Iterable[Record], now: float) -> float | None:
    """Return the latest start of a run that has finished; hours ahead of C{now} none counts."""
    ended = (row for row in rows if row.get("finished_at") is not None)
    began = (from_text(row.get("started_at")) for row in ended)
    return max(
        (each for each in began if each is not None and each <= now + folds.AHEAD), default=None
    )


def _stretches(value: Any) -> list[Stretch] | None:
    """Return stretches as a record spells them, None if it spells none."""
    if not isinstance(value, list):
        return None
    found = []
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2:
            return None
        after, until = from_text(pair[0]), from_text(pair[1])
        if after is None or until is None:
            return None
        found.append(Stretch(after, until))
    return found or None


def joined(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Return C{stretches} in order, empty ones left out and those that touch joined."""
    found: list[Stretch] = []
    for each in sorted(stretches, key=lambda stretch: stretch.after):
        if each.after >= each.until:
            continue
        if found and each.after <= found[-1].until:
            found[-1] = Stretch(found[-1].after, max(found[-1].until, each.until))
        else:
            found.append(each)
    return found
