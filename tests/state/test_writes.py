"""The queue of writes: in order, bounded, counted when lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock
from cronstable.state import writes
from cronstable.state.writes import SHED_FIRST, Kind, Writes

RECORD: Kind = "run-record"


class WritesCase(SynchronousTestCase):
    """Writes whose operations end when the test says so."""

    abreast = 2
    most = 20

    def setUp(self) -> None:
        self.clock = ManualClock()
        self.begun: list[str] = []
        self.running: dict[str, Deferred[Any]] = {}
        self.answers: dict[str, list[bool]] = {}
        self.writes = Writes(self.clock, self.run_it, self.abreast, self.most)
        self.writes.open()

    def run_it(self, operation: Callable[..., Any]) -> Deferred[Any]:
        name = operation(None)
        self.begun.append(name)
        self.running[name] = Deferred()
        return self.running[name]

    def add(self, key: str, name: str, kind: Kind = RECORD, size: int = 0) -> None:
        answers = self.answers.setdefault(name, [])
        self.writes.add(key, kind, lambda _: name, size).addCallback(answers.append)

    def end(self, name: str, error: Exception | None = None) -> None:
        done = self.running.pop(name)
        if error is None:
            done.callback(None)
        else:
            done.errback(error)

    def end_all(self) -> None:
        while self.running:
            self.end(next(iter(self.running)))


class OrderTests(WritesCase):
    def test_one_key(self) -> None:
        """Writes for one key go one after another, in the order of asking."""
        for name in ("a1", "a2", "a3"):
            self.add("a", name)
        self.assertEqual(self.begun, ["a1"])
        self.end("a1")
        self.end("a2")
        self.assertEqual(self.begun, ["a1", "a2", "a3"])
        self.assertEqual(self.writes.pending, 1)

    def test_several_keys(self) -> None:
        """Keys go abreast, as many as there are workers for, in turn."""
        for key in "abc":
            for number in (1, 2):
                self.add(key, f"{key}{number}")
        self.assertEqual(self.begun, ["a1", "b1"])
        self.end("a1")
        self.assertEqual(self.begun, ["a1", "b1", "c1"])
        self.end_all()
        self.assertEqual(len(self.begun), 6)

    def test_failure(self) -> None:
        """A write that fails is counted and said; the next one goes on."""
        self.add("a", "a1", "retry")
        self.add("a", "a2", "retry")
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            self.end("a1", OSError("full"))
        self.assertEqual(
            logs.output, ["WARNING:cronstable.state:state: failed to persist retry for a: full"]
        )
        self.end("a2")
        self.assertEqual(self.answers, {"a1": [False], "a2": [True]})
        self.assertEqual(self.writes.dropped, {"retry": 1})

    def test_no_log_storm(self) -> None:
        """The same trouble is said once a minute, with how often it came."""
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            for number in range(50):
                if number == 40:
                    self.clock.advance(61)
                self.add("a", f"a{number}")
                self.end(f"a{number}", OSError(28, "No space left", f"/tmp/w-{number}.tmp"))
        self.assertEqual(len(logs.output), 2)
        self.assertIn("(and 39 like it)", logs.output[1])

    def test_thousands_that_fail_at_once(self) -> None:
        """A store that refuses at once is no reason to run out of stack."""
        queue = Writes(self.clock, lambda operation: self.refused(), 8, 10**6)
        for number in range(5000):
            queue.add("a" if number % 2 else f"k{number}", RECORD, lambda _: None)
        with self.assertLogs("cronstable.state", "WARNING"):
            queue.open()
        self.assertEqual(queue.pending, 0)
        self.assertEqual(queue.dropped[RECORD], 5000)

    def refused(self) -> Deferred[Any]:
        done: Deferred[Any] = Deferred()
        done.errback(OSError("hung"))
        return done

    def test_when_empty(self) -> None:
        """Who waits for the queue is told when nothing is left."""
        self.successResultOf(self.writes.when_empty())
        self.add("a", "a1")
        empty = self.writes.when_empty()
        self.assertNoResult(empty)
        self.end("a1")
        self.successResultOf(empty)


class HeldTests(WritesCase):
    def setUp(self) -> None:
        super().setUp()
        self.writes = Writes(self.clock, self.run_it, self.abreast, self.most)

    def test_waits(self) -> None:
        """Nothing is written before the store is up; then all is, in order."""
        for name in ("a1", "a2"):
            self.add("a", name)
        self.assertEqual(self.begun, [])
        self.writes.open()
        self.end_all()
        self.assertEqual(self.begun, ["a1", "a2"])
        self.assertEqual(self.writes.dropped, {})

    def test_did_not_come_up(self) -> None:
        """What waited for a store that does not come up is dropped and counted by kind."""
        self.add("a", "a1")
        self.add("a", "a2", "inflight")
        with self.assertLogs("cronstable.state", "WARNING"):
            self.writes.fail_held("no store")
        self.assertEqual(self.writes.dropped, {RECORD: 1, "inflight": 1})
        self.assertEqual(self.writes.pending, 0)
        self.writes.open()
        self.assertEqual(self.begun, [])
        self.add("a", "a3")
        self.assertEqual(self.begun, ["a3"])


class WithdrawTests(WritesCase):
    def test_pair(self) -> None:
        """A write that was not begun can be taken back: it counts as done."""
        self.add("a", "row")
        self.add("a", "open", "inflight")
        self.assertTrue(self.writes.withdraw("a", "inflight"))
        self.end("row")
        self.assertEqual(self.begun, ["row"])
        self.assertEqual(self.answers["open"], [True])
        self.assertEqual(self.writes.pending, 0)

    def test_begun(self) -> None:
        """One that was begun cannot."""
        self.add("a", "open", "inflight")
        self.assertFalse(self.writes.withdraw("a", "inflight"))

    def test_none(self) -> None:
        """Where there is none, or none of the kind, nothing is taken back."""
        self.assertFalse(self.writes.withdraw("a", "inflight"))
        self.add("a", "a1")
        self.add("a", "a2")
        self.assertFalse(self.writes.withdraw("a", "inflight"))

    def test_again(self) -> None:
        """What was taken back is not taken back twice."""
        self.add("a", "row")
        for name in ("open1", "open2"):
            self.add("a", name, "inflight")
        self.assertTrue(self.writes.withdraw("a", "inflight"))
        self.assertTrue(self.writes.withdraw("a", "inflight"))
        self.assertFalse(self.writes.withdraw("a", "inflight"))
        self.end_all()
        self.assertEqual(self.begun, ["row"])


class ShedTests(WritesCase):
    def fill(self, *kinds: Kind) -> None:
        """Begin two writes that hang, and fill the queue with these kinds in turn."""
        self.add("x", "x")
        self.add("y", "y")
        for number in range(self.most - 2):
            kind = kinds[number % len(kinds)]
            self.add(f"k{number % 5}", f"{kind}-{number}", kind)

    def lost(self) -> list[str]:
        return sorted(name for name, answers in self.answers.items() if answers == [False])

    def test_least_important_first(self) -> None:
        """When too many wait, what matters least goes, the oldest of it first."""
        self.fill("run-record", "inflight", "retry")
        with self.assertLogs("cronstable.state", "WARNING"):
            for number in range(8):
                self.add("z", f"late-{number}")
        inflight = [f"inflight-{number}" for number in range(1, 18, 3)]
        self.assertEqual(self.lost(), sorted([*inflight, "retry-2", "retry-5"]))
        self.assertEqual(self.writes.dropped, {"overflow": 8})
        self.assertEqual(self.writes.pending, self.most)

    def test_rows_last(self) -> None:
        """Rows of runs go when there is nothing else."""
        self.fill(RECORD)
        self.add("z", "manifest", "manifest")
        self.assertEqual(self.lost(), ["manifest"])
        self.add("z", "row")
        self.assertEqual(self.lost(), ["manifest", "run-record-0"])

    def test_goes_on(self) -> None:
        """A queue that was shed goes on in order once the store answers."""
        self.fill("run-record", "inflight")
        for number in range(5):
            self.add("z", f"late-{number}")
        self.end_all()
        self.assertEqual(self.writes.pending, 0)
        written = [name for name, answers in self.answers.items() if answers == [True]]
        self.assertEqual(len(written), self.most)

    def test_every_kind_has_a_place(self) -> None:
        """Each kind of write is shed sooner or later."""
        for kind in SHED_FIRST:
            self.setUp()
            self.fill(kind)
            self.add("z", "one more")
            self.assertEqual(len(self.lost()), 1)

    def test_output_is_bounded_in_bytes(self) -> None:
        """Output that waits to be archived is bounded in bytes; it goes as what it is."""
        self.add("x", "x")
        self.add("y", "y")
        for number in range(5):
            self.add("a", f"log-{number}", RECORD, writes.MOST_BYTES // 3)
        self.add("a", "row")
        self.assertEqual(self.lost(), ["log-0", "log-1"])
        self.assertEqual(self.writes.dropped, {RECORD: 2})

    def test_flat_while_it_hangs(self) -> None:
        """What comes and goes behind a write that hangs for days leaves nothing."""
        for key in ("x", "y"):
            self.add(key, key)
        for _ in range(5000):
            self.writes.add("x", "inflight", lambda _: None)
            self.assertTrue(self.writes.withdraw("x", "inflight"))
        self.assertLess(len(self.writes._chains["x"]), 200)
        self.add("x", "row")
        self.end_all()
        self.assertEqual(self.begun, ["x", "y", "row"])
        self.assertEqual(self.writes.pending, 0)

    def test_fast_when_full(self) -> None:
        """A full queue sheds without looking through itself."""
        import time

        queue = Writes(self.clock, self.run_it, 1)
        for number in range(writes.MOST_PENDING):
            queue.add(f"k{number}", RECORD, lambda _: None)
        began = time.perf_counter()
        with self.assertLogs("cronstable.state", "WARNING"):
            for number in range(2000):
                queue.add(f"k{number}", RECORD, lambda _: None)
        self.assertLess((time.perf_counter() - began) / 2000, 0.001)
        self.assertEqual(queue.pending, writes.MOST_PENDING)
