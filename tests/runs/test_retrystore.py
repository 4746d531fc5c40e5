"""Retries over restarts: armed again at the same instant, settled where that is in doubt."""

from __future__ import annotations

import errno
from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sections_values import StateConfig
from cronstable.config.values import JobConfig, RetryPolicy
from cronstable.runs.gates import No
from cronstable.runs.pauses import Pause
from cronstable.state.instants import from_text, to_text
from tests.fakes import job
from tests.runs.durable import STATE, DurableWorld, Host, kinds
from tests.runs.test_scheduler import NOON

RETRY = RetryPolicy(3, 100.0, 1000.0, 2.0)
JOB = job("job", "0 */6 * * *", retry=RETRY)


class RetryCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.host = Host(NOON - 1)

    def life(self, *jobs: JobConfig, up: bool = True, **wiring: Any) -> DurableWorld:
        world = DurableWorld(self.host, *(jobs or (JOB,)), up=False, **wiring)
        world.executor.behave = world.lasting(1, 1)
        if up:
            world.start()
        return world

    def failed(self, *jobs: JobConfig, **wiring: Any) -> DurableWorld:
        """Return a life in which the run of noon has just failed, at noon and a second."""
        world = self.life(*jobs, **wiring)
        world.run(2)
        return world

    def saved(self, world: DurableWorld) -> list[tuple[Any, ...]]:
        return kinds(world.records("retries/job"))

    def newest(self, world: DurableWorld) -> dict[str, Any]:
        return world.records("retries/job")[-1]


class JournalTests(RetryCase):
    """What is written while a sequence goes on."""

    def test_pending(self) -> None:
        """An armed retry is saved with its position, its instant and its job's digest."""
        world = self.failed()
        self.assertEqual(
            self.newest(world),
            {
                "kind": "pending",
                "attempt": 1,
                "notBefore": to_text(NOON + 101),
                "jobDigest": world.memory._digests(JOB),
                "host": "node-a",
                "at": to_text(NOON + 1),
                "slot": to_text(NOON),
            },
        )

    def test_launched_before_the_launch(self) -> None:
        """Just before an attempt launches it is settled, so that a crash does not repeat it."""
        world = self.failed()
        seen: list[tuple[Any, ...]] = []

        def behave(launch: object) -> None:
            seen.append(self.saved(world)[-1])

        world.executor.behave = behave
        world.run(100)
        self.assertEqual(seen, [("settled", "launched", 1)])

    def test_whole_sequence(self) -> None:
        """Each attempt is armed and settled, in this order, until the budget is exhausted."""
        world = self.failed()
        world.run(2000)
        self.assertEqual(
            self.saved(world),
            [
                ("pending", None, 1),
                ("settled", "launched", 1),
                ("pending", None, 2),
                ("settled", "launched", 2),
                ("pending", None, 3),
                ("settled", "launched", 3),
                ("settled", "exhausted", 3),
            ],
        )

    def test_succeeded(self) -> None:
        """An attempt that succeeds ends the sequence."""
        world = self.failed()
        world.executor.behave = world.lasting(1)
        world.run(102)
        self.assertEqual(self.saved(world)[-1], ("settled", "succeeded", 1))

    def test_superseded(self) -> None:
        """A fresh scheduled run ends the sequence."""
        world = self.failed(attrs.evolve(JOB, schedule=job("job", "0,1 * * * *").schedule))
        world.run(61)
        self.assertEqual(
            self.saved(world)[:3],
            [("pending", None, 1), ("settled", "superseded", 1), ("pending", None, 1)],
        )

    def test_cancelled(self) -> None:
        """An operator's cancel ends the sequence."""
        world = self.failed()
        world.executor.behave = lambda launch: None
        world.run(100)
        world.runs.cancel("job")
        self.assertEqual(self.saved(world)[-1], ("settled", "cancelled", 1))

    def test_removed(self) -> None:
        """A job that a reload removes has its retry settled."""
        world = self.failed()
        world.install(job("other"))
        self.assertEqual(self.saved(world)[-1], ("settled", "job-removed", 1))

    def test_disabled(self) -> None:
        """A job that a reload disables has it settled when it is due."""
        world = self.failed()
        world.install(attrs.evolve(JOB, enabled=False))
        world.run(100)
        self.assertEqual(self.saved(world)[-1], ("settled", "disabled", 1))

    def test_in_the_way(self) -> None:
        """An attempt that finds the job running under Forbid is over."""
        world = self.failed(attrs.evolve(JOB, concurrency_policy="Forbid"))
        world.executor.behave = lambda launch: None
        world.run(50)
        world.runs.start_now("job")
        world.run(60)
        self.assertEqual(self.saved(world)[-1], ("settled", "superseded", 1))

    def test_refused_after_the_claim(self) -> None:
        """An attempt that is not launched after all is pending again, at the same instant."""
        refusals = [No("moody")]

        class Grumpy:
            name = "grumpy"
            causes = frozenset(("retry",))

            def claim(self, request: object, made: JobConfig) -> Any:
                return refusals.pop() if refusals else Keeps()

        class Keeps:
            def release(self) -> None:
                pass

            def undo(self) -> None:
                pass

        world = self.failed(claims=[Grumpy()])
        world.run(100)
        self.assertEqual(self.saved(world)[-2:], [("settled", "launched", 1), ("pending", None, 1)])
        self.assertEqual(from_text(self.newest(world)["notBefore"]), NOON + 101)

    def test_stop(self) -> None:
        """A stop settles nothing: what is pending is for the next start."""
        world = self.failed()
        world.stop()
        self.assertEqual(self.saved(world), [("pending", None, 1)])

    def test_stop_in_the_middle_of_a_claim(self) -> None:
        """A stop that comes between the claim and the launch leaves it pending."""
        world = self.failed()
        world.stick()
        world.run(100)
        world.memory.stop()
        world.runs.quiesce()
        world.unstick()
        self.successResultOf(world.runs.when_drained())
        self.assertEqual(self.saved(world)[-1], ("pending", None, 1))
        self.assertEqual(len(world.executor.launches), 1)

    def test_failing_while_draining(self) -> None:
        """A run that fails during a stop arms nothing."""
        world = self.life()
        world.run(1.5)
        world.stop()
        self.assertEqual(world.records("retries/job"), [])
        self.assertEqual(world.records("runs/job")[-1]["outcome"], "failure")


