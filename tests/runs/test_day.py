"""A day in the life of two hundred jobs, through clock changes and reloads, in seconds."""

from __future__ import annotations

import random
from collections import Counter

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import JobConfig, RetryPolicy
from cronstable.runs.pauses import Pause
from tests.fakes import FakeLaunch, job
from tests.runs.test_scheduler import at
from tests.runs.world import World

SCHEDULES = (
    "* * * * *",
    "*/5 * * * *",
    "*/15 * * * *",
    "H * * * *",
    "0 2 * * *",
    "30 2 * * *",
    "30 1,2,3 * * *",
    "0 */6 * * *",
    "15 4 * * 1-5",
    "0 0 * * *",
    "*/20 * * * * * *",
)
ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu")
POLICIES = ("Allow", "Forbid", "Replace")


def two_hundred(rng: random.Random) -> list[JobConfig]:
    """Return 200 jobs of every kind."""
    return [
        job(
            f"job-{number:03d}",
            rng.choice(SCHEDULES),
            zone=rng.choice(ZONES),
            concurrency_policy=rng.choice(POLICIES),
            only_if_last_succeeded=rng.random() < 0.05,
            enabled=rng.random() < 0.97,
            retry=RetryPolicy(rng.choice([0, 0, 2]), 5.0, 60.0, 2.0),
        )
        for number in range(200)
    ]


class DayTests(SynchronousTestCase):
    def day(self, start: float, seed: int) -> World:
        """Live 25 hours from C{start}, with steps of the clock and three reloads."""
        rng = random.Random(seed)
        jobs = two_hundred(rng)
        world = World(start, *jobs)
        self.executed: Counter[tuple[str, int, int]] = Counter()

        def behave(launch: FakeLaunch) -> None:
            slot = launch.observer.slot
            if slot is not None:
                self.executed[(slot.job, slot.epoch, slot.slot)] += 1
            world.clock.callLater(rng.choice([0.5, 20, 70, 400]), launch.exit, rng.choice([0, 1]))

        world.executor.behave = behave
        for hour in range(25):
            if hour == 6:
                world.clock.step(-1800)
            elif hour == 11:
                world.clock.step(+5400)
            elif hour == 16:
                world.clock.suspend(1500)
            elif hour in (4, 13, 19):
                jobs = self.edited(rng, jobs)
                world.install(*jobs)
            elif hour == 8:
                now = world.clock.now()
                for each in jobs[::7]:
                    world.runs.pause(each.name, Pause(now, now + 5000))
            world.advance(3600, step=7.3)
            world.scheduler.audit()
            self.assertEqual(world.book.unaccounted(), 0)
        return world

    def edited(self, rng: random.Random, jobs: list[JobConfig]) -> list[JobConfig]:
        """Return the jobs after an edit: some gone, some changed, some new."""
        kept = [each for each in jobs if rng.random() > 0.03]
        changed = [
            attrs.evolve(each, kill_timeout=rng.random() * 60) if rng.random() < 0.2 else each
            for each in kept
        ]
        new = [job(f"new-{rng.random():.9f}", rng.choice(SCHEDULES)) for _ in range(5)]
        return changed + new

    def check(self, world: World) -> None:
        """Every slot is entered once, and what ran is what the book says."""
        entered = Counter(
            (entry.job, entry.epoch, entry.slot)
            for name in world.book.jobs()
            for entry in world.book.entries(name)
        )
        self.assertEqual([key for key, count in entered.items() if count > 1], [])
        self.assertEqual([key for key, count in self.executed.items() if count > 1], [])
        self.assertGreater(len(self.executed), 20_000)
        world.scheduler.quiesce()
        world.runs.quiesce()
        drained = world.runs.when_drained()
        world.advance(500, 10)
        self.successResultOf(drained)
        self.assertEqual(list(world.book.open_slots()), [])
        self.assertEqual(world.book.unaccounted(), 0)

    def test_spring(self) -> None:
        """A day on which New York springs forward accounts for every slot, none twice."""
        self.check(self.day(at("2026-03-07 18:30:10"), 1))

    def test_autumn(self) -> None:
        """A day on which Berlin falls back accounts for every slot, none twice."""
        self.check(self.day(at("2026-10-24 12:30:10"), 2))
