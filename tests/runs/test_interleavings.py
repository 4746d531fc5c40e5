"""Random interleavings of everything that can happen to a job; the rules hold in each."""

from __future__ import annotations

import random
from collections import Counter

from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import JobConfig, RetryPolicy, Verify
from cronstable.runs.gates import No
from cronstable.runs.pauses import Pause
from cronstable.runs.record import FinishedRun
from cronstable.runs.request import RunRequest
from cronstable.runs.tables import CAUSES
from tests.fakes import FakeLaunch, job
from tests.runs.test_scheduler import NOON
from tests.runs.world import World

LIVES = 1500


class Moody:
    """A gate that passes, refuses, fails, answers late or never."""

    def __init__(self, rng: random.Random, world: list[World]) -> None:
        self.rng = rng
        self.world = world

    def answer(self, value: object) -> object:
        mood = self.rng.random()
        if mood < 0.55:
            return value
        if mood < 0.65:
            return No("moody")
        if mood < 0.7:
            raise RuntimeError("moody")
        if mood < 0.73:
            return Deferred()
        later: Deferred[object] = Deferred()
        delay = self.rng.choice([0.0, 0.5, 3.0, 9.5, 14.0])
        call = later.errback if self.rng.random() < 0.1 else later.callback
        value = RuntimeError("late and moody") if call == later.errback else value
        self.world[0].clock.callLater(delay, call, value)
        return later

    def judge(self, request: RunRequest, job: JobConfig) -> object:
        return self.answer(None)


