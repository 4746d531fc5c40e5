"""
What metrics ask of the rooms, answered by the rooms that run jobs.

docs/metrics.md says what each number means.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from cronstable.clock import Clock
from cronstable.config.values import JobConfig
from cronstable.metrics.interfaces import NOTHING, JobFacts, StateStats
from cronstable.runs.scheduler import Scheduler
from cronstable.runs.service import RunService
from cronstable.runs.sla import SlaWatch
from cronstable.state.service import StoreService


class Reloads(Protocol):
    """What the reload service knows; L{cronstable.reload.ReloadService} is one."""

    last_success: float

    @property
    def successful(self) -> bool:
        """Whether what is on disk is what is in force."""


class StoreFacts:
    """The durable store: a L{cronstable.metrics.interfaces.StateBook}."""

    def __init__(self, store: StoreService) -> None:
        self._store = store

    def stats(self) -> StateStats | None:
        """Return the statistics of the store, None without one."""
        store, view = self._store, self._store.view
        if view is None:
            return None
        throttled, throttle_wait = store.throttled
        return StateStats(
            backend=view.backend,
            topology=view.topology,
            operations=store.ops,
            lanes=store.lanes,
            lock_acquisitions=store.locks.acquisitions,
            lock_wait=store.locks.wait_seconds,
            throttled=throttled,
            throttle_wait=throttle_wait,
        )

    def dropped_writes(self) -> Mapping[str, int]:
        """Return how many writes of each kind were lost."""
        return self._store.dropped


class FleetFacts:
    """The jobs in force and how each stands: a L{cronstable.metrics.interfaces.JobBook}."""

    def __init__(self, clock: Clock, runs: RunService, scheduler: Scheduler, sla: SlaWatch) -> None:
        self._clock = clock
        self._runs = runs
        self._scheduler = scheduler
        self._sla = sla

    def jobs(self) -> Collection[JobConfig]:
        """Return the jobs in force, in configuration order."""
        return self._runs.jobs.jobs.values()

    def job(self, name: str) -> JobConfig | None:
        """Return the job called C{name}, if it is configured."""
        return self._runs.jobs.find(name)

    def facts(self, job: JobConfig) -> JobFacts:
        """Return how C{job} stands."""
        runs, name = self._runs, job.name
        return JobFacts(
            running=len(runs.live(name)),
            next_fire=self._scheduler.index.next_fire(name),
            last_row=runs.history.last(name),
            last_run=runs.history.last_run(name),
            paused=runs.pauses.of(name, self._clock.now()) is not None,
            late=self._sla.late(job),
            slots=runs.book.totals.get(name, NOTHING),
        )

    def slots_unaccounted(self) -> int:
        """Return how many due slots left no trace."""
        return self._runs.book.unaccounted()


class DaemonFacts:
    """
    What the daemon knows about itself: a L{cronstable.metrics.interfaces.DaemonBook}.

    C{reloads} is set once there is a reload service; until then the start counts as the load.
    """

    def __init__(self, clock: Clock, runs: RunService, scheduler: Scheduler) -> None:
        self._clock = clock
        self._runs = runs
        self._scheduler = scheduler
        self._started_at = clock.now()
        self.reloads: Reloads | None = None

    @property
    def job_set_id(self) -> str:
        """The fingerprint of the loaded configuration."""
        return self._runs.jobs.job_set_id

    @property
    def started_at(self) -> float:
        """When this process started, epoch seconds."""
        return self._started_at

    @property
    def reload_succeeded(self) -> bool:
        """Whether what is on disk is what is in force."""
        return self.reloads is None or self.reloads.successful

    @property
    def reloaded_at(self) -> float:
        """When a configuration was last put in force, epoch seconds."""
        return self._started_at if self.reloads is None else self.reloads.last_success

    @property
    def last_tick(self) -> float | None:
        """
        When the scheduler last completed a pass, epoch seconds.

        Passes are stamped on the monotonic clock; what has passed since then is taken from the
        wall clock of now, so that an age worked out from it is right after a step of that clock.
        """
        last = self._scheduler.last_pass
        if last is None:
            return None
        return self._clock.now() - (self._clock.seconds() - last)
