"""
What a scrape says: the daemon, its jobs, and whatever other rooms add.

A scrape reads memory only and is written in slices, so that even ten thousand jobs hold up
nobody.  docs/metrics.md lists every family.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any

from cronstable.clock import Clock
from cronstable.config.values import JobConfig
from cronstable.events import Bus
from cronstable.metrics import durable
from cronstable.metrics.blocks import cluster_families, report_families, state_families
from cronstable.metrics.counts import Counts
from cronstable.metrics.exposition import (
    END,
    Family,
    Sample,
    gauge,
    head,
    labelled,
    text_of,
)
from cronstable.metrics.families import Row, job_families
from cronstable.metrics.interfaces import (
    ClusterBook,
    DaemonBook,
    JobBook,
    JobFacts,
    ReportBook,
    StateBook,
)
from cronstable.metrics.lag import LagProbe
from cronstable.runs.record import RunFinished, RunStarted
from cronstable.version import __version__

log = logging.getLogger("prometheus")

SLICE = 250
"""Jobs that one step of a scrape turns into text."""

Collector = Callable[[], Iterable[Family]]


class Registry:
    """
    Everything that is measured.

    C{state}, C{cluster} and C{reports} may be set when those rooms exist; C{collectors} may add
    families of their own.  One of them that fails is left out of that scrape, with one ERROR.
    """

    def __init__(self, clock: Clock, jobs: JobBook, daemon: DaemonBook) -> None:
        self._clock = clock
        self._jobs = jobs
        self._daemon = daemon
        self._born = clock.seconds()
        self.counts = Counts(jobs.job)
        self.lag = LagProbe(clock)
        self.state: StateBook | None = None
        self.cluster: ClusterBook | None = None
        self.reports: ReportBook | None = None
        self.collectors: list[Collector] = []

    def listen(self, bus: Bus) -> None:
        """Count what C{bus} tells of."""
        self.counts.listen(bus)
        bus.subscribe(RunStarted, self.lag.touch)
        bus.subscribe(RunFinished, self.lag.touch)

    # a scrape

    def loaded(self) -> object:
        """Return what differs once another configuration is in force, or one was refused."""
        daemon = self._daemon
        return daemon.job_set_id, daemon.reload_succeeded, daemon.reloaded_at

    def render(self, openmetrics: bool) -> Iterator[str]:
        """
        Yield the text of a scrape in pieces, each made in a few milliseconds, some of them empty.

        Between two pieces others may have their turn.  The content type is that of
        L{cronstable.metrics.exposition.content_type}.
        """
        yield self._text(self._daemon_families, openmetrics)
        rows: list[Row] = []
        for jobs in _slices(tuple(self._jobs.jobs())):
            rows += [Row(job, self.counts.read(job.name), self._facts(job)) for job in jobs]
            yield ""
        for name, kind, help_text, write in job_families(self.counts.buckets):
            begun = False
            for some in _slices(rows):
                lines = write(some)
                if lines and not begun:
                    begun = True
                    lines = head(name, kind, help_text, openmetrics) + lines
                yield lines
        for collect in self._others():
            yield self._text(collect, openmetrics)
        if openmetrics:
            yield END

    def text(self, openmetrics: bool = False) -> str:
        """Return a whole scrape at once."""
        return "".join(self.render(openmetrics))

    def _text(self, collect: Collector, openmetrics: bool) -> str:
        try:
            return "".join([text_of(family, openmetrics) for family in collect()])
        except Exception:
            log.exception("a part of the metrics could not be read and is left out")
            return ""

    def _facts(self, job: JobConfig) -> JobFacts:
        try:
            return self._jobs.facts(job)
        except Exception:
            log.exception("how a job stands could not be read")
            return JobFacts()

    # restarts

    def snapshot(self) -> dict[str, Any]:
        """Return the record from which another process can go on counting."""
        return durable.snapshot(self.counts, self._jobs.jobs(), self._clock.now())

    def snapshot_in_steps(self) -> Generator[None, None, dict[str, Any]]:
        """Return the same record in steps between which others may have their turn."""
        return durable.snapshot_in_steps(self.counts, self._jobs.jobs(), self._clock.now())

    def seed(self, record: Mapping[str, Any]) -> int:
        """Add what the process before counted; return how many jobs got something."""
        return durable.seed(self.counts, record)

    # families that are not per job

    def _daemon_families(self) -> Iterator[Family]:
        daemon = self._daemon
        yield labelled(
            "cronstable_info", "info", "The release that runs.", "version", [(__version__, 1)]
        )
        yield gauge("cronstable_up", "The daemon lives.", 1)
        yield gauge(
            "cronstable_start_time_seconds", "When this process started.", daemon.started_at
        )
        yield gauge(
            "cronstable_uptime_seconds",
            "How long this process has run.",
            self._clock.seconds() - self._born,
        )
        yield labelled(
            "cronstable_job_set_info",
            "info",
            "The fingerprint of the loaded configuration.",
            "job_set_id",
            [(daemon.job_set_id, 1)],
        )
        yield self._job_numbers(self._jobs.jobs())
        yield gauge(
            "cronstable_config_last_reload_successful",
            "Whether the files on disk are what is in force.",
            int(daemon.reload_succeeded),
        )
        yield gauge(
            "cronstable_config_last_reload_success_timestamp_seconds",
            "When a configuration was last put in force.",
            daemon.reloaded_at,
        )
        yield gauge(
            "cronstable_scheduler_last_tick_timestamp_seconds",
            "When the scheduler last completed a pass.",
            daemon.last_tick,
        )
        yield gauge(
            "cronstable_slots_unaccounted",
            "Due slots that left no trace; always 0.",
            self._jobs.slots_unaccounted(),
        )

    def _job_numbers(self, jobs: Iterable[JobConfig]) -> Family:
        enabled = [job.enabled for job in jobs]
        return Family(
            "cronstable_jobs",
            "gauge",
            "Configured jobs.",
            (
                Sample(sum(enabled), (("state", "enabled"),)),
                Sample(len(enabled) - sum(enabled), (("state", "disabled"),)),
            ),
        )

    def _others(self) -> Iterator[Collector]:
        yield lambda: report_families(self.reports)
        yield self.lag.families
        yield from state_families(self.state)
        yield from cluster_families(self.cluster)
        yield from self.collectors


def _slices(items: Any) -> Iterator[Any]:
    for start in range(0, len(items), SLICE):
        yield items[start : start + SLICE]
