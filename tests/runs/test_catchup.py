"""Catch-up from the end of one life to the middle of the next."""

from __future__ import annotations

import errno
from collections import Counter
from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sections_values import StateConfig
from cronstable.config.values import JobConfig
from cronstable.runs.catchup import MOST_WINDOWS
from cronstable.runs.gates import No
from cronstable.runs.missed import jitter
from cronstable.runs.pauses import Pause
from cronstable.state.instants import from_text, to_text
from tests.fakes import job
from tests.runs.durable import DurableWorld, Host
from tests.runs.test_scheduler import at

NOON = at("2026-06-01 12:00:00")


class CatchUpCase(SynchronousTestCase):
    """A host whose last daemon ended its last run at noon."""

    def setUp(self) -> None:
        self.host = Host(NOON)

    def began(self, *jobs: JobConfig, away: float = 3600, **wiring: Any) -> DurableWorld:
        """Return the life that begins C{away} seconds after noon; runs take two seconds."""
        self.host.now = NOON
        before = DurableWorld(self.host, *jobs)
        for each in jobs:
            row = {"outcome": "success", "finished_at": to_text(NOON), "ranAt": to_text(NOON)}
            before.append(f"runs/{each.name}", row)
        self.host = before.kill()
        self.host.now += away
        return self.next(*jobs, **wiring)

    def next(self, *jobs: JobConfig, **wiring: Any) -> DurableWorld:
        wiring.setdefault("up", True)
        up = wiring.pop("up")
        world = DurableWorld(self.host, *jobs, up=False, **wiring)
        world.executor.behave = world.lasting(2)
        if up:
            world.start()
        return world

    def minutes(self, world: DurableWorld, name: str = "job") -> list[tuple[float, str]]:
        """Return (minutes after noon, cause) of the starts of a job."""
        return [((slot or 0) / 60 - NOON / 60, cause) for slot, cause in world.starts(name)]

    def caught_up(self, world: DurableWorld, name: str = "job") -> list[float]:
        return [minute for minute, cause in self.minutes(world, name) if cause == "catchup"]

    def checkpoint(self, world: DurableWorld, name: str = "job") -> dict[str, Any]:
        return world.records(f"catchup/{name}")[-1]


