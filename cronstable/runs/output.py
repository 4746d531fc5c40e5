"""
The output of runs: kept, mirrored to the daemon's own, and followed by who wants to see it live.

docs/executors.md, "Output", specifies what is kept, what is dropped and who is held up.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import attrs

from cronstable.config.prefix import filled
from cronstable.config.values import JobConfig
from cronstable.runs.mirror import Mirror
from cronstable.runs.record import StreamText
from cronstable.runs.redact import Masker, MaskStream
from cronstable.runs.stream import Stream

log = logging.getLogger("cronstable")

Line = tuple[str, bytes]
"""A stream's name, and a line without its newline."""

Listener = Callable[[list[Line]], object]

RING_LINES = 1000
"""Lines of all streams together that are there for who starts to follow a run."""

RING_BYTES = 2 << 20
"""Bytes at which the ring holds fewer lines than that."""

CHECK_LINES = 64
"""Lines that are kept of each stream of a verification check."""

TARGETS = {"stdout": 1, "stderr": 2}
"""Which descriptor of the daemon mirrors which stream."""


class Tail:
    """The last lines of a run, its streams merged, and who follows them as they come."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._blocks: deque[tuple[str, bytes, int]] = deque()
        self._lines = 0
        self._bytes = 0
        self._listeners: list[Listener] = []

    def add(self, name: str, whole: bytes) -> None:
        """Take whole lines of stream C{name}."""
        count = whole.count(b"\n")
        blocks = self._blocks
        blocks.append((name, whole, count))
        self._lines += count
        self._bytes += len(whole)
        while len(blocks) > 1:
            _, block, lines = blocks[0]
            if self._lines - lines < RING_LINES and self._bytes - len(block) < RING_BYTES:
                break
            blocks.popleft()
            self._lines -= lines
            self._bytes -= len(block)
        if self._listeners:
            self._tell(list(_lines(name, whole)))

    def recent(self) -> list[Line]:
        """Return the last lines of all streams in the order in which they became whole."""
        lines: list[Line] = []
        for name, block, _ in self._blocks:
            lines.extend(_lines(name, block))
        return lines[-RING_LINES:]

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """
        Call C{listener} with the lines of each block that comes; return what ends that.

        With L{recent} in the same turn no line is missed or told twice.
        """
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def compact(self) -> None:
        """Drop what the oldest block has beyond the size of the ring."""
        excess = self._lines - RING_LINES
        if excess > 0:
            name, block, lines = self._blocks.popleft()
            rest = block.split(b"\n", excess)[excess]
            self._blocks.appendleft((name, rest, lines - excess))
            self._lines -= excess
            self._bytes -= len(block) - len(rest)

    def _tell(self, lines: list[Line]) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(lines)
            except Exception:
                log.exception("a follower of job %s's output failed", self._job)
                if listener in self._listeners:
                    self._listeners.remove(listener)


@attrs.frozen
class Followed:
    """A run's reference and its last lines, without what is kept for its record."""

    ref: str
    tail: Tail


class RunOutput:
    """
    The output of one process of a run, as it goes on and after (an L{capture.Capture}).

    C{flow} is called with a stream's name and whether to stop reading it.  What C{masker} hides
    is hidden where output is seen; what is kept for the record stays as it came.
    """

    def __init__(
        self,
        job: str,
        ref: str,
        tail: Tail,
        *,
        mirror: Mirror | None = None,
        flow: Callable[[str, bool], object] | None = None,
        masker: Masker | None = None,
    ) -> None:
        self.job = job
        self.ref = ref
        self.tail = tail
        self.closed = False
        self.masker = masker
        self._mirror = mirror
        self._flow = flow
        self._reads = 0
        self._streams: dict[str, _Shown] = {}
        self._texts: dict[str, StreamText] = {}

    def hide(self, values: Sequence[str]) -> None:
        """Let nobody who watches see C{values} either; asked before the first output comes."""
        if values:
            known = () if self.masker is None else self.masker.values
            patterns = self.masker is not None and self.masker.patterns
            self.masker = Masker((*known, *values), patterns)

    def add(
        self,
        name: str,
        save_limit: int,
        max_line_length: int,
        prefix: bytes | None,
        shown_as: str | None = None,
    ) -> None:
        """
        Capture stream C{name}; C{prefix} goes before its mirrored lines, None: not mirrored.
        """
        stream = Stream(save_limit, max_line_length)
        self._streams[name] = _Shown(stream, shown_as or name, TARGETS.get(name, 1), prefix)

    def feed(self, name: str, data: bytes) -> None:
        """Take what was read from a captured stream."""
        shown = self._streams.get(name)
        if shown is None:
            return
        stream = shown.stream
        self._reads += 1
        whole = stream.feed(data, self._reads)
        if stream.overlong and not shown.warned:
            shown.warned = True
            log.warning("job %s: ignored a very long line", self.job)
        if whole:
            if self.masker:
                whole = shown.masked(self.masker, whole)
            self._show(name, shown, whole)

    def close(self) -> None:
        """
        No more will come: a last line without its end counts, texts are made up for good.

        Repeating it does nothing.
        """
        for name, shown in self._streams.items():
            self._reads += 1
            rest = shown.stream.finish(self._reads)
            if rest:
                rest += b"\n"
            if self.masker:
                rest = shown.masked(self.masker, rest, last=True)
            if rest:
                self._show(name, shown, rest)
            self._texts[name] = shown.stream.text()
        self._streams.clear()
        self.tail.compact()
        self.closed = True

    @property
    def stdout(self) -> StreamText | None:
        """What is kept of stdout; None if it is not captured."""
        return self.text("stdout")

    @property
    def stderr(self) -> StreamText | None:
        """What is kept of stderr; None if it is not captured."""
        return self.text("stderr")

    def followed(self) -> Followed:
        """Return what somebody who watches the run needs."""
        return Followed(self.ref, self.tail)

    def text(self, name: str) -> StreamText | None:
        """Return what is kept of a stream so far; None if it is not captured."""
        shown = self._streams.get(name)
        return shown.stream.text() if shown is not None else self._texts.get(name)

    def _show(self, name: str, shown: _Shown, whole: bytes) -> None:
        if not whole:
            return
        self.tail.add(shown.name, whole)
        if self._mirror is None or shown.prefix is None:
            return
        if shown.prefix:
            whole = _prefixed(whole, shown.prefix)
        if not self._mirror.write(shown.target, whole) and self._flow is not None:
            self._flow(name, True)
            flow = self._flow
            self._mirror.when_room(shown.target, lambda: flow(name, False))


