"""
Pauses that survive a restart, and that hold on every node of a shared store.

The newest record of a job decides, whatever host wrote it (docs/durability.md, "Pauses").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cronstable.clock import Clock
from cronstable.identity import Identity
from cronstable.runs.pauses import Pause
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

    async def read(self, jobs: Iterable[str]) -> dict[str, Pause | None]:
        """
        Return the pause in force, or None, of each job that has a record at all.

        Raises OSError if the store does not answer in time.
        """
        names = tuple(jobs)
        newest = await self._store.ask(lambda store: _newest(store, names))
        now = self._clock.now()
        return {job: _pause(record, now) for job, record in newest.items()}

    def _append(self, job: str, record: Mapping[str, Any]) -> None:
        stamped = {**record, "at": to_text(self._clock.now()), "host": self._identity.host}
        stream = streams.paused(job)
        self._store.write(
            job,
            "pause",
            lambda store: store.records.append(stream, stamped, keep=streams.PAUSE_KEEP),
        )


def _pause(record: Mapping[str, Any], now: float) -> Pause | None:
    since, until = from_text(record.get("since")), from_text(record.get("until"))
    if record.get("kind") != "paused" or since is None or until is None or until <= now:
        return None
    note, by = str(record.get("note") or ""), str(record.get("by") or "")
    return Pause(since, until, note, by, str(record.get("channel") or "api"))


def _newest(store: Store, names: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for name in names:
        record = store.records.latest(streams.paused(name))
        if record is not None:
            found[name] = record
    return found
