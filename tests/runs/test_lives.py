"""Four hundred days of a daemon that is stopped, killed and left off at random."""

from __future__ import annotations

import logging
import random
from collections import Counter, defaultdict

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sections_values import StateConfig
from cronstable.config.values import JobConfig, RetryPolicy
from cronstable.runs.pauses import Pause
from cronstable.state import streams
from cronstable.state.instants import to_text
from tests.fakes import FakeLaunch, job
from tests.runs.durable import DurableWorld, Host
from tests.runs.test_scheduler import at

DAY = 86400.0
DAYS = 400
START = at("2026-01-15 10:00:30")
STATE = StateConfig(path="/state", max_runs_per_job=60, fsync="never")

JOBS = (
    job("all", "13 * * * *", on_missed="run-all", catchup_limit=1000),
    job("half", "*/30 * * * *", on_missed="run-all", starting_deadline=6 * 3600),
    job("forbid", "50 * * * *", on_missed="run-all", concurrency_policy="Forbid"),
    job("once", "0 */3 * * *", on_missed="run-once", zone="America/New_York"),
    job("spread", "30 2 * * *", on_missed="run-once", catchup_jitter=3600, zone="Europe/Berlin"),
    job("weekly", "1 22 * * 1,3"),
    job("skip", "20 */2 * * *", retry=RetryPolicy(2, 40.0, 600.0, 2.0)),
    job("replace", "5,6 */4 * * *", on_missed="run-all", concurrency_policy="Replace"),
    job("once-in-life", "@reboot"),
)


@attrs.define
class Seen:
    """What an observer outside of all daemons has seen."""

    starts: dict[tuple[str, int], list[float]] = attrs.field(factory=lambda: defaultdict(list))
    """When each slot was started."""
    boots: Counter[str] = attrs.field(factory=Counter)
    """How often each boot's job was started."""
    cuts: list[float] = attrs.field(factory=list)
    """When whatever ran was killed, or cut by a stop."""
    causes: Counter[str] = attrs.field(factory=Counter)


class LivesTests(SynchronousTestCase):
    """The store carries each job over the end of one daemon into the life of the next."""

    def behave(self, world: DurableWorld, launch: FakeLaunch) -> None:
        rng = self.rng
        cause, slot = launch.memo["cause"], launch.memo["slot"]
        self.seen.causes[cause] += 1
        if cause in ("scheduled", "catchup"):
            self.seen.starts[(launch.job, slot)].append(world.clock.now())
        elif cause == "boot":
            self.seen.boots[world.host.boot_id] += 1
        status = 1 if rng.random() < 0.1 else 0
        world.clock.callLater(rng.choice([1, 1, 5, 70, 900]), launch.exit, status)

    def live(self, host: Host, seconds: float) -> DurableWorld:
        """Live for a while, with the chores of each hour, and perhaps a pause."""
        world = DurableWorld(host, *JOBS, up=False)
        world.executor.behave = lambda launch: self.behave(world, launch)
        world.start(STATE)
        end = world.clock.seconds() + seconds
        while world.clock.seconds() < end:
            world.run(min(3600.0, end - world.clock.seconds()))
            world.minute()
            world.scheduler.audit()
            self.assertEqual(world.book.unaccounted(), 0)
            if self.rng.random() < 0.002:
                now = world.clock.now()
                self.paused.append((now, now + 5 * 3600))
                world.runs.pause("all", Pause(now, now + 5 * 3600))
        return world

    def test_four_hundred_days(self) -> None:
        """
        No slot is unaccounted for.  What is to be caught up with is, within its deadline, and
        nothing is started twice unless a kill or a cut came before its end.
        """
        rng = self.rng = random.Random(3)
        self.seen, self.paused = Seen(), []
        host = Host(START)
        while host.now < START + DAYS * DAY:
            world = self.live(host, rng.expovariate(1 / (1.5 * DAY)))
            if rng.random() < 0.5:
                self.check_end(world)
                host = world.stop(rng.choice([5.0, 60.0, 2000.0]))
                if world.cut_at is not None:
                    self.seen.cuts.append(world.cut_at)
            else:
                host = world.kill()
                self.seen.cuts.append(host.now)
            host.now += rng.choice([1.0, 5.0, 90.0, 4000.0, 30000.0, 200_000.0])
            if rng.random() < 0.3:
                host.boot_id = f"boot-{host.now}"
        final = self.live(host, DAY)
        self.check_slots(final)
        self.assertEqual(set(self.seen.boots.values()), {1})
        self.assertEqual(set(self.seen.causes), {"scheduled", "catchup", "retry", "boot"})

    def check_end(self, world: DurableWorld) -> None:
        """Slot book and ledger agree on what has run and is over."""
        for name in ("all", "once", "weekly"):
            entries = [each for each in world.book.entries(name) if each.result == "ran"]
            ran = {to_text(each.started_at or 0.0) for each in entries}
            live = {to_text(run.started_at) for run in world.runs.live(name)}
            rows = world.records(streams.runs(name))
            told = {row["started_at"] for row in rows if row["started_at"]}
            kept = {start for start in ran - live if told and start >= min(told)}
            self.assertEqual(kept - told, set(), name)

    def check_slots(self, world: DurableWorld) -> None:
        end = world.clock.now() - DAY
        for each in JOBS:
            if each.schedule is None:
                continue
            slots = list(each.schedule.occurrences(START, end))
            lost = [slot for slot in slots if not self.seen.starts[(each.name, slot)]]
            self.assertEqual(self.unexcused(each, lost), [], each.name)
            for slot in slots:
                starts = self.seen.starts[(each.name, slot)]
                for first, second in zip(starts, starts[1:], strict=False):
                    # A run lasts 900 seconds at most, and its end is written at once.
                    cut = any(first <= cut <= first + 901 for cut in self.seen.cuts)
                    self.assertTrue(cut, f"{each.name} {slot} at {first} and {second}")

    def unexcused(self, each: JobConfig, lost: list[int]) -> list[int]:
        """Return the slots of a run-all job that had no start for no good reason."""
        if each.name != "all":
            return []
        return [s for s in lost if not any(a <= s <= b for a, b in self.paused)]


