"""
In-flight records: what is running, said in the store, so that a crash leaves a trace.

A job has an C{open} record from its first live run on this node to the end of its last, then a
C{closed} one; when the run that it names ends before others, another open record names the oldest
of these.  After a crash the newest open record of this host is looked at once: a process that
still lives is left alone, one that does not becomes a row C{unknown} of the ledger.
docs/durability.md, "What follows from it", tells an operator.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import attrs

from cronstable.clock import Clock
from cronstable.config.values import JobConfig
from cronstable.identity import Identity
from cronstable.runs.digests import Digest
from cronstable.runs.reading import Open, for_each
from cronstable.state import streams
from cronstable.state.instants import from_text, to_text
from cronstable.state.service import StoreService
from cronstable.state.store import Store

log = logging.getLogger("cronstable.state")

STARTED_LATER = 2.0
"""Seconds by which a process may seem to have started after its record was written."""

NEWEST_ROWS = 50
"""Rows of the ledger among which the one of a run is that ended just before a crash."""

StartTime = Callable[[int], float | None]
Interrupted = Callable[[str, float, str, bool], object]
"""Told of a run that was cut: its job, when it started, on which host, whether it is owed."""


@attrs.frozen
class Survivor:
    """A run of an earlier process that still lives: its pid, pinned by when it started."""

    pid: int
    started_at: float


@attrs.frozen
class _Left:
    """What an earlier process left open, and whether the run had ended all the same."""

    record: Mapping[str, Any]
    has_row: bool


class Inflight:
    """Opens and closes the in-flight records of this node, and reconciles those of a crash."""

    def __init__(
        self,
        clock: Clock,
        identity: Identity,
        store: StoreService,
        digest: Digest,
        start_time: StartTime,
    ) -> None:
        self._clock = clock
        self._identity = identity
        self._store = store
        self._digest = digest
        self._start_time = start_time
        self._open: dict[str, Mapping[str, Any]] = {}
        self._replaced: set[str] = set()
        """Jobs with an open record that is, or may be, written below the newest one."""
        self._seen: set[tuple[str, str, float | None]] = set()
        self._survivors: dict[str, Survivor] = {}

    def opened(self, job: JobConfig, pid: int | None, started_at: float) -> None:
        """The first of the job's live runs has started."""
        if not self._store.configured or job.name in self._open:
            return
        self._write_open(job, pid, started_at)

    def passed_on(self, started_at: float, job: JobConfig, pid: int, other: float) -> None:
        """The run of C{job} that began at C{started_at} has ended, that of C{other} lives."""
        record = self._open.get(job.name)
        if record is None or record["startedAt"] != to_text(started_at):
            return
        if not self._store.withdraw(job.name, "inflight"):
            self._replaced.add(job.name)
        self._write_open(job, pid, other)

    def closed(self, job: str) -> None:
        """The last of the job's live runs has ended."""
        if self._open.pop(job, None) is None:
            return
        written = job in self._replaced
        self._replaced.discard(job)
        if not self._store.withdraw(job, "inflight") or written:
            self._append(job, self._closed_record("finished"))

    def survivor(self, job: str) -> bool:
        """Return whether an earlier process's run of C{job} still lives on this host."""
        known = self._survivors.get(job)
        if known is None:
            return False
        if self._lives(known.pid, known.started_at):
            return True
        del self._survivors[job]
        return False

    def keep_only(self, names: Collection[str]) -> None:
        """Forget the survivors of jobs that are gone."""
        for name in [name for name in self._survivors if name not in names]:
            del self._survivors[name]

    async def reconcile(
        self,
        names: Open,
        find: Callable[[str], JobConfig | None],
        interrupted: Interrupted,
    ) -> None:
        """
        Look at what an earlier process of this host left open; C{interrupted} may be told of it.

        Raises OSError if the store does not answer; C{names} are those that are left then.
        """

        def read(store: Store, name: str) -> tuple[Mapping[str, Any] | None, _Left | None]:
            records = store.records.read(streams.inflight(name), streams.INFLIGHT_KEEP, strict=True)
            before = self._left_open(records)
            left = None if before is None else _Left(before, _has_row(store, name, before))
            return (records[-1] if records else None), left

        def found(name: str, said: tuple[Mapping[str, Any] | None, _Left | None]) -> None:
            job = find(name)
            if job is None:
                return
            newest, left = said
            if left is not None:
                self._reconcile(job, left, interrupted)
            ours = self._open.get(name)
            if ours is not None and (newest != ours or left is not None):
                # A store that came up later, or that is another one, does not know of it yet.
                self._append(name, ours)

        await for_each(self._store, names, read, found)

    def _left_open(self, records: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """Return what the last process of this host left open, unless a peer took it over."""
        for record in reversed(records):
            if record.get("reason") == "reconciled-takeover":
                return None
            if (
                record.get("host") == self._identity.host
                and record.get("proc") != self._identity.process
            ):
                return record if record.get("kind") == "open" else None
        return None

    def _reconcile(self, job: JobConfig, left: _Left, interrupted: Interrupted) -> None:
        record = left.record
        started_at = from_text(record.get("startedAt"))
        key = job.name, str(record.get("proc")), started_at
        if started_at is None or key in self._seen:
            return
        self._seen.add(key)
        if left.has_row:
            self._append(job.name, self._closed_record("finished"))
            return
        pid = record.get("pid")
        if isinstance(pid, int) and self._lives(pid, started_at):
            log.warning(
                "Job %s: an earlier daemon's run (pid %d) is still alive; it is left alone",
                job.name,
                pid,
            )
            self._survivors[job.name] = Survivor(pid, started_at)
            return
        log.warning("Job %s: the run started at %s was interrupted", job.name, record["startedAt"])
        self._append(job.name, self._closed_record("reconciled-crash"))
        host = str(record.get("host"))
        interrupted(job.name, started_at, host, job.on_missed != "skip")

    def _lives(self, pid: int, started_at: float) -> bool:
        began = self._start_time(pid)
        return began is not None and began <= started_at + STARTED_LATER

    def _write_open(self, job: JobConfig, pid: int | None, started_at: float) -> None:
        record = self._open[job.name] = {
            "kind": "open",
            "host": self._identity.host,
            "proc": self._identity.process,
            "pid": pid,
            "startedAt": to_text(started_at),
            "jobDigest": self._digest(job),
        }
        self._append(job.name, record)

    def _closed_record(self, reason: str) -> dict[str, Any]:
        return {
            "kind": "closed",
            "host": self._identity.host,
            "proc": self._identity.process,
            "reason": reason,
            "at": to_text(self._clock.now()),
        }

    def _append(self, job: str, record: Mapping[str, Any]) -> None:
        stream = streams.inflight(job)
        self._store.append(job, "inflight", stream, record, streams.INFLIGHT_KEEP)


def _has_row(store: Store, job: str, record: Mapping[str, Any]) -> bool:
    """Return whether the run of an open record ended: its row precedes the closed record."""
    rows = store.records.read(streams.runs(job), NEWEST_ROWS)
    return any(row.get("started_at") == record.get("startedAt") is not None for row in rows)
