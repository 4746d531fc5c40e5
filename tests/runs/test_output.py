"""The output of runs: kept, mirrored, followed."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.runs.output import Line, Outputs, RunOutput, Tail, line_prefix
from cronstable.runs.redact import Masker
from tests.fakes import FakeExecutor, job


class FakeMirror:
    """Takes blocks; full when the test says so."""

    def __init__(self) -> None:
        self.written: list[tuple[int, bytes]] = []
        self.room = True
        self.waiting: list[Callable[[], object]] = []

    def write(self, target: int, block: bytes) -> bool:
        self.written.append((target, block))
        return self.room

    def when_room(self, target: int, resume: Callable[[], object]) -> None:
        self.waiting.append(resume)


class FlowExecutor(FakeExecutor):
    """Remembers who was held up."""

    def __init__(self) -> None:
        super().__init__()
        self.flows: list[tuple[str, str, bool]] = []

    def flow(self, ref: str, stream: str, paused: bool) -> None:
        self.flows.append((ref, stream, paused))


class OutputCase(SynchronousTestCase):
    """Outputs with a mirror that is none."""

    def setUp(self) -> None:
        self.mirror = FakeMirror()
        self.executor = FlowExecutor()
        self.masker: Masker | None = None
        self.outputs = Outputs(
            self.executor,
            self.mirror,  # type: ignore[arg-type]
            lambda job: self.masker,
        )

    def output(self, name: str = "job", ref: str = "r1", **fields: Any) -> RunOutput:
        fields.setdefault("capture_stdout", True)
        return self.outputs.for_run(job(name, **fields), ref)


class RunOutputTests(OutputCase):
    """One run's output."""

    def test_kept(self) -> None:
        """Captured streams are kept apart, others are None."""
        output = self.output(capture_stderr=False)
        output.feed("stdout", b"one\ntwo")
        output.feed("stderr", b"not asked for\n")
        output.close()
        assert output.stdout is not None
        self.assertEqual((output.stdout.text, output.stderr), ("one\ntwo", None))

    def test_closed_again(self) -> None:
        """What comes after the end, another end as well, changes nothing."""
        output = self.output()
        output.feed("stdout", b"one\ntwo")
        output.close()
        kept, shown = output.stdout, output.tail.recent()
        output.feed("stdout", b"more\n")
        output.close()
        self.assertEqual((output.stdout, output.tail.recent()), (kept, shown))

    def test_mirrored(self) -> None:
        """Each line is mirrored with its prefix, to the descriptor of its stream."""
        output = self.output()
        output.feed("stdout", b"a\nb\nc")
        output.feed("stderr", b"\n")
        output.feed("stdout", b"d\n")
        output.feed("stdout", b"rest")
        output.close()
        self.assertEqual(
            self.mirror.written,
            [
                (1, b"[job stdout] a\n[job stdout] b\n"),
                (2, b"[job stderr] \n"),
                (1, b"[job stdout] cd\n"),
                (1, b"[job stdout] rest\n"),
            ],
        )

    def test_no_prefix(self) -> None:
        """An empty prefix leaves lines as they are."""
        output = self.output(stream_prefix="")
        output.feed("stdout", b"a\n")
        self.assertEqual(self.mirror.written, [(1, b"a\n")])

    def test_long_line(self) -> None:
        """A line that is too long is warned of once per stream and not mirrored."""
        output = self.output(max_line_length=5)
        with self.assertLogs("cronstable", "WARNING") as logs:
            output.feed("stdout", b"123456\n12345\n")
            output.feed("stdout", b"1234567")
            output.feed("stderr", b"1234567\n")
        messages = [record.getMessage() for record in logs.records]
        self.assertEqual(messages, ["job job: ignored a very long line"] * 2)
        self.assertEqual(self.mirror.written, [(1, b"[job stdout] 12345\n")])
        output.close()
        assert output.stdout is not None
        self.assertEqual(output.stdout.overlong, 2)

    def test_held_up(self) -> None:
        """A full mirror stops the reading of the stream that filled it, until there is room."""
        output = self.output()
        self.mirror.room = False
        output.feed("stdout", b"a\n")
        self.assertEqual(self.executor.flows, [("r1", "stdout", True)])
        self.mirror.waiting[0]()
        self.assertEqual(self.executor.flows[1:], [("r1", "stdout", False)])

    def test_secrets(self) -> None:
        """Secrets are hidden where output is seen, across reads, and kept for the record."""
        self.masker = Masker(["hunter2-secret", "two\nlines"])
        output = self.output()
        for piece in (b"x hunter2", b"-secret y\ntwo\n", b"lines\n", b"last hunter2-secret"):
            output.feed("stdout", piece)
        output.close()
        seen = b"".join(block for _, block in self.mirror.written)
        self.assertNotIn(b"hunter2", seen)
        self.assertNotIn(b"two\n", seen)
        shown = b"\n".join(line for _, line in output.tail.recent())
        self.assertNotIn(b"hunter2", shown)
        self.assertTrue(shown.startswith(b"x "))
        assert output.stdout is not None
        self.assertIn("hunter2-secret y\ntwo\nlines\n", output.stdout.text)


