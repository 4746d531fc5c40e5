"""Two daemons of one host at one store."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock
from cronstable.config.sections_values import StateConfig
from cronstable.state import seat
from cronstable.state.service import StoreService
from cronstable.state.workers import Workers
from tests.runs.durable import InlineWorkers

TOLD = "another daemon of one uses the store at"


class SeatTests(SynchronousTestCase):
    """Who is told, and when."""

    def setUp(self) -> None:
        self.clock = ManualClock()
        self.path = os.path.abspath(self.mktemp())

    def daemon(self, host: str | None = "one", **section: Any) -> StoreService:
        def workers(*wiring: Any) -> Workers:
            return cast(Workers, InlineWorkers(*wiring))

        service = StoreService(None, self.clock, make_workers=workers, host=host)
        self.addCleanup(self.use, service, None)
        self.use(service, StateConfig(path=self.path, **section))
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

    def test_moved(self) -> None:
        """It is the directory that counts, whatever path leads to it."""
        self.daemon()
        os.symlink(self.path, f"{self.path}-link")
        self.path += "-link"
        self.daemon()
        self.assert_told(1)

    def test_no_names(self) -> None:
        """Where no name is to be had nothing is told, and the store is used."""
        self.patch(seat, "bound", self.refuse)
        self.assertTrue(self.daemon().on and self.daemon().on)
        self.assert_told(0)

    def refuse(self, directory: str, host: str) -> None:
        raise OSError(errno.EPERM, "no")

    if sys.platform != "linux":
        skip = "this system has no abstract names"
