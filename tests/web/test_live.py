"""Tests for live output: order, ends, and readers that misbehave."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import Verify
from cronstable.web import streams
from tests.fakes import FakeLaunch, job
from tests.web.api import ALL, Api, events, locked


class Live(SynchronousTestCase):
    """A job whose output somebody follows."""

    def setUp(self) -> None:
        self.api = Api(job("a", "0 0 1 1 *", capture_stdout=True), job("b", "0 0 1 1 *"))

    def start(self, name: str = "a") -> FakeLaunch:
        """Start a run."""
        self.api.post(f"/jobs/{name}/start")
        return self.api.launched()

    def prints(self, launch: FakeLaunch, text: str, stream: str = "stdout") -> None:
        """Let a run print."""
        launch.observer.output(stream, text.encode())


class StreamTests(Live):
    """What a reader gets, and in which order."""

    def test_headers(self) -> None:
        """The headers say that this is a stream, and come before the first line does."""
        self.start()
        reader = self.api.follow("/jobs/a/logs")
        head = reader.received.partition(b"\r\n\r\n")[0].lower()
        for line in (
            b"content-type: text/event-stream", b"cache-control: no-cache",
            b"x-accel-buffering: no", b"transfer-encoding: chunked",
        ):  # fmt: skip
            self.assertIn(line, head)
        self.assertEqual(reader.read(), [])
        self.assertFalse(reader.over)

    def test_replay_then_live_then_end(self) -> None:
        """Retained lines come first, then those that are printed, then the end."""
        launch = self.start()
        self.prints(launch, "one\ntwo\n")
        reader = self.api.follow("/jobs/a/logs")
        self.assertEqual(reader.lines(), ["one", "two"])
        self.prints(launch, "three\nfo")
        self.assertEqual(reader.lines(), ["three"])
        self.prints(launch, "ur\n", "stdout")
        self.prints(launch, "oops\n", "stderr")
        self.assertEqual(
            [(data["stream"], data["line"]) for _, data in reader.read()],
            [("stdout", "four"), ("stderr", "oops")],
        )
        self.prints(launch, "no newline")
        launch.exit()
        self.assertEqual(
            reader.read(),
            [
                ("line", {"stream": "stdout", "line": "no newline"}),
                ("end", {"started_at": "2026-01-01T00:00:00+00:00"}),
            ],
        )
        self.assertTrue(reader.over)

    def test_finished(self) -> None:
        """A finished run is replayed whole each time somebody asks."""
        launch = self.start()
        self.prints(launch, "one\n")
        launch.exit()
        for _ in range(2):
            answer = self.api.get("/jobs/a/logs")
            self.assertEqual(
                answer.text,
                'event: line\ndata: {"stream":"stdout","line":"one"}\n\n'
                'event: end\ndata: {"started_at":"2026-01-01T00:00:00+00:00"}\n\n',
            )

    def test_newest(self) -> None:
        """The newest live run is followed, else the one that ended last."""
        first = self.start()
        self.prints(first, "first\n")
        self.api.advance(1)
        second = self.start()
        self.prints(second, "second\n")
        reader = self.api.follow("/jobs/a/logs")
        self.assertEqual(reader.lines(), ["second"])
        self.prints(first, "more\n")
        self.assertEqual(reader.lines(), [])
        first.exit()
        self.assertEqual(reader.read(), [])
        second.exit()
        self.assertEqual(reader.read(), [("end", {"started_at": "2026-01-01T00:00:01+00:00"})])

    def test_never_ran(self) -> None:
        """A job that never ran has no output."""
        self.assertEqual(
            self.api.get("/jobs/b/logs").text, 'event: end\ndata: {"reason":"no-output"}\n\n'
        )

    def test_known_without_lines(self) -> None:
        """A run that is only remembered has no lines, just its end."""
        from tests.web.test_jobs import record

        self.api.runs.history.add(record("b"))
        self.assertEqual(
            events(self.api.get("/jobs/b/logs").text),
            [("end", {"started_at": "2025-12-31T23:59:58+00:00"})],
        )

    def test_only_the_last_thousand(self) -> None:
        """No more than a thousand lines are retained, whatever a run printed."""
        launch = self.start()
        self.prints(launch, "".join(f"{number}\n" for number in range(3000)))
        launch.exit()
        found = events(self.api.get("/jobs/a/logs").text)
        self.assertEqual(
            [data["line"] for _, data in found[:-1]], list(map(str, range(2000, 3000)))
        )

    def test_check(self) -> None:
        """The check of a run is followed under stream names of its own, and ends with it."""
        self.api.install(job("a", "0 0 1 1 *", capture_stdout=True, verify=Verify("check")))
        launch = self.start()
        reader = self.api.follow("/jobs/a/logs")
        self.prints(launch, "work\n")
        launch.exit()
        self.prints(self.api.launched(), "fine\n", "stderr")
        self.assertEqual(
            [(data["stream"], data["line"]) for _, data in reader.read()],
            [("stdout", "work"), ("verify.stderr", "fine")],
        )
        late = self.api.follow("/jobs/a/logs")
        self.assertEqual(late.lines(), ["work", "fine"])
        self.api.launched().exit()
        self.assertEqual([kind for kind, _ in reader.read()], ["end"])
        self.assertTrue(late.over)

    def test_cancelled_before_it_ran(self) -> None:
        """A run that was taken back before its process existed ends its stream too."""
        self.patch(self.api.executor, "launch", lambda ref, spec, memo, run: runs.append(run))
        runs: list[object] = []
        self.api.runs.start_now("a")
        reader = self.api.follow("/jobs/a/logs")
        self.assertFalse(reader.over)
        from cronstable.executors.interfaces import Ended

        self.api.runs.cancel("a")
        runs[0].ended(Ended("withdrawn"))  # type: ignore[attr-defined]
        self.assertEqual([kind for kind, _ in reader.read()], ["end"])

    def test_head(self) -> None:
        """HEAD on a live run has the headers only, and ends."""
        self.start()
        answer = self.api.ask("HEAD", "/jobs/a/logs")
        self.assertEqual(answer.headers["content-type"], "text/event-stream")
        self.assertEqual((answer.body, self.api.running.streams.readers), (b"", 0))


class ManyReadersTests(Live):
    """Five hundred readers of one job."""

    def test_cheap(self) -> None:
        """A line is formatted once for all of them, and all of them get it."""
        formatted: list[int] = []
        from cronstable.web import feed

        original = feed.line_events
        self.patch(
            feed, "line_events", lambda lines: (formatted.append(len(lines)), original(lines))[1]
        )
        launch = self.start()
        self.prints(launch, "before\n")
        readers = [self.api.follow("/jobs/a/logs") for _ in range(500)]
        self.assertEqual(self.api.running.streams.readers, 500)
        self.prints(launch, "after\n")
        self.api.turns()
        for reader in readers:
            self.assertEqual([data["line"] for _, data in events(reader.text)], ["before", "after"])
        self.assertEqual(sum(formatted), 2)
        launch.exit()
        self.api.turns(200)
        self.assertTrue(all(reader.over for reader in readers))
        self.assertEqual(self.api.running.streams.readers, 0)

    def test_one_subscription(self) -> None:
        """The run itself knows of one follower at most, and of none when all have gone."""
        launch = self.start()
        followed = self.api.outputs.newest("a")
        assert followed is not None
        readers = [self.api.follow("/jobs/a/logs") for _ in range(5)]
        self.assertEqual(len(followed.tail._listeners), 1)
        for reader in readers:
            reader.vanish()
        self.assertEqual(followed.tail._listeners, [])
        self.prints(launch, "unheard\n")
        again = self.api.follow("/jobs/a/logs")
        self.assertEqual(again.lines(), ["unheard"])
        launch.exit()
        self.assertEqual([kind for kind, _ in again.read()], ["end"])


class SlowReadersTests(Live):
    """Readers that do not read."""

    def flood(self, launch: FakeLaunch, blocks: int = 200) -> int:
        """Print a thousand long lines at a time; return how many there are in all."""
        for block in range(blocks):
            numbers = range(block * 100, block * 100 + 100)
            self.prints(launch, "".join(f"{number:08d} {'x' * 990}\n" for number in numbers))
            self.api.turns(4)
        return blocks * 100

    def test_bounded(self) -> None:
        """One that takes nothing is sent nothing more, and later learns what it has missed."""
        launch = self.start()
        slow, fast = self.api.follow("/jobs/a/logs"), self.api.follow("/jobs/a/logs")
        slow.stop_reading()
        count = self.flood(launch)
        self.api.turns(500)
        self.assertEqual(len(slow.received), len(slow.received.partition(b"\r\n\r\n")[0]) + 4)
        self.assertEqual(len(fast.lines()), count)
        slow.read_on()
        self.api.turns(500)
        found = slow.read()
        self.assertEqual(found[0][0], "gap")
        self.assertEqual(found[0][1]["dropped"] + len(found) - 1, count)
        self.assertEqual(self.api.running.streams.missed, found[0][1]["dropped"])
        page = self.api.get("/metrics").text.splitlines()
        self.assertIn("cronstable_log_stream_clients 2", page)
        dropped = found[0][1]["dropped"]
        self.assertIn(f"cronstable_log_stream_dropped_lines_total {dropped}", page)

    def test_cut_off(self) -> None:
        """One that takes nothing for minutes is cut off; it is not pinged meanwhile."""
        self.start()
        stuck = self.api.follow("/jobs/a/logs")
        stuck.stop_reading()
        before = stuck.received
        self.api.advance(290)
        self.assertEqual((stuck.received, stuck.transport.disconnecting), (before, False))
        self.api.advance(30)
        self.assertTrue(stuck.transport.disconnecting)
        self.assertEqual(stuck.received, before)

    def test_vanished(self) -> None:
        """One that is gone is forgotten, while others read on."""
        launch = self.start()
        gone, stays = self.api.follow("/jobs/a/logs"), self.api.follow("/jobs/a/logs")
        gone.vanish()
        self.assertEqual(self.api.running.streams.readers, 1)
        self.prints(launch, "on\n")
        self.assertEqual(stays.lines(), ["on"])
        stays.vanish()
        self.prints(launch, "off\n")
        launch.exit()
        self.api.turns()
        self.assertEqual(self.api.running.streams.readers, 0)

    def test_no_timers_left(self) -> None:
        """A reader that is gone leaves nothing to be called."""
        launch = self.start()
        calls = len(self.api.clock.getDelayedCalls())
        for _ in range(20):
            self.api.follow("/jobs/a/logs").vanish()
        self.api.turns()
        self.assertEqual(len(self.api.clock.getDelayedCalls()), calls)
        launch.exit()

    def test_a_failing_reader(self) -> None:
        """A reader whose connection fails in an unforeseen way takes nobody with it."""
        launch = self.start()
        bad, good = self.api.follow("/jobs/a/logs"), self.api.follow("/jobs/a/logs")

        def fails(data: bytes) -> None:
            raise RuntimeError("broken")

        self.patch(bad.channel.requests[0], "write", fails)
        with self.assertLogs("cronstable", "ERROR"):
            self.prints(launch, "one\n")
            self.api.turns()
        self.assertTrue(bad.transport.disconnecting)
        self.assertEqual(good.lines(), ["one"])
        self.prints(launch, "two\n")
        self.assertEqual(good.lines(), ["two"])


class QuietTests(Live):
    """A run that prints nothing."""

    def test_ping(self) -> None:
        """After fifteen quiet seconds a comment keeps the connection alive."""
        launch = self.start()
        reader = self.api.follow("/jobs/a/logs")
        self.api.advance(14.9)
        self.assertEqual(reader.text, "")
        self.api.advance(0.2)
        self.assertEqual(reader.text, ": ping\n\n")
        self.api.advance(10)
        self.prints(launch, "x\n")
        self.api.turns()
        self.api.advance(14)
        self.assertEqual(reader.text.count("ping"), 1)
        self.api.advance(2)
        self.assertEqual(reader.text.count("ping"), 2)


class StopTests(Live):
    """Streams that the API ends."""

    def test_restart(self) -> None:
        """When the application behind it is exchanged, a stream ends and says so."""
        launch = self.start()
        self.prints(launch, "one\n")
        reader = self.api.follow("/jobs/a/logs")
        reader.read()
        self.api.running.streams.end_all()
        self.assertEqual(reader.read(), [("end", {"started_at": "2026-01-01T00:00:00+00:00"})])
        self.assertTrue(reader.over)
        again = self.api.follow("/jobs/a/logs")
        self.assertEqual(again.lines(), ["one"])
        launch.exit()
        self.assertEqual([kind for kind, _ in again.read()], ["end"])

    def test_stop_with_lines_unsent(self) -> None:
        """A reader that has not been sent everything learns what it misses."""
        launch = self.start()
        reader = self.api.follow("/jobs/a/logs")
        reader.stop_reading()
        self.prints(launch, "one\ntwo\n")
        self.api.turns()
        self.api.running.streams.stop()
        self.assertEqual([kind for kind, _ in reader.read()], ["gap", "end"])

    def test_opened_while_stopping(self) -> None:
        """A stream that is opened then ends at once, with nothing to tell."""
        self.start()
        self.api.running.streams.stop()
        self.assertEqual(self.api.get("/jobs/a/logs").text, "event: end\ndata: {}\n\n")


class AccessTests(Live):
    """Who may follow."""

    def test_token(self) -> None:
        """Live output needs a token like everything else."""
        api = Api(job("a"), web=locked())
        self.assertEqual(api.get("/jobs/a/logs").status, 401)
        self.assertEqual(api.get("/jobs/a/logs", Authorization=f"Bearer {ALL}").status, 200)

    def test_unknown(self) -> None:
        """An unknown job is a JSON error, not a stream."""
        answer = self.api.get("/jobs/nope/logs")
        self.assertEqual((answer.status, answer.json()), (404, {"error": "job 'nope' not found"}))

    def test_slice(self) -> None:
        """A turn of the pump is short."""
        self.assertLessEqual(streams.SLICE, 0.005)
