"""Overlapping runs: policies, lanes and what becomes of the slots between."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from cronstable.runs.gates import No
from cronstable.runs.pauses import Pause
from tests.fakes import job
from tests.runs.test_scheduler import NOON
from tests.runs.world import World


class OverlapTests(SynchronousTestCase):
    def test_allow(self) -> None:
        """Under Allow every slot runs, however many are alive."""
        world = World(NOON + 30, job("a"))
        world.executor.behave = world.lasting(155)
        world.advance(300)
        self.assertEqual(world.results("a"), {("ran", None): 5})
        self.assertEqual(len(world.runs.live("a")), 3)

    def test_forbid(self) -> None:
        """Under Forbid a job of 60.2 s runs every other minute and each slot says so (A06)."""
        world = World(NOON + 30, job("a", concurrency_policy="Forbid"))
        world.executor.behave = world.lasting(60.2)
        world.advance(360)
        self.assertEqual(world.results("a"), {("ran", None): 3, ("skipped", "overlap"): 3})
        self.assertEqual(world.book.unaccounted(), 0)

    def test_replace(self) -> None:
        """Under Replace the old run is gone before the new one starts; it leaves no record."""
        world = World(NOON + 30, job("a", concurrency_policy="Replace"))
        alive: list[int] = []
        world.executor.behave = lambda launch: alive.append(len(world.executor.live))
        world.advance(240)
        self.assertEqual(alive, [1, 1, 1, 1])
        self.assertEqual(world.results("a"), {("ran", None): 4})
        self.assertEqual(world.records("a"), ())
        self.assertEqual({run.record.outcome for run in world.finished}, {"replaced"})

    def test_replace_merges(self) -> None:
        """While an old run takes its time to die, newer slots merge into the newest."""
        world = World(NOON + 30, job("a", concurrency_policy="Replace"))
        world.executor.on_cancel = lambda launch: world.clock.callLater(150, launch.exit, -9)
        world.advance(30 + 60 * 4 + 10)
        self.assertEqual(len(world.started("a")), 2)
        merged = [entry for entry in world.book.entries("a") if entry.result == "merged"]
        self.assertEqual([entry.into for entry in merged], [NOON + 240])
        self.assertEqual(world.book.unaccounted(), 0)

    def test_forbid_with_one_waiting(self) -> None:
        """A scheduled request that finds another waiting under Forbid is skipped."""
        gate: Deferred[None] = Deferred()
        world = World(
            NOON + 30,
            job("a", "* * * * * * *", concurrency_policy="Forbid"),
            judgements={"last-succeeded": lambda request, job: gate},
        )
        world.executor.behave = world.lasting(100)
        world.advance(4)
        self.assertEqual(world.results("a"), {("skipped", "overlap"): 2})
        gate.callback(None)
        world.advance(1)
        self.assertEqual(world.results("a")[("ran", None)], 1)
        self.assertEqual(world.book.unaccounted(), 0)

    def test_manual_under_forbid(self) -> None:
        """A manual start of a running Forbid job is refused, with the reason."""
        world = World(NOON, job("a", concurrency_policy="Forbid"))
        world.runs.start_now("a")
        decision = self.successResultOf(world.runs.start_now("a").when_decided())
        self.assertEqual((decision.kind, decision.reason), ("refused", "overlap"))


class GateTests(SynchronousTestCase):
    def test_paused(self) -> None:
        """A paused job's slot is skipped and leaves a row; a manual start runs all the same."""
        world = World(NOON + 30, job("a"))
        world.executor.behave = world.lasting(1)
        world.runs.pause("a", Pause(NOON, NOON + 150))
        world.advance(120)
        self.assertEqual(world.results("a"), {("skipped", "paused"): 2})
        self.assertEqual([row.outcome for row in world.records("a")], ["skipped", "skipped"])
        decision = self.successResultOf(world.runs.start_now("a").when_decided())
        self.assertEqual(decision.kind, "started")
        world.advance(120)
        self.assertEqual(world.results("a")[("ran", None)], 2)

    def test_only_if_last_succeeded(self) -> None:
        """A job that must not run on top of a failure skips until a success by hand."""
        world = World(NOON + 30, job("a", only_if_last_succeeded=True))
        world.executor.behave = world.lasting(1, 1)
        world.advance(140)
        self.assertEqual(world.results("a"), {("ran", None): 1, ("skipped", "last-run-failed"): 1})
        world.executor.behave = world.lasting(1, 0)
        world.runs.start_now("a")
        world.advance(60)
        self.assertEqual(world.results("a")[("ran", None)], 2)

    def test_skipped_rows_say_nothing_about_success(self) -> None:
        """A skipped row does not clear the gate of a failure (ruling 10)."""
        world = World(NOON + 30, job("a", only_if_last_succeeded=True))
        world.executor.behave = world.lasting(1, 1)
        world.advance(60)
        world.runs.pause("a", Pause(NOON, NOON + 150))
        world.advance(60)
        world.runs.resume("a")
        world.advance(60)
        self.assertEqual(world.results("a")[("skipped", "last-run-failed")], 1)

    def test_gate_that_raises(self) -> None:
        """A gate that raises costs its own slot, says so, and nothing else."""

        def broken(request: object, job: object) -> None:
            raise RuntimeError("the gate is broken")

        world = World(NOON + 30, job("a"), job("b"), judgements={"last-succeeded": broken})
        world.advance(31)
        self.assertEqual(world.results("a"), {("missed", "error"): 1})
        self.assertEqual(world.book.unaccounted(), 0)

    def test_gate_that_never_answers(self) -> None:
        """A gate that never answers is late after ten seconds; the lane goes on."""
        world = World(
            NOON + 30, job("a"), judgements={"last-succeeded": lambda request, job: Deferred()}
        )
        world.advance(31)
        self.assertEqual(world.results("a"), {})
        world.advance(10)
        self.assertEqual(world.results("a"), {("skipped", "late"): 1})
        self.assertEqual(world.book.unaccounted(), 0)

    def test_gates_are_asked_again(self) -> None:
        """What changed while a gate took its time counts: a pause before the spawn holds."""
        gate: Deferred[None] = Deferred()
        world = World(NOON + 30, job("a"), judgements={"last-succeeded": lambda request, job: gate})
        world.advance(31)
        world.runs.pause("a", Pause(NOON, NOON + 3600))
        gate.callback(None)
        self.assertEqual(world.results("a"), {("skipped", "paused"): 1})
        self.assertEqual(world.executor.launches, [])

    def test_removed_while_waiting(self) -> None:
        """Nothing launches after its job is gone."""
        gate: Deferred[None] = Deferred()
        world = World(NOON + 30, job("a"), judgements={"last-succeeded": lambda request, job: gate})
        world.advance(31)
        world.install(job("b"))
        gate.callback(None)
        self.assertEqual(world.executor.launches, [])
        self.assertEqual(world.book.unaccounted(), 0)

    def test_not_this_node(self) -> None:
        """A job that another node owns is skipped here."""

        class Other:
            def may_run(self, job: object) -> No:
                return No("not-owner", "node-b owns it")

        world = World(NOON + 30, job("a"), leadership=Other())
        world.advance(31)
        self.assertEqual(world.results("a"), {("skipped", "not-owner"): 1})
