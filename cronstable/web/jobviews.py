"""
A Job as JSON text, kept while nothing that it shows has changed.

Most of a large fleet stands still at any time; of such a job only the seconds to its next fire
are written anew.
"""

from __future__ import annotations

from typing import Any

import attrs

from cronstable.config.values import JobConfig
from cronstable.runs.pauses import Pause
from cronstable.runs.record import RunRecord
from cronstable.runs.retry import PendingRetry
from cronstable.runs.run import Run
from cronstable.runs.sla import Breach
from cronstable.web import views
from cronstable.web.answers import encode
from cronstable.web.context import House


@attrs.frozen
class _Kept:
    """The text of what changes seldom, and what it was made from."""

    text: str
    definition: int
    """How much of the text comes from the definition alone."""
    job: JobConfig
    runs: tuple[int, RunRecord | None]
    """How many runs were entered, and the last of them."""
    pause: Pause | None
    retry: PendingRetry | None


@attrs.frozen
class JobText:
    """The text of one Job; C{mark} is None unless it may change without being told."""

    text: str
    mark: object = None


@attrs.frozen
class _Stand:
    """How a job stands, as far as it may change without an event."""

    live: tuple[Run, ...]
    pause: Pause | None
    retry: PendingRetry | None
    breaches: tuple[Breach, ...]
    owed: bool

    @property
    def mark(self) -> object:
        """What differs once any of it has changed; None where there is nothing of the kind."""
        if not (self.live or self.pause or self.retry or self.breaches or self.owed):
            return None
        return (
            tuple([(run.ref, run.state, run.pid, run.held, _samples(run)) for run in self.live]),
            self.pause,
            self.retry,
            tuple([(breach.check, breach.since) for breach in self.breaches]),
            self.owed,
        )


class JobViews:
    """Makes the text of any job."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._elects = False
        self._kept: dict[str, _Kept] = {}
        self._findings: dict[Any, list[views.Json]] = {}

    def configured(self) -> None:
        """A configuration was put in force: forget what it has made wrong."""
        jobs, cluster = self._house.runs.jobs.jobs, self._house.config.cluster
        elects = cluster is not None and cluster.elects
        if elects != self._elects:
            self._elects = elects
            self._kept.clear()
        self._findings.clear()
        for name in [name for name in self._kept if name not in jobs]:
            del self._kept[name]

    def of(self, job: JobConfig, now: float) -> JobText:
        """Return the text of C{job} at C{now}, epoch seconds."""
        stand = self._stand(job, now)
        kept = self._kept_text(job, stand, now)
        if stand.live:
            pids = encode([run.pid for run in stand.live if run.pid is not None])
            ticking = f',"running":true,"pids":{pids},"scheduled_in":null'
        else:
            due = self.due_in(job, now)
            ticking = f',"running":false,"pids":[],"scheduled_in":{"null" if due is None else due}'
        never = "true" if self.never_fires(job) else "false"
        more = self._volatile(job, stand, now)
        return JobText(f'{kept}{ticking},"never_fires":{never}{more}}}', stand.mark)

    def mark(self, name: str, now: float) -> object:
        """Return the C{mark} that the text of a job would have now."""
        job = self._house.runs.job(name)
        return None if job is None else self._stand(job, now).mark

    def due_in(self, job: JobConfig, now: float) -> float | None:
        """Return the seconds to the next fire of a job that does not run, None if none is due."""
        instant = self._house.scheduler.index.next_fire(job.name)
        return None if instant is None else round(max(instant - now, 0.0), 6)

    def never_fires(self, job: JobConfig) -> bool:
        """Return whether a job that should fire has no fire left."""
        return (
            job.enabled
            and job.schedule is not None
            and self._house.scheduler.index.next_fire(job.name) is None
        )

    def _stand(self, job: JobConfig, now: float) -> _Stand:
        house, name = self._house, job.name
        runs = house.runs
        return _Stand(
            runs.live(name),
            runs.pauses.of(name, now),
            runs.pending_retry(name),
            house.sla.breaches(name) if job.sla.any else (),
            job.reboot and house.boot.owed(name),
        )

    def _kept_text(self, job: JobConfig, stand: _Stand, now: float) -> str:
        """Return what changes seldom, made anew if anything of it has changed."""
        name, history = job.name, self._house.runs.history
        last = history.last(name)
        runs = history.added(name), last
        kept = self._kept.get(name)
        if (
            kept is not None
            and kept.job is job
            and kept.runs == runs
            and kept.pause is stand.pause
            and kept.retry == stand.retry
        ):
            return kept.text
        if kept is not None and kept.job is job:
            definition = kept.text[: kept.definition]
        else:
            definition = self._definition(job, now)
        text = f"{definition},{self._standing(job, last, stand.pause, stand.retry)}"
        self._kept[name] = _Kept(text, len(definition), job, runs, stand.pause, stand.retry)
        return text

    def _standing(
        self,
        job: JobConfig,
        last: RunRecord | None,
        pause: Pause | None,
        retry: PendingRetry | None,
    ) -> str:
        """Return the members that say how a job stands while nothing of it is under way."""
        past: views.Json = views.job_past(self._house.runs.history.runs(job.name), last, job.limits)
        past["paused"] = views.pause(pause)
        if retry is not None:
            past["retry"] = views.retry(retry)
        if self._elects:
            past["clusterPolicy"] = job.cluster_policy
        return encode(past)[1:-1]

    def _definition(self, job: JobConfig, now: float) -> str:
        shown = views.job_definition(job)
        shown["schedule_findings"] = self._found(job, now)
        return encode(shown)[:-1]

    def _found(self, job: JobConfig, now: float) -> list[views.Json]:
        schedule = job.schedule
        if schedule is None:
            return []
        key = (schedule.text, schedule.resolved, schedule.zone)
        found = self._findings.get(key)
        if found is None:
            found = self._findings[key] = views.findings(schedule, now)
        return found

    def _volatile(self, job: JobConfig, stand: _Stand, now: float) -> str:
        """Return the members that are there only sometimes, or change all the time."""
        shown: views.Json = {}
        if stand.live:
            shown["instances"] = views.live_instances(stand.live)
            resources = views.running_resources(stand.live)
            if resources is not None:
                shown["running_resources"] = resources
        if job.verify is not None:
            checking = any(run.state == "verifying" for run in stand.live)
            shown["verification"] = {"configured": True, "running": checking}
        if job.sla.any:
            shown["sla"] = views.sla(job.sla, stand.breaches, now)
        if stand.owed:
            shown["rebootPending"] = True
        return f",{encode(shown)[1:-1]}" if shown else ""


def _samples(run: Run) -> int:
    return 0 if run.usage is None else run.usage.samples