class HidingTests(OutputCase):
    """Values that a run was given, and that nobody may see."""

    def test_hidden(self) -> None:
        """They are masked in the mirror and for followers; the record has what was written."""
        output = self.output()
        output.hide(["sekret-1"])
        output.feed("stdout", b"a sekr")
        output.feed("stdout", b"et-1 b\n")
        output.close()
        self.assertEqual(self.mirror.written, [(1, b"[job stdout] a *** b\n")])
        self.assertEqual(output.tail.recent(), [("stdout", b"a *** b")])
        assert output.stdout is not None
        self.assertEqual(output.stdout.text, "a sekret-1 b\n")

    def test_begun(self) -> None:
        """What only begins like one of them is shown once that is clear, at the end if need be."""
        output = self.output()
        output.hide(["one\ntwo"])
        output.feed("stdout", b"one\n")
        self.assertEqual(output.tail.recent(), [])
        output.feed("stdout", b"three\none\n")
        self.assertEqual(len(output.tail.recent()), 2)
        output.close()
        self.assertEqual([line for _, line in output.tail.recent()], [b"one", b"three", b"one"])

    def test_with_others(self) -> None:
        """They are hidden along with what the job's own definition hides, in its check too."""
        self.masker = Masker(["hunter2"])
        run = self.output()
        run.hide(["sekret-1"])
        check = self.outputs.for_check(job("job"), "r1-check", run)
        for output in (run, check):
            output.feed("stdout", b"hunter2 sekret-1\n")
            output.close()
        self.assertEqual([line for _, line in run.tail.recent()], [b"*** ***"] * 2)

    def test_nothing_to_hide(self) -> None:
        """Without values the output takes the plain way."""
        output = self.output()
        output.hide(())
        self.assertIs(output.masker, None)


class TailTests(OutputCase):
    """The last lines, and who follows them."""

    def test_order(self) -> None:
        """Lines of both streams are in the order in which they became whole."""
        output = self.output()
        output.feed("stdout", b"1\n2")
        output.feed("stderr", b"3\n")
        output.feed("stdout", b"\n\n")
        self.assertEqual(
            output.tail.recent(),
            [("stdout", b"1"), ("stderr", b"3"), ("stdout", b"2"), ("stdout", b"")],
        )

    def test_last_thousand(self) -> None:
        """There are the last thousand lines, before the end and after."""
        output = self.output(save_limit=4)
        for start in range(0, 3000, 7):
            output.feed("stdout", b"".join(b"%d\n" % n for n in range(start, start + 7)))
        expected = [("stdout", b"%d" % n) for n in range(2003, 3003)]
        self.assertEqual(output.tail.recent(), expected)
        output.close()
        self.assertEqual(output.tail.recent(), expected)

    def test_bounded(self) -> None:
        """Long lines make the tail shorter rather than large."""
        tail = Tail("job")
        for _ in range(100):
            tail.add("stdout", b"x" * 100_000 + b"\n")
        self.assertLess(sum(len(line) for _, line in tail.recent()), 2_200_000)
        tail.add("stdout", b"y" * 5_000_000 + b"\n")
        self.assertEqual(len(tail.recent()), 1)

    def test_follow(self) -> None:
        """A follower gets each line that comes, in batches, until it leaves."""
        output = self.output()
        output.feed("stdout", b"before\n")
        batches: list[list[Line]] = []
        leave = output.tail.subscribe(batches.append)
        self.assertEqual(output.tail.recent(), [("stdout", b"before")])
        output.feed("stdout", b"1\n2\n3")
        output.close()
        self.assertEqual(batches, [[("stdout", b"1"), ("stdout", b"2")], [("stdout", b"3")]])
        leave()
        leave()
        output.tail.add("stdout", b"4\n")
        self.assertEqual(len(batches), 2)

    def test_bad_follower(self) -> None:
        """A follower that fails is logged and left; the others go on."""
        output = self.output()
        batches: list[list[Line]] = []
        output.tail.subscribe(lambda lines: 1 / 0)
        output.tail.subscribe(batches.append)
        with self.assertLogs("cronstable", "ERROR") as logs:
            output.feed("stdout", b"1\n")
            output.feed("stdout", b"2\n")
        self.assertEqual((len(logs.records), len(batches)), (1, 2))


