"""
Retries that survive a restart: what is armed is in the store before it is due.

The newest record of a job decides.  C{pending} is what the next start arms again, at the same
instant; everything that ends or moves a sequence puts a C{settled} record on top.  Just before an
attempt launches it is settled as C{launched}, so that a crash right after does not run it again.
docs/retries.md tells an operator.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from twisted.internet.defer import Deferred

from cronstable.clock import Clock
from cronstable.config.values import JobConfig
from cronstable.identity import Identity
from cronstable.runs.gates import Hold, No
from cronstable.runs.record import Cause
from cronstable.runs.request import RunRequest
from cronstable.runs.retry import Retries, RetrySequence
from cronstable.state import folds, streams
from cronstable.state.instants import from_text, to_text
from cronstable.state.service import StoreService
from cronstable.state.store import Store

log = logging.getLogger("cronstable")

Digest = Callable[[JobConfig], str]
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

    def pending(self, job: JobConfig, attempt: int, not_before: float) -> None:
        """An attempt is armed."""
        if self._store.configured:
            self._append(
                job.name,
                {
                    "kind": "pending",
                    "attempt": attempt,
                    "notBefore": to_text(not_before),
                    "jobDigest": self._digest(job),
                    **self._stamp(),
                },
            )

    def settled(self, job: str, reason: str, attempt: int | None = None) -> Deferred[bool]:
        """Nothing is armed any more, for C{reason}; fire with whether that was written."""
        record: dict[str, Any] = {"kind": "settled", "reason": reason, **self._stamp()}
        if attempt is not None:
            record["attempt"] = attempt
        return self._append(job, record)

    # the claim

    def claim(self, request: RunRequest, job: JobConfig) -> Hold | No | Deferred[Hold | No]:
        """Settle the attempt as launched, before it is."""
        sequence = request.origin
        if not self._store.configured or not isinstance(sequence, RetrySequence):
            return _Launched(self, job, None)
        return self.settled(job.name, "launched", request.attempt).addCallback(
            self._claimed, job, sequence
        )

    def _claimed(self, written: bool, job: JobConfig, sequence: RetrySequence) -> Hold | No:
        if not written and self._store.fail_closed:
            return No("store", "the store cannot note that the attempt launches")
        return _Launched(self, job, sequence)

    # a new start

    async def rearm(
        self,
        jobs: Mapping[str, JobConfig],
        busy: Callable[[str], bool],
        retries: Retries,
    ) -> None:
        """
        Arm again what an earlier process of this host left pending; settle what no longer holds.

        Raises OSError if the store does not answer in time.
        """
        names = tuple(name for name, job in jobs.items() if job.retry.maximum_retries)
        names += tuple(n for n, job in jobs.items() if not job.retry.maximum_retries)
        found = await self._store.ask(lambda store: _newest(store, names))
        for name, (record, last_run) in found.items():
            job = jobs[name]
            if record.get("kind") != "pending" or busy(name):
                continue
            if record.get("host") != self._identity.host:
                self._say_foreign(job, record)
                continue
            reason = await self._why_not(job, record, last_run)
            if reason is not None:
                self.settled(name, reason, _attempt(record))
                continue
            attempt, not_before = _attempt(record), from_text(record.get("notBefore"))
            assert attempt is not None and not_before is not None
            retries.resume(job, attempt, not_before)
            log.info("Job %s: re-armed pending retry #%d", name, attempt)

    async def _why_not(
        self, job: JobConfig, record: Mapping[str, Any], last_run: float | None
    ) -> str | None:
        attempt, not_before = _attempt(record), from_text(record.get("notBefore"))
        written = from_text(record.get("at"))
        if attempt is None or not_before is None:
            return "invalid-record"
        if record.get("jobDigest") != self._digest(job):
            return "config-changed"
        if not job.enabled:
            return "disabled"
        maximum = job.retry.maximum_retries
        if maximum != -1 and attempt > maximum:
            return "exhausted"
        deadline = job.starting_deadline
        if deadline is not None and self._clock.now() - not_before > deadline:
            return "deadline-passed"
        if last_run is not None and written is not None and last_run > written:
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
        return self._store.write(
            job,
            "retry",
            lambda store: store.records.append(stream, record, keep=streams.RETRY_KEEP),
        )


class _Launched:
    """An attempt that was settled as launched; undone, it is pending again."""

    def __init__(self, store: RetryStore, job: JobConfig, sequence: RetrySequence | None) -> None:
        self._store = store
        self._job = job
        self._sequence = sequence

    def release(self) -> None:
        """The attempt has run."""

    def undo(self) -> None:
        """The attempt did not launch: it is owed at the instant that it was owed before."""
        sequence = self._sequence
        if sequence is not None and not sequence.ended and sequence.not_before is not None:
            self._store.pending(self._job, sequence.count, sequence.not_before)


def _attempt(record: Mapping[str, Any]) -> int | None:
    attempt = record.get("attempt")
    return attempt if type(attempt) is int and attempt >= 1 else None


def _newest(
    store: Store, names: Iterable[str]
) -> dict[str, tuple[Mapping[str, Any], float | None]]:
    found: dict[str, tuple[Mapping[str, Any], float | None]] = {}
    for name in names:
        record = store.records.latest(streams.retries(name))
        if record is not None and record.get("kind") == "pending":
            rows = store.records.read(streams.runs(name), strict=True)
            last = folds.last_real_run(rows, store.tree.clock.now())
            found[name] = (record, last.instant)
    return found
