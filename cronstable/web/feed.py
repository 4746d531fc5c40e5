"""
The output of one run as server-sent events: each line formatted once, whoever many follow it.

A feed keeps a bounded ring of formatted chunks; a reader is a place in it.  One that falls behind
the ring is told how many lines it has missed.  docs/live-logs.md specifies the events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from json.encoder import encode_basestring_ascii as quoted

import attrs

from cronstable.runs.output import RING_LINES, Line, Tail

RING_BYTES = 4 << 20
"""Bytes of formatted events that are kept for readers that lag."""

WAITING_BYTES = 4 << 20
WAITING_LINES = 50_000
"""How much output may wait to be formatted before the oldest of it is dropped."""

CHUNK_BYTES = 16 << 10
CHUNK_LINES = 64
"""Where a chunk ends."""

BATCH = 64 << 10
"""Bytes that are written to one reader at a time."""


@attrs.frozen(eq=False)
class Chunk:
    """Formatted lines, the first of them with its number in the whole output."""

    first: int
    lines: int
    data: bytes

    @property
    def after(self) -> int:
        """The number of the line that follows."""
        return self.first + self.lines

    def since(self, number: int) -> bytes:
        """Return the events from line C{number} on."""
        skipped = number - self.first
        return self.data if skipped <= 0 else self.data.split(b"\n\n", skipped)[skipped]


@attrs.define(eq=False)
class Place:
    """Where a reader is: the number of its next line, and of the chunk that holds it."""

    line: int
    chunk: int


def event(kind: str, data: str) -> bytes:
    """Return one event; C{data} is JSON without a newline."""
    return f"event: {kind}\ndata: {data}\n\n".encode("ascii")


def line_events(lines: Iterable[Line]) -> bytes:
    """Return an event for each line; what is no UTF-8 becomes replacement marks."""
    return "".join(
        [
            f'event: line\ndata: {{"stream":{_streams[name]},"line":'
            f"{quoted(line.decode('utf-8', 'replace'))}}}\n\n"
            for name, line in lines
        ]
    ).encode("ascii")


class _Quoted(dict[str, str]):
    def __missing__(self, name: str) -> str:
        self[name] = quoted(name)
        return self[name]


_streams = _Quoted()


class Feed:
    """
    What followers of one run are sent.

    C{busy} is called when there is something to format.
    """

    def __init__(self, tail: Tail, busy: Callable[[], object]) -> None:
        self._busy = busy
        self._chunks: deque[Chunk] = deque()
        self._base = 0
        self._size = 0
        self._next = 0
        self._waiting: deque[tuple[list[Line], int]] = deque()
        self._waiting_lines = 0
        self._waiting_bytes = 0
        self.over = False
        self._wait(tail.recent())
        self._unsubscribe = tail.subscribe(self._wait)

    def close(self) -> None:
        """Take no more output."""
        self._unsubscribe()
        self.over = True

    @property
    def waiting(self) -> bool:
        """Whether output waits to be formatted."""
        return bool(self._waiting)

    def place(self) -> Place:
        """Return where a new reader begins: at most as far back as a run's tail goes."""
        line = self._next
        chunk = self._base + len(self._chunks)
        for each in reversed(self._chunks):
            if self._next - line >= RING_LINES:
                break
            line, chunk = each.first, chunk - 1
        return Place(max(line, self._next - RING_LINES), chunk)

    def format_some(self) -> None:
        """Format one chunk of what waits."""
        if not self._waiting:
            return
        lines, size = self._waiting[0]
        taken, weight = 0, 0
        while taken < len(lines) and taken < CHUNK_LINES and weight < CHUNK_BYTES:
            weight += len(lines[taken][1])
            taken += 1
        chunk = Chunk(self._next, taken, line_events(lines[:taken]))
        self._waiting_lines -= taken
        self._waiting_bytes -= weight
        if taken == len(lines):
            self._waiting.popleft()
        else:
            del lines[:taken]
            self._waiting[0] = (lines, size - weight)
        self._next = chunk.after
        self._keep(chunk)

    def batch(self, place: Place) -> tuple[bytes, int]:
        """
        Return what comes at C{place}, up to a batch, and move it on; nothing at the end.

        With it comes the number of lines that are told to be missing.
        """
        parts: list[bytes] = []
        size = missed = 0
        index = place.chunk - self._base
        if index < 0:
            place.chunk, index = self._base, 0
        while index < len(self._chunks) and size < BATCH:
            chunk = self._chunks[index]
            if chunk.first > place.line:
                missed += chunk.first - place.line
                parts.append(gap(chunk.first - place.line))
                place.line = chunk.first
            data = chunk.since(place.line)
            parts.append(data)
            size += len(data)
            place.line = chunk.after
            place.chunk += 1
            index += 1
        return b"".join(parts), missed

    def at_end(self, place: Place) -> bool:
        """Return whether C{place} is behind everything that was formatted."""
        return place.chunk >= self._base + len(self._chunks)

    def left(self, place: Place) -> int:
        """Return how many lines a reader at C{place} has not been sent."""
        return self._next + self._waiting_lines - place.line

    def _wait(self, lines: list[Line]) -> None:
        if not lines:
            return
        size = sum([len(line) for _, line in lines])
        self._waiting.append((lines, size))
        self._waiting_lines += len(lines)
        self._waiting_bytes += size
        while len(self._waiting) > 1 and (
            self._waiting_lines > WAITING_LINES or self._waiting_bytes > WAITING_BYTES
        ):
            dropped, weight = self._waiting.popleft()
            self._next += len(dropped)
            self._waiting_lines -= len(dropped)
            self._waiting_bytes -= weight
        self._busy()

    def _keep(self, chunk: Chunk) -> None:
        self._chunks.append(chunk)
        self._size += len(chunk.data)
        while self._size - len(self._chunks[0].data) >= RING_BYTES:
            self._size -= len(self._chunks.popleft().data)
            self._base += 1


def gap(lines: int) -> bytes:
    """Return the event that tells a reader how many lines it has missed."""
    return event("gap", f'{{"dropped":{lines}}}')
