"""Manifests and collections at their times."""

from __future__ import annotations

import logging
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sections_values import StateConfig
from cronstable.state.instants import to_text
from cronstable.state.manifests import Names
from cronstable.state.upkeep import Upkeep
from tests.fakes import job
from tests.runs.durable import STATE, DurableWorld, Host
from tests.runs.test_scheduler import NOON

NAMES = Names(frozenset({"job"}), frozenset({"node-a"}), frozenset({"job"}))
DAY = 86400.0


class UpkeepTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.world = DurableWorld(Host(NOON), job("job", "0 0 1 1 *"), up=False)
        self.upkeep = Upkeep(self.world.clock, "node-a", self.world.store)

    def start(self, state: StateConfig = STATE) -> None:
        self.world.use(state)
        self.upkeep.begin(NAMES, "v1:abc")

    def minute(self, minutes: float = 1) -> None:
        """Let minutes pass, then do what is due."""
        self.world.run(60 * minutes)
        done = Deferred.fromCoroutine(self.upkeep.each_minute(NAMES, "v1:abc"))
        self.successResultOf(done)

    def manifests(self) -> list[dict[str, Any]]:
        return self.world.records("manifests/node-a")

    def test_manifest(self) -> None:
        """A start is told with what this node uses."""
        self.start()
        (record,) = self.manifests()
        self.assertEqual((record["jobs"], record["host"]), (["job"], "node-a"))
        self.assertEqual((record["jobSetId"], record["at"]), ("v1:abc", to_text(NOON)))

    def test_every_six_hours(self) -> None:
        """It is told again each six hours, not more often."""
        self.start()
        for _ in range(359):
            self.minute()
        self.assertEqual(len(self.manifests()), 1)
        self.minute()
        self.assertEqual(len(self.manifests()), 2)
        self.minute(360)
        self.assertEqual(len(self.manifests()), 3)

    def test_collects_daily(self) -> None:
        """Garbage is collected soon after the start, then once a day."""
        self.start()
        passes = []
        for minute in range(2 * 1440 + 10):
            with self.assertLogs("cronstable.state", "DEBUG") as logs:
                logging.getLogger("cronstable.state").debug("so that there is one")
                self.minute()
            if any("garbage collect" in line for line in logs.output):
                passes.append(minute)
        self.assertEqual(passes, [0, 1440, 2880])

    def test_deferred_then_collected(self) -> None:
        """Nothing goes before the manifests span the grace; then what nobody names goes."""
        self.start()
        self.world.append("runs/gone", {"outcome": "success", "finished_at": to_text(NOON)})
        with self.assertLogs("cronstable.state", "INFO") as logs:
            self.minute()
        self.assertIn("state: garbage collection deferred", logs.output[-1])
        for _ in range(16 * 4):
            self.minute(360)
        self.assertEqual(self.world.records("runs/gone"), [])
        self.assertEqual(len(self.manifests()), 16 * 4 + 1)

    def test_never(self) -> None:
        """With a grace of 0 or less no daemon collects."""
        self.start(StateConfig(path="/state", gc_grace=0))
        self.world.append("runs/gone", {"outcome": "success", "finished_at": to_text(NOON)})
        for _ in range(80):
            self.minute(360)
        self.assertEqual(len(self.world.records("runs/gone")), 1)

    def test_trouble(self) -> None:
        """A collection that fails is said, and tried again the next day."""
        self.start()
        self.world.faults.fail("names", "directories")
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            self.minute()
        self.assertIn("garbage collection failed", logs.output[0])
        self.world.faults.heal()
        with self.assertLogs("cronstable.state", "INFO") as logs:
            self.minute(1440)
        self.assertIn("garbage collection", logs.output[-1])

    def test_one_at_a_time(self) -> None:
        """A collection that takes long is not joined by another."""
        self.start()
        self.world.stick()
        self.world.run(60)
        for _ in range(3):
            Deferred.fromCoroutine(self.upkeep.each_minute(NAMES, "x"))
        self.assertEqual(len(self.world.workers[0]._waiting), 1)
        self.world.unstick()

    def test_without_a_store(self) -> None:
        """Without a store nothing is due."""
        self.minute()
        self.assertEqual(self.world.host.files.paths(), [])
