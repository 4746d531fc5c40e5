"""
What the registry asks of the other rooms at each scrape.

All of it is answered from memory and at once.  A part that does not exist in a daemon is simply
not given to the registry; one that raises is left out of that scrape.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

import attrs

from cronstable.config.values import JobConfig
from cronstable.runs.record import RunRecord
from cronstable.state.service import Lane
from cronstable.state.stats import OpCount

NOTHING: Mapping[str, int] = {}


@attrs.define
class JobFacts:
    """
    How one job stands now; instants in epoch seconds.

    C{last_row} is the newest row of the history, skipped ones included; C{last_run} the newest
    that was not skipped.  C{late} tells each check of the job's C{sla} that was evaluated whether
    it is breached; None before the first evaluation.  C{slots} counts closed slots by result.
    """

    running: int = 0
    next_fire: float | None = None
    last_row: RunRecord | None = None
    last_run: RunRecord | None = None
    paused: bool = False
    late: Mapping[str, bool] | None = None
    slots: Mapping[str, int] = NOTHING


class JobBook(Protocol):
    """The jobs in force and how each stands."""

    def jobs(self) -> Collection[JobConfig]:
        """Return the jobs in force, in configuration order."""

    def job(self, name: str) -> JobConfig | None:
        """Return the job called C{name}, if it is configured."""

    def facts(self, job: JobConfig) -> JobFacts:
        """Return how C{job} stands."""

    def slots_unaccounted(self) -> int:
        """Return how many due slots left no trace."""


class DaemonBook(Protocol):
    """What the daemon knows about itself; instants in epoch seconds."""

    @property
    def job_set_id(self) -> str:
        """The fingerprint of the loaded configuration."""

    @property
    def started_at(self) -> float:
        """When this process started."""

    @property
    def reload_succeeded(self) -> bool:
        """Whether what is on disk is what is in force."""

    @property
    def reloaded_at(self) -> float:
        """When a configuration was last put in force."""

    @property
    def last_tick(self) -> float | None:
        """When the scheduler last completed a pass."""


@attrs.frozen
class StateStats:
    """The statistics of the store; waits in seconds."""

    backend: str
    topology: str
    operations: Mapping[str, OpCount]
    lanes: Mapping[str, Lane]
    lock_acquisitions: int = 0
    lock_wait: float = 0.0
    throttled: int = 0
    throttle_wait: float = 0.0


class StateBook(Protocol):
    """The store as metrics see it."""

    def stats(self) -> StateStats | None:
        """Return its statistics, None without a store; raises when they cannot be read."""

    def dropped_writes(self) -> Mapping[str, int]:
        """Return how many writes of each kind were lost; kept by the scheduler's side."""


@attrs.frozen
class ClusterView:
    """
    The cluster as this node sees it.

    C{conflicts} has a flag per kind (nodename, size, policy); C{peers} counts peers by status,
    None where the backend has none.
    """

    backend: str
    node_name: str
    distribution: str
    size: int
    quorum: int
    quorate: bool
    is_leader: bool
    leader: str | None
    conflicts: Mapping[str, bool] = attrs.field(factory=dict)
    peers: Mapping[str, int] | None = None


class ClusterBook(Protocol):
    """The cluster as metrics see it."""

    @property
    def enabled(self) -> bool:
        """Whether a configured backend runs."""

    def transitions(self) -> tuple[int, int] | None:
        """Return how often leadership and quorum changed; None where nobody elects."""

    def view(self) -> ClusterView | None:
        """Return the view, None without a running backend; raises when it cannot be read."""


class ReportBook(Protocol):
    """Reports as metrics see them; L{ReportService} is one."""

    @property
    def lost(self) -> int:
        """How many reports nobody got."""

    @property
    def counts(self) -> Mapping[tuple[str, str], int]:
        """How many deliveries there were, by reporter and result."""
