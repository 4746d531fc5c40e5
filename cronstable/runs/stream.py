"""
One output stream of a run: its first and last lines are kept, all others counted.

Work is done on blocks as they were read; only what is kept is ever split into lines.
docs/executors.md, "Output", specifies what is kept and what is dropped.
"""

from __future__ import annotations

import re
from collections import deque

from cronstable.runs.record import StreamText

KEPT_BYTES = 8 << 20
"""Bytes at which either end of a stream keeps fewer lines than saveLimit says."""


class Stream:
    """What is kept of one stream: first and last lines, and how many there were between."""

    def __init__(self, save_limit: int, max_line_length: int) -> None:
        self._first_lines = save_limit // 2
        self._last_lines = save_limit - self._first_lines
        self._longest = max_line_length
        self._head: list[bytes] = []
        self._head_order: list[tuple[int, int]] = []
        self._head_lines = 0
        self._head_bytes = 0
        self._tail: deque[tuple[bytes, int, int]] = deque()
        self._tail_lines = 0
        self._tail_bytes = 0
        self._partial: list[bytes] = []
        self._partial_bytes = 0
        self._skipping = False
        self._too_long: re.Pattern[bytes] | None = None
        self.lines = 0
        """Lines that were produced, without those that were too long."""
        self.overlong = 0
        """Lines dropped because they were too long."""

    def feed(self, data: bytes, read: int = 0) -> bytes:
        """
        Take what was read; return the lines that are now whole, with their newlines.

        Lines that are too long are not among them.  C{read} numbers the reads of all streams.
        """
        end = data.rfind(b"\n") + 1
        if end == 0:
            self._hold(data)
            return b""
        whole = self._completed(data, end)
        if end < len(data):
            self._hold(data[end:])
        if len(data) > self._longest:
            whole = self._without_long_lines(whole)
        if whole:
            self._keep(whole, whole.count(b"\n"), read)
        return whole

    def finish(self, read: int = 0) -> bytes:
        """Keep a last line that has no newline; return it."""
        rest = b"".join(self._partial)
        self._partial.clear()
        self._partial_bytes = 0
        if rest:
            self._keep(rest, 1, read)
        return rest

    def text(self) -> StreamText:
        """Return what is kept, decoded; bytes that are not UTF-8 are shown as such."""
        head = b"".join(self._head)
        tail = self._last()
        kept = self._head_lines + min(self._tail_lines, self._last_lines)
        discarded = self.lines - kept
        first = head.decode("utf-8", "replace")
        if not discarded:
            whole = (head + tail).decode("utf-8", "replace")
            return StreamText(whole, 0, self.overlong, whole, self._order(0))
        # As ever: where no last line is kept, no marker says that lines are missing.
        marker = f"   [.... {discarded} lines discarded ...]\n" if tail else ""
        text = first + marker + tail.decode("utf-8", "replace")
        return StreamText(text, discarded, self.overlong, first, self._order(1 if marker else 0))

    def _order(self, marker: int) -> tuple[tuple[int, int], ...]:
        """Return which reads the lines of the text are of; the marker goes with the next line."""
        tail = [(read, lines) for _, lines, read in self._tail]
        if tail:
            excess = max(self._tail_lines - self._last_lines, 0)
            read, lines = tail[0]
            tail[0] = read, lines - excess + marker
        return (*self._head_order, *tail)

    def _completed(self, data: bytes, end: int) -> bytes:
        """Return the whole lines of C{data}, with what was held of the first one."""
        if self._skipping:
            self._skipping = False
            return data[data.index(b"\n") + 1 : end]
        if not self._partial:
            return data if end == len(data) else data[:end]
        held, self._partial = self._partial, []
        size, self._partial_bytes = self._partial_bytes, 0
        if size + len(data) > self._longest:
            first = data.index(b"\n")
            if size + first > self._longest:
                self.overlong += 1
                return data[first + 1 : end]
        held.append(data[:end])
        return b"".join(held)

    def _hold(self, rest: bytes) -> None:
        if self._skipping:
            return
        self._partial.append(rest)
        self._partial_bytes += len(rest)
        if self._partial_bytes > self._longest:
            self._partial.clear()
            self._partial_bytes = 0
            self._skipping = True
            self.overlong += 1

    def _without_long_lines(self, whole: bytes) -> bytes:
        if self._too_long is None:
            self._too_long = re.compile(rb"(?m)^[^\n]{%d,}\n" % (self._longest + 1))
        whole, dropped = self._too_long.subn(b"", whole)
        self.overlong += dropped
        return whole

    def _keep(self, whole: bytes, count: int, read: int) -> None:
        self.lines += count
        if self._head_lines < self._first_lines:
            whole, count = self._keep_first(whole, count, read)
            if not count:
                return
        if not self._last_lines:
            return
        tail = self._tail
        tail.append((whole, count, read))
        self._tail_lines += count
        self._tail_bytes += len(whole)
        while len(tail) > 1:
            block, lines, _ = tail[0]
            if (
                self._tail_lines - lines < self._last_lines
                and self._tail_bytes - len(block) < KEPT_BYTES
            ):
                break
            tail.popleft()
            self._tail_lines -= lines
            self._tail_bytes -= len(block)

    def _keep_first(self, whole: bytes, count: int, read: int) -> tuple[bytes, int]:
        """Keep what is still wanted of the first lines; return the rest and its line count."""
        wanted = self._first_lines - self._head_lines
        rest = b""
        if count > wanted:
            rest = whole.split(b"\n", wanted)[wanted]
            whole = whole[: len(whole) - len(rest)]
        taken = min(count, wanted)
        self._head.append(whole)
        self._head_order.append((read, taken))
        self._head_lines += taken
        self._head_bytes += len(whole)
        if self._head_bytes >= KEPT_BYTES:
            self._first_lines = self._head_lines
        return rest, count - taken

    def _last(self) -> bytes:
        """Return the last lines that are kept; the oldest block may hold some more."""
        tail = b"".join(block for block, _, _ in self._tail)
        excess = self._tail_lines - self._last_lines
        return tail.split(b"\n", excess)[excess] if excess > 0 else tail