class StartTests(CatchUpCase):
    """What passed before the daemon started."""

    def test_run_all(self) -> None:
        """Each missed slot is run, oldest first, one after another."""
        world = self.began(job("job", "*/10 * * * *", on_missed="run-all"), away=3580)
        world.run(60)
        self.assertEqual(self.caught_up(world), [10, 20, 30, 40, 50])
        starts = world.started("job")[:5]
        gaps = {round(b - a, 3) for a, b in zip(starts, starts[1:], strict=False)}
        self.assertEqual(gaps, {2.0})
        self.assertEqual(world.results("job"), Counter({("ran", None): 6}))

    def test_run_once(self) -> None:
        """One run stands for all; the slot that it is told is the newest."""
        world = self.began(job("job", "*/10 * * * *", on_missed="run-once"), away=3599)
        world.run(30)
        self.assertEqual(self.caught_up(world), [50])
        self.assertEqual(world.results("job")[("merged", None)], 4)
        merged = next(e for e in world.book.entries("job") if e.result == "merged")
        self.assertEqual(merged.into, int(NOON) + 3000)

    def test_skip(self) -> None:
        """A job that catches up with nothing has its slots entered as missed, and runs nothing."""
        world = self.began(job("job", "*/10 * * * *"), away=3599)
        self.assertEqual(world.results("job"), Counter({("missed", "down"): 5}))
        self.assertEqual(world.starts("job"), [])
        self.assertEqual(world.records("catchup/job"), [])

    def test_new_job(self) -> None:
        """A job without any record in the store has no past to catch up with."""
        self.began(job("old", "* * * * *", on_missed="run-all"))
        world = self.next(job("new", "* * * * *", on_missed="run-all"), job("newer", "* * * * *"))
        self.assertEqual(world.starts("new"), [])
        self.assertEqual(world.results("new") + world.results("newer"), Counter())

    def test_down_over_one_slot(self) -> None:
        """A daemon that was away for two seconds over a slot runs it late, once."""
        world = self.began(job("job", "* * * * *", on_missed="run-all"), away=61)
        world.run(30)
        self.assertEqual(self.minutes(world), [(1, "catchup")])

    def test_first_run_of_all_was_cut(self) -> None:
        """A crash in a job's first run leaves its slot owed, and those that passed since."""
        made = job("job", "*/10 * * * *", on_missed="run-all")
        for by_hand in (False, True):
            for stop in (DurableWorld.kill, lambda world: world.stop(5)):
                self.host = Host(NOON + 595)
                world = DurableWorld(self.host, made)
                if by_hand:
                    world.runs.start_now("job")
                    world.run(1)
                else:
                    world.run(6)
                self.host = stop(world)
                self.host.now = NOON + 1205
                for _ in range(2):
                    world = self.next(made)
                    world.run(1)
                    self.assertEqual(self.caught_up(world), [10], (by_hand, stop))
                    self.host = world.kill()

    def test_first_run_of_all_whose_row_cannot_be_written(self) -> None:
        """That it was cut counts, though its row has not come into the store."""
        made = job("job", "*/10 * * * *", on_missed="run-all")
        world = DurableWorld(self.host, made)
        world.run(601)
        self.host = world.kill()
        world = self.next(made, up=False)
        world.faults.fail("rename", match="runs%2F")
        world.start()
        world.run(1)
        self.assertEqual(world.records("runs/job"), [])
        self.assertEqual(self.caught_up(world), [10])

    def test_slot_of_the_start(self) -> None:
        """The slot at the instant of the start is caught up with, not fired and not lost."""
        world = self.began(job("job", "* * * * *", on_missed="run-all"), away=60)
        world.run(65)
        self.assertEqual(self.minutes(world), [(1, "catchup"), (2, "scheduled")])

    def test_after_a_bug(self) -> None:
        """What fails for no reason that was foreseen leaves the rest of a start as it is."""
        world = self.began(job("job", "*/30 * * * *", on_missed="run-all"), up=False)
        self.patch(world.memory.retries, "saved", lambda jobs: 1 // 0)
        with self.assertLogs("cronstable.state", "ERROR"):
            world.start()
        world.run(30)
        self.assertEqual(self.caught_up(world), [30, 60])
        self.assertTrue(world.memory.settled)

    def test_disabled(self) -> None:
        """A disabled job owes nothing."""
        world = self.began(job("job", "* * * * *", on_missed="run-all", enabled=False))
        world.run(5)
        self.assertEqual(world.results("job"), Counter())

    def test_enabled_by_a_reload(self) -> None:
        """A job that was disabled at the start owes nothing when a reload enables it."""
        made = job("job", "*/10 * * * *", on_missed="run-all", enabled=False)
        world = self.began(made)
        world.install(attrs.evolve(made, enabled=True))
        world.minute()
        world.run(60)
        self.assertEqual(world.starts("job"), [])

    def test_deadline_and_cap(self) -> None:
        """Slots beyond deadline and cap are missed; a cut is said in the log, with the limit."""
        world = self.began(
            job(
                "job",
                "*/10 * * * *",
                on_missed="run-all",
                starting_deadline=2400,
                catchup_limit=2,
            ),
            away=3599,
            up=False,
        )
        with self.assertLogs("cronstable", "WARNING") as logs:
            world.start()
        self.assertIn("catchupLimit of 2", logs.output[0])
        world.run(30)
        self.assertEqual(self.caught_up(world), [40, 50])
        self.assertEqual(
            world.results("job"),
            Counter({("missed", "deadline"): 1, ("missed", "cap"): 2, ("ran", None): 3}),
        )

    def test_jitter(self) -> None:
        """The backfill begins after the job's own jitter, the same at every start."""
        spread = job("job", "*/10 * * * *", on_missed="run-once", catchup_jitter=300)
        world = self.began(spread, away=3000)
        world.run(jitter(spread))
        self.assertEqual(world.starts("job"), [])
        world.run(1)
        self.assertEqual(self.caught_up(world), [50])

    def test_zone(self) -> None:
        """Slots are counted in the job's own zone, over its clock changes."""
        self.host.now = at("2026-03-29 00:00:00")  # Berlin springs forward an hour later.
        made = job("job", "30 2 * * *", on_missed="run-all", zone="Europe/Berlin")
        world = DurableWorld(self.host, made)
        world.append("runs/job", {"outcome": "success", "finished_at": to_text(self.host.now)})
        self.host = world.kill()
        self.host.now += 2 * 86400
        world = self.next(made)
        world.run(30)
        slots = [slot for slot, _ in world.starts("job")]
        self.assertEqual(slots, [at("2026-03-29 01:30:00"), at("2026-03-30 00:30:00")])

    def test_while_paused_nothing_is_owed(self) -> None:
        """Slots that a pause would have skipped are not caught up with."""
        made = job("job", "*/10 * * * *", on_missed="run-all")
        world = self.began(made, up=False)
        world.append(
            "paused/job",
            {
                "kind": "paused",
                "since": to_text(NOON + 1200),
                "until": to_text(NOON + 2400),
                "at": to_text(NOON + 1200),
                "host": "node-a",
            },
        )
        world.start()
        world.run(30)
        self.assertEqual(self.caught_up(world), [10, 40, 50, 60])
        self.assertEqual(world.results("job")[("missed", "paused")], 2)

    def save_retry(
        self, world: DurableWorld, of: JobConfig, attempt: int, not_before: float
    ) -> None:
        """Put into the store what a daemon before this one left of a retry."""
        record = {
            "kind": "pending",
            "attempt": attempt,
            "notBefore": to_text(not_before),
            "jobDigest": world.memory.retries._digest(of),
            "host": "node-a",
            "at": to_text(NOON + 1),
        }
        world.append("retries/job", record)

    def test_no_retries(self) -> None:
        """A backfill that fails is not tried again, and leaves a pending retry alone."""
        from cronstable.config.values import RetryPolicy

        made = job("job", "0 * * * *", on_missed="run-all", retry=RetryPolicy(3, 600.0, 600.0, 1.0))
        world = self.began(made, away=3601, up=False)
        world.executor.behave = world.lasting(2, 1)
        self.save_retry(world, made, 2, NOON + 5000)
        world.start()
        world.run(30)
        self.assertEqual(self.caught_up(world), [60])
        pending = world.runs.pending_retry("job")
        assert pending is not None
        self.assertEqual((pending.attempt, pending.not_before), (2, NOON + 5000))

    def test_retry_waits_for_a_backfill(self) -> None:
        """A retry that is due while a backfill runs under Forbid is launched after it."""
        from cronstable.config.values import RetryPolicy

        made = job(
            "job",
            "0 * * * *",
            on_missed="run-all",
            retry=RetryPolicy(3, 5.0, 5.0, 1.0),
            concurrency_policy="Forbid",
        )
        world = self.began(made, away=3601, up=False)
        world.executor.behave = world.lasting(8, 1)
        self.save_retry(world, made, 1, NOON + 3605)
        world.start()
        world.run(8)
        self.assertEqual(world.records("retries/job")[-1]["kind"], "pending")
        world.run(8)
        self.assertEqual([cause for _, cause in world.starts("job")], ["catchup", "retry"])

    def test_hours_ahead(self) -> None:
        """Rows hours ahead of the clock are named in the log and do not hide what is owed."""
        made = job("job", "*/10 * * * *", on_missed="run-all")
        world = self.began(made, up=False)
        world.append("runs/job", {"outcome": "success", "finished_at": to_text(NOON + 86400)})
        with self.assertLogs("cronstable", "WARNING") as logs:
            world.start()
        self.assertIn("1 run(s) in the ledger are hours ahead", logs.output[0])
        world.run(30)
        self.assertEqual(self.caught_up(world), [10, 20, 30, 40, 50, 60])

    def test_noted_by_a_clock_that_was_ahead(self) -> None:
        """A backfill of a day that is still to come leaves its slots to the schedule."""
        made = job("job", "0 * * * *", on_missed="run-all", catchup_jitter=3000)
        self.host = self.began(made, away=86400).kill()
        self.host.now = NOON + 7200
        world = self.next(made)
        world.run(3610)
        found = [(60, "catchup"), (120, "catchup"), (180, "scheduled")]
        self.assertEqual(self.minutes(world), found)
        world.minute()
        self.host = world.kill()
        world = self.next(made)
        world.run(3610)
        self.assertEqual(self.minutes(world), [(240, "scheduled")])
        self.assertEqual(self.checkpoint(world)["kind"], "open")
        world.run(86400)
        world.minute()
        self.assertEqual(self.checkpoint(world)["kind"], "close")
        self.assertEqual(self.caught_up(world), [])

    def test_clock_that_was_behind_over_a_backfill(self) -> None:
        """What a killed backfill left is run once the clock is set, or by the start after that."""
        made = job("job", "*/10 * * * *", on_missed="run-all")
        for unset in (1000.0, NOON + 1500):
            for step in (True, False):
                self.host = Host(NOON)
                world = self.began(made)
                world.run(3)
                self.assertEqual(self.caught_up(world), [10, 20])
                self.host = world.kill()
                self.host.now = unset
                world = self.next(made)
                world.run(20)
                early = self.caught_up(world)
                self.assertEqual(early, [20] if unset > NOON else [])
                if step:
                    world.clock.step(NOON + 3700 - world.clock.now())
                else:
                    self.host = world.kill()
                    self.host.now = NOON + 3700
                    world = self.next(made)
                world.run(100)
                found = self.caught_up(world) if step else early + self.caught_up(world)
                self.assertEqual(found, [20, 30, 40, 50, 60], (unset, step))
                self.assertEqual(world.book.unaccounted(), 0)
                self.assertEqual(self.checkpoint(world)["kind"], "close")

    def test_clock_that_was_unset(self) -> None:
        """A clock that is set long after the start does not bring back what the ledger has."""
        made = job("job", "*/10 * * * *", on_missed="run-all")
        self.began(made, up=False)
        self.host.now = 1000.0
        world = self.next(made)
        world.run(30)
        self.assertEqual(world.starts("job"), [])
        world.clock.step(NOON + 1800 + 60 - world.clock.now())
        world.run(60)
        self.assertEqual(self.caught_up(world), [10, 20, 30])
        self.assertEqual(world.book.unaccounted(), 0)


class PolicyTests(CatchUpCase):
    """A backfill and the runs of the day."""

    def test_waits_for_idle(self) -> None:
        """Under every policy a backfill waits for an idle moment and replaces nothing."""
        for policy in ("Allow", "Forbid", "Replace"):
            self.host = Host(NOON)
            made = job("job", "* * * * *", on_missed="run-all", concurrency_policy=policy)
            world = self.began(made, away=61)
            world.runs.start_now("job")
            world.executor.live[0].memo["cause"]
            world.run(1.9)
            self.assertEqual(self.minutes(world)[1:], [], policy)
            world.run(1.0)
            self.assertEqual(self.caught_up(world), [1], policy)
            self.assertNotIn("replaced", [r.record.outcome for r in world.finished])

    def test_live_fires_first(self) -> None:
        """What is due now is not held up by what is owed."""
        made = job("job", "* * * * *", on_missed="run-all", concurrency_policy="Forbid")
        world = self.began(made, away=299.8)
        world.run(30)
        self.assertEqual(
            self.minutes(world)[:3], [(5, "scheduled"), (1, "catchup"), (2, "catchup")]
        )

    def test_run_once_is_satisfied(self) -> None:
        """Any start after the slot satisfies run-once, failed or not; it is asked at the end."""
        made = job("job", "0 * * * *", on_missed="run-once", catchup_jitter=1000)
        world = self.began(made, away=3700)
        world.executor.behave = world.lasting(1, 1)
        world.runs.start_now("job")
        world.run(1001)
        self.assertEqual(self.caught_up(world), [])
        self.assertEqual(world.results("job"), Counter({("merged", None): 1}))
        self.assertEqual(self.checkpoint(world)["kind"], "close")

    def test_run_all_is_not(self) -> None:
        """run-all owes each slot, whatever else has been started."""
        made = job("job", "0 * * * *", on_missed="run-all", catchup_jitter=1000)
        world = self.began(made, away=3700)
        world.runs.start_now("job")
        world.run(1001)
        self.assertEqual(self.caught_up(world), [60])

    def test_job_goes(self) -> None:
        """What a job owes ends with the job, with its being enabled, and with its policy."""
        made = job("job", "*/10 * * * *", on_missed="run-all", catchup_jitter=1000)
        for change, reason in (
            ({}, "removed"),
            ({"enabled": False}, "disabled"),
            ({"on_missed": "skip"}, "policy"),
        ):
            world = self.began(made)
            world.run(1)
            world.install(*([attrs.evolve(made, **change)] if change else []))
            world.run(1001)
            self.assertEqual(self.caught_up(world), [])
            if change:
                missed = Counter({("missed", reason): 6})
                found = world.results("job")
                self.assertEqual({k: found[k] for k in missed}, dict(missed))
                self.assertEqual(self.checkpoint(world)["kind"], "close")
            self.assertEqual(list(world.book.open_slots()), [])


class CheckpointTests(CatchUpCase):
    """What the store knows of a backfill at each moment."""

    made = job("job", "*/10 * * * *", on_missed="run-all")

    def test_open_before_close_after(self) -> None:
        """A checkpoint is open before the first launch, and closed after the last run."""
        world = self.began(self.made)
        self.assertEqual(world.starts("job"), [])
        opened = self.checkpoint(world)
        self.assertEqual(opened["kind"], "open")
        self.assertEqual(from_text(opened["watermark"]), NOON + 600 - 1)
        world.run(60)
        self.assertEqual(self.checkpoint(world)["kind"], "close")

    def test_killed_at_every_moment(self) -> None:
        """A kill costs at most one repeated run, and never a slot."""
        for moment in range(0, 40):
            self.host = Host(NOON)
            world = self.began(self.made, away=3660)
            world.run(moment * 0.4)
            before = self.caught_up(world)
            self.host = world.kill()
            self.host.now += 1
            world = self.next(self.made)
            world.run(60)
            after = self.caught_up(world)
            self.assertEqual(sorted({*before, *after}), [10, 20, 30, 40, 50, 60], moment)
            self.assertLessEqual(len(before) + len(after), 7, moment)

    def test_killed_again_and_again(self) -> None:
        """Every life gets on a little, however short it is."""
        world = self.began(self.made, away=3660)
        seen: list[float] = []
        for _ in range(12):
            world.run(3)
            seen += self.caught_up(world)
            self.host = world.kill()
            world = self.next(self.made)
        self.assertEqual(sorted(set(seen)), [10, 20, 30, 40, 50, 60])
        self.assertLessEqual(max(Counter(seen).values()), 2)

    def test_rows_wait(self) -> None:
        """A run that ends before it is known what is owed does not hide it, even over a kill."""
        world = self.began(self.made, away=3599.5, up=False)
        world.store._starting = True
        world.use(world_state())
        world.run(5)
        self.assertEqual(self.minutes(world), [(60, "scheduled")])
        self.assertEqual(len(world.records("runs/job")), 1)
        self.host = world.kill()
        world = self.next(self.made)
        world.run(60)
        self.assertEqual(self.caught_up(world), [10, 20, 30, 40, 50, 60])

    def test_rows_are_released(self) -> None:
        """Once it is known what is owed the rows are written, after the checkpoint."""
        world = self.began(self.made, away=3599.5, up=False)
        world.faults.fail("read", match="runs%2F")
        world.start()
        world.run(5)
        self.assertEqual(len(world.records("runs/job")), 1)
        world.faults.heal()
        world.minute()
        self.assertEqual(len(world.records("runs/job")), 2)
        world.run(60)
        self.assertEqual(self.caught_up(world), [10, 20, 30, 40, 50])

    def test_ledger_that_stays_unreadable(self) -> None:
        """A ledger that can never be read holds back a bounded number of rows."""
        made = job("job", "* * * * * * *", on_missed="run-all", concurrency_policy="Forbid")
        world = self.began(made, away=10, up=False)
        world.executor.behave = world.lasting(0.5)
        world.faults.fail("read", match="runs%2F")
        world.start()
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            for _ in range(3):
                world.run(60)
                world.minute()
        self.assertEqual(sum("cannot be found out" in line for line in logs.output), 1)
        self.assertGreater(len(world.records("runs/job")), 150)

    def test_stop(self) -> None:
        """A stop leaves the rest open; what it waited for is not repeated."""
        world = self.began(self.made)
        world.run(3)
        self.assertEqual(self.caught_up(world), [10, 20])
        self.host = world.stop()
        self.assertEqual(world.results("job")[("missed", "shutdown")], 4)
        world = self.next(self.made)
        world.run(30)
        self.assertEqual(self.caught_up(world), [30, 40, 50, 60])

    def test_stop_at_the_last(self) -> None:
        """A stop that waits for the last backfill leaves nothing open."""
        world = self.began(job("job", "0 * * * *", on_missed="run-all"))
        world.run(1)
        self.assertEqual(self.caught_up(world), [60])
        self.host = world.stop()
        self.assertEqual(self.checkpoint(world)["kind"], "close")

    def test_slots_of_the_drain(self) -> None:
        """The end of a run that a stop waits for does not hide the slots that came meanwhile."""
        for policy, owed in (("run-all", [20, 30]), ("run-once", [30])):
            self.host = Host(NOON)
            made = attrs.evolve(self.made, on_missed=policy)
            world = DurableWorld(self.host, made)
            world.executor.behave = world.lasting(1300)
            world.run(601)
            self.host = world.stop(1400)
            self.assertEqual(self.minutes(world), [(10, "scheduled")])
            self.assertEqual(len(world.records("runs/job")), 1)
            self.host.now = NOON + 2300
            world = self.next(made)
            world.run(30)
            self.assertEqual(self.caught_up(world), owed, policy)
            self.assertEqual(self.checkpoint(world)["kind"], "close")

    def test_drain_without_a_slot(self) -> None:
        """A stop that no slot comes up in leaves nothing open."""
        world = DurableWorld(self.host, self.made)
        world.executor.behave = world.lasting(500)
        world.run(601)
        world.stop(600)
        self.assertEqual(world.records("catchup/job"), [])

    def test_slot_that_the_stop_dropped(self) -> None:
        """A slot that waited when the stop came is owed, whatever ends during the stop."""
        made = attrs.evolve(self.made, only_if_last_succeeded=True, concurrency_policy="Replace")
        shared = StateConfig(path="/state", topology="shared")
        world = DurableWorld(self.host, made, state=shared)
        world.executor.behave = world.lasting(800)
        world.run(601)
        world.stick()
        world.run(600)
        self.assertEqual([each.slot for each in world.book.open_slots()], [NOON + 1200])
        world.clock.callLater(5, world.unstick)
        self.host = world.stop(300)
        self.assertEqual(world.results("job")[("missed", "shutdown")], 1)
        self.assertEqual(len(world.records("runs/job")), 1)
        world = self.next(made)
        world.run(30)
        self.assertEqual(self.caught_up(world), [20])

    def test_backfill_of_the_drain(self) -> None:
        """A stop that waits for a backfill keeps the rest, and what came meanwhile."""
        world = self.began(self.made, up=False)
        world.executor.behave = world.lasting(900)
        world.start()
        world.run(10)
        self.host = world.stop(1000)
        self.host.now = NOON + 3600 + 1000
        world = self.next(self.made)
        world.run(30)
        self.assertEqual(self.caught_up(world), [20, 30, 40, 50, 60, 70])

    def test_cut(self) -> None:
        """A backfill that a second signal cuts stays owed."""
        world = self.began(job("job", "0 * * * *", on_missed="run-all"))
        world.executor.behave = world.lasting(500)
        world.run(1)
        self.host = world.stop(drain=5)
        row = world.records("runs/job")[-1]
        self.assertEqual((row["outcome"], row["fail_reason"]), ("cancelled", "cut by shutdown"))
        self.assertNotIn("finished_at", row)
        self.assertIn("interruptedAt", row)
        world = self.next(job("job", "0 * * * *", on_missed="run-all"))
        world.run(1)
        self.assertEqual(self.caught_up(world), [60])

    def test_live_runs_are_not_repeated(self) -> None:
        """A resumed backfill leaves out what was run as usual meanwhile."""
        made = job("job", "* * * * *", on_missed="run-all")
        world = self.began(made, away=301)
        world.executor.behave = world.lasting(25)
        world.run(125)
        self.assertEqual([m for m, c in self.minutes(world) if c == "scheduled"], [6, 7])
        done = self.caught_up(world)
        self.host = world.kill()
        world = self.next(made)
        world.run(50)
        rest = self.caught_up(world)
        self.assertEqual(sorted({*done, *rest, 6.0, 7.0}), [1, 2, 3, 4, 5, 6, 7])
        self.assertNotIn(6, rest)

    def test_nothing_owed_closes(self) -> None:
        """An evaluation that owes nothing closes a checkpoint that is still open."""
        made = attrs.evolve(self.made, starting_deadline=60)
        world = self.began(made, up=False)
        world.append(
            "catchup/job", {"kind": "open", "watermark": to_text(NOON), "at": to_text(NOON)}
        )
        self.host = world.kill()
        self.host.now += 200
        world = self.next(made)
        self.assertEqual(self.checkpoint(world)["kind"], "close")
        self.assertEqual(world.starts("job"), [])

    def test_job_that_owes_nothing_any_more(self) -> None:
        """A start that finds the job disabled, or set to skip, closes what was left open."""
        spread = attrs.evolve(self.made, catchup_jitter=3000)
        for change in ({"enabled": False}, {"on_missed": "skip"}):
            self.host = Host(NOON)
            self.host = self.began(spread).kill()
            world = self.next(attrs.evolve(spread, **change))
            self.assertEqual(self.checkpoint(world)["kind"], "close")
            world.run(1)
            world.install(spread)
            world.run(3610)
            self.host = world.kill()
            world = self.next(spread)
            world.run(3600)
            self.assertEqual(self.caught_up(world), [], change)

    def test_closed_when_it_can_be_read(self) -> None:
        """What cannot be read yet is closed later, and by a node that may run the job only."""
        self.host = self.began(self.made).kill()
        disabled = attrs.evolve(self.made, enabled=False)
        world = self.next(disabled, leadership=Moody(No("not-owner")))
        self.assertEqual(self.checkpoint(world)["kind"], "open")
        self.host = world.kill()
        world = self.next(disabled, up=False)
        world.faults.fail("read", match="catchup%2F")
        world.start()
        self.assertEqual(self.checkpoint(world)["kind"], "open")
        world.faults.heal()
        world.minute()
        self.assertEqual(self.checkpoint(world)["kind"], "close")

    def test_pause_leaves_it_open(self) -> None:
        """A pause stops the backfill part-way; the next start after it goes on from there."""
        world = self.began(self.made)
        world.run(3)
        self.assertEqual(self.caught_up(world), [10, 20])
        now = world.clock.now()
        world.runs.pause("job", Pause(now, now + 60))
        world.run(120)
        self.assertEqual(self.caught_up(world), [10, 20])
        self.assertEqual(world.results("job")[("missed", "paused")], 4)
        self.assertEqual(self.checkpoint(world)["kind"], "open")
        self.host = world.stop()
        world = self.next(self.made)
        world.run(60)
        self.assertEqual(self.caught_up(world), [30, 40, 50, 60])

    def test_run_once_after_a_pause(self) -> None:
        """What a pause has stopped is not run by the next start if the job has run since."""
        made = attrs.evolve(self.made, on_missed="run-once")
        for live, owed in ((605, []), (500, [60])):
            self.host = Host(NOON)
            world = self.began(made, away=3660)
            world.runs.pause("job", Pause(world.clock.now(), world.clock.now() + 100))
            world.run(live)
            self.assertEqual(self.checkpoint(world)["kind"], "open")
            self.host = world.kill()
            world = self.next(made)
            world.run(30)
            self.assertEqual(self.caught_up(world), owed)
            self.assertEqual(self.checkpoint(world)["kind"], "close")

    def test_disabled_after_a_pause(self) -> None:
        """What a pause has stopped is owed no more once the job is disabled."""
        world = self.began(self.made)
        world.run(1)
        world.runs.pause("job", Pause(world.clock.now(), world.clock.now() + 100))
        world.run(10)
        self.assertEqual(self.checkpoint(world)["kind"], "open")
        world.install(attrs.evolve(self.made, enabled=False))
        self.assertEqual(self.checkpoint(world)["kind"], "close")

    def test_gap_on_top_of_a_pause(self) -> None:
        """What a pause has stopped stays open under what is owed and run later."""
        world = self.began(self.made)
        world.run(1)
        now = world.clock.now()
        world.runs.pause("job", Pause(now, now + 30))
        world.run(60)
        world.runs.resume("job")
        world.clock.suspend(1300)
        world.run(120)
        self.assertEqual(self.caught_up(world), [10, 70, 80])
        self.assertEqual(self.checkpoint(world)["kind"], "open")
        self.host = world.stop()
        world = self.next(self.made)
        world.run(60)
        self.assertEqual(self.caught_up(world), [20, 30, 40, 50, 60])


class GapTests(CatchUpCase):
    """Slots that passed while the daemon itself stood still."""

    made = job("job", "*/10 * * * *", on_missed="run-all")

    def awake(self, *jobs: JobConfig) -> DurableWorld:
        world = DurableWorld(self.host, *jobs)
        world.executor.behave = world.lasting(2)
        world.run(1)
        return world

    def test_before_any_run(self) -> None:
        """Within a running daemon even a job that never ran recovers what it slept through."""
        world = self.awake(self.made)
        world.clock.suspend(1900)
        world.run(60)
        self.assertEqual(self.minutes(world), [(10, "catchup"), (20, "catchup"), (30, "catchup")])
        self.assertEqual(self.checkpoint(world)["kind"], "close")
        world.scheduler.audit()
        self.assertEqual(world.book.unaccounted(), 0)

    def test_current_slot_fires(self) -> None:
        """The slot that matches now fires as usual; run-all covers those before it."""
        world = self.awake(self.made)
        world.clock.suspend(1800)
        world.run(60)
        self.assertEqual(self.minutes(world), [(30, "scheduled"), (10, "catchup"), (20, "catchup")])

    def test_run_once_and_current_slot(self) -> None:
        """For run-once the current slot's fire satisfies the recovery."""
        world = self.awake(attrs.evolve(self.made, on_missed="run-once"))
        world.clock.suspend(1800)
        world.run(60)
        self.assertEqual(self.minutes(world), [(30, "scheduled")])
        self.assertEqual(world.results("job"), Counter({("ran", None): 1, ("merged", None): 2}))

    def test_killed_before_the_gap_was_noticed(self) -> None:
        """A run that ends right after a sleep does not hide what was slept through."""
        made = job("job", "*/10 * * * *", on_missed="run-all")
        for awake, ended in ((1, 30), (40, 0)):
            self.host = Host(NOON - 15)
            world = DurableWorld(self.host, made)
            world.run(2)
            world.executor.behave = world.lasting(2)
            world.runs.start_now("job")
            world.run(1)
            world.clock.suspend(1900)
            world.run(awake)
            self.assertEqual(self.checkpoint(world)["kind"], "open" if ended else "close")
            seen = self.caught_up(world)
            self.host = world.kill()
            world = self.next(made)
            world.run(ended)
            self.assertEqual(seen + self.caught_up(world), [0, 10, 20, 30])
            self.assertEqual(self.checkpoint(world)["kind"], "close")

    def test_unnoticed_slot_that_fires(self) -> None:
        """What was only late, and has been fired, is owed no more within a minute."""
        world = DurableWorld(self.host, job("job", "*/10 * * * *", on_missed="run-all"))
        world.run(599 - 15)
        world.executor.behave = world.lasting(2)
        world.runs.start_now("job")
        world.run(1)
        world.clock.suspend(30)
        world.run(1)
        self.assertEqual(self.checkpoint(world)["kind"], "open")
        world.run(30)
        world.minute()
        self.assertEqual(self.minutes(world)[1:], [(10, "scheduled")])
        self.assertEqual(self.checkpoint(world)["kind"], "close")

    def test_separate_gaps(self) -> None:
        """Separate gaps stay separate windows, served one after another."""
        world = self.awake(attrs.evolve(self.made, catchup_jitter=100))
        for _ in range(3):
            world.clock.suspend(650)
            world.run(31)
        self.assertEqual(self.caught_up(world), [])
        self.assertEqual(len(self.checkpoint(world)["windows"]), 3)
        world.run(400)
        self.assertEqual(self.caught_up(world), [10, 20, 30])

    def test_kill_between_gaps(self) -> None:
        """After a kill only what lies in the gaps is owed."""
        world = self.awake(attrs.evolve(self.made, catchup_jitter=2000))
        world.clock.suspend(650)
        world.run(600)
        self.assertEqual([m for m, _ in self.minutes(world)], [20])
        world.clock.suspend(650)
        world.run(60)
        self.host = world.kill()
        world = self.next(self.made)
        world.run(60)
        self.assertEqual(self.caught_up(world), [10, 30])

    def test_too_many_gaps(self) -> None:
        """At most a hundred windows wait; the oldest that waits goes, with a warning."""
        made = job("job", "* * * * *", on_missed="run-all", catchup_jitter=10**6)
        world = self.awake(made)
        with self.assertLogs("cronstable", "WARNING") as logs:
            for _ in range(MOST_WINDOWS + 2):
                world.clock.suspend(150)
                world.run(31)
        dropped = [line for line in logs.output if "too many gaps" in line]
        self.assertEqual(len(dropped), 2)
        self.assertGreaterEqual(world.results("job")[("missed", "cap")], 2)
        world.scheduler.audit()
        self.assertEqual(world.book.unaccounted(), 0)

    def test_paused(self) -> None:
        """What passes in a sleep during a pause is not owed."""
        world = self.awake(self.made)
        now = world.clock.now()
        world.runs.pause("job", Pause(now, now + 7200))
        world.clock.suspend(1900)
        world.run(60)
        self.assertEqual(world.starts("job"), [])
        self.assertEqual(world.results("job"), Counter({("missed", "paused"): 3}))

    def test_store_in_trouble(self) -> None:
        """Without a checkpoint nothing is replayed; it is when the store is well again."""
        for policy in ("degrade", "fail-closed"):
            self.host = Host(NOON)
            world = DurableWorld(self.host, self.made, up=False)
            world.executor.behave = world.lasting(2)
            world.start(StateConfig(path="/state", on_store_unavailable=policy))
            world.faults.fail("create", error=errno.ENOSPC)
            world.run(1)
            world.clock.suspend(1900)
            world.run(200)
            self.assertEqual(world.starts("job"), [], policy)
            world.faults.heal()
            world.run(61)
            self.assertEqual(self.caught_up(world), [10, 20, 30], policy)

    def test_without_a_store(self) -> None:
        """Without a store the slots of a gap are missed."""
        world = DurableWorld(self.host, self.made, up=False)
        world.run(1)
        world.clock.suspend(1900)
        world.run(60)
        self.assertEqual(world.results("job"), Counter({("missed", "delayed"): 3}))

    def test_not_the_owner(self) -> None:
        """A node that may not run the job neither replays nor writes; it waits to be told."""
        leader = Moody(No("no-leader"))
        world = DurableWorld(self.host, self.made, leadership=leader)
        world.executor.behave = world.lasting(2)
        world.run(1)
        world.clock.suspend(1900)
        world.run(60)
        self.assertEqual(world.records("catchup/job"), [])
        leader.answer = None
        world.run(70)
        self.assertEqual(self.caught_up(world), [10, 20, 30])
        leader.answer = No("not-owner", transient=False)
        world.clock.suspend(1300)
        world.run(60)
        self.assertEqual(self.caught_up(world), [10, 20, 30])
        self.assertEqual(world.results("job")[("missed", "not-owner")], 2)


class OwnerTests(CatchUpCase):
    """A start on a node that may not run everything."""

    made = job("job", "*/10 * * * *", on_missed="run-all")

    def test_waits_for_leadership(self) -> None:
        """What was missed is found out once this node is the owner."""
        leader = Moody(No("no-leader"))
        world = self.began(self.made, leadership=leader)
        world.run(30)
        self.assertEqual(world.records("catchup/job"), [])
        leader.answer = None
        world.minute()
        world.run(30)
        self.assertEqual(self.caught_up(world), [10, 20, 30, 40, 50, 60])

    def test_loses_it(self) -> None:
        """A backfill stops when the owner changes, and its checkpoint stays open."""
        leader = Moody(None)
        world = self.began(self.made, leadership=leader)
        world.run(3)
        leader.answer = No("not-owner", transient=False)
        world.run(30)
        self.assertEqual(self.caught_up(world), [10, 20])
        self.assertEqual(self.checkpoint(world)["kind"], "open")
        self.assertEqual(world.results("job")[("missed", "not-owner")], 4)


class Moody:
    """An election that says what it is told to."""

    def __init__(self, answer: No | None) -> None:
        self.answer = answer

    def may_run(self, job: JobConfig) -> No | None:
        return self.answer


def world_state() -> StateConfig:
    return StateConfig(path="/state")