class RearmTests(RetryCase):
    """What the next start makes of it."""

    def again(self, away: float = 20.0, *jobs: JobConfig, kill: bool = True) -> DurableWorld:
        """Return the life after one in which a run of C{JOB} failed."""
        world = self.failed()
        self.host = world.kill() if kill else world.stop(0.5)
        self.host.now = NOON + 2 + away
        return self.life(*jobs)

    def test_same_instant(self) -> None:
        """A retry is due at the instant it was due, whatever the restart took."""
        for away in (1.0, 60.0):
            self.setUp()
            world = self.again(away)
            pending = world.runs.pending_retry("job")
            assert pending is not None
            self.assertEqual((pending.attempt, pending.not_before), (1, NOON + 101))
            world.run(200)
            self.assertEqual(world.started("job"), [NOON + 101])

    def test_after_a_stop(self) -> None:
        """A graceful stop hands it on in the same way."""
        world = self.again(kill=False)
        world.run(200)
        self.assertEqual(world.started("job"), [NOON + 101])

    def test_overdue(self) -> None:
        """One whose instant has passed is due at once."""
        world = self.again(1000)
        world.run(0.1)
        self.assertEqual(world.started("job"), [NOON + 1002])

    def test_clock_that_was_ahead(self) -> None:
        """One that was armed while the clock was a day ahead is due after its delay at most."""
        self.host.now += 86400
        self.failed()
        self.host.now = NOON + 2
        world = self.life()
        pending = world.runs.pending_retry("job")
        assert pending is not None
        self.assertEqual(pending.not_before, NOON + 102)
        world.run(200)
        self.assertEqual(world.started("job"), [NOON + 102])

    def test_position(self) -> None:
        """The sequence goes on where it was: number, delay, budget and slot."""
        world = self.again()
        world.run(3000)
        self.assertEqual(world.started("job"), [NOON + 101, NOON + 302, NOON + 703])
        self.assertEqual(self.saved(world)[-1], ("settled", "exhausted", 3))
        self.assertEqual([slot for slot, _ in world.starts("job")], [int(NOON)] * 3)

    def test_kills_in_the_ladder(self) -> None:
        """However often the daemon is killed, each attempt is made once."""
        world = self.failed()
        starts = []
        for _ in range(40):
            world.run(23.7)
            starts += world.started("job")
            self.host = world.kill()
            world = self.life()
        self.assertEqual(starts[0], NOON)
        self.assertEqual(len(starts), 4)
        self.assertEqual(self.saved(world)[-1], ("settled", "exhausted", 3))

    def test_killed_right_after_the_launch(self) -> None:
        """An attempt that was launched before the crash is not launched again."""
        world = self.failed()
        world.executor.behave = lambda launch: None
        world.run(100)
        self.host = world.kill()
        world = self.life()
        world.run(5000)
        self.assertEqual(world.started("job"), [])

    def reason(self, *jobs: JobConfig, away: float = 20.0) -> Any:
        """Return why a saved retry was settled by the next start."""
        world = self.again(away, *jobs)
        self.assertIsNone(world.runs.pending_retry("job"))
        kind, reason, _ = self.saved(world)[-1]
        self.assertEqual(kind, "settled")
        return reason

    def test_config_changed(self) -> None:
        """A changed definition invalidates it; an edit of another job does not."""
        self.assertEqual(self.reason(attrs.evolve(JOB, command="other")), "config-changed")
        self.setUp()
        world = self.again(20, JOB, attrs.evolve(job("other"), command="edited"))
        self.assertIsNotNone(world.runs.pending_retry("job"))

    def test_removed(self) -> None:
        """A job that is gone has it settled."""
        self.assertEqual(self.reason(job("other")), "job-removed")

    def test_disabled(self) -> None:
        """So has one that was disabled."""
        self.assertEqual(self.reason(attrs.evolve(JOB, enabled=False)), "disabled")

    def test_deadline(self) -> None:
        """One that is overdue by more than startingDeadlineSeconds is not worth it."""
        made = attrs.evolve(JOB, starting_deadline=50)
        self.assertEqual(self.reason(made, away=160), "deadline-passed")
        self.setUp()
        world = self.again(140, made)
        self.assertIsNotNone(world.runs.pending_retry("job"))

    def test_superseded_by_run(self) -> None:
        """A run that came after it was armed, of whatever node, has ended it."""
        world = self.failed()
        finish = to_text(NOON + 50)
        world.append("runs/job", {"outcome": "failure", "finished_at": finish, "ranAt": finish})
        self.host = world.kill()
        world = self.life()
        self.assertEqual(self.saved(world)[-1], ("settled", "superseded-by-run", 1))

    def test_failed_backfills_do_not_supersede(self) -> None:
        """What a backfill cannot end while the daemon lives it does not end over a restart."""
        retry = RetryPolicy(3, 3 * 86400.0, 3 * 86400.0, 1.0)
        made = attrs.evolve(JOB, on_missed="run-all", retry=retry)
        for lasting in (1, 600):
            self.host = Host(NOON - 1)
            self.host = self.failed(made).kill()
            self.host.now = NOON + 86401
            world = self.life(made, up=False)
            world.executor.behave = world.lasting(lasting, 1)
            world.start()
            world.run(20)
            self.host = world.stop(2)
            causes = {run.record.cause for run in world.finished}
            self.assertEqual(causes, {"catchup"})
            world = self.life(made)
            self.assertEqual(self.saved(world), [("pending", None, 1)], lasting)
            self.assertIsNotNone(world.runs.pending_retry("job"))

    def test_successful_backfill_ends_it(self) -> None:
        """A backfill that succeeds has done what the retry was for."""
        made = attrs.evolve(JOB, on_missed="run-once", retry=RetryPolicy(3, 9e5, 9e5, 1.0))
        self.host = self.failed(made).kill()
        self.host.now = NOON + 86401
        world = self.life(made, up=False)
        world.executor.behave = world.lasting(1)
        world.start()
        world.run(20)
        self.assertEqual(self.saved(world)[-1], ("settled", "succeeded", 1))

    def test_skipped_rows_do_not_supersede(self) -> None:
        """Rows of a pause are no runs."""
        world = self.failed()
        world.append("runs/job", {"outcome": "skipped", "finished_at": to_text(NOON + 50)})
        self.host = world.kill()
        world = self.life()
        self.assertIsNotNone(world.runs.pending_retry("job"))

    def test_live_run_supersedes(self) -> None:
        """A scheduled run that was quicker than the store has ended it."""
        every = attrs.evolve(JOB, schedule=job("job", "* * * * *").schedule)
        world = self.failed(every)
        self.host = world.kill()
        self.host.now = NOON + 59.5
        world = self.life(every, up=False)
        world.executor.behave = lambda launch: None
        world.run(1)
        self.assertEqual(len(world.executor.live), 1)
        world.start()
        self.assertEqual(self.saved(world)[-1], ("settled", "superseded", 1))
        self.assertIsNone(world.runs.pending_retry("job"))

    def test_new_boot(self) -> None:
        """An @reboot job's retry ends with the boot; the fresh boot run takes its place."""
        made = job("job", "@reboot", retry=RETRY)
        for boot_id, reason in (("boot-1", None), ("boot-2", "superseded-by-reboot")):
            self.host = Host(NOON)
            world = self.failed(made)
            self.host = world.kill()
            self.host.boot_id = boot_id
            world = self.life(made, up=False)
            world.use(STATE)
            self.assertEqual(self.saved(world)[-1][1], reason)

    def test_keep_alive(self) -> None:
        """An @reboot job with endless retries is restarted over the daemon's own restarts."""
        made = job("job", "@reboot", retry=RetryPolicy(-1, 10.0, 10.0, 1.0))
        self.host = Host(NOON)
        world = self.failed(made)
        starts = 0
        for _ in range(10):
            self.host = world.kill()
            world = self.life(made)
            world.run(11)
            starts += len(world.started("job"))
        self.assertGreaterEqual(starts, 9)

    def test_invalid(self) -> None:
        """A record that makes no sense is settled."""
        for broken in ({"attempt": 0}, {"attempt": "1"}, {"attempt": True}, {"notBefore": "soon"}):
            self.setUp()
            world = self.failed()
            world.append("retries/job", {**self.newest(world), **broken})
            self.host = world.kill()
            world = self.life()
            self.assertEqual(self.saved(world)[-1][1], "invalid-record", broken)

    def test_other_host(self) -> None:
        """Another host's retry is neither armed nor settled; a renamed host is told of it."""
        world = self.failed()
        self.host = world.kill()
        self.host.name = "node-b"
        with self.assertLogs("cronstable", "WARNING") as logs:
            world = self.life()
        self.assertIn("node-a", logs.output[0])
        self.assertIn("if this host was renamed", logs.output[0])
        self.assertEqual(self.saved(world), [("pending", None, 1)])
        self.assertIsNone(world.runs.pending_retry("job"))

    def test_unreadable(self) -> None:
        """A record that cannot be read arms nothing until it can."""
        world = self.failed()
        self.host = world.kill()
        world = self.life(up=False)
        world.faults.fail("read", match="retries%2F")
        world.start()
        self.assertIsNone(world.runs.pending_retry("job"))
        world.faults.heal()
        world.minute()
        self.assertIsNotNone(world.runs.pending_retry("job"))

    def test_late_store(self) -> None:
        """A store that comes up minutes later arms it then."""
        world = self.failed()
        self.host = world.kill()
        world = self.life(up=False)
        world.faults.fail("create", error=errno.EROFS)
        world.start()
        world.run(60)
        world.minute()
        self.assertFalse(world.store.on)
        world.faults.heal()
        world.run(60)
        world.minute()
        world.run(1)
        self.assertEqual(world.started("job"), [NOON + 121])

    def test_pause(self) -> None:
        """A pause that was read back defers it until it is over."""
        world = self.failed()
        world.runs.pause("job", Pause(NOON, NOON + 150))
        self.host = world.kill()
        world = self.life()
        world.run(110)
        self.assertEqual(world.started("job"), [])
        world.run(50)
        world.minute()
        self.assertEqual(len(world.started("job")), 1)