class CountedHold:
    """A hold that must be given back or undone, once."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def release(self) -> None:
        self.ended.append("released")

    def undo(self) -> None:
        self.ended.append("undone")


class MoodyClaim:
    """A claim whose holds are remembered."""

    name = "moody"
    causes = frozenset(CAUSES)

    def __init__(self, moody: Moody) -> None:
        self.moody = moody
        self.holds: list[CountedHold] = []

    def claim(self, request: RunRequest, job: JobConfig) -> object:
        hold = CountedHold()
        answer = self.moody.answer(hold)
        if answer is hold:
            self.holds.append(hold)
        elif isinstance(answer, Deferred):
            answer.addCallback(self._came)
        return answer

    def _came(self, value: object) -> object:
        if isinstance(value, CountedHold):
            self.holds.append(value)
        return value


class SlowReports:
    """Reports that take their time."""

    def __init__(self, rng: random.Random, world: list[World]) -> None:
        self.rng = rng
        self.world = world

    def report(self, hook: str, finished: FinishedRun) -> Deferred[None]:
        delay = self.rng.choice([0.0, 0.0, 1.0, 20.0])
        if not delay:
            return succeed(None)
        sent: Deferred[None] = Deferred()
        self.world[0].clock.callLater(delay, sent.callback, None)
        return sent


class InterleavingTests(SynchronousTestCase):
    def jobs(self, rng: random.Random) -> list[JobConfig]:
        made = []
        for number in range(rng.randint(1, 4)):
            schedule = rng.choice(["* * * * *", "*/7 * * * * * *", "* * * * * * *", "@reboot"])
            made.append(
                job(
                    f"job-{number}",
                    schedule,
                    enabled=rng.random() < 0.9,
                    concurrency_policy=rng.choice(["Allow", "Forbid", "Replace"]),
                    only_if_last_succeeded=rng.random() < 0.2,
                    retry=RetryPolicy(rng.choice([0, 1, 3, -1]), rng.choice([0.5, 4.0]), 10.0, 2.0),
                    verify=Verify("true", 5.0) if rng.random() < 0.2 else None,
                )
            )
        return made

    def behave(self, launch: FakeLaunch) -> None:
        world, rng = self.world[0], self.rng
        self.violations += self.broken_rules(world, launch.job)
        lasting = rng.choice([0.0, 0.2, 3.0, 25.0, 90.0])
        status = rng.choice([0, 0, 1])
        if lasting:
            world.clock.callLater(lasting, launch.exit, status)
        else:
            launch.exit(status)

    def broken_rules(self, world: World, name: str) -> list[str]:
        if not name:
            return []
        configured = world.runs.jobs.find(name)
        if configured is None:
            return [f"{name} was launched after it was gone"]
        if self.stopping:
            return [f"{name} was launched after the stop had begun"]
        policy = configured.concurrency_policy
        alive = sum(1 for each in world.executor.live if each.job == name)
        if alive > 1 and policy in ("Replace", "Forbid"):
            return [f"{alive} runs of {name} under {policy}"]
        return []

    def on_cancel(self, launch: FakeLaunch) -> None:
        self.world[0].clock.callLater(self.rng.choice([0.0, 0.3, 31.0]), launch.exit, -15)

    def step(self) -> None:
        world, rng = self.world[0], self.rng
        names = list(world.runs.jobs.jobs)
        name = rng.choice(names)
        what = rng.random()
        if what < 0.70:
            world.advance(rng.choice([0.3, 1.0, 5.0]), 0.5)
        elif what < 0.78:
            world.runs.start_now(name)
        elif what < 0.84:
            world.runs.cancel(name, "somebody")
        elif what < 0.88:
            now = world.clock.now()
            world.runs.pause(name, Pause(now, now + rng.choice([2.0, 60.0])))
        elif what < 0.92:
            world.runs.resume(name)
        elif what < 0.95:
            world.install(*self.jobs(rng))
        elif what < 0.97:
            world.clock.suspend(rng.choice([3.0, 11.0, 400.0]))
        elif what < 0.99:
            world.clock.step(rng.choice([-20.0, 4.0, 15.0]))
        else:
            world.clock.step(-4 * 3600.0)

    def one(self, seed: int) -> Counter[str]:
        rng = self.rng = random.Random(seed)
        self.stopping = False
        self.violations: list[str] = []
        self.world: list[World] = []
        moody = Moody(rng, self.world)
        claim = MoodyClaim(moody)
        world = World(
            NOON + rng.random() * 60,
            *self.jobs(rng),
            judgements={"last-succeeded": moody.judge},
            claims=[claim],
            reporter=SlowReports(rng, self.world),
        )
        self.world.append(world)
        world.executor.behave = self.behave
        world.executor.on_cancel = self.on_cancel
        world.boot.begin(world.runs.jobs)
        for _ in range(rng.randint(20, 60)):
            self.step()
            world.scheduler.audit()
            self.assertEqual(world.book.unaccounted(), 0)
        self.stopping = True
        world.scheduler.quiesce()
        world.boot.stop()
        world.runs.quiesce()
        drained = world.runs.when_drained()
        world.advance(30, 0.5)
        world.runs.cut()
        world.advance(150, 5)
        self.successResultOf(drained)
        self.assertEqual(self.violations, [])
        self.assertEqual(list(world.book.open_slots()), [])
        self.assertEqual(world.book.unaccounted(), 0)
        for hold in claim.holds:
            self.assertEqual(len(hold.ended), 1, f"a hold ended as {hold.ended}")
        keys = [
            (entry.job, entry.epoch, entry.slot)
            for name in world.book.jobs()
            for entry in world.book.entries(name)
        ]
        twice = [key for key, count in Counter(keys).items() if count > 1]
        self.assertEqual(twice, [], "slots were entered twice")
        return Counter(
            entry.result for name in world.book.jobs() for entry in world.book.entries(name)
        )

    def test_rules_hold(self) -> None:
        """
        Overlap rules hold, every slot closes once, every hold is given back, nothing launches
        after its job is gone or the stop has begun; L{LIVES} random lives.
        """
        seen: Counter[str] = Counter()
        for seed in range(LIVES):
            try:
                seen += self.one(seed)
            except Exception:
                print(f"seed {seed}")
                raise
        self.assertEqual(set(seen), {"ran", "skipped", "missed", "merged"})
