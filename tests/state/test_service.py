"""The store as a service: starting, trouble, changing, closing."""

from __future__ import annotations

import errno
import threading
from typing import Any, cast

import attrs
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase, TestCase

from cronstable.clock import Clock, ManualClock, SystemClock
from cronstable.config.sections_values import JobApiConfig, StateConfig
from cronstable.state.faults import FaultyFiles
from cronstable.state.memory import MemoryFiles
from cronstable.state.service import StoreOff, StoreService
from cronstable.state.store import Store, StoreSettings, open_store
from cronstable.state.workers import StoreSlow, Workers
from tests.runs.durable import InlineWorkers

STATE = StateConfig(path="/state")


class ServiceCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = ManualClock()
        self.memory = MemoryFiles(self.clock.now)
        self.files = FaultyFiles(self.memory)
        self.workers: list[InlineWorkers] = []
        self.ups = 0
        self.service = StoreService(None, self.clock, self.make, self.make_workers)
        self.service.when_up = self.up

    async def up(self) -> None:
        self.ups += 1

    def make(self, config: StateConfig, clock: Clock) -> Store:
        settings = StoreSettings(config.path, config.deployment_id, config.topology, config.fsync)
        store = open_store(settings, clock, files=self.files)
        store.mounts = ""
        return store

    def make_workers(self, reactor: Any, clock: Clock, name: str, capacity: int) -> Workers:
        workers = InlineWorkers(reactor, clock, name, capacity)
        self.workers.append(workers)
        return cast(Workers, workers)

    def use(self, config: StateConfig | None) -> Deferred[Any]:
        return Deferred.fromCoroutine(self.service.reconcile(config))

    def append(self, key: str = "job") -> list[bool]:
        answers: list[bool] = []
        written = self.service.write(
            key, "run-record", lambda store: store.records.append(f"runs/{key}", {"k": 1})
        )
        written.addCallback(answers.append)
        return answers

    def rows(self, path: str = "/state", key: str = "job") -> int:
        store = open_store(StoreSettings(path), self.clock, files=self.memory)
        return len(store.records.read(f"runs/{key}"))


class OffTests(ServiceCase):
    def test_without_a_section(self) -> None:
        """Without a section there is no store: nothing is kept, questions fail, numbers are 0."""
        service = self.service
        self.assertFalse(service.configured or service.on or service.fail_closed)
        self.assertEqual(self.append(), [False])
        self.failureResultOf(service.ask(lambda store: 1), StoreOff)
        self.failureResultOf(service.lease(lambda store: 1), StoreOff)
        self.assertFalse(service.withdraw("job", "inflight"))
        self.assertEqual(service.dropped, {})
        self.assertEqual((service.ops, service.lanes, service.throttled), ({}, {}, (0, 0.0)))
        self.successResultOf(Deferred.fromCoroutine(service.flush()))
        self.successResultOf(Deferred.fromCoroutine(service.close()))
        self.assertEqual(self.workers, [])