class TroubleTests(RetryCase):
    """What a due attempt does when its launch cannot be noted."""

    def due(self, policy: str, trouble: str) -> DurableWorld:
        """Return a life in which the attempt was due eleven seconds ago."""
        world = self.life(up=False)
        world.start(StateConfig(path="/state", on_store_unavailable=policy))
        world.run(2)
        if trouble == "hang":
            world.stick()
        else:
            world.faults.fail("create", error=errno.ENOSPC)
        world.run(99 + 11.5)
        return world

    def test_degrade(self) -> None:
        """Under degrade it launches, at most ten seconds late."""
        for trouble, late in (("full", 0.0), ("hang", 10.0)):
            self.setUp()
            world = self.due("degrade", trouble)
            self.assertEqual(world.started("job")[1:], [NOON + 101 + late], trouble)

    def test_fail_closed(self) -> None:
        """Under fail-closed it is put off until the store answers, and then launches once."""
        for trouble in ("full", "hang"):
            self.setUp()
            world = self.due("fail-closed", trouble)
            self.assertEqual(len(world.started("job")), 1, trouble)
            world.faults.heal()
            world.unstick()
            world.run(111)
            self.assertEqual(len(world.started("job")), 2, trouble)
            saved = self.saved(world)
            first = [each for each in saved if each[2] == 1]
            self.assertEqual(first[-1], ("settled", "launched", 1), trouble)
            self.assertEqual(saved[-1], ("pending", None, 2), trouble)
