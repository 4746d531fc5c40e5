"""A made-up daemon for tests of metrics: jobs, rows, a store and a cluster that say what is set."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import attrs

from cronstable.clock import ManualClock
from cronstable.config.values import JobConfig
from cronstable.metrics.interfaces import ClusterView, JobFacts, StateStats
from cronstable.metrics.registry import Registry


@attrs.define
class FakeJobs:
    """The jobs of a daemon."""

    by_name: dict[str, JobConfig] = attrs.field(factory=dict)
    standing: dict[str, JobFacts] = attrs.field(factory=dict)
    unaccounted: int = 0

    def jobs(self) -> Collection[JobConfig]:
        return self.by_name.values()

    def job(self, name: str) -> JobConfig | None:
        return self.by_name.get(name)

    def facts(self, job: JobConfig) -> JobFacts:
        return self.standing.get(job.name) or JobFacts()

    def slots_unaccounted(self) -> int:
        return self.unaccounted


@attrs.define
class FakeDaemon:
    """A daemon."""

    job_set_id: str = "v1:0"
    started_at: float = 1.0
    reload_succeeded: bool = True
    reloaded_at: float = 2.0
    last_tick: float | None = 3.0


@attrs.define
class FakeState:
    """A store; C{broken} makes its statistics unreadable."""

    numbers: StateStats | None = None
    dropped: Mapping[str, int] = attrs.field(factory=dict)
    broken: bool = False

    def stats(self) -> StateStats | None:
        if self.broken:
            raise OSError("gone")
        return self.numbers

    def dropped_writes(self) -> Mapping[str, int]:
        return self.dropped


@attrs.define
class FakeCluster:
    """A cluster; C{broken} makes its view unreadable."""

    enabled: bool = True
    changes: tuple[int, int] | None = None
    seen: ClusterView | None = None
    broken: bool = False

    def transitions(self) -> tuple[int, int] | None:
        return self.changes

    def view(self) -> ClusterView | None:
        if self.broken:
            raise OSError("gone")
        return self.seen


class World:
    """A registry and all that it asks."""

    def __init__(self, *jobs: JobConfig, clock: ManualClock | None = None) -> None:
        self.clock = clock or ManualClock()
        self.jobs = FakeJobs({each.name: each for each in jobs})
        self.daemon = FakeDaemon()
        self.registry = Registry(self.clock, self.jobs, self.daemon)

    def samples(self, openmetrics: bool = False) -> dict[tuple[str, frozenset[Any]], float]:
        """Return every series of a scrape with its value."""
        return samples(self.registry.text(openmetrics), openmetrics)

    def value(self, name: str, **labels: str) -> float | None:
        """Return the value of one series, None if it is absent."""
        return self.samples().get((name, frozenset(labels.items())))


def families(text: str, openmetrics: bool = False) -> list[Any]:
    """Parse a scrape with the client library's parser for its format."""
    from prometheus_client import parser
    from prometheus_client.openmetrics import parser as openmetrics_parser

    parse = openmetrics_parser if openmetrics else parser
    return list(parse.text_string_to_metric_families(text))


def samples(text: str, openmetrics: bool = False) -> dict[tuple[str, frozenset[Any]], float]:
    """Return every series of C{text} with its value."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families(text, openmetrics)
        for sample in family.samples
    }
