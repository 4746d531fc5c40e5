"""
What survives of finished runs: the ledger rows, archived output, and the history at a start.

Without a store nothing is written and the history begins empty.  docs/durability.md tells what
is promised.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from cronstable.config.values import JobConfig
from cronstable.runs import rows
from cronstable.runs.history import KEPT, History
from cronstable.runs.record import FinishedRun, RunRecord
from cronstable.runs.redact import Masker
from cronstable.state import folds, streams
from cronstable.state.service import StoreService
from cronstable.state.store import Store

log = logging.getLogger("cronstable.state")

Mask = Callable[[JobConfig, str], str]


class Ledger:
    """Writes finished runs and reads them back."""

    def __init__(self, store: StoreService, mask: Mask | None = None) -> None:
        self._store = store
        self._mask = mask or archive_mask

    def finished(self, run: FinishedRun) -> None:
        """Append the row of a finished run, and its output where the job archives it."""
        store, record, job = self._store, run.record, run.job
        if not store.configured:
            return
        owed = record.ended_by == "shutdown" and job.on_missed != "skip"
        self._append(job.name, streams.runs(job.name), rows.row_of(record, owed))
        if job.archive_output and job.save_limit > 0:
            store.write(job.name, "run-record", self._archive(run))

    def skipped(self, record: RunRecord) -> None:
        """Append the row of a slot that a pause skipped."""
        if self._store.configured:
            self._append(record.job, streams.runs(record.job), rows.row_of(record))

    def interrupted(self, job: str, started_at: float, host: str, owed: bool) -> RunRecord | None:
        """Append the row of a run of which no completion was recorded, and return the run."""
        row = rows.interrupted(started_at, host, owed)
        self._append(job, streams.runs(job), row)
        return rows.record_of(job, row)

    async def rehydrate(self, names: Iterable[str], history: History) -> int:
        """
        Fill the history of these jobs from the ledger, in finish order; return of how many.

        Rows that this process has entered meanwhile stay the newest.  Raises OSError if the store
        does not answer in time.
        """
        found = await self._store.ask(lambda store: _read_all(store, tuple(names)))
        for job, kept in found.items():
            history.restore(job, kept)
        return len(found)

    async def last_verdict(self, job: str) -> RunRecord | None:
        """
        Return the newest success or failure in the ledger; raises OSError.
        """
        return await self._store.ask(lambda store: _last_verdict(store, job))

    def _append(self, job: str, stream: str, row: dict[str, Any]) -> None:
        config = self._store.config
        keep = None if config is None else streams.runs_to_keep(config.max_runs_per_job)
        self._store.write(
            job, "run-record", lambda store: store.records.append(stream, row, keep=keep)
        )

    def _archive(self, run: FinishedRun) -> Callable[[Store], object]:
        config = self._store.config
        keep = None if config is None else streams.runs_to_keep(config.max_runs_per_job)
        job = run.job

        def write(store: Store) -> object:
            lines = rows.archive_lines(run)
            if job.redact_archived_secrets:
                lines = _redacted(lines, lambda text: self._mask(job, text))
            row = rows.archive_of(run, lines, job.redact_archived_secrets)
            return store.records.append(streams.logs(job.name), row, keep=keep)

        return write


def archive_mask(job: JobConfig, text: str) -> str:
    """Return C{text} without what looks like a secret, and without the job's own secrets."""
    values = [named.secret.value for named in job.secrets if named.secret.value]
    return Masker(values, patterns=True).mask(text)


def _redacted(lines: list[dict[str, str]], mask: Callable[[str], str]) -> list[dict[str, str]]:
    redacted = []
    for stream in ("stderr", "stdout"):
        text = "".join(each["line"] for each in lines if each["stream"] == stream)
        if text:
            redacted += [
                {"stream": stream, "line": line} for line in mask(text).splitlines(keepends=True)
            ]
    return redacted


def _last_verdict(store: Store, job: str) -> RunRecord | None:
    found = [rows.record_of(job, row) for row in store.records.read(streams.runs(job), KEPT)]
    verdicts = [each for each in found if each and each.outcome in ("success", "failure")]
    return max(verdicts, key=lambda each: each.finished_at, default=None)


def _read_all(store: Store, names: tuple[str, ...]) -> dict[str, list[RunRecord]]:
    found = {}
    for job in names:
        kept = [
            record
            for row in folds.in_finish_order(store.records.read(streams.runs(job), KEPT))
            if (record := rows.record_of(job, row)) is not None
        ]
        if kept:
            found[job] = kept
    return found
