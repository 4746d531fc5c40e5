"""Retries and how they mingle with other runs of their job."""

from __future__ import annotations

import math

from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import RetryPolicy
from cronstable.runs.pauses import Pause
from cronstable.runs.record import FinishedRun, GaveUp, RetryScheduled
from cronstable.runs.retry import LONGEST_DELAY, RetrySequence, jittered
from cronstable.state.instants import to_text
from tests.fakes import job
from tests.runs.test_scheduler import NOON
from tests.runs.world import World

THREE = RetryPolicy(3, 1.0, 300.0, 2.0)
ONCE_A_DAY = "0 13 * * *"


class Reports:
    """Records which hooks were reported, and answers when the test says so."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.answer: Deferred[None] | None = None

    def report(self, hook: str, finished: FinishedRun) -> Deferred[None]:
        self.sent.append((hook, finished.record.job))
        return succeed(None) if self.answer is None else self.answer


class RetryTests(SynchronousTestCase):
    def world(self, *jobs: object, **wiring: object) -> World:
        self.reports = Reports()
        return World(NOON + 3600 - 10, *jobs, reporter=self.reports, **wiring)

    def test_ladder(self) -> None:
        """Attempts follow at 1, 2 and 4 s after each failure, then the job gives up."""
        world = self.world(job("a", ONCE_A_DAY, retry=THREE))
        gave_up: list[object] = []
        world.bus.subscribe(GaveUp, gave_up.append)
        world.executor.behave = lambda launch: launch.exit(1)
        world.advance(60)
        start = NOON + 3600
        self.assertEqual(world.started("a"), [start, start + 1, start + 3, start + 7])
        self.assertEqual([row.attempt for row in world.records("a")], [0, 1, 2, 3])
        self.assertEqual({row.slot for row in world.records("a")}, {start})
        hooks = [hook for hook, _ in self.reports.sent]
        self.assertEqual(hooks, ["onFailure"] * 4 + ["onPermanentFailure"])
        self.assertEqual(len(gave_up), 1)
        self.assertIs(world.runs.pending_retry("a"), None)

    def test_without_end(self) -> None:
        """However long a delay is meant to be, its instant has a date."""
        for policy in (
            RetryPolicy(3, math.inf, math.inf, math.inf),
            RetryPolicy(3, 1e300, 1e308, 1e308, 1.0),
            RetryPolicy(3, 0.0, math.inf, math.inf),
        ):
            sequence = RetrySequence("a", policy, None)
            delays = [sequence.advance() for _ in range(3)]
            self.assertTrue(all(0 <= delay <= LONGEST_DELAY for delay in delays), delays)
            to_text(NOON + max(delays))

    def test_maximum_delay(self) -> None:
        """Delays after the first are capped."""
        policy = RetryPolicy(4, 10.0, 15.0, 2.0)
        world = self.world(job("a", ONCE_A_DAY, retry=policy))
        delays: list[float] = []
        world.bus.subscribe(RetryScheduled, lambda event: delays.append(event.delay))
        world.executor.behave = lambda launch: launch.exit(1)
        world.advance(120)
        self.assertEqual(delays, [10.0, 15.0, 15.0, 15.0])

    def test_success_ends_it(self) -> None:
        """A retry that succeeds ends the sequence and reports success."""
        world = self.world(job("a", ONCE_A_DAY, retry=THREE))
        world.executor.behave = lambda launch: launch.exit(len(world.executor.launches) < 2)
        world.advance(60)
        self.assertEqual([row.outcome for row in world.records("a")], ["failure", "success"])
        self.assertEqual([hook for hook, _ in self.reports.sent], ["onFailure", "onSuccess"])
        self.assertIs(world.runs.retries.current("a"), None)

    def test_without_retries(self) -> None:
        """A job without retries gives up at once, after its failure report."""
        world = self.world(job("a", ONCE_A_DAY))
        world.executor.behave = lambda launch: launch.exit(1)
        world.advance(60)
        self.assertEqual(
            [hook for hook, _ in self.reports.sent], ["onFailure", "onPermanentFailure"]
        )

    def test_waits_for_its_report(self) -> None:
        """A retry is armed at once but launches no sooner than its failure was reported."""
        world = self.world(job("a", ONCE_A_DAY, retry=THREE))
        world.executor.behave = lambda launch: launch.exit(1)
        self.reports.answer = Deferred()
        world.advance(30)
        self.assertEqual(len(world.started("a")), 1)
        pending = world.runs.pending_retry("a")
        assert pending is not None
        self.assertEqual((pending.attempt, pending.not_before), (1, NOON + 3601))
        answer, self.reports.answer = self.reports.answer, None
        answer.callback(None)
        self.assertEqual(len(world.started("a")), 2)

    def test_new_slot_ends_the_ladder(self) -> None:
        """The next scheduled run that launches ends the old sequence and begins its own."""
        world = self.world(job("a", "* * * * *", retry=RetryPolicy(1, 90.0, 300.0, 2.0)))
        world.executor.behave = lambda launch: launch.exit(1)
        world.advance(10 + 60 * 4 + 50)
        self.assertEqual({row.attempt for row in world.records("a")}, {0})
        self.assertEqual(world.results("a"), {("ran", None): 5})

    def test_forbidden_slot_leaves_the_ladder(self) -> None:
        """A slot that Forbid skips leaves the sequence alone."""
        policy = RetryPolicy(5, 1.0, 1.0, 1.0)
        world = self.world(
            job("a", "* * * * *", retry=policy, concurrency_policy="Forbid"),
        )
        world.executor.behave = world.lasting(70, 1)
        world.advance(10 + 60 + 30)
        self.assertEqual(world.results("a"), {("ran", None): 1, ("skipped", "overlap"): 1})
        self.assertEqual([launch.memo["attempt"] for launch in world.executor.launches], [0, 1])

    def test_never_two_under_forbid(self) -> None:
        """A retry that finds a manual run alive is not launched; that run's failure goes on."""
        policy = RetryPolicy(5, 5.0, 5.0, 1.0)
        world = self.world(job("a", ONCE_A_DAY, retry=policy, concurrency_policy="Forbid"))
        world.executor.behave = lambda launch: launch.exit(1)
        world.advance(11)
        world.executor.behave = world.lasting(20, 1)
        world.runs.start_now("a")
        world.advance(19)
        self.assertEqual(len(world.executor.live), 1)
        world.advance(10)
        self.assertEqual([launch.memo["attempt"] for launch in world.executor.launches], [0, 0, 2])

    def test_manual_failure_without_sequence(self) -> None:
        """A manual run of a job with retries creates no sequence of its own."""
        world = self.world(job("a", ONCE_A_DAY, retry=THREE))
        world.executor.behave = lambda launch: launch.exit(1)
        world.runs.start_now("a")
        world.advance(5)
        self.assertEqual(len(world.started("a")), 1)
        self.assertEqual(self.reports.sent[-1], ("onPermanentFailure", "a"))

    def test_cancel_ends_it(self) -> None:
        """A cancelled run is recorded as such, reports nothing and ends the sequence."""
        world = self.world(job("a", ONCE_A_DAY, retry=THREE))
        world.advance(15)
        count, _ = world.runs.cancel("a", "somebody")
        self.assertEqual(count, 1)
        (row,) = world.records("a")
        self.assertEqual(
            (row.outcome, row.exit_code, row.ended_by_whom), ("cancelled", -15, "somebody")
        )
        world.advance(60)
        self.assertEqual(len(world.started("a")), 1)
        self.assertEqual(self.reports.sent, [])

    def test_success_of_an_earlier_run(self) -> None:
        """An earlier run that succeeds late ends nothing of a later one that still runs."""
        world = self.world(job("a", "* * * * *", retry=THREE))
        world.advance(70)
        earlier, later = world.executor.live
        earlier.exit(0)
        later.exit(1)
        pending = world.runs.pending_retry("a")
        self.assertEqual(pending and pending.attempt, 1)

    def test_pause_defers(self) -> None:
        """A due retry of a paused job waits; a resume asks for it again at once."""
        world = self.world(job("a", ONCE_A_DAY, retry=RetryPolicy(3, 5.0, 300.0, 2.0)))
        world.executor.behave = lambda launch: launch.exit(1)
        world.advance(11)
        world.runs.pause("a", Pause(NOON, NOON + 86400))
        world.advance(30)
        self.assertEqual(len(world.started("a")), 1)
        world.runs.resume("a")
        self.assertEqual(len(world.started("a")), 2)

    def test_pause_that_ends_otherwise(self) -> None:
        """So does a pause that another node lifts, and one that runs out."""
        patient = job("a", ONCE_A_DAY, retry=RetryPolicy(3, 500.0, 500.0, 1.0))
        for runs_out in (False, True):
            world = self.world(patient)
            world.executor.behave = lambda launch: launch.exit(1)
            world.run(11)
            world.runs.pause("a", Pause(NOON, NOON + 3600 + 600))
            world.run(599)
            self.assertEqual(len(world.started("a")), 1)
            if runs_out:
                world.runs.expire_pauses()
            else:
                world.runs.take_pause("a", None)
            self.assertEqual(len(world.started("a")), 2)

    def test_job_removed(self) -> None:
        """A retry of a job that is gone is dropped with a warning."""
        world = self.world(job("a", ONCE_A_DAY, retry=THREE))
        world.executor.behave = lambda launch: launch.exit(1)
        world.advance(10.5, 0.5)
        world.install(job("b"))
        world.advance(30)
        self.assertEqual(len(world.started("a")), 1)

    def test_start_failure_is_retried(self) -> None:
        """A run that could not start is a failure with code 127, retried like any other."""
        world = self.world(job("a", ONCE_A_DAY, retry=RetryPolicy(1, 1.0, 300.0, 2.0)))
        world.executor.refuse = "no such program"
        world.advance(30)
        self.assertEqual([row.exit_code for row in world.records("a")], [127, 127])
        self.assertEqual(world.results("a"), {("ran", None): 1})

    def test_boot_run(self) -> None:
        """The retries of a boot run stand for no slot, for nothing was due then."""
        world = self.world(job("a", "@reboot", retry=THREE))
        world.executor.behave = lambda launch: launch.exit(1)
        world.boot.begin(world.runs.jobs)
        world.advance(30)
        causes = [(row.cause, row.attempt) for row in world.records("a")]
        self.assertEqual(causes, [("boot", 0), ("retry", 1), ("retry", 2), ("retry", 3)])
        self.assertEqual([row.slot for row in world.records("a")][1:], [None] * 3)

    def test_stopping(self) -> None:
        """A run that fails while the daemon stops is recorded, not reported and not retried."""
        world = self.world(job("a", ONCE_A_DAY, retry=THREE))
        world.advance(15)
        world.runs.quiesce()
        drained = world.runs.when_drained()
        self.assertNoResult(drained)
        world.executor.live[0].exit(1)
        self.successResultOf(drained)
        self.assertEqual(len(world.records("a")), 1)
        self.assertEqual(self.reports.sent, [])

    def test_cut_by_shutdown(self) -> None:
        """What a second signal ends is recorded as cut by shutdown."""
        world = self.world(job("a", ONCE_A_DAY, retry=THREE))
        world.advance(15)
        world.runs.quiesce()
        world.runs.cut()
        (row,) = world.records("a")
        self.assertEqual((row.outcome, row.fail_reason), ("cancelled", "cut by shutdown"))
        self.assertEqual(self.reports.sent, [])

    def test_jitter(self) -> None:
        """A jittered delay lies in its range, is stable, and differs between attempts."""
        drawn = [jittered(10.0, 0.5, "a", 60, attempt) for attempt in range(1, 50)]
        self.assertTrue(all(10.0 <= delay <= 15.0 for delay in drawn))
        self.assertEqual(drawn, [jittered(10.0, 0.5, "a", 60, n) for n in range(1, 50)])
        self.assertGreater(len(set(drawn)), 40)
        self.assertEqual(jittered(10.0, 0.0, "a", 60, 1), 10.0)
