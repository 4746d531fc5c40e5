"""
The list of all jobs: built in slices, shared for a second, and known by a tag that costs no build.

The tag stands for what the list shows, the ticking seconds to the next fire left out: it is made
from counters that every change bumps and from the few jobs that change without one.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

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
from cronstable.service import log_failure
from cronstable.web.answers import compressed, etag
from cronstable.web.context import House
from cronstable.web.jobviews import JobText, JobViews
from cronstable.web.slices import sliced

SHARED = 1.0
"""Seconds for which a document is good while nothing it shows has changed."""

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


@attrs.define(eq=False)
class Document:
    """A built list: its tag, its bytes, and those compressed once somebody wanted them."""

    tag: str
    body: bytes
    made: float
    _gzip: bytes | None = None

    async def gzipped(self, house: House) -> bytes:
        """Return the compressed bytes; two who want them at once may both make them."""
        if self._gzip is None:
            self._gzip = await compressed(house.reactor, self.body)
        return self._gzip


@attrs.frozen
class _Known:
    """A state of the fleet, the jobs that may leave it unnoticed, and the tag of both."""

    state: object
    marks: tuple[tuple[str, object], ...]
    tag: str


@attrs.define(eq=False)
class _Build:
    """A document in the making, and who waits for it."""

    waiting: list[Deferred[Document]] = attrs.field(factory=list)

    def wait(self) -> Deferred[Document]:
        """Fire with the document; who goes away meanwhile does not stop the build."""
        waiter: Deferred[Document] = Deferred()
        self.waiting.append(waiter)
        return waiter

    def built(self, document: Document) -> None:
        """Hand it out."""
        for waiter in self.waiting:
            waiter.callback(document)

    def failed(self, failure: Failure) -> None:
        """Tell everybody why there is none."""
        for waiter in self.waiting:
            waiter.errback(failure)


class JobList:
    """Serves the list of all jobs, at most one being built at a time."""

    def __init__(self, house: House, texts: JobViews) -> None:
        self._house = house
        self._texts = texts
        self._events = 0
        self._known: _Known | None = None
        self._document: Document | None = None
        self._build: _Build | None = None
        self._build_state: object = None
        self._next: _Build | None = None
        for kind in _CHANGES:
            house.bus.subscribe(kind, self._changed)

    def current_tag(self) -> str | None:
        """Return the tag of the list as it is now, None if only a build can tell."""
        known = self._known
        if known is None or known.state != self._state():
            return None
        now = self._house.clock.now()
        if any(self._texts.mark(name, now) != mark for name, mark in known.marks):
            return None
        return known.tag

    async def document(self) -> Document:
        """Return a document that shows at least all that had happened when this was called."""
        document = self._document
        if document is not None and self._house.clock.seconds() - document.made < SHARED:
            if document.tag == self.current_tag():
                return document
        if self._build is None:
            return await self._begin(_Build())
        if self._build_state == self._state():
            return await self._build.wait()
        if self._next is None:
            self._next = _Build()
        return await self._next.wait()

    def _begin(self, build: _Build) -> Deferred[Document]:
        self._build, self._build_state = build, self._state()
        waiter = build.wait()
        made = Deferred.fromCoroutine(self._assembled(self._build_state))
        made.addCallbacks(build.built, build.failed)
        made.addErrback(lambda failure: log_failure("answering with the list of jobs", failure))
        made.addCallback(lambda _: self._done())
        return waiter

    def _done(self) -> None:
        self._build = None
        following, self._next = self._next, None
        if following is not None:
            self._begin(following)

    async def _assembled(self, state: object) -> Document:
        house, now = self._house, self._house.clock.now()
        jobs = tuple(house.runs.jobs.jobs.values())
        made = await sliced(house.clock, jobs, lambda job: self._texts.of(job, now))
        marks = tuple(
            (job.name, each.mark)
            for job, each in zip(jobs, made, strict=True)
            if each.mark is not None
        )
        tag = etag(repr((house.identity.instance, state, marks)).encode("utf-8", "replace"))
        self._known = _Known(state, marks, tag)
        document = self._document = Document(tag, joined(made), house.clock.seconds())
        house.clock.callLater(2 * SHARED, self._drop, document)
        return document

    def _drop(self, document: Document) -> None:
        if self._document is document:
            self._document = None

    def _state(self) -> object:
        house = self._house
        runs, index = house.runs, house.scheduler.index
        return (
            self._events,
            runs.revision,
            runs.pauses.count(house.clock.now()),
            index.epoch,
            index.soonest(),
        )

    def _changed(self, event: object) -> None:
        self._events += 1


def joined(texts: Sequence[JobText]) -> bytes:
    """Return the texts as one JSON array."""
    return ("[" + ",".join([each.text for each in texts]) + "]").encode("ascii")