class OutputsTests(OutputCase):
    """The outputs of all jobs."""

    def test_newest(self) -> None:
        """The newest live run is shown, else the one that ended last."""
        self.assertIsNone(self.outputs.newest("job"))
        first, second = self.output(ref="r1"), self.output(ref="r2")
        self.output("other", ref="r3")
        self.assertEqual(self.newest(), "r2")
        second.close()
        self.assertEqual(self.newest(), "r1")
        first.close()
        self.assertEqual(self.newest(), "r1")
        third = self.output(ref="r4")
        self.assertEqual(self.newest(), "r4")
        third.close()
        self.assertEqual(self.newest(), "r4")

    def newest(self) -> str:
        found = self.outputs.newest("job")
        assert found is not None
        return found.ref

    def test_forgotten(self) -> None:
        """Runs of jobs that are gone are forgotten once they are over."""
        self.output().close()
        self.assertIsNotNone(self.outputs.newest("job"))
        self.outputs.keep_only(["other"])
        self.assertIsNone(self.outputs.newest("job"))

    def test_forgotten_later(self) -> None:
        """What a removed job's last run has left is forgotten once that has ended."""
        outputs = Outputs()
        output = outputs.for_run(job("gone"), "1")
        outputs.keep_only(["other"])
        self.assertIsNotNone(outputs.newest("gone"))
        tail = weakref.ref(output.tail)
        output.close()
        del output
        gc.disable()
        self.addCleanup(gc.enable)
        outputs.keep_only(["other"])
        self.assertIsNone(tail())

    def test_check(self) -> None:
        """A check's output is its own, and followers of the run see it under its own name."""
        output = self.output()
        output.feed("stdout", b"run\n")
        output.close()
        check = self.outputs.for_check(job("job"), "r1-check", output)
        check.feed("stderr", b"check\n")
        check.feed("stdout", b"".join(b"%d\n" % n for n in range(100)))
        check.close()
        recent = output.tail.recent()
        self.assertEqual(recent[:2], [("stdout", b"run"), ("verify.stderr", b"check")])
        assert check.stderr is not None and check.stdout is not None and output.stdout is not None
        self.assertEqual((check.stderr.text, check.stdout.discarded), ("check\n", 36))
        self.assertEqual(output.stdout.text, "run\n")
        self.assertIn((2, b"[job verify.stderr] check\n"), self.mirror.written)


class LinePrefixTests(SynchronousTestCase):
    """streamPrefix."""

    def test_templates(self) -> None:
        """The two placeholders are filled in; what is odd is taken as it is written."""
        cases = {
            "[{job_name} {stream_name}] ": b"[backup stdout] ",
            "{job_name:>8}|": b"  backup|",
            "{{{job_name}}} ": b"{backup} ",
            "plain: ": b"plain: ",
            "": b"",
            "{host} ": b"{host} ",
            "{} ": b"{} ",
            "{job_name ": b"{job_name ",
            "{job_name.__class__} ": b"{job_name.__class__} ",
            "{job_name:{stream_name}}": b"{job_name:{stream_name}}",
            "{job_name:%}": b"{job_name:%}",
        }
        for template, expected in cases.items():
            self.assertEqual(line_prefix(template, "backup", "stdout"), expected, template)

    def test_one_line(self) -> None:
        """A job's name cannot make more lines."""
        self.assertEqual(line_prefix("{job_name}: ", "a\nb\xe9", "stdout"), "a b\xe9: ".encode())
