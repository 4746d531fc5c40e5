"""
The list of all jobs: built in slices, shared for a second, and known by a tag that costs no build.

The tag stands for what the list shows, the ticking seconds to the next fire left out: it is made
from counters that every change bumps and from the few jobs that change without one.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from twisted.internet.defer import Deferred

from cronstable.config.values import JobConfig
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
from cronstable.web.answers import compressed, etag
from cronstable.web.context import House
from cronstable.web.jobviews import JobViews
from cronstable.web.sharing import Shared
from cronstable.web.slices import sliced

TOGETHER = 256
"""Jobs whose texts are turned into bytes together."""

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


@attrs.define(eq=False)
class Document:
    """A built list: its tag, its bytes, and those compressed once somebody wanted them."""

    tag: str
    pieces: Sequence[bytes]
    size: int = attrs.field(init=False)
    _gzip: bytes | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.size = sum(map(len, self.pieces))

    async def gzipped(self, house: House) -> bytes:
        """Return the compressed bytes; two who want them at once may both make them."""
        if self._gzip is None:
            self._gzip = await compressed(house.reactor, b"".join(self.pieces))
        return self._gzip


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

    async def _build(self) -> Document:
        house, state = self._house, self._state()
        parts = _Parts(self._texts, house.clock.now())
        await sliced(house.clock, house.runs.shown(), parts.add)
        marks = tuple(parts.marks)
        tag = etag(repr((house.identity.instance, state, marks)).encode("utf-8", "replace"))
        self._known = _Known(state, marks, tag)
        return Document(tag, parts.pieces())

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


class _Parts:
    """The array in the making, in pieces of a few hundred jobs each."""

    def __init__(self, texts: JobViews, now: float) -> None:
        self.marks: list[tuple[str, object]] = []
        self._texts = texts
        self._now = now
        self._pieces: list[bytes] = []
        self._open: list[str] = []

    def add(self, job: JobConfig) -> None:
        """Add the text of a job."""
        made = self._texts.of(job, self._now)
        if made.mark is not None:
            self.marks.append((job.name, made.mark))
        self._open.append(made.text)
        if len(self._open) >= TOGETHER:
            self._close()

    def pieces(self) -> list[bytes]:
        """Return the whole array."""
        self._close()
        return [*self._pieces, b"]" if self._pieces else b"[]"]

    def _close(self) -> None:
        if self._open:
            start = "," if self._pieces else "["
            self._pieces.append((start + ",".join(self._open)).encode("ascii"))
            self._open.clear()
