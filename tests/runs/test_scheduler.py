"""The scheduler and its slots, on a simulated clock."""

from __future__ import annotations

from calendar import timegm
from time import strptime
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock
from cronstable.runs.scheduler import SLICE
from tests.fakes import job
from tests.runs.world import World


def at(text: str) -> float:
    """Return the instant of a UTC text."""
    return float(timegm(strptime(text, "%Y-%m-%d %H:%M:%S")))


NOON = at("2026-06-01 12:00:00")


class LateClock(ManualClock):
    """A clock whose timers are late by a thousandth of their time."""

    def callLater(self, delay: float, *call: Any, **more: Any) -> Any:  # noqa: N802
        """Call later, and a little later than that."""
        return super().callLater(delay * 1.001, *call, **more)


class ZeroCounting(ManualClock):
    """A clock that counts the turns asked for, and passes while something works."""

    turns = 0

    def callLater(self, delay: float, *call: Any, **more: Any) -> Any:  # noqa: N802
        """Call later, or in another turn."""
        self.turns += delay == 0
        return super().callLater(delay, *call, **more)

    def work(self, seconds: float) -> None:
        """Let time pass without a timer."""
        self.rightNow += seconds


class SchedulerTests(SynchronousTestCase):
    def test_fires_at_each_slot(self) -> None:
        """A job starts once in each of its slots, at the slot's own instant."""
        world = World(NOON + 30, job("a", "* * * * *"))
        world.executor.behave = world.lasting(5)
        world.advance(300)
        self.assertEqual(world.started("a"), [NOON + 60 * n for n in range(1, 6)])
        self.assertEqual(world.results("a"), {("ran", None): 5})

    def test_timers_that_are_late(self) -> None:
        """Where long sleeps end a little late, slots start on time all the same."""
        for wait in (0.5, 1.5, 12, 29.5, 300):
            clock = LateClock(NOON + 600 - wait)
            world = World(clock.now(), job("a", "*/10 * * * *"), clock=clock)
            world.run(wait + 1)
            (started,) = world.started("a")
            self.assertGreaterEqual(started, NOON + 600)
            self.assertLess(started, NOON + 600.002)

    def test_not_the_slot_under_way(self) -> None:
        """A job that is new fires strictly after now."""
        world = World(NOON, job("a", "* * * * *"))
        world.advance(59)
        self.assertEqual(world.started("a"), [])

    def test_configuration_order(self) -> None:
        """Jobs due at one instant start in configuration order."""
        names = [f"job-{n}" for n in (5, 3, 9, 1)]
        world = World(NOON + 30, *(job(name) for name in names))
        world.advance(40)
        self.assertEqual([launch.job for launch in world.executor.launches], names)

    def test_seconds(self) -> None:
        """A seven-field schedule fires on seconds, one late by less than 10 s in full."""
        world = World(NOON, job("a", "* * * * * * *"))
        world.executor.behave = world.lasting(0.1)
        world.clock.advance(8.5)
        world.advance(0.1)
        self.assertEqual(len(world.started("a")), 8)
        self.assertEqual(world.results("a"), {("ran", None): 8})

    def test_long_stall(self) -> None:
        """After ten seconds or more only the slot under way fires; the gap is one entry."""
        world = World(NOON + 30, job("a", "* * * * *"), job("b", "0 0 1 1 *"))
        world.executor.behave = world.lasting(0.1)
        world.clock.suspend(600)
        world.advance(31)
        self.assertEqual(world.results("a"), {("missed", "delayed"): 10, ("ran", None): 1})
        (gap, ran) = world.book.entries("a")
        self.assertEqual((gap.slot, gap.until), (NOON + 60, ran.slot - 1))
        self.assertEqual(world.book.unaccounted(), 0)

    def test_stall_within_the_slot(self) -> None:
        """A stall of 15 s over a minute slot loses nothing: its minute is still under way."""
        world = World(NOON + 50, job("a", "* * * * *"))
        world.clock.suspend(25)
        world.advance(30)
        self.assertEqual(world.results("a"), {("ran", None): 1})

    def test_forward_step_to_a_moment_of_no_slot(self) -> None:
        """A forward jump fires nothing at a moment that matches no slot (A13)."""
        start = at("2026-06-01 09:00:00")
        world = World(start, job("a", "30 10 * * *"))
        world.clock.step(at("2026-06-04 06:00:00") - start)
        world.advance(4.5 * 3600 + 60, step=20)
        self.assertEqual(world.started("a"), [at("2026-06-04 10:30:00")])
        self.assertEqual(world.results("a"), {("missed", "delayed"): 3, ("ran", None): 1})

    def test_small_step_over_a_slot(self) -> None:
        """A step of +5 s across a slot runs it once."""
        world = World(NOON + 57, job("a", "* * * * *"))
        world.clock.step(5)
        world.advance(40)
        self.assertEqual(world.results("a"), {("ran", None): 1})

    def test_step_back(self) -> None:
        """After a step back of an hour no slot recurs and the pending one waits."""
        world = World(NOON + 30, job("a", "*/10 * * * *"))
        world.executor.behave = world.lasting(1)
        world.advance(600)
        world.clock.step(-3600)
        world.advance(3600)
        self.assertEqual(len(world.started("a")), 1)
        world.advance(600)
        self.assertEqual(len(world.started("a")), 2)
        self.assertEqual(world.book.unaccounted(), 0)

    def test_correction(self) -> None:
        """A step back of three hours is a correction: a new epoch begins at the new time."""
        world = World(NOON + 30, job("a", "*/10 * * * *"))
        world.executor.behave = world.lasting(1)
        world.advance(600)
        world.clock.step(-3 * 3600)
        world.advance(660)
        self.assertEqual(len(world.started("a")), 2)
        self.assertEqual({entry.epoch for entry in world.book.entries("a")}, {0, 1})
        self.flushLoggedErrors()

    def test_reload_on_the_boundary(self) -> None:
        """A reload in the very second of a slot neither loses nor doubles it."""
        world = World(NOON + 30, job("a", "* * * * *"), job("b", "* * * * *"))
        world.executor.behave = world.lasting(1)
        world.clock.suspend(30)
        world.install(job("a", "* * * * *"), job("c", "* * * * *"))
        world.clock.advance(0)
        world.advance(90)
        self.assertEqual(world.started("a"), [NOON + 60, NOON + 120])
        self.assertEqual(world.started("c"), [NOON + 120])
        self.assertEqual(world.started("b"), [])
        self.assertEqual(world.results("a"), {("ran", None): 2})

    def test_reload_keeps_the_pending_fire(self) -> None:
        """An unchanged schedule keeps its pending fire whatever else changes."""
        world = World(NOON + 59.5, job("a", "* * * * *"))
        for _ in range(5):
            world.install(job("a", "* * * * *", kill_timeout=7.0), job("b", "0 0 * * *"))
            world.advance(0.05, 0.01)
        world.advance(1)
        self.assertEqual(len(world.started("a")), 1)

    def test_disabled_and_reboot_are_not_indexed(self) -> None:
        """Disabled jobs and boot jobs have no slots of a schedule."""
        world = World(NOON, job("a", enabled=False), job("b", "@reboot"))
        world.advance(120)
        self.assertEqual(world.executor.launches, [])

    def test_boot(self) -> None:
        """A boot job runs once, in the first pass, and its slot is accounted for."""
        world = World(NOON, job("b", "@reboot"), job("c", "@reboot", enabled=False))
        world.boot.begin(world.runs.jobs)
        world.advance(120)
        self.assertEqual(len(world.started("b")), 1)
        self.assertEqual(world.results("b"), {("ran", None): 1})
        self.assertEqual(world.started("c"), [])

    def test_quiesce(self) -> None:
        """Nothing is fired any more once the daemon is stopping."""
        world = World(NOON + 30, job("a", "* * * * *"))
        world.scheduler.quiesce()
        world.advance(120)
        self.assertEqual(world.executor.launches, [])

    def test_in_slices(self) -> None:
        """Many jobs that are due do not hold the reactor, nor do they when a reload finds them."""
        for reload in (False, True):
            clock = ZeroCounting(NOON + 30)
            jobs = [job(f"j{number}") for number in range(10)]
            world = World(clock.now(), *jobs, clock=clock)
            world.executor.behave = lambda launch: clock.work(SLICE * 0.75)  # noqa: B023
            clock.rightNow += 30
            if reload:
                world.install(*jobs)
            clock.advance(0)
            self.assertEqual(
                [launch.job for launch in world.executor.launches], [*world.runs.jobs.jobs]
            )
            self.assertEqual(clock.turns, 6 if reload else 5)

    def test_audit_finds_a_lost_slot(self) -> None:
        """The audit counts a slot that was never entered."""
        world = World(NOON + 30, job("a", "* * * * *"))
        world.executor.behave = world.lasting(1)
        world.advance(600)
        world.scheduler.audit()
        self.assertEqual(world.book.unaccounted(), 0)
        world.book._opened["a"] -= 1
        world.advance(60)
        world.scheduler.audit()
        self.assertEqual(world.book.unaccounted(), 1)
