"""The ledger: rows as the store spells them, and the history that the next start has."""

from __future__ import annotations

import json
import math
from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sections_values import StateConfig
from cronstable.config.values import JobConfig, NamedSecret, Secret
from cronstable.executors.interfaces import CapsReport, Usage
from cronstable.runs import rows
from cronstable.runs.pauses import Pause
from cronstable.runs.record import RunRecord, Verification
from cronstable.state.instants import to_text
from tests.fakes import job
from tests.runs.durable import DurableWorld, Host
from tests.runs.test_scheduler import NOON

FULL = RunRecord(
    "job",
    "failure",
    NOON + 5.25,
    exit_code=3,
    started_at=NOON + 1.5,
    duration=3.75,
    fail_reason="exit code 3",
    usage=Usage(1.5, 0.25, 4096, 7, ((NOON + 2, 50.0, 4096),)),
    verification=Verification(
        "failure", 1, "exit code 1", NOON + 4, NOON + 5, 1.0, "out\n", "err\n", 1, 2, True
    ),
    caps=CapsReport(
        enforced=True,
        mechanism="cgroup-v2",
        unenforced=("cpu",),
        reason="why",
        refused=False,
        memory_exceeded=True,
        process_limit_hits=2,
        peak_memory=8192,
        cpu_throttled=0.5,
    ),
)


class RowTests(SynchronousTestCase):
    def test_round_trip(self) -> None:
        """A run reads back as it was written, through JSON, but for why it ran."""
        row = json.loads(json.dumps(rows.row_of(FULL)))
        self.assertEqual(rows.record_of("job", row), attrs.evolve(FULL, cause=None))

    def test_fields(self) -> None:
        """A row has the fields that other readers of the format look for."""
        row = rows.row_of(RunRecord("job", "success", NOON, exit_code=0, started_at=NOON - 2))
        self.assertEqual(
            row,
            {
                "outcome": "success",
                "exit_code": 0,
                "started_at": to_text(NOON - 2),
                "finished_at": to_text(NOON),
                "ranAt": to_text(NOON),
                "duration": None,
                "fail_reason": None,
                "skip_reason": None,
                "resources": None,
            },
        )

    def test_skipped(self) -> None:
        """A row of a pause has no ranAt: nothing ran."""
        row = rows.row_of(RunRecord("job", "skipped", NOON, skip_reason="paused"))
        self.assertNotIn("ranAt", row)
        self.assertEqual(row["finished_at"], to_text(NOON))

    def test_owed(self) -> None:
        """A run that is still owed has no finish, so that its slot stays owed."""
        row = rows.row_of(RunRecord("job", "cancelled", NOON), owed=True)
        self.assertEqual(row["interruptedAt"], to_text(NOON))
        self.assertNotIn("finished_at", row)
        self.assertNotIn("ranAt", row)

    def test_caught_up(self) -> None:
        """The row of a backfill says so; every other row is as the format has it."""
        made = RunRecord("job", "failure", NOON, cause="catchup")
        self.assertIs(rows.row_of(made)["catchup"], True)
        self.assertNotIn("catchup", rows.row_of(attrs.evolve(made, cause="scheduled")))

    def test_hostile(self) -> None:
        """Fields of the wrong kind are left out; a row without sense is none."""
        good = rows.row_of(FULL)
        for field in good:
            for odd in (
                *(None, 5, "x", [], {}, True, [[1]], {"samples": []}, {"outcome": 5}),
                *(math.nan, math.inf, 10**400, {"max_rss_bytes": math.inf, "samples": 10**400}),
            ):
                rows.record_of("job", {**good, field: odd})
        read = rows.record_of("job", {**good, "duration": math.inf, "exit_code": 10**400})
        assert read is not None
        self.assertIs(read.duration, None)
        self.assertIs(rows.record_of("job", {**good, "duration": True}).duration, None)  # type: ignore[union-attr]
        for row in ({}, {"outcome": "success"}, {"outcome": "odd", "finished_at": to_text(NOON)}):
            self.assertIsNone(rows.record_of("job", row))
        usage = {**good["resources"], "series": [[None, 1, 1], [1, 1], 5, [1, None, 1]]}
        read = rows.record_of("job", {**good, "resources": usage})
        assert read is not None and read.usage is not None
        self.assertEqual(read.usage.series, ())
        for field in ("verification", "limits"):
            for name in good[field]:
                rows.record_of("job", {**good, field: {**good[field], name: [5]}})
        read = rows.record_of("job", {**good, "exit_code": "3", "fail_reason": 5, "resources": 1})
        assert read is not None
        self.assertEqual((read.exit_code, read.fail_reason, read.usage), (None, None, None))


class LedgerCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.host = Host(NOON)

    def run_once(self, world: DurableWorld, status: int = 0, name: str = "job") -> None:
        world.runs.start_now(name)
        world.run(1)
        world.executor.live[-1].exit(status)

    def next(self, *jobs: JobConfig, **wiring: Any) -> DurableWorld:
        return DurableWorld(self.host, *(jobs or (job("job"),)), **wiring)


class WriteTests(LedgerCase):
    def test_each_run(self) -> None:
        """Each finished run is one row; one that was replaced leaves none."""
        world = self.next(job("job", concurrency_policy="Replace"))
        self.run_once(world)
        self.run_once(world, 3)
        world.runs.start_now("job")
        self.run_once(world)
        outcomes = [row["outcome"] for row in world.records("runs/job")]
        self.assertEqual(outcomes, ["success", "failure", "success"])

    def test_pause(self) -> None:
        """A paused slot leaves a skipped row; nothing else that is skipped leaves one."""
        world = self.next(job("job", "* * * * *"), job("off", "* * * * *", enabled=False))
        world.runs.pause("job", Pause(NOON, NOON + 90))
        world.run(61)
        (row,) = world.records("runs/job")
        self.assertEqual((row["outcome"], row["skip_reason"]), ("skipped", "paused"))
        self.assertEqual(world.records("runs/off"), [])

    def test_retention(self) -> None:
        """The newest maxRunsPerJob rows are kept, and at most seven more."""
        for most, least in ((10, 10), (1, 2), (0, 40)):
            self.host = Host(NOON)
            world = self.next(up=False)
            world.start(StateConfig(path="/state", max_runs_per_job=most))
            for _ in range(40):
                self.run_once(world)
            kept = len(world.records("runs/job"))
            self.assertGreaterEqual(kept, least)
            self.assertLessEqual(kept, least + 7)

    def test_retention_of_one_is_said_once(self) -> None:
        """A retention of one is raised to two, which is said once, however often it starts."""
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            world = self.next(up=False)
            world.start(StateConfig(path="/state", max_runs_per_job=1))
            world.use(StateConfig(path="/state", max_runs_per_job=1, fsync="never"))
        self.assertEqual(sum("maxRunsPerJob is 1" in line for line in logs.output), 1)

    def test_archive(self) -> None:
        """Archived output has its lines, redacted unless the job says otherwise."""
        secret = NamedSecret("DB", Secret(value="hunter2-hunter2"))
        for redact in (True, False):
            self.host = Host(NOON)
            made = job(
                "job",
                archive_output=True,
                redact_archived_secrets=redact,
                capture_stdout=True,
                secrets=(secret,),
            )
            world = self.next(made)
            world.runs.start_now("job")
            launch = world.executor.live[0]
            launch.observer.output("stdout", b"one\nAPI_TOKEN=abcdef\nhunter2-hunter2\n")
            launch.observer.output("stderr", b"oops\n")
            launch.exit(1)
            (kept,) = world.records("logs/job")
            text = "".join(each["line"] for each in kept["lines"])
            self.assertEqual(kept["redacted"], redact)
            self.assertEqual("abcdef" not in text and "hunter2" not in text, redact)
            self.assertEqual(kept["lines"][0], {"stream": "stderr", "line": "oops\n"})
            self.assertEqual(
                (kept["outcome"], kept["exit_code"], kept["dropped_lines"]), ("failure", 1, 0)
            )

    def test_archived_lines(self) -> None:
        """A line ends at a newline only, as for saveLimit: a progress bar is one line."""
        shown = ["10%\r20%\x0b\x0c\x1c\x85\u2028done\n", "\n", "no end"]
        for redact in (True, False):
            self.host = Host(NOON)
            made = job(
                "job", archive_output=True, redact_archived_secrets=redact, capture_stdout=True
            )
            world = self.next(made)
            world.runs.start_now("job")
            launch = world.executor.live[0]
            launch.observer.output("stdout", "".join(shown).encode())
            launch.exit()
            (kept,) = world.records("logs/job")
            self.assertEqual([each["line"] for each in kept["lines"]], shown)

    def test_archive_of_one_stream(self) -> None:
        """A stream that is not captured has no lines, and takes none from the other."""
        world = self.next(
            job("job", archive_output=True, capture_stdout=True, capture_stderr=False)
        )
        world.runs.start_now("job")
        world.executor.live[0].observer.output("stdout", b"one\n")
        world.executor.live[0].exit()
        (kept,) = world.records("logs/job")
        self.assertEqual(kept["lines"], [{"stream": "stdout", "line": "one\n"}])

    def test_no_archive(self) -> None:
        """A job with saveLimit 0 has nothing to archive."""
        world = self.next(job("job", archive_output=True, save_limit=0, capture_stdout=True))
        self.run_once(world)
        self.assertEqual(world.records("logs/job"), [])

    def test_unwritable(self) -> None:
        """A row that cannot be written is lost, counted and said; the job goes on."""
        world = self.next()
        world.faults.fail("create", match="w-")
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            for _ in range(5):
                self.run_once(world)
        self.assertEqual(world.store.dropped["run-record"], 5)
        told = [line for line in logs.output if "failed to persist run record for job" in line]
        self.assertEqual(len(told), 1)
        world.faults.heal()
        self.run_once(world)
        self.assertEqual(len(world.records("runs/job")), 1)
        self.assertEqual(len(world.runs.history.runs("job")), 6)


