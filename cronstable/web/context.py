"""What the routes may ask of the rest of the daemon."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from cronstable.clock import Clock
from cronstable.config.sections_values import Config, WebConfig
from cronstable.config.values import JobConfig
from cronstable.events import Bus
from cronstable.executors.cgroups import CapsSupport
from cronstable.identity import Identity
from cronstable.metrics.registry import Registry
from cronstable.runs.boot import BootRuns
from cronstable.runs.output import Outputs
from cronstable.runs.scheduler import Scheduler
from cronstable.runs.service import RunService
from cronstable.runs.sla import SlaWatch
from cronstable.state.looks import Looks
from cronstable.state.service import StoreService
from cronstable.web.refusal import not_found

if TYPE_CHECKING:
    from cronstable.web.joblist import JobList
    from cronstable.web.jobviews import JobViews
    from cronstable.web.node import NodeFacts
    from cronstable.web.streams import Streams


@attrs.define(eq=False)
class House:
    """The rooms that are shown, as long as the daemon lives; C{config} is the one in force."""

    reactor: Any
    clock: Clock
    identity: Identity
    bus: Bus
    runs: RunService
    scheduler: Scheduler
    boot: BootRuns
    sla: SlaWatch
    outputs: Outputs
    caps: Callable[[], CapsSupport]
    """Answers what this host can cap."""
    registry: Registry
    shutdown: Callable[[], object] = lambda: None
    """Begins a graceful stop."""
    store: StoreService = attrs.field()
    looks: Looks = attrs.field(init=False)
    """What asks the store on behalf of those who look at it."""
    config: Config = attrs.field(factory=Config)

    @store.default
    def _no_store(self) -> StoreService:
        return StoreService(self.reactor, self.clock)

    @looks.default
    def _looks(self) -> Looks:
        return Looks(self.reactor, self.clock, self.store)

    def job(self, name: str) -> JobConfig:
        """Return a job that is configured or still runs; L{Refused} with 404 when there is none."""
        job = self.runs.job(name)
        if job is None:
            raise not_found(f"job '{name}' not found")
        return job

    @property
    def node_name(self) -> str:
        """The name of this node: its own in the cluster, else the host's."""
        cluster = self.config.cluster
        return (cluster.node_name if cluster else None) or self.identity.node_name


@attrs.define(eq=False)
class Context:
    """
    What a module of routes is given: the house, what is shared by all its applications, and the
    section C{web} that this application serves.
    """

    house: House
    web: WebConfig
    job_texts: JobViews
    job_list: JobList
    streams: Streams
    node: NodeFacts
    listeners: Callable[[], list[str]]
    """Returns the URLs that are served, as they were configured."""
