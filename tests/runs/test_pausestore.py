"""Pauses over restarts and between nodes."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sections_values import StateConfig
from cronstable.runs.pauses import Pause
from cronstable.state.instants import to_text
from tests.fakes import job
from tests.runs.durable import DurableWorld, Host
from tests.runs.test_scheduler import NOON

PAUSE = Pause(NOON, NOON + 600.5, "a note", "somebody", "dashboard")
SHARED = StateConfig(path="/state", topology="shared")


def peer(kind: str, at: float, **fields: Any) -> dict[str, Any]:
    """Return a record of another node."""
    return {"kind": kind, "by": "b", "channel": "api", "at": to_text(at), "host": "b", **fields}


def paused(at: float, until: float) -> dict[str, Any]:
    return peer("paused", at, since=to_text(at), until=to_text(until), note="")


class PauseTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.host = Host(NOON)

    def life(self, state: StateConfig = SHARED) -> DurableWorld:
        world = DurableWorld(self.host, job("job"), up=False)
        world.start(state)
        return world

    def test_records(self) -> None:
        """A pause and its end are records with who, when and where."""
        world = self.life()
        world.runs.pause("job", PAUSE)
        world.runs.resume("job", "other", "api")
        first, second = world.records("paused/job")
        self.assertEqual(
            first,
            {
                "kind": "paused",
                "since": to_text(NOON),
                "until": to_text(NOON + 600.5),
                "note": "a note",
                "by": "somebody",
                "channel": "dashboard",
                "at": to_text(NOON),
                "host": "node-a",
            },
        )
        self.assertEqual(
            second,
            {
                "kind": "resumed",
                "by": "other",
                "channel": "api",
                "at": to_text(NOON),
                "host": "node-a",
            },
        )

    def test_resume_without_pause(self) -> None:
        """Resuming what is not paused is written too: another node may have paused it."""
        world = self.life()
        world.runs.resume("job")
        self.assertEqual([each["kind"] for each in world.records("paused/job")], ["resumed"])

    def test_read_back(self) -> None:
        """A pause is in force again after a restart, whole, until it runs out."""
        self.life().runs.pause("job", PAUSE)
        world = self.life()
        self.assertEqual(world.runs.pause_of("job"), PAUSE)
        self.host.now = NOON + 601
        self.assertIsNone(self.life().runs.pause_of("job"))

    def test_resumed_stays_resumed(self) -> None:
        """One that was lifted is not in force after a restart."""
        world = self.life()
        world.runs.pause("job", PAUSE)
        world.runs.resume("job")
        self.assertIsNone(self.life().runs.pause_of("job"))

    def test_of_another_node(self) -> None:
        """On a shared store a pause of another node is in force within a minute, and ends so."""
        world = self.life()
        world.append("paused/job", paused(NOON + 1, NOON + 900))
        self.assertIsNone(world.runs.pause_of("job"))
        world.minute()
        pause = world.runs.pause_of("job")
        assert pause is not None
        self.assertEqual(pause.until, NOON + 900)
        world.append("paused/job", peer("resumed", NOON + 2))
        world.minute()
        self.assertIsNone(world.runs.pause_of("job"))

    def test_ours_is_newer(self) -> None:
        """What was done here later than a peer's record counts, and is written again."""
        world = self.life()
        world.append("paused/job", peer("resumed", NOON - 50))
        world.faults.fail("create", times=1)
        world.runs.pause("job", PAUSE)
        world.minute()
        self.assertEqual(world.runs.pause_of("job"), PAUSE)
        self.assertEqual(world.records("paused/job")[-1]["kind"], "paused")

    def test_single_node(self) -> None:
        """On a store of one node nobody else is asked each minute."""
        world = self.life(StateConfig(path="/state"))
        reads = len(world.faults.calls)
        world.minute()
        self.assertEqual(len(world.faults.calls), reads)

    def test_odd_records(self) -> None:
        """Records that make no sense pause nothing."""
        world = self.life()
        for odd in ({"kind": "paused"}, {}, {"kind": "paused", "since": 5, "until": "x"}):
            world.append("paused/job", odd)
            world.minute()
            self.assertIsNone(world.runs.pause_of("job"))

    def test_trouble(self) -> None:
        """A store that cannot be read leaves the pauses as they are, with a warning."""
        world = self.life()
        world.runs.pause("job", PAUSE)
        world.faults.fail("names", match="paused%2F")
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            world.minute()
        self.assertIn("pauses cannot be read", logs.output[0])
        self.assertEqual(world.runs.pause_of("job"), PAUSE)

    def test_removed_job(self) -> None:
        """A pause goes with its job."""
        world = self.life()
        world.runs.pause("job", PAUSE)
        world.install(job("other"))
        self.assertIsNone(world.runs.pause_of("job"))

    def test_job_that_comes_back(self) -> None:
        """A pause is in force again when a reload brings its job back."""
        for state in (SHARED, StateConfig(path="/state")):
            self.host = Host(NOON)
            world = self.life(state)
            world.runs.pause("job", PAUSE)
            world.install(job("other"))
            world.install(job("job"), job("other"))
            self.assertEqual(world.runs.pause_of("job"), PAUSE)

    def test_job_that_comes_back_in_trouble(self) -> None:
        """It is asked again when the store could not be read."""
        world = self.life(StateConfig(path="/state"))
        world.runs.pause("job", PAUSE)
        world.install(job("other"))
        world.faults.fail("names", match="paused%2F", times=1)
        with self.assertLogs("cronstable.state", "WARNING"):
            world.install(job("job"))
        self.assertIsNone(world.runs.pause_of("job"))
        world.minute()
        self.assertEqual(world.runs.pause_of("job"), PAUSE)
