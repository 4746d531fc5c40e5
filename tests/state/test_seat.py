"""Two daemons of one host at one store."""

from __future__ import annotations

import errno
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import Clock, ManualClock
from cronstable.config.sections_values import StateConfig
from cronstable.state.faults import FaultyFiles
from cronstable.state.memory import MemoryFiles
from cronstable.state.service import StoreService
from cronstable.state.store import Store, StoreSettings, open_store
from cronstable.state.workers import Workers
from tests.runs.durable import InlineWorkers

TOLD = "another daemon of one uses the store at /state/default"


class SeatTests(SynchronousTestCase):
    """Who is told, and when."""

    def setUp(self) -> None:
        self.clock = ManualClock()
        self.files = FaultyFiles(MemoryFiles(self.clock.now))

    def make(self, config: StateConfig, clock: Clock) -> Store:
        settings = StoreSettings(config.path, config.deployment_id)
        store = open_store(settings, clock, files=self.files)
        store.mounts = ""
        return store

    def daemon(self, host: str | None = "one", **section: Any) -> StoreService:
        def workers(*wiring: Any) -> Workers:
            return cast(Workers, InlineWorkers(*wiring))

        service = StoreService(None, self.clock, self.make, workers, host)
        self.use(service, StateConfig(path="/state", **section))
        return service

    def use(self, service: StoreService, config: StateConfig | None) -> None:
        self.successResultOf(Deferred.fromCoroutine(service.reconcile(config)))

    def assert_told(self, times: int) -> None:
        with self.assertLogs("cronstable.state") as logged:
            self.clock.advance(600)
            self.daemon(None)  # Something has to be logged.
        self.assertEqual(sum(TOLD in line for line in logged.output), times)

    def test_two(self) -> None:
        """The second one warns, once, after a few seconds."""
        self.daemon()
        self.daemon()
        self.assert_told(1)
        self.assert_told(0)

    def test_one_after_the_other(self) -> None:
        """The first may end a little after the second has begun."""
        first = self.daemon()
        self.daemon()
        self.clock.advance(4)
        self.use(first, None)
        self.assert_told(0)
        self.daemon()
        self.assert_told(1)

    def test_left_in_time(self) -> None:
        """One that has left the store meanwhile neither asks again nor keeps the seat."""
        self.daemon()
        second = self.daemon()
        self.use(second, None)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_others(self) -> None:
        """Daemons of other hosts, and those with a namespace of their own, are nobody's trouble."""
        self.daemon()
        self.daemon("two")
        self.daemon(deployment_id="other")
        self.assert_told(0)

    def test_no_locks(self) -> None:
        """Where no locks are to be had nothing is told, and the store is used."""
        self.files.fail("lock", error=errno.ENOLCK, match="daemon")
        self.assertTrue(self.daemon().on and self.daemon().on)
        self.assert_told(0)
