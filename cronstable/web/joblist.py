"""
The list of all jobs: built in slices, shared for a second, and known by a tag that costs no build.

The tag stands for what the list shows, the ticking seconds to the next fire left out: it is made
from counters that every change bumps and from the few jobs that change without one.
"""

from __future__ import annotations

import attrs
from twisted.internet.defer import Deferred

from cronstable.config.values import JobConfig
from cronstable.runs.jobset import JobSet
from cronstable.runs.record import (
    JobSetChanged,
    PauseChanged,
    RetryLaunched,
    RetryScheduled,
    RunFinished,
    RunSkipped,
    RunStarted,
)
from cronstable.runs.sla import SlaBreached, SlaRecovered
from cronstable.web.answers import etag
from cronstable.web.context import House
from cronstable.web.documents import Document, joined
from cronstable.web.jobviews import JobViews
from cronstable.web.sharing import Shared

_CHANGES = (
    JobSetChanged,
    PauseChanged,
    RetryLaunched,
    RetryScheduled,
    RunFinished,
    RunSkipped,
    RunStarted,
    SlaBreached,
    SlaRecovered,
)

Marks = tuple[tuple[str, object], ...]


@attrs.frozen
class _Known:
    """A state of the fleet, the jobs that may leave it unnoticed, and the tag of both."""

    state: object
    marks: Marks
    tag: str


class JobList:
    """Serves the list of all jobs."""

    def __init__(self, house: House, texts: JobViews) -> None:
        self._house = house
        self._texts = texts
        self._events = 0
        self._known: _Known | None = None
        self._jobs: JobSet | None = None
        self._job_sets = 0
        self._shared = Shared(house.clock, self._whole_state, self._build)
        for kind in _CHANGES:
            house.bus.subscribe(kind, self._changed)

    def current_tag(self) -> str | None:
        """Return the tag of the list as it is now, None if only a build can tell."""
        known = self._known
        if known is None or known.state != self._state() or self._marks() != known.marks:
            return None
        return known.tag

    def document(self) -> Deferred[Document]:
        """Fire with a document that shows at least all that had happened when this was called."""
        return self._shared.get()

    def job_set(self) -> int:
        """Return a number that is another one for every other set of jobs."""
        jobs = self._house.runs.jobs
        if jobs is not self._jobs:
            self._jobs = jobs
            self._job_sets += 1
        return self._job_sets

    async def _build(self) -> Document:
        house, state, now = self._house, self._state(), self._house.clock.now()
        found: list[tuple[str, object]] = []

        def text(job: JobConfig) -> str:
            made = self._texts.of(job, now)
            if made.mark is not None:
                found.append((job.name, made.mark))
            return made.text

        jobs = tuple(house.runs.jobs.jobs.values())
        pieces = await joined(house.clock, jobs, text, "[", "]")
        marks = tuple(found)
        tag = etag(repr((house.identity.instance, state, marks)).encode("utf-8", "replace"))
        self._known = _Known(state, marks, tag)
        return Document(house, tag, pieces)

    def _whole_state(self) -> object:
        return self._state(), self._marks()

    def _state(self) -> object:
        """Return what differs once anything has changed that counts as a change by itself."""
        house = self._house
        runs, index = house.runs, house.scheduler.index
        return (
            self._events,
            runs.revision,
            runs.pauses.count(house.clock.now()),
            index.epoch,
            index.soonest(),
        )

    def _marks(self) -> Marks:
        """Return what differs once one of the jobs has changed that may do so unnoticed."""
        if self._known is None:
            return ()
        now = self._house.clock.now()
        return tuple((name, self._texts.mark(name, now)) for name, _ in self._known.marks)

    def _changed(self, event: object) -> None:
        self._events += 1
