"""What runs are given, and how it is taken back."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import Verify
from cronstable.runs.environment import Prepared, RunFacts
from cronstable.runs.pauses import Pause
from cronstable.runs.request import RunRequest
from tests.fakes import job
from tests.runs.test_scheduler import NOON
from tests.runs.world import World

GIVEN = Prepared(
    "0" * 32,
    {"CRONSTABLE_STATE_URL": "http://127.0.0.1:1", "OWN": "given"},
    {"CRONSTABLE_STATE_TOKEN": "token"},
    ("hunter2",),
)


class Giver:
    """Gives what the test says, and remembers who came."""

    def __init__(self, answer: Any = GIVEN) -> None:
        self.answer = answer
        self.asked: list[RunFacts] = []
        self.over: list[str] = []

    def prepare(self, run: RunFacts) -> Any:
        self.asked.append(run)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def ended(self, ref: str) -> None:
        self.over.append(ref)


class GivingTests(SynchronousTestCase):
    """Runs of a world whose runs are given something."""

    def world(self, answer: Any = GIVEN, **fields: Any) -> World:
        self.giver = Giver(answer)
        return World(NOON, job("a", "0 13 * * *", **fields), environment=self.giver)

    def test_variables(self) -> None:
        """What is given goes over the job's own environment and over what the request asked for."""
        world = self.world(environment={"OWN": "job", "JOB": "1"})
        asked = {"OWN": "asked", "JOB": "asked"}
        world.runs.request(RunRequest("a", "manual", variables=asked))
        (launch,) = world.executor.launches
        self.assertEqual(
            launch.spec.env,
            {
                "OWN": "given",
                "JOB": "asked",
                "CRONSTABLE_STATE_URL": "http://127.0.0.1:1",
                "CRONSTABLE_STATE_TOKEN": "token",
            },
        )

    def test_facts(self) -> None:
        """The giver learns which run it is, and where the run keeps its state."""
        world = self.world()
        world.runs.request(RunRequest("a", "catchup", slot=5, attempt=2))
        world.executor.live[0].exit()
        world.runs.request(RunRequest("a", "manual", scope="elsewhere"))
        first, second = self.giver.asked
        self.assertEqual((first.slot, first.attempt, first.scope), (5, 2, "a"))
        self.assertEqual((second.cause, second.scope), ("manual", "elsewhere"))
        self.assertEqual([first.ref, second.ref], [each.ref for each in world.executor.launches])

    def test_nothing_given(self) -> None:
        """A run that is given nothing starts with the one environment that its job has."""
        world = self.world(Prepared())
        for _ in range(2):
            world.runs.start_now("a")
            world.executor.live[0].exit()
        first, second = world.executor.launches
        self.assertIs(first.spec, second.spec)
        self.assertIs(world.finished[0].environment, None)

    def test_reported(self) -> None:
        """Reports learn of what was given, but for what is private."""
        world = self.world()
        world.runs.start_now("a")
        world.executor.live[0].exit()
        (finished,) = world.finished
        self.assertEqual(finished.environment, GIVEN.variables)
        self.assertEqual((finished.run_id, finished.secrets), ("0" * 32, ("hunter2",)))
        self.assertNotIn("hunter2", repr(finished))
        self.assertNotIn("token", repr(GIVEN))

    def test_taken_back(self) -> None:
        """What was given ends with the run: before its record is seen, after its check."""
        world = self.world(verify=Verify("test -e done", 5.0))
        seen: list[tuple[str, ...]] = []
        world.runs.start_now("a").when_ended().addCallback(
            lambda record: seen.append(tuple(self.giver.over))
        )
        world.executor.live[0].exit()
        check = world.executor.live[0]
        self.assertEqual((self.giver.over, check.spec.env["OWN"]), ([], "given"))
        check.observer.output("stdout", b"it is hunter2\n")
        check.exit()
        self.assertEqual(seen, [(self.giver.asked[0].ref,)])
        (row,) = world.records("a")
        assert row.verification is not None
        self.assertEqual(row.verification.stdout, "it is ***\n")

    def test_hidden(self) -> None:
        """Whoever watches the output is kept from seeing the secrets."""
        world = self.world()
        world.runs.start_now("a")
        captured: Any = world.runs.live("a")[0].captured
        self.assertEqual(captured.hidden, ("hunter2",))

    def test_start_failure(self) -> None:
        """A run that could not be started is over as well."""
        world = self.world()
        world.executor.refuse = "no such program"
        world.runs.start_now("a")
        self.assertEqual(len(self.giver.over), 1)


class WaitingTests(SynchronousTestCase):
    """Preparing that takes time."""

    def setUp(self) -> None:
        self.answer: Deferred[Prepared] = Deferred()
        self.giver = Giver(self.answer)
        self.world = World(NOON, job("a", "0 13 * * *"), environment=self.giver)
        self.ticket = self.world.runs.start_now("a")

    def test_waits(self) -> None:
        """The process starts once all is there; the run is live meanwhile."""
        self.assertEqual(self.world.executor.launches, [])
        self.assertEqual(len(self.world.runs.live("a")), 1)
        self.answer.callback(GIVEN)
        (launch,) = self.world.executor.launches
        self.assertEqual(launch.spec.env["OWN"], "given")

    def test_cancelled_meanwhile(self) -> None:
        """A run that is cancelled before it has all it needs never starts."""
        count, _ = self.world.runs.cancel("a")
        self.answer.callback(GIVEN)
        self.assertEqual((count, self.world.executor.launches), (1, []))
        self.assertTrue(self.ticket.ended)
        self.assertEqual(self.giver.over, [self.giver.asked[0].ref])
        self.assertEqual(self.world.runs.live("a"), ())

    def test_draining_meanwhile(self) -> None:
        """A daemon that begins to stop does not start it either."""
        self.world.runs.quiesce()
        drained = self.world.runs.when_drained()
        self.assertNoResult(drained)
        self.answer.callback(GIVEN)
        self.successResultOf(drained)
        self.assertEqual(self.world.executor.launches, [])

    def test_fails(self) -> None:
        """A run for which nothing could be prepared runs without."""
        self.answer.errback(ValueError("no way"))
        (launch,) = self.world.executor.launches
        self.assertNotIn("OWN", launch.spec.env)

    def test_raises(self) -> None:
        """The same where it fails at once; the next run is asked for again."""
        world = World(NOON, job("b", "0 13 * * *"), environment=Giver(ValueError("no way")))
        for _ in range(2):
            world.runs.start_now("b")
            world.executor.live[0].exit()
        self.assertEqual(len(world.records("b")), 2)


class PauseTests(SynchronousTestCase):
    """Gates that close while a run is being prepared."""

    def test_paused_meanwhile(self) -> None:
        """A slot whose job is paused meanwhile is skipped, as if it had been paused before."""
        answer: Deferred[Prepared] = Deferred()
        world = World(NOON, job("a", "* * * * *"), environment=Giver(answer))
        world.advance(60)
        world.runs.pause("a", Pause(world.clock.now(), world.clock.now() + 600))
        answer.callback(GIVEN)
        self.assertEqual(world.executor.launches, [])
        self.assertEqual(list(world.results("a")), [("skipped", "paused")])
        self.assertEqual(world.records("a")[0].outcome, "skipped")
