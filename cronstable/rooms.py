"""
The rooms of a daemon: made once, in order, and given each new configuration.

docs/architecture.md draws what each of them is for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cronstable import platform
from cronstable.clock import Clock
from cronstable.config.sections_values import Config
from cronstable.counters import CounterSnapshots
from cronstable.events import Bus
from cronstable.executors.local import LocalExecutor
from cronstable.executors.orphans import OrphanReaper
from cronstable.facts import DaemonFacts, FleetFacts, StoreFacts
from cronstable.identity import Identity
from cronstable.jobapi.service import JobApiService
from cronstable.metrics.registry import Registry
from cronstable.metrics.statsd import StatsdService
from cronstable.reports.service import ReportService
from cronstable.runs.boot import BootRuns
from cronstable.runs.gates import Leadership, Solo, StandIn
from cronstable.runs.index import Gap
from cronstable.runs.jobset import JobSet
from cronstable.runs.memory import Memory
from cronstable.runs.mirror import Mirror
from cronstable.runs.output import Outputs
from cronstable.runs.redact import masker_of
from cronstable.runs.scheduler import Scheduler
from cronstable.runs.service import RunService
from cronstable.runs.sla import SlaBreached, SlaWatch
from cronstable.service import background
from cronstable.state.manifests import Names, names_of
from cronstable.state.service import StoreService
from cronstable.state.upkeep import Upkeep
from cronstable.web.context import House
from cronstable.web.service import WebService

FLUSH_LIMIT = 5.0
"""Seconds that the mirror gets to write the output of the last runs."""


class Rooms:
    """Everything that runs jobs and tells of them."""

    def __init__(
        self, reactor: Any, clock: Clock, identity: Identity, environ: Mapping[str, str]
    ) -> None:
        base = {"HOSTNAME": identity.host, **environ}
        self.bus = Bus()
        self.identity = identity
        self.mirror = Mirror(reactor)
        self.executor = LocalExecutor(reactor, clock)
        self.orphans = OrphanReaper(reactor, clock, self.executor.pids)
        self.outputs = Outputs(self.executor, self.mirror, masker_of)
        self.reports = ReportService(
            reactor,
            clock,
            host=base["HOSTNAME"],
            environ=base,
            executor=self.executor,
            staged=lambda run: run.secrets,
        )
        self.store = StoreService(reactor, clock, host=identity.host)
        self.jobapi = JobApiService(reactor, clock, identity, self.store, base)
        self.memory = Memory(clock, identity, self.store, _boots(), platform.process_start_time)
        self.runs = RunService(
            clock,
            identity,
            self.executor,
            self.bus,
            self.outputs,
            base,
            reporter=self.reports,
            memory=self.memory,
            environment=self.jobapi,
        )
        self.scheduler = Scheduler(clock, self.runs.book, self.runs.request, self._missed)
        self.memory.fired_by(self.scheduler.index)
        self.boot = BootRuns(clock, self.runs.book, self.runs.request, self.bus)
        self.sla = SlaWatch(clock, self.runs, self.bus)
        self.bus.subscribe(SlaBreached, self._late)
        self.facts = DaemonFacts(clock, self.runs, self.scheduler)
        self.registry = Registry(
            clock, FleetFacts(clock, self.runs, self.scheduler, self.sla), self.facts
        )
        self.registry.reports = self.reports
        self.registry.state = StoreFacts(self.store)
        self.registry.listen(self.bus)
        self.counters = CounterSnapshots(
            clock, identity.host, self.store, self.registry, lambda: self.runs.jobs.jobs, self.bus
        )
        self.upkeep = Upkeep(clock, identity.host, self.store)
        self._used = Names()
        self.store.when_up = self._store_is_up
        self.statsd = StatsdService(reactor, clock)
        self.statsd.listen(self.bus)
        self.web = WebService(
            House(
                reactor,
                clock,
                identity,
                self.bus,
                self.runs,
                self.scheduler,
                self.boot,
                self.sla,
                self.outputs,
                self.executor.caps_support,
                self.registry,
                store=self.store,
            ),
            base,
        )

    def install(self, config: Config, job_set_id: str, zones_changed: Sequence[str]) -> None:
        """Put a set of jobs in force, in one go."""
        jobs = JobSet(config.jobs, job_set_id)
        self.runs.gates.leadership = leadership_for(config)
        self.jobapi.expect(config.state)
        self.runs.install(jobs)
        self.scheduler.install(jobs, zones_changed)
        self.outputs.keep_only(jobs.jobs)
        self._used = names_of(config, self.identity.host)
        self.registry.counts.configure(config.web.metrics.buckets if config.web else ())

    def unenforced(self) -> Iterator[str]:
        """Yield a warning for each kind of job setting that is not enforced here."""
        jobs = self.runs.jobs.jobs.values()
        support = self.executor.caps_support()
        capped = [job.name for job in jobs if job.limits.any]
        if capped and not support.available:
            yield (
                f"resourceLimits cannot be enforced on this host ({support.reason}); these jobs run"
                f" uncapped, or not at all where the limits are required: {', '.join(capped)}"
            )
        scoped = [job.name for job in jobs if job.concurrency_scope == "cluster"]
        if scoped:
            yield (
                "concurrencyScope: cluster is not enforced by this release; these jobs exclude only"
                f" runs of this node: {', '.join(scoped)}"
            )

    def start(self) -> None:
        """Run what is due from now on."""
        self.orphans.start()
        self.reports.startService()
        self.statsd.startService()
        self.runs.startService()
        self.scheduler.startService()

    async def start_store(self, config: Config) -> None:
        """
        Start the store and take over what it says, then run what is owed for this boot.

        Scheduled jobs do not wait for it.
        """
        await self.jobapi.reconcile(config.state)
        await self.store.reconcile(config.state)
        if not self.runs.gates.draining:
            self.boot.begin(self.runs.jobs)

    async def reconcile_store(self, config: Config) -> None:
        """Put a changed C{state} section in force."""
        await self.jobapi.reconcile(config.state)
        if not self.store.keeps(config.state):
            self.memory.store_changed()
        await self.store.reconcile(config.state)

    async def reconcile(self, config: Config) -> None:
        """Give the rooms that show and tell the new configuration."""
        self.reports.reconfigure(config.notify)
        await self.web.reconcile(config)

    def each_minute(self, audit: bool) -> None:
        """Do what is to be done once a minute."""
        self.boot.ask_again()
        self.sla.judge(self.runs.jobs)
        self.runs.expire_pauses()
        self.web.each_minute()
        self.jobapi.each_minute()
        background("keeping the store", self._keep_store())
        if audit:
            self.scheduler.audit()

    def quiesce(self) -> None:
        """Launch nothing any more."""
        self.scheduler.stopService()
        self.boot.stop()
        self.memory.stop()
        self.runs.quiesce()

    async def drain(self, reports: float) -> None:
        """Wait for the runs, then for their reports, C{reports} seconds at most."""
        await self.runs.when_drained()
        await self.reports.drain(reports)

    async def close(self) -> None:
        """Close everything, the output of the last runs written."""
        self.runs.stopService()
        self.reports.stopService()
        self.orphans.stop()
        self.counters.write()
        await self.jobapi.stop()
        await self.store.close()
        await self.web.stop()
        self.statsd.stopService()
        self.registry.lag.stop()
        await self.mirror.flush(FLUSH_LIMIT)

    def _missed(self, gap: Gap) -> bool:
        return self.memory.missed(gap, self.runs.jobs.find(gap.job))

    async def _store_is_up(self) -> None:
        self.upkeep.begin(self._used, self.runs.jobs.job_set_id)
        await self.counters.seed()
        await self.memory.take_over()
        self._remember_successes()

    def _remember_successes(self) -> None:
        successes = map(self.runs.history.last_success, self.runs.jobs.jobs)
        self.sla.remember(record for record in successes if record is not None)

    async def _keep_store(self) -> None:
        await self.store.try_to_start()
        await self.counters.seed()
        settled = self.memory.settled
        await self.memory.each_minute()
        if not settled:
            self._remember_successes()
        await self.upkeep.each_minute(self._used, self.runs.jobs.job_set_id)

    def _late(self, event: SlaBreached) -> None:
        breach = event.breach
        self.reports.late(
            event.job, breach.check, breach.threshold, breach.observed, event.last_success_at
        )


def _boots() -> dict[str, platform.BootIdentity]:
    host = platform.boot_identity()
    return {"host": host, "container": platform.container_start(host)}


def leadership_for(config: Config) -> Leadership:
    """Return who answers whether this node may run a job."""
    cluster = config.cluster
    return StandIn() if cluster is not None and cluster.elects else Solo()