class StartTests(ServiceCase):
    def test_up(self) -> None:
        """A store that starts is told of once and answers."""
        self.successResultOf(self.use(STATE))
        self.assertTrue(self.service.on)
        self.assertEqual(self.ups, 1)
        self.assertEqual(self.successResultOf(self.service.ask(lambda store: 5)), 5)
        self.assertEqual(self.append(), [True])

    def test_down(self) -> None:
        """One that cannot be started is an ERROR; writes are dropped and counted until it is."""
        self.files.fail("make_directory", error=errno.EACCES)
        with self.assertLogs("cronstable.state", "ERROR") as logs:
            self.successResultOf(self.use(STATE))
        self.assertIn("ERROR:cronstable.state:state: failed to start: ", logs.output[0])
        self.assertTrue(self.service.configured)
        self.assertFalse(self.service.on)
        self.assertEqual(self.append(), [False])
        self.assertEqual(self.service.dropped["run-record"], 1)
        self.files.heal()
        self.successResultOf(Deferred.fromCoroutine(self.service.try_to_start()))
        self.assertEqual(self.ups, 1)
        self.assertEqual(self.append(), [True])
        self.successResultOf(Deferred.fromCoroutine(self.service.try_to_start()))
        self.assertEqual(self.ups, 1)

    def slow(self) -> Deferred[Any]:
        """Begin to start a store that takes its time."""
        self.service._make_workers = self.stuck_workers
        return self.use(STATE)

    def stuck_workers(self, reactor: Any, clock: Clock, name: str, capacity: int) -> Workers:
        workers = self.make_workers(reactor, clock, name, capacity)
        self.workers[-1].stuck = True
        return workers

    def go_on(self) -> None:
        for workers in self.workers:
            workers.stuck = False
            workers.go_on()

    def test_first_moments(self) -> None:
        """What is written while the store starts waits for it, and is not lost."""
        starting = self.slow()
        answers = self.append()
        self.assertEqual(answers, [])
        self.assertFalse(self.service.on)
        self.go_on()
        self.successResultOf(starting)
        self.assertEqual(answers, [True])
        self.assertEqual(self.rows(), 1)

    def test_hangs_at_the_start(self) -> None:
        """A store that does not start within ten seconds is down until it does."""
        starting = self.slow()
        answers = self.append()
        with self.assertLogs("cronstable.state", "WARNING"):
            self.clock.advance(10)
        self.successResultOf(starting)
        self.assertEqual(answers, [False])
        self.assertEqual(self.append(), [False])
        again = Deferred.fromCoroutine(self.service.try_to_start())
        self.go_on()
        self.successResultOf(again)
        self.assertTrue(self.service.on)
        self.assertEqual(self.append(), [True])

    def test_one_attempt_at_a_time(self) -> None:
        """While an attempt to start is under way no second one is made."""
        self.slow()
        self.successResultOf(Deferred.fromCoroutine(self.service.try_to_start()))
        self.assertEqual(len(self.workers[0]._waiting), 1)

    def test_replaced_while_it_starts(self) -> None:
        """A store that comes up after another took its place stays away."""
        first = self.slow()
        self.service._make_workers = self.make_workers
        self.successResultOf(self.use(attrs.evolve(STATE, path="/other")))
        self.assertFalse(self.service.on, "the first attempt is still under way")
        self.go_on()
        self.successResultOf(first)
        self.assertEqual(self.ups, 0)
        self.successResultOf(Deferred.fromCoroutine(self.service.try_to_start()))
        view = self.service.view
        assert view is not None
        self.assertEqual((view.path, self.ups), ("/other/default", 1))


class AppendTests(ServiceCase):
    def test_lone_surrogates(self) -> None:
        """A record whose texts are not valid UTF-8 is kept with those bytes spelled out."""
        self.use(STATE)
        record = {"fail_reason": "no \udcff", "jobs": ["a\ud800"]}
        done = self.service.append("job", "run-record", "runs/job", record, None)
        self.assertIs(self.successResultOf(done), True)
        store = open_store(StoreSettings("/state"), self.clock, files=self.memory)
        self.assertEqual(
            store.records.read("runs/job"), [{"fail_reason": "no \\udcff", "jobs": ["a\\ud800"]}]
        )
        self.assertEqual(self.service.dropped, {})


