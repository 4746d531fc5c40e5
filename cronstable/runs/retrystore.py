"""
Retries that survive a restart: what is armed is in the store before it is due.

The newest record of a job decides.  C{pending} is what the next start arms again, at the same
instant; everything that ends or moves a sequence puts a C{settled} record on top.  Just before an
attempt launches it is settled as C{launched}, so that a crash right after does not run it again.
docs/retries.md tells an operator.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from twisted.internet.defer import Deferred

from cronstable.clock import Clock
from cronstable.config.values import JobConfig
from cronstable.identity import Identity
from cronstable.runs import rows
from cronstable.runs.digests import Digest
from cronstable.runs.gates import Hold, No
from cronstable.runs.reading import Open, for_each
from cronstable.runs.record import Cause, RunRecord
from cronstable.runs.request import RunRequest
from cronstable.runs.retry import Retries, RetrySequence
from cronstable.state import folds, streams
from cronstable.state.instants import from_text, to_text
from cronstable.state.service import StoreService
from cronstable.state.store import Store

log = logging.getLogger("cronstable")

Saved = tuple[Mapping[str, Any], float | None]
"""A pending record, and when the job last really ran."""

UNNOTED = No("store", "the store cannot note that the attempt launches")

Covers = Callable[[JobConfig], Awaitable[bool]]


class RetryStore:
    """The durable half of the retry sequences, and the claim of an attempt that launches."""

    name = "retry-claim"
    causes: frozenset[Cause] = frozenset(("retry",))

    def __init__(
        self,
        clock: Clock,
        identity: Identity,
        store: StoreService,
        digest: Digest,
        covers: Covers,
    ) -> None:
        self._clock = clock
        self._identity = identity
        self._store = store
        self._digest = digest
        self._covers = covers

    # the journal that the sequences keep

    def pending(self, job: JobConfig, attempt: int, not_before: float, slot: int | None) -> None:
        """An attempt is armed."""
        if not self._store.configured:
            return
        record = {
            "kind": "pending",
            "attempt": attempt,
            "notBefore": to_text(not_before),
            "jobDigest": self._digest(job),
            **self._stamp(),
        }
        if slot is not None:
            record["slot"] = to_text(slot)
        self._append(job.name, record)

    def settled(self, job: str, reason: str, attempt: int | None = None) -> Deferred[bool]:
        """Nothing is armed any more, for C{reason}; fire with whether that was written."""
        record: dict[str, Any] = {"kind": "settled", "reason": reason, **self._stamp()}
        if attempt is not None:
            record["attempt"] = attempt
        return self._append(job, record)

    # the claim

    def claim(self, request: RunRequest, job: JobConfig) -> Hold | No | Deferred[Hold | No]:
        """Settle the attempt as launched, before it is."""
        sequence = _sequence_of(request)
        if not self._store.configured or sequence is None:
            return _Launched(self, job, None)
        return self.settled(job.name, "launched", request.attempt).addCallback(
            self._claimed, job, sequence
        )

    def late(self, request: RunRequest, job: JobConfig) -> Hold | No:
        """Launch although it is not noted, or not, as C{state.onStoreUnavailable} says."""
        if self._store.fail_closed:
            return UNNOTED
        return _Launched(self, job, _sequence_of(request))

    def came_late(self, answer: Hold | No, request: RunRequest, job: JobConfig) -> None:
        """Note that an attempt is owed after all if it was put off and then noted as launched."""
        if self._store.fail_closed and not isinstance(answer, No):
            answer.undo()

    def _claimed(self, written: bool, job: JobConfig, sequence: RetrySequence) -> Hold | No:
        if not written and self._store.fail_closed:
            return UNNOTED
        return _Launched(self, job, sequence)

    # a new start

    async def saved(self, jobs: Collection[str]) -> Open:
        """
        Return the jobs to ask about, in this configuration or not; raises OSError.
        """
        prefix = streams.retries("")
        found = await self._store.ask(lambda store: store.streams(prefix).names)
        gone = [name[len(prefix) :] for name in found]
        return Open.of([*jobs, *(name for name in gone if name not in jobs)])

    async def rearm(
        self,
        names: Open,
        find: Callable[[str], JobConfig | None],
        last_run: Callable[[str], RunRecord | None],
        retries: Retries,
    ) -> None:
        """
        Arm again what an earlier process of this host left pending; settle what no longer holds.

        Raises OSError if the store does not answer; C{names} are those that are left then.
        """
        pending: list[tuple[str, Saved]] = []

        def found(name: str, saved: Saved | None) -> None:
            if saved is not None:
                pending.append((name, saved))

        try:
            await for_each(self._store, names, _newest, found)
        finally:
            for name, (record, ran) in pending:
                seen = last_run(name)
                if seen is not None and self._ends_retries(seen):
                    ran = max(ran or 0.0, seen.finished_at)
                await self._rearm(name, find(name), record, ran or 0.0, retries)

    def _ends_retries(self, seen: RunRecord) -> bool:
        """Return whether a run that the ledger may not have yet came instead of what is saved."""
        if seen.finished_at > self._clock.now() + folds.AHEAD or seen.cause == "catchup":
            return False
        return seen.cause is not None or seen.outcome == "unknown"

    async def _rearm(
        self,
        name: str,
        job: JobConfig | None,
        record: Mapping[str, Any],
        last_run: float,
        retries: Retries,
    ) -> None:
        if record.get("host") != self._identity.host:
            if job is not None:
                self._say_foreign(job, record)
            return
        current = retries.current(name)
        if current is not None and current.count:
            return  # It is of this process.
        reason = "superseded" if current is not None else None
        if reason is None:
            reason = await self._why_not(job, record, last_run)
        if reason is not None or job is None:
            self.settled(name, reason or "job-removed", _attempt(record))
            return
        attempt, not_before = _attempt(record), from_text(record.get("notBefore"))
        assert attempt is not None and not_before is not None
        slot = from_text(record.get("slot"))
        retries.resume(job, attempt, not_before, None if slot is None else int(slot))
        log.info("Job %s: re-armed pending retry #%d", name, attempt)

    async def _why_not(
        self, job: JobConfig | None, record: Mapping[str, Any], last_run: float
    ) -> str | None:
        if job is None:
            return "job-removed"
        attempt, not_before = _attempt(record), from_text(record.get("notBefore"))
        written = from_text(record.get("at"))
        if attempt is None or not_before is None:
            return "invalid-record"
        if not job.enabled:
            return "disabled"
        if record.get("jobDigest") != self._digest(job):
            return "config-changed"
        if job.retry.last_attempt is not None and attempt > job.retry.last_attempt:
            return "exhausted"
        deadline = job.starting_deadline
        if deadline is not None and self._clock.now() - not_before > deadline:
            return "deadline-passed"
        if written is not None and last_run > written:
            return "superseded-by-run"
        if job.reboot and not await self._covers(job):
            return "superseded-by-reboot"
        return None

    def _say_foreign(self, job: JobConfig, record: Mapping[str, Any]) -> None:
        view = self._store.view
        if view is not None and view.topology == "single-node":
            log.warning(
                "Job %s: a pending retry of host %s is not armed here (%s); if this host was"
                " renamed, give it its old name once or start the job by hand",
                job.name,
                record.get("host"),
                self._identity.host,
            )

    def _stamp(self) -> dict[str, Any]:
        return {"host": self._identity.host, "at": to_text(self._clock.now())}

    def _append(self, job: str, record: Mapping[str, Any]) -> Deferred[bool]:
        stream = streams.retries(job)
        return self._store.append(job, "retry", stream, record, streams.RETRY_KEEP)


class _Launched:
    """An attempt that was settled as launched; undone, it is pending again."""

    def __init__(self, store: RetryStore, job: JobConfig, sequence: RetrySequence | None) -> None:
        self._store = store
        self._job = job
        self._sequence = sequence
        self._not_before = None if sequence is None else sequence.not_before

    def release(self) -> None:
        """The attempt has run."""

    def undo(self) -> None:
        """The attempt did not launch: it is owed at the instant that it was owed before."""
        sequence, not_before = self._sequence, self._not_before
        if sequence is None or not_before is None:
            return
        if not sequence.ended or sequence.owed:
            self._store.pending(self._job, sequence.count, not_before, sequence.slot)


def _sequence_of(request: RunRequest) -> RetrySequence | None:
    return request.origin if isinstance(request.origin, RetrySequence) else None


def _attempt(record: Mapping[str, Any]) -> int | None:
    attempt = record.get("attempt")
    return attempt if type(attempt) is int and attempt >= 1 else None


def _newest(store: Store, name: str) -> Saved | None:
    record = store.records.latest(streams.retries(name), strict=True)
    if record is None or record.get("kind") != "pending":
        return None
    ledger = store.records.read(streams.runs(name), strict=True)
    ran = (row for row in ledger if not rows.leaves_retries(row))
    return record, folds.last_real_run(ran, store.tree.clock.now()).instant
