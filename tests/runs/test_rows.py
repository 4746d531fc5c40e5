"""The archived output of a run: both streams, line by line, as they came."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.runs.output import RunOutput, Tail
from cronstable.runs.record import FinishedRun, RunRecord, StreamText
from cronstable.runs.rows import archive_lines
from tests.fakes import job
from tests.properties import given, settings, st

RECORD = RunRecord("a", "success", 1.0, 0)
STREAMS = ("stdout", "stderr")


def finished(*reads: tuple[str, bytes], limit: int = 100) -> FinishedRun:
    """Return a run whose streams were read like this."""
    output = RunOutput("a", "ref", Tail("a"))
    for name in STREAMS:
        output.add(name, limit, 1000, None)
    for name, data in reads:
        output.feed(name, data)
    output.close()
    return FinishedRun(RECORD, job("a"), output.stdout, output.stderr)


def shown(run: FinishedRun, **more: object) -> list[str]:
    """Return the archived lines, those of stderr with a mark."""
    return [
        ("!" if each["stream"] == "stderr" else "") + each["line"]
        for each in archive_lines(run, **more)  # type: ignore[arg-type]
    ]


class ArchiveLinesTests(SynchronousTestCase):
    """The lines of an archived run."""

    def test_as_they_came(self) -> None:
        """Lines of both streams are told in the order in which they were read."""
        run = finished(
            ("stdout", b"a\nb\n"),
            ("stderr", b"oops\n"),
            ("stdout", b"c\nd"),
            ("stderr", b"more\n"),
            ("stdout", b"e"),
        )
        self.assertEqual(shown(run), ["a\n", "b\n", "!oops\n", "c\n", "!more\n", "de"])

    def test_discarded(self) -> None:
        """The marker stands where lines of its stream are missing."""
        reads = [("stdout", b"%d\n%d\n" % (at, at + 1)) for at in range(0, 10, 2)]
        run = finished(*reads, ("stderr", b"x\n"), ("stdout", b"10\n"), limit=5)
        marker = "   [.... 6 lines discarded ...]\n"
        self.assertEqual(shown(run), ["0\n", "1\n", marker, "8\n", "9\n", "!x\n", "10\n"])

    def test_masked_block(self) -> None:
        """A secret of several lines leaves one: later lines move up and none is lost."""
        run = finished(("stdout", b"k1\nk2\nk3\n"), ("stderr", b"x\n"), ("stdout", b"y\nz\n"))
        masked = shown(run, mask=lambda text: text.replace("k1\nk2\nk3\n", "***\n"))
        self.assertEqual([line for line in masked if line[0] != "!"], ["***\n", "y\n", "z\n"])
        self.assertIn("!x\n", masked)

    def test_longer(self) -> None:
        """Lines that a mask adds are at the end of their stream."""
        run = finished(("stdout", b"a\n"), ("stderr", b"x\n"))
        self.assertEqual(shown(run, mask=lambda text: text + "+\n"), ["a\n", "+\n", "!x\n", "!+\n"])

    def test_unknown_order(self) -> None:
        """Where nobody knows the order, stderr is first."""
        run = FinishedRun(RECORD, job("a"), StreamText("a\n"), StreamText("x\n"))
        self.assertEqual(shown(run), ["!x\n", "a\n"])

    @settings(max_examples=200)
    @given(
        st.lists(st.tuples(st.sampled_from(STREAMS), st.binary(max_size=12)), max_size=12),
        st.integers(0, 8),
    )
    def test_whole(self, reads: list[tuple[str, bytes]], limit: int) -> None:
        """Whatever comes, each stream's lines are those of its text, in their order."""
        run = finished(*reads, limit=limit)
        for name, text in (("stdout", run.stdout), ("stderr", run.stderr)):
            assert text is not None
            lines = [each["line"] for each in archive_lines(run) if each["stream"] == name]
            self.assertEqual("".join(lines), text.text)
            self.assertEqual(sum(count for _, count in text.order), len(lines))
