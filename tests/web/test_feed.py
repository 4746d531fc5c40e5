"""Tests for the ring of formatted lines that all readers of a run share."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.runs.output import RING_LINES, Tail
from cronstable.web import feed
from cronstable.web.feed import Feed, Place, line_events
from tests.properties import given, st
from tests.web.api import events


def texts(data: bytes) -> list[str]:
    """Return the lines in some formatted events."""
    return [found["line"] for kind, found in events(data.decode()) if kind == "line"]


class FormatTests(SynchronousTestCase):
    """Lines as events."""

    def test_form(self) -> None:
        """An event names its stream, and is exactly two lines and a blank one."""
        self.assertEqual(
            line_events([("stdout", b"hello"), ("verify.stderr", b"")]),
            b'event: line\ndata: {"stream":"stdout","line":"hello"}\n\n'
            b'event: line\ndata: {"stream":"verify.stderr","line":""}\n\n',
        )

    def test_no_text(self) -> None:
        """Bytes that are no text become marks, a whole character stays whole."""
        data = line_events(
            [("stdout", b"caf\xe9 \xff\xfe \xf0\x9f"), ("stdout", "\u00e9\U0001f600".encode())]
        )
        self.assertEqual(texts(data), ["caf\ufffd \ufffd\ufffd \ufffd", "\u00e9\U0001f600"])

    @given(st.lists(st.binary(max_size=60).map(lambda line: line.replace(b"\n", b""))))
    def test_no_forgery(self, lines: list[bytes]) -> None:
        """Whatever a job prints, each line is one event, in plain ASCII without controls."""
        data = line_events([("stdout", line) for line in lines])
        self.assertTrue(all(byte == 10 or 32 <= byte < 127 for byte in data))
        self.assertEqual(texts(data), [line.decode("utf-8", "replace") for line in lines])
        self.assertEqual({kind for kind, _ in events(data.decode())} - {"line"}, set())


class Fed(SynchronousTestCase):
    """A feed of a run whose output the test writes."""

    def setUp(self) -> None:
        self.tail = Tail("job")
        self.written = 0
        self.busy = 0

    def write(self, count: int, size: int = 0) -> None:
        """Print numbered lines, at least C{size} bytes each."""
        numbers = range(self.written, self.written + count)
        self.tail.add("stdout", b"".join(b"%d".ljust(size) % n + b"\n" for n in numbers))
        self.written += count

    def feed(self) -> Feed:
        """Begin to follow."""

        def busy() -> None:
            self.busy += 1

        self.fed = Feed(self.tail, busy)
        return self.fed

    def format(self) -> None:
        """Format all that waits."""
        while self.fed.waiting:
            self.fed.format_some()

    def read(self, place: Place) -> tuple[list[int], list[int]]:
        """Return the numbers that come at C{place}, and the gaps among them."""
        data = b""
        while not self.fed.at_end(place):
            data += self.fed.batch(place)[0]
        found = events(data.decode())
        lines = [int(each["line"]) for kind, each in found if kind == "line"]
        return lines, [each["dropped"] for kind, each in found if kind == "gap"]


class ReplayTests(Fed):
    """Where a reader begins."""

    def test_retained(self) -> None:
        """The first reader gets what the run retains, then what comes."""
        self.write(1500)
        place = self.feed().place()
        self.write(2)
        self.format()
        self.assertEqual(self.read(place), (list(range(500, 1502)), []))

    def test_later(self) -> None:
        """A later reader gets no more lines than the first could have."""
        self.feed()
        self.write(2500)
        self.format()
        self.assertEqual(self.read(self.fed.place()), (list(range(1500, 2500)), []))

    def test_within_a_chunk(self) -> None:
        """It begins with the right line even when that is inside a chunk."""
        self.feed()
        self.write(feed.CHUNK_LINES - 1)
        self.format()
        self.write(RING_LINES)
        self.format()
        lines, _ = self.read(self.fed.place())
        self.assertEqual(lines, list(range(feed.CHUNK_LINES - 1, self.written)))

    def test_nothing_yet(self) -> None:
        """Before there is any output, the place is at the end."""
        place = self.feed().place()
        self.assertTrue(self.fed.at_end(place))
        self.write(1)
        self.format()
        self.assertEqual(self.read(place), ([0], []))

    def test_none_twice(self) -> None:
        """Lines that wait to be formatted come once, to old and new readers alike."""
        self.write(10)
        first = self.feed().place()
        self.fed.format_some()
        second = self.fed.place()
        self.write(10)
        self.format()
        self.assertEqual(self.read(first)[0], list(range(20)))
        self.assertEqual(self.read(second)[0], list(range(20)))


class BoundTests(Fed):
    """What is kept for readers that lag."""

    def test_small_batches(self) -> None:
        """Long output comes in batches of bounded size."""
        place = self.feed().place()
        self.write(3000, size=100)
        self.format()
        sizes = []
        while not self.fed.at_end(place):
            sizes.append(len(self.fed.batch(place)[0]))
        self.assertGreater(len(sizes), 4)
        self.assertLess(max(sizes), feed.BATCH + feed.CHUNK_BYTES * 2)

    def test_slow_reader(self) -> None:
        """A reader that falls behind is told exactly how much it has missed."""
        place = self.feed().place()
        for _ in range(20):
            self.write(5000, size=100)
            self.format()
        lines, gaps = self.read(place)
        self.assertEqual(len(gaps), 1)
        self.assertEqual(lines, list(range(gaps[0], 100_000)))

    def test_memory(self) -> None:
        """However much is printed, the ring holds a few megabytes."""
        self.feed()
        for _ in range(20):
            self.write(5000, size=1000)
            self.format()
        kept = sum(len(chunk.data) for chunk in self.fed._chunks)
        self.assertLess(kept, feed.RING_BYTES + 2 * feed.CHUNK_BYTES + 5000)

    def test_output_faster_than_formatting(self) -> None:
        """What cannot be formatted in time is dropped, the oldest first, and told as a gap."""
        place = self.feed().place()
        for _ in range(12):
            self.write(10_000)
        self.format()
        lines, gaps = self.read(place)
        self.assertEqual(len(lines) + sum(gaps), 120_000)
        self.assertEqual(lines[-1], 119_999)
        self.assertLessEqual(len(lines), feed.WAITING_LINES + 10_000)

    def test_waiting_bytes(self) -> None:
        """Long lines that wait are bounded by their bytes."""
        self.feed()
        for _ in range(100):
            self.write(60, size=1000)
        self.assertLess(self.fed._waiting_bytes, feed.WAITING_BYTES + 100_000)
        self.assertLess(self.fed._waiting_lines, 6000)

    def test_one_huge_line(self) -> None:
        """A line larger than the ring still comes, whole."""
        place = self.feed().place()
        self.tail.add("stdout", b"x" * (feed.RING_BYTES + 1) + b"\n")
        self.write(1)
        self.format()
        data = b""
        while not self.fed.at_end(place):
            data += self.fed.batch(place)[0]
        found = events(data.decode())
        self.assertIn(found[0][0], ("line", "gap"))
        self.assertEqual(found[-1][1]["line"], "0")

    @given(st.lists(st.tuples(st.integers(0, 300), st.booleans(), st.integers(0, 3)), max_size=30))
    def test_nothing_missing(self, steps: list[tuple[int, bool, int]]) -> None:
        """In any order of printing, formatting and reading, lines and gaps add up."""
        self.patch(feed, "RING_BYTES", 20_000)
        self.patch(feed, "WAITING_LINES", 500)
        self.setUp()
        place = self.feed().place()
        seen: list[Any] = []
        for lines, formats, batches in [*steps, (1, True, 10_000)]:
            if lines:
                self.write(lines)
            if formats:
                self.format()
            for _ in range(batches):
                seen += events(self.fed.batch(place)[0].decode())
                if self.fed.at_end(place):
                    break
        expected = 0
        for kind, data in seen:
            if kind == "gap":
                expected += data["dropped"]
            else:
                self.assertEqual(int(data["line"]), expected)
                expected += 1
        self.assertEqual(expected, self.written)


class CountTests(Fed):
    """What is known of a reader that has not been sent everything."""

    def test_left(self) -> None:
        """Lines that were not sent are counted, formatted or not."""
        place = self.feed().place()
        self.write(100)
        self.fed.format_some()
        self.assertEqual(self.fed.left(place), 100)
        self.format()
        self.read(place)
        self.assertEqual(self.fed.left(place), 0)

    def test_closed(self) -> None:
        """A closed feed takes nothing more."""
        self.feed().close()
        self.write(1)
        self.assertFalse(self.fed.waiting)

    def test_json(self) -> None:
        """A gap is an event whose data is JSON."""
        kind, data = events(feed.gap(12).decode())[0]
        self.assertEqual((kind, json.dumps(data)), ("gap", '{"dropped": 12}'))
