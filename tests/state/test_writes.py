"""The queue of writes: in order, bounded, counted when lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock
from cronstable.state import writes
from cronstable.state.writes import LONG, SHED_FIRST, Kind, Writes

RECORD: Kind = "run-record"


class WritesCase(SynchronousTestCase):
    """Writes whose trips are made when the test says so."""

    abreast = 2
    at_once = 4
    most = 20

    def setUp(self) -> None:
        self.clock = ManualClock()
        self.trips: list[tuple[Callable[..., Any], Deferred[Any]]] = []
        self.written: list[str] = []
        self.errors: dict[str, Exception] = {}
        self.meanwhile: dict[str, Callable[[], object]] = {}
        self.answers: dict[str, list[bool]] = {}
        self.writes = self.queue()
        self.writes.open()

    def queue(self) -> Writes:
        return Writes(self.clock, self.run_it, self.abreast, self.at_once, self.most)

    def run_it(self, work: Callable[..., Any]) -> Deferred[Any]:
        done: Deferred[Any] = Deferred()
        self.trips.append((work, done))
        return done

    def add(self, key: str, name: str, kind: Kind = RECORD, size: int = 0) -> None:
        def operation(_: object) -> None:
            self.meanwhile.get(name, lambda: None)()
            self.written.append(name)
            if name in self.errors:
                raise self.errors[name]

        answers = self.answers.setdefault(name, [])
        self.writes.add(key, kind, operation, size).addCallback(answers.append)

    def go(self) -> None:
        """Make the trip that was begun first."""
        work, done = self.trips.pop(0)
        done.callback(work(None))

    def go_all(self) -> None:
        while self.trips:
            self.go()


class OrderTests(WritesCase):
    def test_one_key(self) -> None:
        """Writes for one key go one after another, in the order of asking."""
        for name in ("a1", "a2", "a3"):
            self.add("a", name)
        self.go()
        self.assertEqual(self.written, ["a1"])
        self.go_all()
        self.assertEqual(self.written, ["a1", "a2", "a3"])
        self.assertEqual(self.writes.pending, 0)

    def test_several_keys(self) -> None:
        """What is asked for while a trip is under way goes with the next, keys in turn."""
        for key in "abcdef":
            for number in (1, 2):
                self.add(key, f"{key}{number}")
        self.go()
        self.assertEqual(self.written, ["a1"])
        self.go()
        self.assertEqual(self.written, ["a1", "b1", "c1", "d1", "e1"])
        self.go_all()
        self.assertEqual(len(self.written), 12)

    def test_one_is_enough(self) -> None:
        """As long as trips are short there is one at a time."""
        for key in "abcdefgh":
            self.add(key, key)
            self.clock.advance(LONG / 10)
        self.assertEqual(len(self.trips), 1)

    def test_nothing_to_look_after(self) -> None:
        """Once all is written, no timer is left."""
        self.add("a", "a1")
        self.go()
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_the_queue_stops(self) -> None:
        """A queue that was stopped begins nothing and leaves no timer."""
        self.add("a", "a1")
        self.add("b", "b1")
        self.writes.stop()
        self.go()
        self.assertEqual(self.trips, [])
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_failure(self) -> None:
        """A write that fails is counted and said; the next one goes on."""
        self.add("a", "a1", "retry")
        self.add("a", "a2", "retry")
        self.errors["a1"] = OSError("full")
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            self.go_all()
        self.assertEqual(
            logs.output, ["WARNING:cronstable.state:state: failed to persist retry for a: full"]
        )
        self.assertEqual(self.answers, {"a1": [False], "a2": [True]})
        self.assertEqual(self.writes.dropped, {"retry": 1})

    def test_no_log_storm(self) -> None:
        """The same trouble is said once a minute, with how often it came."""
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            for number in range(50):
                if number == 40:
                    self.clock.advance(61)
                self.errors[f"a{number}"] = OSError(28, "No space left", f"/tmp/w-{number}.tmp")
                self.add("a", f"a{number}")
                self.go()
        self.assertEqual(len(logs.output), 2)
        self.assertIn("(and 39 like it)", logs.output[1])

    def test_thousands_that_fail_at_once(self) -> None:
        """A store that refuses at once is no reason to run out of stack."""
        queue = Writes(self.clock, lambda work: self.refused(), 8, 16, 10**6)
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
        self.go()
        self.successResultOf(empty)


class LongTripTests(WritesCase):
    def wait(self) -> None:
        """Be seen to take long."""
        self.clock.advance(LONG)

    def test_others_begin(self) -> None:
        """A trip that takes long is joined by another, up to as many as there are workers for."""
        for key in "abc":
            self.add(key, key)
        self.assertEqual(len(self.trips), 1)
        self.wait()
        self.assertEqual(len(self.trips), 2)
        self.wait()
        self.add("d", "d")
        self.wait()
        self.assertEqual(len(self.trips), 2)
        self.go_all()
        self.assertEqual(sorted(self.written), list("abcd"))

    def test_not_behind_a_hung_write(self) -> None:
        """What shares a trip with a write that hangs goes with another trip."""
        self.add("x", "x")
        for key in "abc":
            self.add(key, f"{key}1")
        self.add("a", "a2")
        self.go()

        def others() -> None:
            self.wait()
            self.go_all()
            self.assertEqual(self.written, ["x", "b1", "c1"])

        self.meanwhile["a1"] = others
        self.go()
        self.assertEqual(self.written, ["x", "b1", "c1", "a1"])
        self.go_all()
        self.assertEqual(self.written[-1], "a2")
        self.assertEqual({True}, {each for answers in self.answers.values() for each in answers})
        self.assertEqual(self.writes.pending, 0)

    def test_told_while_another_hangs(self) -> None:
        """What was written before a write that hangs is known to be, and its job goes on."""
        self.add("x", "x")
        for key in "abc":
            self.add(key, f"{key}1")
        self.add("a", "a2")
        self.go()

        def seen() -> None:
            self.wait()
            self.assertEqual([self.answers[name] for name in ("a1", "b1", "c1")], [[True], [], []])
            self.go_all()
            self.assertEqual(self.answers["a2"], [True])

        self.meanwhile["b1"] = seen
        self.go()
        self.assertEqual(self.answers["b1"], [True])
        self.assertEqual(self.writes.pending, 0)

    def test_given_back_before_it_began(self) -> None:
        """A worker that wakes up late finds nothing to do, and all is written once."""
        for key in "abc":
            self.add(key, key)
        (late, done), self.trips = self.trips[0], []
        self.wait()
        self.go_all()
        self.assertEqual(sorted(self.written), list("abc"))
        done.callback(late(None))
        self.assertEqual(sorted(self.written), list("abc"))
        self.assertEqual(self.writes.pending, 0)

    def test_waits_for_its_turn(self) -> None:
        """A trip of one write under a rate limit keeps its turn, however long that is."""
        self.at_once = 1
        self.writes = self.queue()
        self.writes.open()
        self.add("a", "a1")
        for _ in range(20):
            self.wait()
        self.assertEqual(len(self.trips), 1)
        self.add("b", "b1")
        self.assertEqual(len(self.trips), 2)
        self.go_all()
        self.assertEqual(self.written, ["a1", "b1"])

    def test_withdrawn(self) -> None:
        """What was given back, and has no trip yet, can be withdrawn: it is never written."""
        self.abreast = 1
        self.writes = self.queue()
        self.writes.open()
        for key in "xab":
            self.add(key, key, "inflight")
        self.go()
        self.assertFalse(self.writes.withdraw("b", "inflight"))

        def given_back() -> None:
            self.wait()
            self.assertTrue(self.writes.withdraw("b", "inflight"))

        self.meanwhile["a"] = given_back
        self.go_all()
        self.assertEqual(self.written, ["x", "a"])
        self.assertEqual(self.writes.pending, 0)

    def test_the_trip_itself_fails(self) -> None:
        """When no worker takes a trip, each of its writes has failed."""
        self.add("x", "x")
        for key in "abc":
            self.add(key, key)
        self.go()
        _, done = self.trips.pop()
        with self.assertLogs("cronstable.state", "WARNING"):
            done.errback(OSError("hung"))
        self.assertEqual([self.answers[key] for key in "abc"], [[False]] * 3)
        self.assertEqual(self.writes.dropped, {RECORD: 3})


class HeldTests(WritesCase):
    def setUp(self) -> None:
        super().setUp()
        self.writes = self.queue()

    def test_waits(self) -> None:
        """Nothing is written before the store is up; then all is, in order."""
        for name in ("a1", "a2"):
            self.add("a", name)
        self.assertEqual(self.trips, [])
        self.writes.open()
        self.go_all()
        self.assertEqual(self.written, ["a1", "a2"])
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
        self.assertEqual(self.trips, [])
        self.add("a", "a3")
        self.go()
        self.assertEqual(self.written, ["a3"])


class WithdrawTests(WritesCase):
    def test_pair(self) -> None:
        """A write that was not begun can be taken back: it counts as done."""
        self.add("a", "row")
        self.add("a", "open", "inflight")
        self.assertTrue(self.writes.withdraw("a", "inflight"))
        self.go()
        self.assertEqual(self.written, ["row"])
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
        self.go_all()
        self.assertEqual(self.written, ["row"])


class ShedTests(WritesCase):
    def fill(self, *kinds: Kind) -> None:
        """Begin a write that hangs, and fill the queue with these kinds in turn."""
        self.add("x", "x")
        for number in range(self.most - 1):
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
        self.go_all()
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
        for number in range(5):
            self.add("a", f"log-{number}", RECORD, writes.MOST_BYTES // 3)
        self.add("a", "row")
        self.assertEqual(self.lost(), ["log-0", "log-1"])
        self.assertEqual(self.writes.dropped, {RECORD: 2})

    def test_flat_while_it_hangs(self) -> None:
        """What comes and goes behind a write that hangs for days leaves nothing."""
        self.add("x", "x")
        for _ in range(5000):
            self.writes.add("x", "inflight", lambda _: None)
            self.assertTrue(self.writes.withdraw("x", "inflight"))
        self.assertLess(len(self.writes._chains["x"]), 200)
        self.add("x", "row")
        self.go_all()
        self.assertEqual(self.written, ["x", "row"])
        self.assertEqual(self.writes.pending, 0)

    def test_fast_when_full(self) -> None:
        """A full queue sheds without looking through itself."""
        queue = Writes(self.clock, self.run_it, 1)

        def add(times: int) -> float:
            began = time.process_time()
            for number in range(times):
                queue.add(f"k{number}", RECORD, lambda _: None)
            return (time.process_time() - began) / times

        filling = add(writes.MOST_PENDING)
        with self.assertLogs("cronstable.state", "WARNING"):
            shedding = add(2000)
        self.assertLess(shedding, 20 * filling)
        self.assertEqual(queue.pending, writes.MOST_PENDING)
