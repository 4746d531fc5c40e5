"""
Reports: who hears how a run ended, that a job is late, or that something happened to the node.

Every report is bounded in time and number, one that fails stops no other, and nothing here ever
delays a run.  docs/reporting.md is the user's page.
"""

from __future__ import annotations

import logging
import secrets
import traceback
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import attrs
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, TimeoutError, succeed
from twisted.internet.interfaces import IDelayedCall

from cronstable.clock import Clock
from cronstable.config.secret_values import SecretResolver
from cronstable.config.sections_values import NotifyConfig
from cronstable.config.values import JobConfig, Report, Secret
from cronstable.executors.interfaces import IExecutor
from cronstable.reports import variables
from cronstable.reports.deliveries import (
    Deliveries,
    Kind,
    Notice,
    active,
    bound,
    destination,
)
from cronstable.reports.lanes import Lanes
from cronstable.reports.trouble import ReportFailed, one_line
from cronstable.runs.record import FinishedRun
from cronstable.threads import in_thread

log = logging.getLogger("cronstable")

DRAIN = 30.0
"""Seconds that a stopping daemon waits for its reports, at most."""

_HOOKS: Mapping[str, tuple[str, str]] = {
    # hook: where a job's configuration has it, what a log calls it
    "onFailure": ("on_failure", "failure"),
    "onPermanentFailure": ("on_permanent_failure", "permanent failure"),
    "onSuccess": ("on_success", "success"),
}


@attrs.frozen
class Loss:
    """A report that nobody got: when (epoch seconds), about what, of which kind, and why."""

    at: float
    hook: str
    name: str
    kind: Kind
    reason: str


