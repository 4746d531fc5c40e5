"""In-flight records: a crash leaves a trace, and what still lives is left alone."""

from __future__ import annotations

import errno
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sections_values import StateConfig
from cronstable.config.values import JobConfig
from cronstable.runs.pauses import Pause
from cronstable.state.instants import to_text
from tests.fakes import job
from tests.runs.durable import STATE, DurableWorld, Host
from tests.runs.test_scheduler import NOON


class InflightCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.host = Host(NOON)

    def crashed(self, made: JobConfig, ran: float = 5.0, away: float = 100.0) -> DurableWorld:
        """Return the life after one that was killed while C{made} ran for C{ran} seconds."""
        world = DurableWorld(self.host, made)
        self.began = world.clock.now()
        world.runs.start_now(made.name)
        world.run(ran)
        self.host = world.kill()
        self.host.now += away
        return DurableWorld(self.host, made)

    def kinds(self, world: DurableWorld, name: str = "job") -> list[tuple[str, Any]]:
        found = world.records(f"inflight/{name}")
        return [(each["kind"], each.get("reason")) for each in found]


class OpenAndCloseTests(InflightCase):
    def test_a_run(self) -> None:
        """A run has an open record with its pid and digest, then a closed one after its row."""
        made = job("job", "@reboot")
        world = DurableWorld(self.host, made)
        (opened,) = world.records("inflight/job")
        self.assertEqual(
            opened,
            {
                "kind": "open",
                "host": "node-a",
                "proc": world.identity.instance[:12],
                "pid": world.executor.live[0].pid,
                "startedAt": to_text(NOON),
                "jobDigest": world.memory._digests(made),
            },
        )
        world.run(3)
        world.executor.live[0].exit()
        closed = world.records("inflight/job")[-1]
        self.assertEqual(
            closed,
            {
                "kind": "closed",
                "host": "node-a",
                "proc": world.identity.instance[:12],
                "reason": "finished",
                "at": to_text(NOON + 3),
            },
        )
        stems = [
            world.saved().records.items(f"{stream}/job")[-1][0] for stream in ("runs", "inflight")
        ]
        self.assertLess(stems[0], stems[1])

    def test_overlapping(self) -> None:
        """The open record names a run that lives, and is closed at the end of the last one."""
        world = DurableWorld(self.host, job("job"))
        for _ in range(3):
            world.runs.start_now("job")
            world.run(1)
        first, second, third = world.executor.live
        second.exit()
        self.assertEqual(self.kinds(world), [("open", None)])
        first.exit()
        newest = world.records("inflight/job")[-1]
        self.assertEqual((newest["kind"], newest["pid"]), ("open", third.pid))
        self.assertEqual(newest["startedAt"], to_text(NOON + 2))
        third.exit()
        self.assertEqual(self.kinds(world), [("open", None)] * 2 + [("closed", "finished")])

    def test_passed_on_while_the_store_hangs(self) -> None:
        """An open record that is written gets its closed one, though a later one never was."""
        world = DurableWorld(self.host, job("job"))
        for _ in range(2):
            world.runs.start_now("job")
            world.run(1)
        world.stick()
        for launch in list(world.executor.live):
            launch.exit()
        world.unstick()
        self.assertEqual(self.kinds(world)[-1], ("closed", "finished"))

    def test_never_written(self) -> None:
        """A pair of which nothing was written yet cancels out."""
        world = DurableWorld(self.host, job("job"))
        world.stick()
        for _ in range(20):
            world.runs.start_now("job")
            world.executor.live[0].exit()
        # The first open record is under way, so it cannot be taken back; its pair follows.
        self.assertEqual(world.store.pending, 1 + 1 + 20)
        world.unstick()
        self.assertEqual(self.kinds(world), [("open", None), ("closed", "finished")])
        self.assertEqual(len(world.records("runs/job")), 20)
        self.assertEqual(sum(world.store.dropped.values()), 0)

    def test_without_a_store(self) -> None:
        """Without a store nothing is kept."""
        world = DurableWorld(self.host, job("job"), up=False)
        world.runs.start_now("job")
        self.assertEqual(world.store.pending, 0)
        self.assertEqual(self.host.files.paths(), [])