class ChangeTests(ServiceCase):
    def test_queue_is_flushed(self) -> None:
        """A store that changes or goes writes out its queue first."""
        self.successResultOf(self.use(STATE))
        self.workers[0].stuck = True
        self.append()
        changing = self.use(attrs.evolve(STATE, path="/other"))
        self.assertNoResult(changing)
        self.workers[0].go_on()
        self.successResultOf(changing)
        self.assertEqual(self.rows(), 1)
        self.append()
        self.assertEqual((self.rows(), self.rows("/other")), (1, 1))
        self.successResultOf(self.use(None))
        self.assertFalse(self.service.configured)

    def test_same(self) -> None:
        """The same section again changes nothing."""
        self.successResultOf(self.use(STATE))
        self.successResultOf(self.use(StateConfig(path="/state")))
        self.assertEqual(self.ups, 1)

    def test_served_otherwise(self) -> None:
        """A store stays up when what it was opened with stays, and what has changed is in force."""
        self.successResultOf(self.use(STATE))
        for change in (
            {"job_api": JobApiConfig(max_value_bytes=10)},
            {"on_store_unavailable": "fail-closed", "gc_grace": 0, "boot": "container"},
        ):
            changed = attrs.evolve(STATE, **change)  # type: ignore[arg-type]
            self.assertTrue(self.service.keeps(changed))
            self.successResultOf(self.use(changed))
            self.assertEqual((self.ups, self.service.config), (1, changed))
        self.assertTrue(self.service.fail_closed)

    def test_opened_otherwise(self) -> None:
        """Another place, another mode or another limit is another store, and so is none."""
        self.assertTrue(self.service.keeps(None))
        self.assertFalse(self.service.keeps(STATE))
        self.successResultOf(self.use(STATE))
        for change in ({"path": "/other"}, {"fsync": "never"}, {"max_ops_per_second": 5.0}):
            self.assertFalse(self.service.keeps(attrs.evolve(STATE, **change)))  # type: ignore[arg-type]
        self.assertFalse(self.service.keeps(None))

    def test_flush_is_bounded(self) -> None:
        """A store that hangs holds up its own end for five seconds."""
        self.successResultOf(self.use(STATE))
        self.workers[0].stuck = True
        self.append()
        with self.assertLogs("cronstable.state", "INFO") as logs:
            closing = Deferred.fromCoroutine(self.service.close())
            self.clock.advance(4.9)
            self.assertNoResult(closing)
            self.clock.advance(0.2)
        self.successResultOf(closing)
        self.assertEqual(
            logs.output,
            [
                "INFO:cronstable.state:Flushing 1 pending state write(s)",
                "WARNING:cronstable.state:state: 1 write(s) could not be flushed",
                "INFO:cronstable.state:Stopping state backend",
            ],
        )

    def test_counts_stay(self) -> None:
        """What was dropped is counted over changes of the store."""
        self.successResultOf(self.use(STATE))
        self.files.fail("create")
        with self.assertLogs("cronstable.state", "WARNING"):
            self.append()
        self.files.heal()
        self.successResultOf(self.use(attrs.evolve(STATE, path="/other")))
        self.assertEqual(self.service.dropped, {"run-record": 1})
        self.successResultOf(self.use(None))
        self.assertEqual(self.service.dropped, {"run-record": 1})

    def test_leases_stay(self) -> None:
        """A lease can be renewed and released in a store that is in force no more, or hangs."""
        self.successResultOf(self.use(STATE))
        first: Store = self.successResultOf(self.service.lease(lambda store: store))
        self.successResultOf(self.use(attrs.evolve(STATE, path="/other")))
        for worker in self.workers[3:]:
            worker.stuck = True
        self.assertIs(self.successResultOf(self.service.lease(lambda store: store, first)), first)
        self.successResultOf(self.use(None))
        self.assertIs(self.successResultOf(self.service.lease(lambda store: store, first)), first)
        self.failureResultOf(self.service.lease(lambda store: store), StoreOff)