class Outputs:
    """
    Makes the output of each run and check, and knows the newest of each job.

    C{executor} is whose streams are held up when C{mirror} is slow; C{masker_of} gives what
    hides a job's secrets.
    """

    def __init__(
        self,
        executor: Any = None,
        mirror: Mirror | None = None,
        masker_of: Callable[[JobConfig], Masker | None] | None = None,
    ) -> None:
        self._executor = executor
        self._mirror = mirror
        self._masker_of = masker_of
        self._live: dict[str, list[RunOutput]] = {}
        self._last: dict[str, Followed] = {}

    def for_run(self, job: JobConfig, ref: str) -> RunOutput:
        """Return the output of a run of C{job} that is about to start."""
        output = self._make(job, ref, Tail(job.name))
        for name, captured in (("stdout", job.capture_stdout), ("stderr", job.capture_stderr)):
            if captured:
                prefix = line_prefix(job.stream_prefix, job.name, name)
                output.add(name, job.save_limit, job.max_line_length, prefix)
        self._settle(job.name)
        self._live.setdefault(job.name, []).append(output)
        return output

    def for_check(self, job: JobConfig, ref: str, run: Any) -> RunOutput:
        """Return the output of the check of a run, whose followers see it as verify.STREAM."""
        output = self._make(job, ref, run.tail)
        output.masker = run.masker
        for name in TARGETS:
            prefix = line_prefix(job.stream_prefix, job.name, f"verify.{name}")
            output.add(name, CHECK_LINES, job.max_line_length, prefix, f"verify.{name}")
        return output

    def newest(self, job: str) -> Followed | None:
        """Return what shows the newest live run of a job, else the last that ended."""
        self._settle(job)
        live = self._live.get(job)
        return live[-1].followed() if live else self._last.get(job)

    def keep_only(self, jobs: Iterable[str]) -> None:
        """Forget ended runs of all other jobs; one that still runs is forgotten a call later."""
        wanted = set(jobs)
        for job in tuple(self._live):
            self._settle(job)
        for job in [job for job in self._last if job not in wanted]:
            del self._last[job]

    def _make(self, job: JobConfig, ref: str, tail: Tail) -> RunOutput:
        executor = self._executor

        def flow(stream: str, paused: bool) -> None:
            executor.flow(ref, stream, paused)

        return RunOutput(
            job.name,
            ref,
            tail,
            mirror=self._mirror,
            flow=None if executor is None else flow,
            masker=None if self._masker_of is None else self._masker_of(job),
        )

    def _settle(self, job: str) -> None:
        """Let the newest of the closed outputs of a job be its last one."""
        live = self._live.get(job)
        if not live:
            return
        for output in live:
            if output.closed:
                self._last[job] = output.followed()
        left = [output for output in live if not output.closed]
        if left:
            self._live[job] = left
        else:
            del self._live[job]


class _Shown:
    """A captured stream, and how it is shown."""

    __slots__ = ("_mask", "_pending", "name", "prefix", "stream", "target", "warned")

    def __init__(self, stream: Stream, name: str, target: int, prefix: bytes | None) -> None:
        self.stream = stream
        self.name = name
        self.target = target
        self.prefix = prefix
        self.warned = False
        self._mask: MaskStream | None = None
        self._pending = b""

    def masked(self, masker: Masker, whole: bytes, last: bool = False) -> bytes:
        """Return the lines that can be shown by now, secrets hidden across reads and lines."""
        if self._mask is None:
            self._mask = masker.stream()
        shown = self._pending + self._mask.feed(whole)
        if last:
            shown += self._mask.finish()
            self._pending = b""
            return shown if not shown or shown.endswith(b"\n") else shown + b"\n"
        end = shown.rfind(b"\n") + 1
        self._pending = shown[end:]
        return shown[:end]


def line_prefix(template: str, job: str, stream: str) -> bytes:
    """Return what goes before each mirrored line of C{stream}; it never makes more lines."""
    text = filled(template, job, stream)
    return (template if text is None else text).replace("\n", " ").encode("utf-8", "replace")


def _prefixed(whole: bytes, prefix: bytes) -> bytes:
    """Return the lines with C{prefix} before each; C{whole} ends in a newline."""
    return (prefix + whole).replace(b"\n", b"\n" + prefix)[: -len(prefix)]


def _lines(name: str, block: bytes) -> Iterator[Line]:
    lines = block.split(b"\n")
    # What follows the last newline is not a line.
    lines.pop()
    return ((name, line) for line in lines)