class CrashTests(InflightCase):
    def test_row(self) -> None:
        """A run that a crash cut gets a row without a verdict that names start and host."""
        world = self.crashed(job("job", "@reboot"))
        row = world.records("runs/job")[-1]
        started = to_text(NOON)
        self.assertIn(
            f"no completion was recorded for the run started at {started} on node-a",
            row["fail_reason"],
        )
        self.assertTrue(row["fail_reason"].startswith("run interrupted: "))
        self.assertEqual(row["outcome"], "unknown")
        for field in ("started_at", "exit_code", "duration", "resources"):
            self.assertIsNone(row[field], field)
        self.assertEqual((row["finished_at"], row["ranAt"]), (started, started))
        self.assertEqual(self.kinds(world)[-1], ("closed", "reconciled-crash"))
        self.assertEqual(world.runs.history.runs("job")[-1].outcome, "unknown")

    def test_once(self) -> None:
        """A crash is told once, however often the daemon starts after it."""
        world = self.crashed(job("job", "@reboot"))
        for _ in range(3):
            self.host = world.kill()
            world = DurableWorld(self.host, job("job", "@reboot"))
            world.minute()
        outcomes = [row["outcome"] for row in world.records("runs/job")]
        self.assertEqual(outcomes, ["unknown"])

    def test_owed(self) -> None:
        """Under run-once and run-all the row leaves the slot owed."""
        for policy in ("run-once", "run-all"):
            self.host = Host(NOON)
            world = self.crashed(job("job", "0 0 1 1 *", on_missed=policy))
            row = world.records("runs/job")[-1]
            self.assertEqual(row["interruptedAt"], to_text(NOON))
            self.assertNotIn("finished_at", row)
            self.assertNotIn("ranAt", row)

    def test_is_the_latest(self) -> None:
        """The interrupted run is the latest, though an overlapping one ended after its start."""
        made = job("job", "@reboot")
        world = DurableWorld(self.host, made)
        world.run(5)
        world.runs.start_now("job")
        world.run(5)
        world.executor.live[-1].exit()
        self.host = world.kill()
        world = DurableWorld(self.host, made)
        last = world.runs.history.last("job")
        assert last is not None
        self.assertEqual(last.outcome, "unknown")
        self.assertEqual(
            [r.outcome for r in world.runs.history.runs("job")], ["success", "unknown"]
        )

    def test_no_verdict(self) -> None:
        """The depends-on-past gate ignores it: the verdict before it stands."""
        made = job("job", "* * * * *", only_if_last_succeeded=True)
        world = DurableWorld(self.host, made)
        world.runs.start_now("job")
        world.executor.live[0].exit(1)
        self.host = world.kill()
        world = self.crashed(made)
        world.run(60)
        self.assertEqual(world.results("job")[("skipped", "last-run-failed")], 1)

    def test_still_alive(self) -> None:
        """A process that outlived its daemon is left alone, with a warning."""
        made = job("job")
        world = DurableWorld(self.host, made)
        world.runs.start_now("job")
        self.host = world.kill()
        self.host.alive = {1000: self.host.now - 0.5}
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            world = DurableWorld(self.host, made)
        self.assertIn("pid 1000", logs.output[0])
        self.assertEqual(self.kinds(world), [("open", None)])
        self.assertEqual(world.records("runs/job"), [])
        self.host = world.kill()
        self.host.alive = {}
        world = DurableWorld(self.host, made)
        self.assertEqual(self.kinds(world)[-1], ("closed", "reconciled-crash"))

    def test_overlapping(self) -> None:
        """Of overlapping runs the one that had not ended was cut, or is left alone if it lives."""
        for lives in (False, True):
            self.host = Host(NOON)
            world = DurableWorld(self.host, job("job"))
            for _ in range(2):
                world.runs.start_now("job")
                world.run(1)
            first, second = world.executor.live
            first.exit()
            self.host = world.kill()
            self.host.alive = {second.pid: NOON + 1} if lives else {}
            world = DurableWorld(self.host, job("job"))
            reasons = [row["fail_reason"] for row in world.records("runs/job")]
            self.assertEqual(len(reasons), 1 if lives else 2)
            if not lives:
                self.assertIn(f"for the run started at {to_text(NOON + 1)} on", reasons[-1])

    def test_ended_just_before(self) -> None:
        """A run whose row was written is not said to be cut, though the crash came right then."""
        world = DurableWorld(self.host, job("job"))
        world.runs.start_now("job")
        world.run(1)
        opened = world.records("inflight/job")[-1]
        world.executor.live[0].exit()
        world.append("inflight/job", opened)
        self.host = world.kill()
        for _ in range(2):
            world = DurableWorld(self.host, job("job"))
            self.assertEqual([row["outcome"] for row in world.records("runs/job")], ["success"])
            self.assertEqual(self.kinds(world)[-1], ("closed", "finished"))
            self.host = world.kill()

    def test_recycled_pid(self) -> None:
        """A process that began after the record was written is another one."""
        for later, kept in ((1.9, True), (2.1, False)):
            self.host = Host(NOON)
            made = job("job")
            world = DurableWorld(self.host, made)
            world.runs.start_now("job")
            self.host = world.kill()
            self.host.alive = {1000: NOON + later}
            world = DurableWorld(self.host, made)
            self.assertEqual(self.kinds(world)[-1][0] == "open", kept, later)

    def test_while_it_runs_again(self) -> None:
        """A crash is found although the job runs again, and that run stays open on top."""
        made = job("job", "* * * * *")
        world = DurableWorld(self.host, made)
        world.runs.start_now("job")
        self.host = world.kill()
        world = DurableWorld(self.host, made, up=False)
        world.store._starting = True
        world.use(STATE)  # The start is under way.
        world.runs.start_now("job")
        world.store._starting = False
        world.minute()
        outcomes = [row["outcome"] for row in world.records("runs/job")]
        self.assertEqual(outcomes, ["unknown"])
        newest = world.records("inflight/job")[-1]
        self.assertEqual((newest["kind"], newest["proc"]), ("open", world.identity.instance[:12]))
        world.executor.live[0].exit()
        self.assertEqual(self.kinds(world)[-1], ("closed", "finished"))

    def test_other_host(self) -> None:
        """What another host left open is that host's."""
        world = DurableWorld(self.host, job("job"))
        world.runs.start_now("job")
        self.host = world.kill()
        self.host.name = "node-b"
        world = DurableWorld(self.host, job("job"))
        self.assertEqual(self.kinds(world), [("open", None)])

    def test_peer_between(self) -> None:
        """A peer's records in the stream do not hide what this host left open."""
        world = DurableWorld(self.host, job("job"))
        world.runs.start_now("job")
        world.append(
            "inflight/job", {"kind": "closed", "host": "node-b", "proc": "b", "reason": "finished"}
        )
        self.host = world.kill()
        world = DurableWorld(self.host, job("job"))
        self.assertEqual(self.kinds(world)[-1], ("closed", "reconciled-crash"))

    def test_taken_over(self) -> None:
        """What a peer has reconciled is not told again."""
        world = DurableWorld(self.host, job("job"))
        world.runs.start_now("job")
        world.append(
            "inflight/job",
            {"kind": "closed", "host": "node-b", "proc": "b", "reason": "reconciled-takeover"},
        )
        self.host = world.kill()
        world = DurableWorld(self.host, job("job"))
        self.assertEqual(world.records("runs/job"), [])

    def test_odd_records(self) -> None:
        """Records without a start or with an odd pid or process do no harm."""
        world = DurableWorld(self.host, job("a"), job("b"), job("c"))
        old = {"kind": "open", "host": "node-a", "proc": "x"}
        world.append("inflight/c", {**old, "proc": {"x": []}, "startedAt": to_text(NOON)})
        world.append("inflight/a", {**old, "startedAt": None})
        world.append("inflight/b", {**old, "startedAt": to_text(NOON), "pid": "7"})
        self.host = world.kill()
        world = DurableWorld(self.host, job("a"), job("b"), job("c"))
        self.assertEqual(world.records("runs/a"), [])
        self.assertEqual(world.records("runs/b")[-1]["outcome"], "unknown")
        self.assertEqual(world.records("runs/c")[-1]["outcome"], "unknown")

    def test_one_that_nobody_foresaw(self) -> None:
        """What fails with one job's records is logged; the other jobs are seen to."""
        world = DurableWorld(self.host, job("a"), job("b"))
        for name in ("a", "b"):
            world.runs.start_now(name)
        self.host = world.kill()
        world = DurableWorld(self.host, job("a"), job("b"), up=False)
        told = world.memory.inflight._reconcile

        def fails(made: JobConfig, *rest: Any) -> None:
            if made.name == "a":
                raise ZeroDivisionError
            told(made, *rest)

        self.patch(world.memory.inflight, "_reconcile", fails)
        with self.assertLogs("cronstable.state", "ERROR") as logs:
            world.start()
        self.assertIn("what is saved of a cannot be taken over", logs.output[0])
        self.assertEqual(world.records("runs/b")[-1]["outcome"], "unknown")
        self.assertTrue(world.memory.settled)

    def test_one_that_cannot_be_read(self) -> None:
        """An unreadable record holds up its own job only, and is asked for again."""
        world = DurableWorld(self.host, job("a"), job("b"))
        for name in "ab":
            world.runs.start_now(name)
        self.host = world.kill()
        world = DurableWorld(self.host, job("a"), job("b"), up=False)
        world.faults.fail("read", error=errno.EIO, match="inflight%2Fa")
        world.start()
        self.assertEqual(self.kinds(world, "a"), [("open", None)])
        self.assertEqual(self.kinds(world, "b")[-1], ("closed", "reconciled-crash"))
        world.faults.heal()
        world.minute()
        self.assertEqual(self.kinds(world, "a")[-1], ("closed", "reconciled-crash"))
        self.assertEqual(len(world.records("runs/b")), 1)