class ReportService(Service):
    """
    Sends reports.

    @param host: what reports call this host.
    @param environ: the daemon's environment, for shell reporters and C{fromEnvVar}.
    @param executor: for shell reporters.
    @param resolve_secret: reads a secret and may block; its errors name the key.
    @param staged: returns the secret values that a run was given, where they are known.
    """

    def __init__(
        self,
        reactor: Any,
        clock: Clock,
        *,
        host: str,
        environ: Mapping[str, str],
        executor: IExecutor,
        resolve_secret: Callable[[Secret, str], str] | None = None,
        staged: Callable[[FinishedRun], Iterable[str]] | None = None,
        call_in_thread: Callable[..., Deferred[Any]] | None = None,
        token: Callable[[], str] = lambda: secrets.token_hex(10),
        lanes: Lanes | None = None,
        trust_root: Any = None,
        https: Any = None,
    ) -> None:
        self._clock = clock
        self._host = host
        self._staged = staged
        self._lanes = lanes or Lanes()
        self._deliveries = Deliveries(
            reactor,
            clock,
            host=host,
            environ=environ,
            executor=executor,
            resolve=resolve_secret or SecretResolver(environ),
            in_thread=call_in_thread
            or (lambda call, *arguments: in_thread(reactor, "report", call, *arguments)),
            token=token,
            trust_root=trust_root,
            https=https,
        )
        self._running: set[Deferred[None]] = set()
        self._drained: Deferred[None] | None = None
        self._closed = False
        self._notify: NotifyConfig | None = None
        self.in_flight = 0
        """How many deliveries are under way or wait for their turn."""
        self.counts: Counter[tuple[str, str]] = Counter()
        """How many deliveries of a kind were C{delivered}, C{failed} or C{dropped}."""
        self.losses: deque[Loss] = deque(maxlen=50)
        """The newest reports that nobody got."""

    # what others ask for

    def reconfigure(self, notify: NotifyConfig | None) -> None:
        """Put a new C{notify} section in force."""
        self._notify = notify

    def report(self, hook: str, finished: FinishedRun) -> Deferred[None]:
        """
        Send what C{hook} of the finished run's job configures.

        Fires with None when every report was sent or given up, at the latest when the slowest
        has met its bound; never fails.
        """
        job = finished.job
        report: Report = getattr(job, _HOOKS[hook][0])
        kinds = active(report)
        if not kinds:
            return succeed(None)
        log.info("Cron job %s: reporting %s", one_line(job.name), _HOOKS[hook][1])
        kept = (finished.stdout, finished.stderr)
        return self._send(
            Notice(
                hook,
                job.name,
                report,
                lambda: variables.of_run(finished, self._host),
                size=sum(len(stream.text) for stream in kept if stream is not None),
                secrets=_secrets_of(job),
                staged=tuple(self._staged(finished)) if self._staged is not None else (),
            ),
            kinds,
        )

    def late(
        self,
        job: JobConfig,
        check: str,
        threshold: float,
        observed: float,
        last_success_at: float | None,
    ) -> Deferred[None]:
        """Send what C{onLate} of C{job} configures; fires as L{report} does."""
        kinds = active(job.on_late)
        if not kinds:
            return succeed(None)
        log.info("Cron job %s: reporting lateness (%s)", one_line(job.name), check)
        return self._send(
            Notice(
                "onLate",
                job.name,
                job.on_late,
                lambda: variables.of_lateness(
                    job, self._host, check, threshold, observed, last_success_at
                ),
                secrets=_secrets_of(job),
            ),
            kinds,
        )

    def notify(self, event: str, details: Mapping[str, Any]) -> Deferred[None]:
        """
        Send what the C{notify} section configures for C{event}; fires as L{report} does.

        @param details: C{name}, C{subject}, C{message}, and what else templates may use.
        """
        config = self._notify
        kinds = active(config.report) if config is not None and event in config.events else ()
        if config is None or not kinds:
            return succeed(None)
        return self._send(
            Notice(
                event,
                str(details.get("name", "")),
                config.report,
                lambda: variables.of_event(event, self._host, details),
            ),
            kinds,
        )

    # what others read

    @property
    def lost(self) -> int:
        """How many reports nobody got."""
        return sum(number for (_, result), number in self.counts.items() if result != "delivered")

    # stopping

    def drain(self, seconds: float = DRAIN) -> Deferred[None]:
        """
        Take no more reports; fire when those in flight are over, or were cut.

        @param seconds: how long they may take, 30 at most.
        """
        self._closed = True
        if not self.in_flight:
            return succeed(None)
        log.info("Waiting for %d reports", self.in_flight)
        drained: Deferred[None] = Deferred()
        self._drained = drained
        limit = min(seconds, DRAIN)
        drained.addTimeout(limit, self._clock, lambda _, __: self._cut())  # type: ignore[arg-type]
        return drained

    def stopService(self) -> None:
        """Cut what is still in flight."""
        super().stopService()
        self._closed = True
        self._cut()

    def _cut(self) -> None:
        """Give up every delivery."""
        for delivery in self._lanes.drop_waiting():
            delivery.drop("cut by shutdown")
        for running in tuple(self._running):
            running.cancel()

    # one notice

    def _send(self, notice: Notice, kinds: tuple[Kind, ...]) -> Deferred[None]:
        """Submit a delivery of each kind; fire when all are over, or at the bound."""
        done: Deferred[None] = Deferred()
        timer: IDelayedCall | None = None
        left = len(kinds)

        def over() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                finish()

        def finish() -> None:
            if timer is not None and timer.active():
                timer.cancel()
            if not done.called:
                done.callback(None)

        for kind in kinds:
            self.in_flight += 1
            delivery = _Delivery(self, notice, kind, over)
            if self._closed or not self._lanes.submit(delivery):
                delivery.drop("too many reports wait" if not self._closed else "shutting down")
        if left:
            longest = max(bound(kind, notice.report) for kind in kinds)
            timer = self._clock.callLater(longest, finish)
        return done

    def deliver(self, kind: Kind, notice: Notice) -> Deferred[None]:
        """Deliver one report and account for it; never fails, and ends within its bound."""
        work = Deferred.fromCoroutine(self._deliveries.deliver(kind, notice))
        self._running.add(work)
        work.addTimeout(bound(kind, notice.report), self._clock)  # type: ignore[arg-type]

        def over(result: Any) -> None:
            self._running.discard(work)
            if result is None:
                self.counts[kind, "delivered"] += 1
            else:
                self.lose(kind, notice, "failed", _reason(result))

        work.addBoth(over)
        return work

    def lose(self, kind: Kind, notice: Notice, result: str, reason: str) -> None:
        """Count a report that nobody gets, say so in the log, and keep it to be shown."""
        self.counts[kind, result] += 1
        name = one_line(notice.name)
        self.losses.append(Loss(self._clock.now(), notice.hook, name, kind, one_line(reason)))
        if notice.hook in ("onLate", *_HOOKS):
            log.error("Problem reporting job %s failure: %s: %s", name, kind, reason)
        else:
            log.error("Problem reporting %s %s: %s: %s", notice.hook, name, kind, reason)

    def settled(self) -> None:
        """A delivery is over: tell whoever waits for the last one."""
        self.in_flight -= 1
        if self._drained is not None and not self.in_flight:
            drained, self._drained = self._drained, None
            if not drained.called:
                drained.callback(None)


class _Delivery:
    """One kind of report of one notice, in its lane."""

    def __init__(
        self, service: ReportService, notice: Notice, kind: Kind, over: Callable[[], None]
    ) -> None:
        self._service = service
        self._notice = notice
        self._kind: Kind = kind
        self._over = over
        self.lane: Hashable = destination(kind, notice.report)
        self.size = notice.size

    def start(self) -> Deferred[None]:
        """Deliver it."""
        return self._service.deliver(self._kind, self._notice).addBoth(self._end)

    def drop(self, why: str) -> None:
        """Give it up before it has begun."""
        self._service.lose(self._kind, self._notice, "dropped", why)
        self._end(None)

    def _end(self, _: object) -> None:
        self._over()
        self._service.settled()


def _secrets_of(job: JobConfig) -> tuple[Secret, ...]:
    return tuple(each.secret for each in job.secrets)


def _reason(result: Any) -> str:
    """Say why a delivery failed; an unexpected error is told by its place, not by its text."""
    error = result.value
    if isinstance(error, ReportFailed):
        return str(error)
    if isinstance(error, TimeoutError):
        return "it was not over in time"
    if isinstance(error, CancelledError):
        return "cut by shutdown"
    trace = "".join(traceback.format_tb(result.getTracebackObject()))
    return f"unexpected {type(error).__name__}\n{trace}"