class HistoryTests(LedgerCase):
    def test_back(self) -> None:
        """The history of an earlier life is there at once, in finish order."""
        world = self.next()
        for status in (0, 1, 0):
            self.run_once(world, status)
        self.host = world.kill()
        with self.assertLogs("cronstable.state", "INFO") as logs:
            world = self.next()
        self.assertIn(
            "INFO:cronstable.state:state: rehydrated run history for 1 job(s)", logs.output
        )
        outcomes = [each.outcome for each in world.runs.history.runs("job")]
        self.assertEqual(outcomes, ["success", "failure", "success"])

    def test_inverted_pair(self) -> None:
        """Rows that landed out of order are put in order, and the latest is the newest finish."""
        world = self.next()
        for minute in (3, 1, 2):
            finish = to_text(NOON - 600 + minute)
            world.append("runs/job", {"outcome": "success", "finished_at": finish})
        self.host = world.kill()
        world = self.next()
        finishes = [each.finished_at - NOON + 600 for each in world.runs.history.runs("job")]
        self.assertEqual(finishes, [1, 2, 3])
        last = world.runs.history.last("job")
        assert last is not None
        self.assertEqual(last.finished_at, NOON - 597)

    def test_equal_finish(self) -> None:
        """Of two that finished at one instant the later in the stream is the latest."""
        world = self.next()
        for outcome in ("failure", "success"):
            world.append("runs/job", {"outcome": outcome, "finished_at": to_text(NOON - 9)})
        self.host = world.kill()
        world = self.next()
        last = world.runs.history.last("job")
        assert last is not None
        self.assertEqual(last.outcome, "success")

    def test_what_ran_meanwhile(self) -> None:
        """Runs that ended before the ledger was read come once, and last."""
        world = self.next()
        self.run_once(world)
        self.host = world.kill()
        self.host.now += 0.123456789
        world = self.next(up=False)
        world.faults.fail("names", match="runs%2F", times=1)
        world.start()
        self.run_once(world, 1)
        world.minute()
        outcomes = [each.outcome for each in world.runs.history.runs("job")]
        self.assertEqual(outcomes, ["success", "failure"])
        self.assertTrue(world.memory.settled)

    def test_behind_a_long_pause(self) -> None:
        """A verdict is found behind more rows of a pause than a history keeps."""
        made = job("job", "* * * * *", only_if_last_succeeded=True)
        world = self.next(made)
        self.run_once(world, 1)
        for minute in range(120):
            world.append(
                "runs/job", {"outcome": "skipped", "finished_at": to_text(NOON + 60 * minute)}
            )
        self.host = world.kill()
        self.host.now += 7200
        world = self.next(made)
        world.run(61)
        self.assertEqual(world.results("job")[("skipped", "last-run-failed")], 1)
        run = world.runs.history.last_run("job")
        assert run is not None
        self.assertEqual(run.outcome, "failure")

    def test_last_success(self) -> None:
        """The last success is found behind more failures than a history keeps."""
        world = self.next()
        world.append("runs/job", {"outcome": "success", "finished_at": to_text(NOON - 9000)})
        for minute in range(80):
            world.append(
                "runs/job", {"outcome": "failure", "finished_at": to_text(NOON - 900 + minute)}
            )
        self.host = world.kill()
        world = self.next()
        success = world.runs.history.last_success("job")
        assert success is not None
        self.assertEqual(success.finished_at, NOON - 9000)

    def test_slow_store(self) -> None:
        """A store that does not answer leaves the history empty, says so, and is asked again."""
        world = self.next()
        self.run_once(world)
        self.host = world.kill()
        world = self.next(up=False)
        world.store.when_up = self.stuck_then(world)
        world.use(StateConfig(path="/state"))
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            world.run(11)
        self.assertIn("what was saved cannot be read yet", logs.output[0])
        self.assertEqual(world.runs.history.runs("job"), ())
        world.unstick()
        world.minute()
        self.assertEqual(len(world.runs.history.runs("job")), 1)

    def stuck_then(self, world: DurableWorld) -> Any:
        """Return a take-over that finds a store which has just begun to hang."""

        async def take_over() -> None:
            world.stick()
            await world.memory.take_over()

        return take_over

    def test_damaged_rows(self) -> None:
        """Damaged rows are set aside and named; the rest is read."""
        world = self.next()
        for _ in range(4):
            self.run_once(world)
        paths = [path for path in self.host.files.paths() if "runs%2Fjob" in path]
        self.host = world.kill()
        for path, data in zip(
            paths, (b"", b'{"schemaVersion": "v1", "da', b"\xff\xfe"), strict=False
        ):
            self.host.files.unlink(path)
            self.host.files.create(path, data, True)
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            world = self.next()
        self.assertEqual(len(world.runs.history.runs("job")), 1)
        self.assertEqual(sum("quarantine" in line for line in logs.output), 3)


