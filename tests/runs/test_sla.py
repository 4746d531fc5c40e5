"""Lateness."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import JobConfig, Sla
from cronstable.runs.gates import No
from cronstable.runs.pauses import Pause
from cronstable.runs.record import RunRecord
from cronstable.runs.sla import SlaBreached, SlaRecovered, SlaWatch
from tests.fakes import job
from tests.runs.test_scheduler import NOON
from tests.runs.world import World


class Nobody:
    """A leadership that lies elsewhere."""

    def may_run(self, job: JobConfig) -> No:
        return No("not-leader")


class SlaTests(SynchronousTestCase):
    def watch(self, *jobs: object, now: float = NOON + 30) -> World:
        world = World(now, *jobs)
        self.sla = SlaWatch(world.clock, world.runs, world.bus)
        self.told: list[tuple[str, str]] = []
        world.bus.subscribe(
            SlaBreached, lambda event: self.told.append(("breached", event.breach.check))
        )
        world.bus.subscribe(
            SlaRecovered, lambda event: self.told.append(("recovered", event.check))
        )
        return world

    def minutes(self, world: World, count: int) -> None:
        for _ in range(count):
            world.advance(60, 5)
            self.sla.judge(world.runs.jobs)

    def test_max_runtime(self) -> None:
        """A run that takes too long is told once, and once more when it is over."""
        world = self.watch(job("a", "0 13 * * *", sla=Sla(max_runtime=90)))
        world.runs.start_now("a")
        self.minutes(world, 4)
        self.assertEqual(self.told, [("breached", "maxRuntime")])
        (breach,) = self.sla.breaches("a")
        self.assertEqual((breach.observed, breach.threshold), (240.0, 90))
        world.executor.live[0].exit()
        self.minutes(world, 1)
        self.assertEqual(self.told[-1], ("recovered", "maxRuntime"))
        self.assertEqual(self.sla.breaches("a"), ())

    def test_time_since_success(self) -> None:
        """The time since the last success counts from the start of the daemon at first."""
        world = self.watch(job("a", sla=Sla(max_time_since_success=150)))
        world.executor.behave = lambda launch: launch.exit(1)
        self.minutes(world, 4)
        self.assertEqual(self.told, [("breached", "maxTimeSinceSuccess")])
        world.executor.behave = lambda launch: launch.exit(0)
        self.minutes(world, 1)
        self.assertEqual(self.told[-1], ("recovered", "maxTimeSinceSuccess"))

    def test_success_of_an_earlier_process(self) -> None:
        """The newest of the successes that were recorded before counts, a failure does not."""
        world = self.watch(job("a", "0 0 1 1 *", sla=Sla(max_time_since_success=150)))
        rows = ((NOON - 60, "success"), (NOON - 300, "success"), (NOON + 20, "failure"))
        self.sla.remember([RunRecord("a", outcome, at) for at, outcome in rows])  # type: ignore[arg-type]
        self.minutes(world, 1)
        self.assertEqual(self.told, [])
        self.minutes(world, 1)
        self.assertEqual(self.told, [("breached", "maxTimeSinceSuccess")])
        (breach,) = self.sla.breaches("a")
        self.assertEqual(breach.observed, 210.0)

    def test_not_ours(self) -> None:
        """A job that another node runs is not judged here, and what was latched goes untold."""
        made = job("a", "0 0 1 1 *", sla=Sla(max_time_since_success=50))
        world = self.watch(made)
        self.minutes(world, 1)
        self.assertEqual(self.sla.late(made), {"maxTimeSinceSuccess": True})
        self.patch(world.runs.gates, "leadership", Nobody())
        self.minutes(world, 1)
        self.assertEqual(self.sla.late(made), {"maxTimeSinceSuccess": False})
        self.assertEqual(self.told, [("breached", "maxTimeSinceSuccess")])

    def test_removed(self) -> None:
        """Of a job that is gone nothing is kept: should it come back, its time begins anew."""
        made = job("a", "0 0 1 1 *", sla=Sla(max_time_since_success=110))
        world = self.watch(made)
        self.sla.remember([RunRecord("a", "success", NOON - 600)])
        world.install()
        self.minutes(world, 1)
        self.assertIs(self.sla.late(made), None)
        world.install(made)
        self.minutes(world, 2)
        self.assertEqual(self.told, [])

    def test_late_after(self) -> None:
        """A slot that nothing has started for is late, however often the job is due."""
        world = self.watch(
            job("a", only_if_last_succeeded=True, sla=Sla(late_after=100)),
        )
        world.executor.behave = lambda launch: launch.exit(1)
        self.minutes(world, 2)
        self.assertEqual(self.told, [])
        self.minutes(world, 2)
        self.assertEqual(self.told, [("breached", "lateAfter")])

    def test_on_time(self) -> None:
        """A job that runs in each slot is never late."""
        world = self.watch(job("a", sla=Sla(late_after=30, max_time_since_success=70)))
        world.executor.behave = world.lasting(1)
        self.minutes(world, 10)
        self.assertEqual(self.told, [])

    def test_paused(self) -> None:
        """A paused job is not judged, and its pause is not held against it afterwards."""
        world = self.watch(job("a", sla=Sla(late_after=90)))
        world.executor.behave = world.lasting(1)
        self.minutes(world, 1)
        world.runs.pause("a", Pause(world.clock.now(), world.clock.now() + 600))
        self.minutes(world, 8)
        world.runs.resume("a")
        self.minutes(world, 2)
        self.assertEqual(self.told, [])

    def test_clock_change(self) -> None:
        """No alarm is raised in the night of a clock change (A01)."""
        world = self.watch(
            job("a", "*/15 * * * *", zone="Europe/London", sla=Sla(late_after=1000)),
            now=1_792_886_400.0,
        )
        world.executor.behave = world.lasting(1)
        self.minutes(world, 300)
        self.assertEqual(self.told, [])
