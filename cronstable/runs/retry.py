"""
Retries: a failed run is tried again, later and later, until it succeeds or gives up.

A sequence belongs to one scheduled (or boot) run; retries continue it, manual runs use the one
that exists.  The next scheduled run that really launches ends it and begins its own.  A retry
is armed at the failed run's end and launches once its delay is over and its failure has been
reported, whichever is later.  docs/retries.md tells the whole story.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from typing import Protocol

import attrs

from cronstable.agenda import Agenda, Appointment
from cronstable.clock import Clock
from cronstable.config.values import JobConfig, RetryPolicy
from cronstable.events import Bus
from cronstable.runs.index import CORRECTION
from cronstable.runs.record import RetryLaunched, RetryScheduled
from cronstable.runs.request import Decision, Requester, RunRequest, Ticket

log = logging.getLogger("cronstable")

LEAST_RECHECK = 1.0
"""Seconds after which a deferred retry is asked for again, at least."""

LONGEST_DELAY = 100 * 365 * 86400.0
"""Seconds; instants much later have no date that a record or an answer could spell."""

MOST_REPLAYED = 10_000
"""Attempts after which a delay that grows has long met its maximum."""


@attrs.frozen
class PendingRetry:
    """
    An armed retry, as pages show it; C{not_before} in epoch seconds, C{delay} in seconds.

    C{maximum} None = there is always another one.
    """

    attempt: int
    maximum: int | None
    not_before: float
    delay: float


class Journal(Protocol):
    """Where what is armed outlives the process."""

    def pending(self, job: JobConfig, attempt: int, not_before: float, slot: int | None) -> object:
        """An attempt that stands for C{slot} is armed, due at C{not_before} (epoch seconds)."""

    def settled(self, job: str, reason: str, attempt: int | None = None) -> object:
        """Nothing is armed any more, for C{reason}."""


class NoJournal:
    """Nothing outlives the process."""

    def pending(self, job: JobConfig, attempt: int, not_before: float, slot: int | None) -> None:
        """Keep nothing."""

    def settled(self, job: str, reason: str, attempt: int | None = None) -> None:
        """Keep nothing."""


class RetrySequence:
    """The retries that follow one run: how many there were, and what comes next."""

    __slots__ = (
        "appointment",
        "count",
        "delay",
        "ended",
        "job",
        "next_delay",
        "not_before",
        "owed",
        "policy",
        "reported",
        "slot",
        "time_is_up",
    )

    def __init__(self, job: str, policy: RetryPolicy, slot: int | None) -> None:
        self.job = job
        self.policy = policy
        self.slot = slot
        self.count = 0
        self.next_delay = policy.initial_delay
        self.delay = 0.0
        self.not_before: float | None = None
        self.appointment: Appointment | None = None
        self.reported = True
        self.time_is_up = False
        self.ended = False
        self.owed = False

    @property
    def exhausted(self) -> bool:
        """Whether no attempt is left."""
        last = self.policy.last_attempt
        return last is not None and self.count >= last

    def advance(self) -> float:
        """Count one more attempt and return its delay in seconds, jitter included."""
        delay = self.next_delay
        # In this order, since zero times infinity is no number and min() prefers its first.
        self.next_delay = min(self.policy.maximum_delay, delay * self.policy.backoff_multiplier)
        self.count += 1
        drawn = jittered(delay, self.policy.jitter, self.job, self.slot, self.count)
        return min(drawn, LONGEST_DELAY)


def jittered(delay: float, jitter: float, job: str, slot: int | None, attempt: int) -> float:
    """Return a delay in [delay, delay * (1 + jitter)], the same on every node and restart."""
    if not jitter:
        return delay
    drawn = hashlib.sha256(f"{job}\n{slot}\n{attempt}".encode()).digest()[:8]
    return delay * (1 + jitter * (int.from_bytes(drawn, "big") / 2**64))


class Retries:
    """The retry sequences of all jobs, in memory, with one timer for what is armed."""

    def __init__(self, clock: Clock, agenda: Agenda, bus: Bus) -> None:
        self._clock = clock
        self._agenda = agenda
        self._bus = bus
        self._sequences: dict[str, RetrySequence] = {}
        self._stopped = False
        self.journal: Journal = NoJournal()
        self.request: Requester = _nobody_listens
        self.known: Callable[[str], bool] = lambda name: True
        self.goes_on: Callable[[RetrySequence], bool] = lambda sequence: True
        """Whether a live run goes on with a sequence, so that a retry in its way is over."""

    def begin(self, job: JobConfig, slot: int | None) -> RetrySequence | None:
        """End the sequence of C{job} and begin a fresh one; None when it has no retries."""
        self.end(job.name, "superseded")
        if not job.retry.maximum_retries:
            return None
        sequence = self._sequences[job.name] = RetrySequence(job.name, job.retry, slot)
        return sequence

    def resume(
        self, job: JobConfig, attempt: int, not_before: float, slot: int | None = None
    ) -> None:
        """Go on with a sequence of an earlier process: C{attempt} is due at C{not_before}."""
        if self._stopped:
            return
        sequence = self._sequences[job.name] = RetrySequence(job.name, job.retry, slot)
        delay = 0.0
        for _ in range(min(attempt, MOST_REPLAYED)):
            delay = sequence.advance()
        sequence.count = attempt
        now = self._clock.now()
        if not_before - now > delay + CORRECTION:
            # The clock was ahead when it was armed; no more than the whole delay can be left.
            not_before = now + delay
        self._arm(sequence, max(not_before - now, 0.0))
        sequence.delay, sequence.not_before = delay, not_before
        self._bus.publish(RetryScheduled(job.name, attempt, not_before, delay))

    def current(self, job: str) -> RetrySequence | None:
        """Return the sequence that C{job} has now."""
        return self._sequences.get(job)

    def pending(self, job: str) -> PendingRetry | None:
        """Return the armed retry of C{job}, if any."""
        sequence = self._sequences.get(job)
        if sequence is None or sequence.not_before is None:
            return None
        return PendingRetry(
            sequence.count, sequence.policy.last_attempt, sequence.not_before, sequence.delay
        )

    def failed(self, job: JobConfig, sequence: RetrySequence | None) -> bool:
        """
        A run of C{job} failed: arm the next attempt of its sequence, or give up.

        Return whether an attempt is armed; it waits for L{reported} besides its delay.
        """
        if self._stopped:
            return False
        if sequence is None or sequence.ended:
            return False
        if sequence.exhausted:
            self.end(job.name, "exhausted")
            return False
        delay = sequence.advance()
        sequence.reported = False
        self._arm(sequence, delay)
        log.info(
            "Cron job %s scheduled to be retried (#%d) in %s seconds",
            job.name,
            sequence.count,
            _number(delay),
        )
        not_before = sequence.not_before or 0.0
        self.journal.pending(job, sequence.count, not_before, sequence.slot)
        self._bus.publish(RetryScheduled(job.name, sequence.count, not_before, delay))
        return True

    def reported(self, sequence: RetrySequence, attempt: int) -> None:
        """The failure before C{attempt} has been reported, or its report has met its bound."""
        if sequence.count == attempt:
            sequence.reported = True
            self._launch_when_ready(sequence)

    def settled(self, job: str, sequence: RetrySequence | None, reason: str) -> None:
        """
        A run of C{job} C{succeeded} or was C{cancelled}: nothing is left to retry.

        A sequence that another run began and that has armed nothing yet stays.
        """
        current = self._sequences.get(job)
        if current is not None and (current is sequence or current.count > 0):
            self.end(job, reason)

    def end(self, job: str, reason: str | None) -> None:
        """
        End the sequence of C{job}, armed or not; a C{reason} is noted, None leaves it owed.
        """
        sequence = self._sequences.pop(job, None)
        if sequence is not None:
            sequence.ended = True
            sequence.owed = reason is None
            self._disarm(sequence)
            if sequence.count and reason is not None:
                self.journal.settled(job, reason, sequence.count)

    def nudge(self, job: str) -> None:
        """Ask again now for a retry of C{job} that was deferred."""
        sequence = self._sequences.get(job)
        if sequence is None or sequence.time_is_up or sequence.appointment is None:
            return
        if (sequence.not_before or 0.0) <= self._clock.now():
            sequence.appointment.cancel()
            self._time_is_up(sequence)

    def quiesce(self) -> None:
        """Forget everything that is armed, without settling it: the process is stopping."""
        self._stopped = True
        for job in tuple(self._sequences):
            self.end(job, None)

    def _arm(self, sequence: RetrySequence, delay: float) -> None:
        self._disarm(sequence)
        sequence.delay = delay
        sequence.time_is_up = False
        sequence.not_before = self._clock.now() + delay
        sequence.appointment = self._agenda.after(delay, self._time_is_up, sequence)

    def _disarm(self, sequence: RetrySequence) -> None:
        if sequence.appointment is not None:
            sequence.appointment.cancel()
            sequence.appointment = None
        sequence.not_before = None

    def _time_is_up(self, sequence: RetrySequence) -> None:
        sequence.appointment = None
        sequence.time_is_up = True
        self._launch_when_ready(sequence)

    def _launch_when_ready(self, sequence: RetrySequence) -> None:
        if not (sequence.time_is_up and sequence.reported) or sequence.ended:
            return
        sequence.time_is_up = False
        if not self.known(sequence.job):
            log.warning("Job %s is gone; its retry #%d is dropped", sequence.job, sequence.count)
            self.end(sequence.job, "job-removed")
            return
        ticket = self.request(
            RunRequest(
                sequence.job,
                "retry",
                slot=sequence.slot,
                attempt=sequence.count,
                origin=sequence,
            )
        )
        ticket.when_decided().addCallback(self._decided, sequence)

    def _decided(self, decision: Decision, sequence: RetrySequence) -> None:
        if sequence.ended:
            return
        blocked = decision.reason == "overlap" and not self.goes_on(sequence)
        if decision.kind == "deferred" or blocked:
            again = max(sequence.delay, LEAST_RECHECK)
            sequence.appointment = self._agenda.after(again, self._time_is_up, sequence)
            return
        sequence.not_before = None
        if decision.kind == "started":
            self._bus.publish(RetryLaunched(sequence.job, sequence.count))
        else:
            log.info(
                "Job %s: retry #%d was not launched (%s)",
                sequence.job,
                sequence.count,
                decision.reason,
            )
            if decision.reason == "disabled":
                self.end(sequence.job, "disabled")
            elif decision.reason == "overlap":
                # The run in its way goes on with the sequence; the attempt itself is over.
                self.journal.settled(sequence.job, "superseded", sequence.count)


def sequence_of(request: RunRequest) -> RetrySequence | None:
    """Return the sequence of which C{request} is an attempt, None for every other cause."""
    return request.origin if isinstance(request.origin, RetrySequence) else None


def _number(value: float) -> str:
    return f"{value:.10g}"


def _nobody_listens(request: RunRequest) -> Ticket:
    raise RuntimeError("retries were not wired to a run service")
