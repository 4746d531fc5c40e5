"""
Everybody who follows the output of a run, and the one pump that serves them all.

The pump works in slices of a few milliseconds per turn of the reactor, whatever the number of
readers and however much their jobs print; what it cannot keep up with is dropped, counted, and
told to the reader.

docs/live-logs.md tells clients what they are sent.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IPushProducer
from zope.interface import implementer

from cronstable.clock import Clock
from cronstable.metrics.exposition import Family, Sample
from cronstable.runs.output import Followed, Tail
from cronstable.runs.run import Run
from cronstable.web.feed import Feed, Place, gap
from cronstable.web.requests import ApiRequest

log = logging.getLogger("cronstable")

SLICE = 0.004
"""Seconds of formatting and writing in one turn."""

QUIET = 15.0
"""Seconds without anything sent after which a comment keeps the connection alive."""

STUCK = 300.0
"""Seconds for which a reader may take nothing before it is cut off."""

PING = b": ping\n\n"


@implementer(IPushProducer)
class Reader:
    """One client; C{done} fires when its stream has ended or the client is gone."""

    def __init__(self, group: Group, request: ApiRequest, place: Place) -> None:
        self._group = group
        self._request = request
        self.place = place
        self.paused = False
        self.done: Deferred[bytes] = Deferred(lambda _: self._gone())
        self._open = True
        self._sent_at = self._paused_at = group.clock.seconds()
        self._wake: IDelayedCall = group.clock.callLater(QUIET, self._look)
        request.registerProducer(self, True)

    def pauseProducing(self) -> None:  # noqa: N802 - the name is Twisted's
        """Send nothing until told to go on: the client does not take it as fast."""
        if not self.paused:
            self.paused = True
            self._paused_at = self._group.clock.seconds()

    def resumeProducing(self) -> None:  # noqa: N802 - the name is Twisted's
        """Go on."""
        if self.paused:
            self.paused = False
            self._group.ready(self)

    def stopProducing(self) -> None:  # noqa: N802 - the name is Twisted's
        """The connection is lost; C{done} is cancelled for that as well."""

    def send(self, data: bytes) -> None:
        """Write to the client."""
        self._sent_at = self._group.clock.seconds()
        self._request.write(data)

    def end(self, last: bytes) -> None:
        """Write the end of the stream and let the request finish."""
        if self._open:
            self._close()
            self._request.write(last)
            self._request.unregisterProducer()
            self.done.callback(b"")

    def cut(self) -> None:
        """Give the client up."""
        self._gone()
        self._request.abort()

    def _gone(self) -> None:
        if self._open:
            self._close()
            self._group.leave(self)

    def _close(self) -> None:
        self._open = False
        if self._wake.active():
            self._wake.cancel()

    def _look(self) -> None:
        now = self._group.clock.seconds()
        if self.paused and now - self._paused_at >= STUCK:
            log.info(
                "web: a reader of job %s's output took nothing for long and is cut off",
                self._group.job,
            )
            self.cut()
            return
        quiet = now - self._sent_at
        if quiet >= QUIET and not self.paused:
            self.send(PING)
            quiet = 0.0
        self._wake = self._group.clock.callLater(max(QUIET - quiet, 1.0), self._look)


class Group:
    """The readers of one run: those that can be sent something, and those that wait for more."""

    def __init__(self, streams: Streams, job: str, ref: str, tail: Tail, last: bytes) -> None:
        self.clock = streams.clock
        self.job = job
        self.ref = ref
        self.tail = tail
        self.readers: set[Reader] = set()
        self._streams = streams
        self._last = last
        self._idle: list[Reader] = []
        self._ready: deque[Reader] = deque()
        self._feed = Feed(tail, lambda: streams.busy(self))

    @property
    def pending(self) -> bool:
        """Whether there is anything to format or to send."""
        return self._feed.waiting or bool(self._ready)

    def join(self, request: ApiRequest) -> Reader:
        """Add a reader, from the retained lines on."""
        reader = Reader(self, request, self._feed.place())
        self.readers.add(reader)
        # The headers go out at once, whether or not there is a line to send.
        request.write(b"")
        self.ready(reader)
        return reader

    def ready(self, reader: Reader) -> None:
        """Look whether there is something for C{reader}, soon."""
        if reader in self.readers:
            self._ready.append(reader)
            self._streams.busy(self)

    def leave(self, reader: Reader) -> None:
        """Forget a reader."""
        self.readers.discard(reader)
        if not self.readers:
            self._feed.close()
            self._streams.forget(self)

    def over(self) -> None:
        """The run has ended: each reader ends once it has been sent everything."""
        self._feed.close()
        self._wake_idle()
        self._streams.busy(self)

    def cut(self) -> None:
        """End every stream now."""
        for reader in tuple(self.readers):
            left = self._feed.left(reader.place)
            self._streams.missed += left
            reader.end((gap(left) if left else b"") + self._last)
            self.leave(reader)

    def work(self, until: float) -> None:
        """Format, then send, until the clock shows C{until} or nothing is left to do."""
        feed = self._feed
        if feed.waiting:
            self._wake_idle()
        while feed.waiting:
            feed.format_some()
            if self.clock.seconds() >= until:
                break
        for _ in range(len(self._ready)):
            reader = self._ready.popleft()
            try:
                self._serve(reader)
            except Exception:
                log.exception("please report this as a bug (4)")
                reader.cut()
            if self.clock.seconds() >= until:
                break

    def _wake_idle(self) -> None:
        if self._idle:
            self._ready.extend(self._idle)
            self._idle.clear()

    def _serve(self, reader: Reader) -> None:
        if reader.paused or reader not in self.readers:
            return
        data, missed = self._feed.batch(reader.place)
        self._streams.missed += missed
        if data:
            reader.send(data)
        if reader.paused:
            return
        if not self._feed.at_end(reader.place):
            self._ready.append(reader)
        elif self._feed.over and not self._feed.waiting:
            reader.end(self._last)
            self.leave(reader)
        else:
            self._idle.append(reader)


class Streams:
    """
    All streams of output.

    C{readers} and C{missed} are for metrics: how many clients there are now, and how many lines
    clients that read too slowly were not sent.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.missed = 0
        self._groups: dict[int, Group] = {}
        self._watched: dict[str, int] = {}
        self._busy: deque[Group] = deque()
        self._wake: IDelayedCall | None = None
        self.stopping = False

    @property
    def readers(self) -> int:
        """How many clients follow a run now."""
        return sum(len(group.readers) for group in self._groups.values())

    def families(self) -> Iterator[Family]:
        """Yield what metrics tell of streams."""
        yield Family(
            "cronstable_log_stream_clients",
            "gauge",
            "Clients that follow live output.",
            (Sample(self.readers),),
        )
        yield Family(
            "cronstable_log_stream_dropped_lines_total",
            "counter",
            "Lines that clients which read too slowly were not sent.",
            (Sample(self.missed),),
        )

    def follow(
        self, request: ApiRequest, job: str, followed: Followed, live: Run | None, last: bytes
    ) -> Deferred[bytes]:
        """
        Send what is retained of a run, then what comes, then C{last}; fire at the end.

        C{live} is the run if it has not ended yet.
        """
        group = self._groups.get(id(followed.tail))
        if group is None:
            group = Group(self, job, followed.ref, followed.tail, last)
            self._groups[id(followed.tail)] = group
            if live is not None:
                self._watch(live, followed.tail)
        if live is None:
            group.over()
        return group.join(request).done

    def end_all(self) -> None:
        """End every stream: the application behind them is going."""
        for group in tuple(self._groups.values()):
            group.cut()

    def stop(self) -> None:
        """End every stream, for good."""
        self.stopping = True
        self.end_all()

    def busy(self, group: Group) -> None:
        """Give C{group} its share of the next turns."""
        if group not in self._busy:
            self._busy.append(group)
        if self._wake is None:
            self._wake = self.clock.callLater(0, self._pump)

    def forget(self, group: Group) -> None:
        """Drop a group that nobody is in any more."""
        self._groups.pop(id(group.tail), None)

    def _watch(self, run: Run, tail: Tail) -> None:
        # One waiter for each run, however often its followers come and go.
        known = run.ref in self._watched
        self._watched[run.ref] = id(tail)
        if not known:
            run.ticket.when_ended().addCallback(lambda _: self._ended(run.ref))

    def _ended(self, ref: str) -> None:
        group = self._groups.get(self._watched.pop(ref))
        if group is not None and group.ref == ref:
            group.over()

    def _pump(self) -> None:
        self._wake = None
        until = self.clock.seconds() + SLICE
        for _ in range(len(self._busy)):
            group = self._busy.popleft()
            group.work(until)
            if group.pending:
                self._busy.append(group)
            if self.clock.seconds() >= until:
                break
        if self._busy and self._wake is None:
            self._wake = self.clock.callLater(0, self._pump)
