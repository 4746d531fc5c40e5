"""What is kept of one output stream."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.runs import stream as module
from cronstable.runs.stream import Stream
from tests.properties import given, settings, st

PLENTY = 1 << 24


def fed(data: bytes, limit: int = 4096, longest: int = PLENTY, pieces: int = 0) -> Stream:
    """Return a stream that was given C{data}, in pieces of that size or at once."""
    stream = Stream(limit, longest)
    size = pieces or len(data) or 1
    for start in range(0, len(data), size):
        stream.feed(data[start : start + size])
    stream.finish()
    return stream


def by_lines(data: bytes, limit: int, longest: int) -> tuple[str, int, int]:
    """Say the same the slow way: text, discarded and overlong lines."""
    lines = data.splitlines(keepends=True) if data else []
    kept = [line for line in lines if len(line.rstrip(b"\n")) <= longest]
    first, last = limit // 2, limit - limit // 2
    head = kept[:first]
    tail = kept[first:][-last:] if last else []
    discarded = len(kept) - len(head) - len(tail)
    marker = b"   [.... %d lines discarded ...]\n" % discarded if discarded and tail else b""
    text = b"".join([*head, marker, *tail]).decode("utf-8", "replace")
    return text, discarded, len(lines) - len(kept)


class StreamTests(SynchronousTestCase):
    """First and last lines, and counts."""

    def test_all(self) -> None:
        """Within the limit everything is kept as it came."""
        text = fed(b"a\n\nb\r\nc").text()
        self.assertEqual((text.text, text.discarded, text.overlong), ("a\n\nb\r\nc", 0, 0))
        self.assertEqual(text.first, text.text)

    def test_limit(self) -> None:
        """The first half is rounded down, a marker tells how many lines are missing."""
        data = b"".join(b"%d\n" % number for number in range(1, 11))
        cases = {
            5: "1\n2\n   [.... 5 lines discarded ...]\n8\n9\n10\n",
            1: "   [.... 9 lines discarded ...]\n10\n",
            2: "1\n   [.... 8 lines discarded ...]\n10\n",
            9: "1\n2\n3\n4\n   [.... 1 lines discarded ...]\n6\n7\n8\n9\n10\n",
            10: data.decode(),
            0: "",
        }
        for limit, expected in cases.items():
            text = fed(data, limit).text()
            self.assertEqual((limit, text.text), (limit, expected))
            self.assertEqual(text.discarded, max(0, 10 - limit))
            self.assertTrue(text.produced)
        self.assertEqual(fed(data, 5).text().first, "1\n2\n")

    def test_fragment(self) -> None:
        """A last line without newline is a line like others."""
        text = fed(b"1\n2\n3\n4", 2).text()
        self.assertEqual(text.text, "1\n   [.... 2 lines discarded ...]\n4")

    def test_nothing(self) -> None:
        """A silent stream has produced nothing."""
        text = fed(b"").text()
        self.assertEqual((text.text, text.produced), ("", False))

    def test_long_lines(self) -> None:
        """A line beyond the limit goes whole, its end too, and is counted apart."""
        data = b"a\n12345678901\n1234567890\nc\n12345678901"
        for pieces in (0, 1, 3, 7, 12):
            text = fed(data, 4096, 10, pieces).text()
            self.assertEqual((text.text, text.overlong), ("a\n1234567890\nc\n", 2), pieces)
            self.assertEqual(text.discarded, 0)

    def test_memory_of_a_long_line(self) -> None:
        """While a line is skipped nothing of it is held."""
        stream = Stream(10, 1000)
        for _ in range(100):
            stream.feed(b"x" * 5000)
        self.assertEqual(sum(map(len, stream._partial)), 0)
        self.assertEqual(stream.feed(b"y\nshort\n"), b"short\n")
        self.assertEqual(stream.overlong, 1)

    def test_split_character(self) -> None:
        """A character that was read in two parts is whole; what is none is marked."""
        stream = Stream(10, 100)
        stream.feed("caf\xe9".encode()[:4])
        stream.feed("\xe9\n".encode()[1:] + b"\xff\n")
        self.assertEqual(stream.text().text, "caf\xe9\n\ufffd\n")

    def test_bytes_bound(self) -> None:
        """However long lines are, what is kept of them stays bounded, and counts are right."""
        self.patch(module, "KEPT_BYTES", 10_000)
        stream = Stream(4096, 1 << 20)
        for number in range(200):
            stream.feed(b"%d" % number + b"x" * 1000 + b"\n")
        text = stream.text()
        self.assertLess(len(text.text), 25_000)
        self.assertEqual(text.discarded, 200 - text.text.count("x\n"))
        self.assertTrue(text.text.startswith("0x"))
        self.assertIn("\n199x", text.text)
        self.assertIn(f"[.... {text.discarded} lines discarded ...]", text.text)

    def test_whole_lines(self) -> None:
        """What is returned is whole lines, each once."""
        stream = Stream(4, 100)
        returned = [stream.feed(piece) for piece in (b"a", b"b\nc", b"\n\nd", b"e")]
        self.assertEqual(returned, [b"", b"ab\n", b"c\n\n", b""])
        self.assertEqual(stream.finish(), b"de")

    @given(
        st.lists(st.binary(max_size=30).map(lambda raw: raw.replace(b"\r", b"\n")), max_size=60),
        st.integers(0, 12),
        st.integers(1, 15),
    )
    @settings(max_examples=300)
    def test_like_line_by_line(self, pieces: list[bytes], limit: int, longest: int) -> None:
        """Blocks give what a count line by line gives, however the output is cut."""
        stream = Stream(limit, longest)
        whole = b"".join([stream.feed(piece) for piece in pieces])
        rest = stream.finish()
        text = stream.text()
        data = b"".join(pieces)
        self.assertEqual((text.text, text.discarded, text.overlong), by_lines(data, limit, longest))
        lines = data.split(b"\n")
        kept = [line for line in lines[:-1] if len(line) <= longest]
        self.assertEqual(whole, b"".join(line + b"\n" for line in kept))
        self.assertEqual(rest, lines[-1] if len(lines[-1]) <= longest else b"")