class MoodyStoreTests(SynchronousTestCase):
    """Lives on a store that fails, hangs and comes back as it likes."""

    def mood(self, world: DurableWorld) -> None:
        """Change how the store of C{world} feels."""
        what = self.rng.random()
        if what < 0.2:
            world.stick()
        elif what < 0.5:
            match = self.rng.choice(["", "runs%2F", "retries%2F", "catchup%2F", "inflight%2F"])
            op = self.rng.choice(["create", "read", "names", "rename", "sync_directory"])
            world.faults.fail(op, match=match)
        else:
            world.faults.heal()
            world.unstick()

    def behave(self, world: DurableWorld, launch: FakeLaunch) -> None:
        key = (launch.job, launch.memo["slot"], launch.memo["attempt"])
        if launch.memo["cause"] != "manual":
            self.starts[key] += 1
        lasting = self.rng.choice([0.5, 5, 70])
        world.clock.callLater(lasting, launch.exit, self.rng.choice([0, 0, 1]))

    def live(self, host: Host, state: StateConfig) -> Host:
        world = DurableWorld(host, *MOODY, up=False)
        world.executor.behave = lambda launch: self.behave(world, launch)
        self.starts: Counter[object] = Counter()
        if self.rng.random() < 0.2:
            self.mood(world)
        world.start(state)
        for _ in range(self.rng.randint(1, 60)):
            world.run(self.rng.choice([1, 30, 60, 200]))
            self.mood(world)
            world.minute()
            what = self.rng.random()
            if what < 0.1:
                world.clock.suspend(self.rng.choice([30, 700]))
            elif what < 0.15:
                world.use(self.rng.choice([None, state, attrs.evolve(state, path="/other")]))
            elif what < 0.2:
                now = world.clock.now()
                world.runs.pause("all", Pause(now, now + 300))
            elif what < 0.25:
                world.runs.start_now("retried")
            world.scheduler.audit()
            self.assertEqual(world.book.unaccounted(), 0)
            self.assertLess(world.store.pending, 3000)
        self.assertEqual({n for n in self.starts.values() if n > 1}, set(), self.starts)
        if self.rng.random() < 0.5:
            return world.kill()
        world.stop(100)
        self.assertEqual(list(world.book.open_slots()), [])
        self.assertEqual(world.book.unaccounted(), 0)
        return world.host

    def test_every_mood(self) -> None:
        """Whatever the store does, each slot is accounted for and none starts twice in a life."""
        bugs: list[str] = []
        watch = logging.Handler(logging.ERROR)
        watch.emit = lambda record: (
            record.exc_info
            and bugs.append(  # type: ignore[method-assign]
                logging.Formatter().format(record)
            )
        )
        logging.getLogger("cronstable").addHandler(watch)
        self.addCleanup(logging.getLogger("cronstable").removeHandler, watch)
        for seed in range(100):
            self.rng = random.Random(seed)
            policy = self.rng.choice(["degrade", "fail-closed"])
            state = attrs.evolve(STATE, on_store_unavailable=policy)
            if self.rng.random() < 0.3:
                state = attrs.evolve(state, topology="shared")
            host = Host(START)
            try:
                for _ in range(3):
                    host = self.live(host, state)
                    host.now += self.rng.choice([1.0, 400.0])
            except BaseException:
                print(f"seed {seed}")
                raise
            self.assertEqual(bugs, [], f"seed {seed}")


MOODY = (
    job("all", "* * * * *", on_missed="run-all"),
    job("once", "*/3 * * * *", on_missed="run-once", catchup_jitter=30),
    job("forbid", "* * * * *", on_missed="run-all", concurrency_policy="Forbid"),
    job("past", "* * * * *", only_if_last_succeeded=True),
    job("retried", "*/2 * * * *", retry=RetryPolicy(3, 10.0, 60.0, 2.0)),
    job("boot", "@reboot", retry=RetryPolicy(-1, 30.0, 60.0, 2.0)),
)
