"""
Pauses that survive a restart, and that hold on every node of a shared store.

The newest record of a job decides, whatever host wrote it.  docs/durability.md, "What follows from
it", tells an operator.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from cronstable.clock import Clock
from cronstable.identity import Identity
from cronstable.runs.pauses import Pause
from cronstable.runs.reading import Open, for_each
from cronstable.state import streams
from cronstable.state.instants import from_text, to_text
from cronstable.state.service import StoreService
from cronstable.state.store import Store


class PauseStore:
    """Writes pauses and resumptions, and reads the newest of each job."""

    def __init__(self, clock: Clock, identity: Identity, store: StoreService) -> None:
        self._clock = clock
        self._identity = identity
        self._store = store
        self._ours: dict[str, Mapping[str, Any]] = {}
        """What was last done here; the store may not have it, or not yet."""

    def paused(self, job: str, pause: Pause) -> None:
        """A job was paused."""
        self._append(
            job,
            {
                "kind": "paused",
                "since": to_text(pause.since),
                "until": to_text(pause.until),
                "note": pause.note,
                "by": pause.by,
                "channel": pause.channel,
            },
        )

    def resumed(self, job: str, by: str, channel: str) -> None:
        """A job was resumed, paused or not."""
        self._append(job, {"kind": "resumed", "by": by, "channel": channel})

    async def read(self, names: Open, found: Callable[[str, Pause | None], object]) -> None:
        """
        Call C{found} with the pause in force, or None, of each job that has a record at all.

        What was done here later than the newest record counts, and is written again.  Raises
        OSError if the store does not answer.
        """
        now = self._clock.now()

        def newest(job: str, record: Mapping[str, Any] | None) -> None:
            ours = self._ours.get(job)
            if ours is not None and (record is None or _at(record) < _at(ours)):
                self._write(job, ours)
            elif record is not None:
                found(job, _pause(record, now))

        await for_each(self._store, names, _newest, newest)

    def keep_only(self, names: Collection[str]) -> None:
        """Forget what was done to jobs that are gone."""
        for job in [job for job in self._ours if job not in names]:
            del self._ours[job]

    def _append(self, job: str, record: Mapping[str, Any]) -> None:
        stamped = {**record, "at": to_text(self._clock.now()), "host": self._identity.host}
        self._ours[job] = stamped
        self._write(job, stamped)

    def _write(self, job: str, record: Mapping[str, Any]) -> None:
        if self._store.configured:
            stream = streams.paused(job)
            self._store.append(job, "pause", stream, record, streams.PAUSE_KEEP)


def _at(record: Mapping[str, Any]) -> float:
    return from_text(record.get("at")) or 0.0


def _pause(record: Mapping[str, Any], now: float) -> Pause | None:
    since, until = from_text(record.get("since")), from_text(record.get("until"))
    if record.get("kind") != "paused" or since is None or until is None or until <= now:
        return None
    note, by = str(record.get("note") or ""), str(record.get("by") or "")
    return Pause(since, until, note, by, str(record.get("channel") or "api"))


def _newest(store: Store, job: str) -> Mapping[str, Any] | None:
    record: Mapping[str, Any] | None = store.records.latest(streams.paused(job), strict=True)
    return record
