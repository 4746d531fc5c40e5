"""
What survives of finished runs: the ledger rows, archived output, and the history at a start.

Without a store nothing is written and the history begins empty.  docs/durability.md tells what
is promised.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cronstable.config.values import JobConfig
from cronstable.runs import rows
from cronstable.runs.history import KEPT, History
from cronstable.runs.reading import Open, for_each
from cronstable.runs.record import FinishedRun, RunRecord
from cronstable.runs.redact import Masker, written_secrets
from cronstable.state import folds, streams
from cronstable.state.service import StoreService
from cronstable.state.store import Store

log = logging.getLogger("cronstable.state")

VERDICTS = ("success", "failure")
MOST_HELD = 100
"""Rows of one job that may wait until it is known what the job owes."""


class Ledger:
    """Writes finished runs and reads them back."""

    def __init__(self, store: StoreService) -> None:
        self.waits: Callable[[JobConfig], bool] = lambda job: False
        """Whether rows of a job wait until L{release}."""
        self.gave_up: Callable[[str], object] = self.release
        """Told of a job of which too many rows wait; it releases them."""
        self._store = store
        self._held: dict[str, list[Callable[[], object]]] = {}

    def finished(self, run: FinishedRun) -> None:
        """Append the row of a finished run, and its output where the job archives it."""
        store, record, job = self._store, run.record, run.job
        if not store.configured:
            return
        owed = record.ended_by == "shutdown" and job.on_missed != "skip"
        self._in_turn(job, lambda: self._append(job.name, rows.row_of(record, owed)))
        if job.archive_output and job.save_limit > 0:
            kept = sum(len(text.text) for text in (run.stdout, run.stderr) if text is not None)
            store.write(job.name, "run-record", self._archive(run), kept)

    def skipped(self, record: RunRecord, job: JobConfig | None) -> None:
        """Append the row of a slot that a pause skipped."""
        if self._store.configured and job is not None:
            self._in_turn(job, lambda: self._append(record.job, rows.row_of(record)))

    def release(self, job: str) -> None:
        """Write the rows of C{job} that waited."""
        for write in self._held.pop(job, ()):
            write()

    def interrupted(self, job: str, started_at: float, host: str, owed: bool) -> RunRecord | None:
        """Append the row of a run of which no completion was recorded, and return the run."""
        row = rows.interrupted(started_at, host, owed)
        self._append(job, row)
        return rows.record_of(job, row)

    async def rehydrate(self, names: Open, history: History) -> int:
        """
        Fill the history of these jobs from the ledger, in finish order; return of how many.

        Rows that this process has entered meanwhile stay the newest.  Raises OSError if the store
        does not answer; C{names} are those that are left then.
        """
        count = 0

        def found(job: str, kept: list[RunRecord]) -> None:
            nonlocal count
            if kept:
                history.restore(job, kept)
                count += 1

        await for_each(self._store, names, _recent, found)
        return count

    async def last_verdict(self, job: str) -> RunRecord | None:
        """
        Return the newest success or failure in the ledger; raises OSError.
        """
        return await self._store.ask(lambda store: _last_verdict(store, job))

    def _in_turn(self, job: JobConfig, write: Callable[[], object]) -> None:
        held = self._held.get(job.name)
        if held is None and self.waits(job):
            held = self._held[job.name] = []
        if held is None:
            write()
            return
        held.append(write)
        if len(held) > MOST_HELD:
            log.warning(
                "catch-up: what %s missed cannot be found out, its ledger is not readable", job.name
            )
            self.gave_up(job.name)

    @property
    def _kept(self) -> int | None:
        """How many rows of a job stay, None for all."""
        config = self._store.config
        return None if config is None else streams.runs_to_keep(config.max_runs_per_job)

    def _append(self, job: str, row: dict[str, Any]) -> None:
        self._store.append(job, "run-record", streams.runs(job), row, self._kept)

    def _archive(self, run: FinishedRun) -> Callable[[Store], object]:
        job, keep = run.job, self._kept

        def write(store: Store) -> object:
            if job.redact_archived_secrets:
                lines = rows.archive_lines(run, lambda text: archive_mask(run, text))
            else:
                lines = rows.archive_lines(run)
            row = rows.archive_of(run, lines, job.redact_archived_secrets)
            return store.records.append(streams.logs(job.name), row, keep=keep)

        return write


def archive_mask(run: FinishedRun, text: str) -> str:
    """Return C{text} without what looks like a secret, and without those that the run knew."""
    values = {*written_secrets(run.job), *run.secrets}
    return Masker(sorted(values), patterns=True).mask(text)


def _last_verdict(store: Store, job: str) -> RunRecord | None:
    verdicts = [each for each in _recent(store, job) if each.outcome in VERDICTS]
    return verdicts[-1] if verdicts else None


def _recent(store: Store, job: str) -> list[RunRecord]:
    """Return what a history needs of a ledger, in finish order: its newest rows and verdicts."""
    items = store.records.read(streams.runs(job), KEPT)
    if len(items) == KEPT and not _tells(items):
        items = store.records.read(streams.runs(job))
        notable = [folds.latest(row for row in items if row.get("outcome") == o) for o in VERDICTS]
        newest = items[-KEPT:]
        items = [row for row in notable if row is not None and row not in newest] + newest
    ordered = folds.in_finish_order(items, store.tree.clock.now())
    found = (rows.record_of(job, row) for row in ordered)
    return [record for record in found if record is not None]


def _tells(items: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether rows tell when the job last succeeded, and so how its last run went."""
    return any(row.get("outcome") == "success" for row in items)
