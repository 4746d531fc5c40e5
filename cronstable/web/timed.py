"""What has a timetable: the jobs, and the workflows under the name C{dag:NAME}."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from cronstable.config.sections_values import DagConfig
from cronstable.config.values import JobConfig
from cronstable.schedule import Schedule, zone_named
from cronstable.schedule.zones import LOCAL, AnyZone
from cronstable.web.context import House
from cronstable.web.refusal import not_found

PREFIX = "dag:"


@attrs.frozen
class Timed:
    """
    A job or a workflow as its timetable goes.

    C{schedule} is None where it is C{@reboot}; C{timezone} None means the host's local time.
    """

    name: str
    enabled: bool
    schedule: Schedule | None
    timezone: str | None
    is_job: bool = True

    @property
    def fires(self) -> bool:
        """Whether its timetable is in force."""
        return self.enabled and self.schedule is not None

    @property
    def frame(self) -> AnyZone:
        """The zone that its schedule is read in."""
        if self.schedule is not None:
            return self.schedule.frame
        return LOCAL if self.timezone is None else zone_named(self.timezone)


def everything(house: House) -> Iterator[Timed]:
    """Yield all jobs in configuration order, then all workflows that have a schedule."""
    for job in house.runs.jobs.jobs.values():
        yield _job(job)
    for dag in house.config.dags.values():
        if dag.schedule_text is not None:
            yield _dag(dag)


def find(house: House, name: str) -> Timed:
    """Return what is called C{name}; L{Refused} with 404 when nothing with a timetable is."""
    job = house.runs.jobs.find(name)
    if job is not None:
        return _job(job)
    dag = house.config.dags.get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
    if dag is None or dag.schedule_text is None:
        raise not_found(f"no job or workflow schedule named '{name}'")
    return _dag(dag)


def _job(job: JobConfig) -> Timed:
    return Timed(job.name, job.enabled, job.schedule, job.timezone)


def _dag(dag: DagConfig) -> Timed:
    return Timed(PREFIX + dag.name, dag.enabled, dag.schedule, dag.timezone, is_job=False)