class StoreChangeTests(InflightCase):
    def test_live_over_a_change(self) -> None:
        """Runs that live while the store changes are open in the new one and closed there."""
        made = job("job")
        world = DurableWorld(self.host, made)
        world.runs.start_now("job")
        world.use(StateConfig(path="/other"))
        world.minute()
        self.assertEqual(world.store.view.path, "/other/default")  # type: ignore[union-attr]
        world.executor.live[0].exit()
        from cronstable.state.store import StoreSettings, open_store

        other = open_store(StoreSettings("/other"), world.clock, files=self.host.files)
        self.assertEqual(
            [each["kind"] for each in other.records.read("inflight/job")], ["open", "closed"]
        )
        self.assertEqual(len(other.records.read("runs/job")), 1)

    def test_same_process(self) -> None:
        """A store that is opened again does not take this process's own runs for interrupted."""
        world = DurableWorld(self.host, job("job"))
        world.runs.start_now("job")
        world.use(StateConfig(path="/state", max_runs_per_job=7))
        world.minute()
        self.assertEqual(world.records("runs/job"), [])
        world.executor.live[0].exit()
        self.assertEqual(self.kinds(world)[-1], ("closed", "finished"))

    def test_store_removed(self) -> None:
        """When the store goes, its queue is written out and runs go on."""
        world = DurableWorld(self.host, job("job"))
        world.runs.start_now("job")
        world.stick()
        world.executor.live[0].exit()
        world.use(None)
        world.unstick()
        self.assertFalse(world.store.configured)
        self.assertEqual(len(world.records("runs/job")), 1)
        world.runs.start_now("job")
        world.executor.live[0].exit()
        self.assertEqual(len(world.records("runs/job")), 1)

    def test_pause_survives_trouble(self) -> None:
        """A pause that could not be written is written when the store answers again."""
        world = DurableWorld(self.host, job("job"))
        world.faults.fail("create")
        world.runs.pause("job", Pause(NOON, NOON + 600))
        self.assertEqual(world.records("paused/job"), [])
        world.faults.heal()
        world.memory.settled = False
        world.minute()
        self.assertEqual(world.records("paused/job")[-1]["kind"], "paused")

    def test_changed_while_it_is_read(self) -> None:
        """A store that takes another's place while that is read is read as well."""
        world = DurableWorld(self.host, job("job"))
        world.append(
            "inflight/job",
            {"kind": "open", "host": "node-a", "proc": "x", "startedAt": to_text(NOON)},
        )
        world.use(StateConfig(path="/other"))
        world.stick()
        world.memory.settled = False
        world.memory.store_changed()
        world.minute()
        world.use(STATE)
        world.unstick()
        world.run(20)
        world.minute()
        self.assertTrue(world.memory.settled)
        self.assertEqual(self.kinds(world)[-1], ("closed", "reconciled-crash"))