class DependsOnPastTests(LedgerCase):
    """onlyIfLastSucceeded with a store."""

    made = job("job", "* * * * *", only_if_last_succeeded=True)
    shared = StateConfig(path="/state", topology="shared")

    def result(self, world: DurableWorld) -> list[tuple[str, str | None]]:
        return [key for key, count in world.results("job").items() if count and key[0] != "missed"]

    def test_survives_a_restart(self) -> None:
        """A failure before the restart blocks after it; a success opens the gate."""
        for status, expected in ((1, ("skipped", "last-run-failed")), (0, ("ran", None))):
            self.host = Host(NOON)
            world = self.next(self.made)
            self.run_once(world, status)
            self.host = world.kill()
            world = self.next(self.made)
            world.run(60)
            self.assertEqual(self.result(world), [expected])

    def test_another_node(self) -> None:
        """On a shared store the newest verdict counts, whichever node wrote it."""
        world = self.next(self.made, up=False)
        world.start(self.shared)
        world.append("runs/job", {"outcome": "failure", "finished_at": to_text(NOON + 1)})
        world.run(60)
        self.assertEqual(self.result(world), [("skipped", "last-run-failed")])
        world.append("runs/job", {"outcome": "success", "finished_at": to_text(NOON + 90)})
        world.append("runs/job", {"outcome": "cancelled", "finished_at": to_text(NOON + 99)})
        world.run(60)
        self.assertEqual(len(world.starts("job")), 1)

    def test_job_that_comes_back(self) -> None:
        """A job that a reload takes out and another brings back is judged by its ledger."""
        for lives in (1, 2):
            self.host = Host(NOON)
            world = self.next(self.made)
            self.run_once(world, 1)
            for _ in range(1, lives):
                self.host = world.kill()
                world = self.next(self.made)
            world.install(job("other"))
            world.install(self.made)
            world.run(60)
            self.assertEqual(self.result(world), [("skipped", "last-run-failed")])

    def test_clock_that_was_ahead(self) -> None:
        """What failed while the clock was a day ahead counts until the job succeeds."""
        for restarts in (False, True):
            self.host = Host(NOON + 86400)
            world = self.next(self.made)
            self.run_once(world, 1)
            self.host = world.kill()
            self.host.now = NOON
            world = self.next(self.made)
            world.run(60)
            self.assertEqual(self.result(world), [("skipped", "last-run-failed")])
            self.run_once(world, 0)
            if restarts:
                self.host = world.kill()
                world = self.next(self.made)
            world.run(60)
            self.assertIn(("ran", None), self.result(world))

    def test_memory_is_newer(self) -> None:
        """What memory has seen is not overruled by older rows."""
        world = self.next(self.made, up=False)
        world.start(self.shared)
        world.append("runs/job", {"outcome": "failure", "finished_at": to_text(NOON - 1)})
        self.run_once(world, 0)
        world.run(60)
        self.assertEqual(self.result(world), [("ran", None)])

    def trouble(self, policy: str, hang: bool) -> list[tuple[str, str | None]]:
        world = self.next(self.made, up=False)
        world.start(attrs.evolve(self.shared, on_store_unavailable=policy))
        if hang:
            world.stick()
        else:
            world.faults.fail("names", match="runs%2F")
        world.run(60 + 10.5)
        return self.result(world)

    def test_trouble(self) -> None:
        """A ledger that cannot be read is left out under degrade and blocks under fail-closed."""
        for hang in (False, True):
            self.host = Host(NOON)
            self.assertEqual(self.trouble("degrade", hang), [("ran", None)])
            self.host = Host(NOON)
            self.assertEqual(self.trouble("fail-closed", hang), [("skipped", "store")])

    def test_others_are_not_gated(self) -> None:
        """A plain scheduled fire never waits for the store, whatever is wrong with it."""
        for policy in ("degrade", "fail-closed"):
            world = self.next(job("job", "* * * * *"), up=False)
            world.start(attrs.evolve(self.shared, on_store_unavailable=policy))
            world.stick()
            world.run(60)
            self.assertEqual(len(world.starts("job")), 1)