class AskTests(ServiceCase):
    def test_bound(self) -> None:
        """A question is answered within ten seconds or fails."""
        self.successResultOf(self.use(STATE))
        self.workers[0].stuck = True
        asked = self.service.ask(lambda store: 5)
        self.clock.advance(9.9)
        self.assertNoResult(asked)
        self.clock.advance(0.2)
        self.failureResultOf(asked, StoreSlow)
        self.workers[0].go_on()

    def test_too_late(self) -> None:
        """A question that had not begun when it failed is never asked."""
        self.successResultOf(self.use(STATE))
        self.workers[0].stuck = True
        begun: list[Store] = []
        asked = self.service.ask(begun.append)
        self.clock.advance(10)
        self.failureResultOf(asked, StoreSlow)
        self.workers[0].go_on()
        self.assertEqual(begun, [])

    def test_rate(self) -> None:
        """maxOpsPerSecond delays questions and writes, leases never; the bound holds."""
        self.successResultOf(self.use(attrs.evolve(STATE, max_ops_per_second=1)))
        self.assertEqual(self.successResultOf(self.service.ask(lambda store: 1)), 1)
        later = self.service.ask(lambda store: 2)
        self.assertNoResult(later)
        self.assertEqual(self.successResultOf(self.service.lease(lambda store: 3)), 3)
        self.clock.advance(1)
        self.assertEqual(self.successResultOf(later), 2)
        self.assertEqual(self.service.throttled[0], 1)
        self.assertGreater(self.service.throttled[1], 0.0)
        for _ in range(15):
            self.service.ask(lambda store: 4).addErrback(lambda failure: failure.trap(StoreSlow))
        late = self.service.ask(lambda store: 5)
        self.clock.pump([0.5] * 21)
        self.failureResultOf(late, StoreSlow)

    def test_hunts(self) -> None:
        """Who looks for a free lease holds up nobody who renews one."""
        self.failureResultOf(self.service.hunt(lambda store: 1), StoreOff)
        self.successResultOf(self.use(STATE))
        self.assertEqual(self.successResultOf(self.service.hunt(lambda store: 1)), 1)
        self.workers[2].stuck = True
        self.assertNoResult(self.service.hunt(lambda store: 1))
        self.assertEqual(self.successResultOf(self.service.lease(lambda store: 2)), 2)

    def test_rate_of_writes(self) -> None:
        """Writes take one turn each, in order, and none is taken for nothing."""
        self.successResultOf(self.use(attrs.evolve(STATE, max_ops_per_second=1)))
        written: list[int] = []
        for number in range(6):
            self.service.write(
                f"job{number}", "run-record", lambda store, each=number: written.append(each)
            )
        self.clock.pump([0.05] * 120)
        self.assertEqual(written, list(range(6)))
        self.assertEqual(self.service.throttled[0], 5)

    def test_lanes(self) -> None:
        """How busy the workers are can be read."""
        self.successResultOf(self.use(STATE))
        self.assertEqual(
            {name: lane.capacity for name, lane in self.service.lanes.items()},
            {"bulk": 16, "lease": 8},
        )
        self.assertIn("start", self.service.ops)


class RealTests(TestCase):
    """The store on real threads and a real directory."""

    timeout = 20

    async def test_hanging_file_system(self) -> None:
        """A file system that hangs fails questions in time; what hung is done when it wakes."""
        from twisted.internet import reactor

        directory = self.mktemp()
        gate: list[FaultyFiles] = []

        def make(config: StateConfig, clock: Clock) -> Store:
            from cronstable.state.files import OsFiles

            gate.append(FaultyFiles(OsFiles()))
            store = open_store(StoreSettings(config.path), clock, files=gate[0])
            store.mounts = ""
            return store

        service = StoreService(reactor, SystemClock(reactor), make)
        await service.reconcile(StateConfig(path=directory))
        go_on: threading.Event = gate[0].hang("create")
        self.addCleanup(go_on.set)
        written = service.write("job", "run-record", lambda s: s.records.append("runs/job", {}))
        with self.assertRaises(StoreSlow):
            await service.ask(lambda s: s.records.append("runs/other", {}), 0.2)
        self.assertEqual(await service.ask(lambda s: s.records.read("runs/job")), [])
        go_on.set()
        self.assertTrue(await written)
        await service.close()
