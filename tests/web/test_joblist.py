"""Tests for the list of all jobs: what it shows, its tag, and what it costs."""

from __future__ import annotations

import json
from typing import Any

import attrs
from twisted.internet.defer import succeed
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sections_values import ClusterConfig
from cronstable.config.values import (
    Monitor,
    PoolMembership,
    ResourceLimits,
    RetryPolicy,
    Sla,
    Verify,
)
from cronstable.executors.interfaces import Leftover, Usage
from cronstable.runs.pauses import Pause
from cronstable.web import answers, joblist
from tests.answers import Answer
from tests.fakes import FakeLaunch, job
from tests.web.api import NOW, Api
from tests.web.served import Connection
from tests.web.test_jobs import record


class Listed(SynchronousTestCase):
    """A fleet whose list is looked at again and again."""

    def fleet(self, *jobs: Any, **sections: Any) -> Api:
        """Make the daemon."""
        self.api = Api(*jobs, **sections)
        return self.api

    def tag(self) -> str:
        """Return the tag of the list as it is now."""
        return self.api.get("/jobs").headers["etag"]

    def again(self, tag: str) -> Answer:
        """Ask for the list with a tag."""
        return self.api.get("/jobs", If_None_Match=tag)

    def one(self, name: str = "a") -> dict[str, Any]:
        """Return a job, which the list and the route of one job show alike."""
        listed = {each["name"]: each for each in self.api.get("/jobs").json()}[name]
        self.assertEqual(listed, self.api.get(f"/jobs/{name}").json())
        return dict(listed)


class TagTests(Listed):
    """The tag is the same exactly as long as nothing has changed."""

    def setUp(self) -> None:
        retry = RetryPolicy(maximum_retries=3, initial_delay=100.0)
        self.fleet(
            job("a", "0 * * * *", retry=retry),
            job("b", "30 * * * *"),
            job("late", "0 0 1 1 *", sla=Sla(max_time_since_success=60)),
        )
        self.last = self.tag()

    def changed(self) -> None:
        """The tag is another now, and stays that until something else happens."""
        answer = self.again(self.last)
        self.assertEqual(answer.status, 200)
        self.assertNotEqual(answer.headers["etag"], self.last)
        self.last = answer.headers["etag"]
        self.unchanged()

    def unchanged(self) -> None:
        """The tag is still good."""
        answer = self.again(self.last)
        self.assertEqual((answer.status, answer.body), (304, b""))
        self.assertEqual(answer.headers["etag"], self.last)
        self.assertEqual(answer.headers["vary"], "Accept-Encoding")

    def test_form(self) -> None:
        """The tag is 32 hex digits in quotes."""
        self.assertRegex(self.last, r'\A"[0-9a-f]{32}"\Z')

    def test_time_alone(self) -> None:
        """Time that passes without a fire changes nothing."""
        self.api.advance(1500, step=60)
        self.unchanged()

    def test_fire(self) -> None:
        """A fire changes it: the next one is another."""
        self.api.advance(1800.5, step=10)
        self.changed()

    def test_run(self) -> None:
        """Each step of a run changes it."""
        self.api.post("/jobs/b/start")
        self.changed()
        self.api.launched().exit()
        self.changed()

    def test_unnoticed_steps(self) -> None:
        """What no event tells of changes it as well: a process that has exited, a sample."""
        self.api.post("/jobs/b/start")
        self.changed()
        run = self.api.runs.live("b")[0]
        run.exited(0)
        self.changed()
        run.held_open((Leftover(7, "sleep"),))
        self.changed()
        run.sampled(Usage(0.1, 0.1, 1000, 1))
        self.changed()

    def test_retry(self) -> None:
        """An armed retry changes it, and so does what becomes of it."""
        self.api.post("/jobs/b/start")
        self.api.launched().exit(1)
        self.api.advance(3600.5 - self.api.clock.seconds(), step=10)
        self.last = self.tag()
        self.api.launched().exit(1)
        self.changed()
        self.api.advance(99)
        self.unchanged()
        self.api.advance(2)
        self.changed()

    def test_pause(self) -> None:
        """A pause changes it when it begins, and when it ends on its own."""
        self.api.post("/jobs/b/pause", {"durationSeconds": 60})
        self.changed()
        self.api.advance(59)
        self.unchanged()
        self.api.advance(1.5)
        self.changed()
        self.api.post("/jobs/b/pause")
        self.changed()
        self.api.post("/jobs/b/resume")
        self.changed()

    def test_lateness(self) -> None:
        """A breach changes it when it begins and when it is over, not while it grows."""
        self.api.sla.judge(self.api.runs.jobs)
        self.api.advance(100)
        self.api.sla.judge(self.api.runs.jobs)
        self.changed()
        self.api.advance(60)
        self.api.sla.judge(self.api.runs.jobs)
        self.unchanged()
        self.api.post("/jobs/late/start")
        self.api.launched().exit()
        self.api.sla.judge(self.api.runs.jobs)
        self.changed()
        self.assertEqual(self.one("late")["sla"]["state"], "ok")

    def test_new_jobs(self) -> None:
        """A new set of jobs changes it."""
        self.api.install(job("c"))
        self.changed()
        self.assertEqual([each["name"] for each in self.api.get("/jobs").json()], ["c"])

    def test_forms_of_the_question(self) -> None:
        """A list of tags, weak ones and the star are understood."""
        for asked in (f'"x", {self.last}', f"W/{self.last}", "*", f"{self.last},"):
            self.assertEqual(self.again(asked).status, 304, asked)
        for asked in ('"x"', self.last[1:-1], "", "W/*"):
            self.assertEqual(self.again(asked).status, 200, asked)

    def test_remembered_runs(self) -> None:
        """Runs of an earlier process that are read from the store change it."""
        self.api.runs.history.restore("b", [record("b")])
        self.api.runs.revision += 1
        self.changed()
        self.assertEqual(len(self.one("b")["history"]), 1)
        self.api.runs.history.restore("b", [record("b", NOW - 60)])
        self.api.runs.revision += 1
        self.changed()
        self.assertEqual(len(self.one("b")["history"]), 2)

    def test_another_process(self) -> None:
        """A tag of another process is not this one's."""
        other = Api(job("a", "0 * * * *"))
        mine = other.get("/jobs").headers["etag"]
        again = Api(job("a", "0 * * * *"))
        self.assertEqual(again.get("/jobs").headers["etag"], mine)
        again = Api(job("a", "0 * * * *"))
        again.house.identity = attrs.evolve(again.house.identity, instance="0" * 32)
        self.assertNotEqual(again.get("/jobs").headers["etag"], mine)

    def test_no_build(self) -> None:
        """A tag that is good costs no look at the jobs."""
        texts = self.api.running._texts
        self.patch(texts, "_stand", lambda job, now: self.fail("a job was looked at"))
        self.unchanged()


class CostTests(Listed):
    """A large list is built in slices, once for all who ask at once."""

    def setUp(self) -> None:
        self.fleet(*(job(f"job-{number}", "0 0 1 1 *") for number in range(600)))
        self.built: list[int] = []
        original = joblist.joined

        def counted(clock: Any, items: Any, *given: Any) -> Any:
            self.built.append(len(items))
            return original(clock, items, *given)

        self.patch(joblist, "joined", counted)

    def test_whole(self) -> None:
        """All jobs are there, in configuration order."""
        names = [each["name"] for each in self.api.get("/jobs").json()]
        self.assertEqual(names, [f"job-{number}" for number in range(600)])

    def test_shared(self) -> None:
        """For a second the same list serves everybody, then it is built anew."""
        first = self.api.get("/jobs").body
        self.api.clock.advance(0.9)
        self.assertEqual(self.api.get("/jobs").body, first)
        self.api.clock.advance(0.2)
        self.assertNotEqual(self.api.get("/jobs").body, first)
        self.assertEqual(len(self.built), 2)

    def test_refreshed_at_once(self) -> None:
        """A launch, a finish, a pause, a resume and a reload show at once."""
        name = "job-7"
        for act, field, expected in (
            (lambda: self.api.post(f"/jobs/{name}/start"), "running", True),
            (lambda: self.api.launched().exit(), "running", False),
            (lambda: self.api.post(f"/jobs/{name}/pause"), "paused", None),
            (lambda: self.api.post(f"/jobs/{name}/resume"), "paused", None),
        ):
            act()
            shown = self.api.get("/jobs").json()[7][field]
            self.assertEqual(shown, self.api.get(f"/jobs/{name}").json()[field])
            if field == "running":
                self.assertEqual(shown, expected)
        self.api.install(job("new"))
        self.assertEqual(len(self.api.get("/jobs").json()), 1)

    def test_together(self) -> None:
        """Who asks while it is built gets what is being built."""
        self.slowly()
        clients = [self.asking() for _ in range(5)]
        self.assertTrue(all(client.answer() is None for client in clients))
        bodies = {self.api.answered(client).body for client in clients}
        self.assertEqual((len(bodies), len(self.built)), (1, 1))

    def test_change_while_building(self) -> None:
        """Who asks after a change gets a list that was begun after it."""
        self.slowly()
        before = self.asking()
        self.api.clock.advance(0)
        self.api.runs.pause("job-0", Pause(NOW, NOW + 60))
        after, later = self.asking(), self.asking()
        self.api.answered(before)
        for client in (after, later):
            shown = json.loads(self.api.answered(client).body)
            self.assertIsNotNone(shown[0]["paused"])
        self.assertEqual(len(self.built), 2)

    def test_gone_while_building(self) -> None:
        """A client that leaves does not take the list from the others."""
        self.slowly()
        first, second = self.asking(), self.asking()
        self.api.clock.advance(0)
        first.lose()
        self.assertEqual(len(self.api.answered(second).json()), 600)

    def test_in_slices(self) -> None:
        """Between two slices the reactor serves others."""
        self.slowly()
        client = self.asking()
        other = Connection(self.api)
        other.send("GET", "/version")
        self.assertIsNotNone(other.answer())
        self.assertIsNone(client.answer())
        self.api.answered(client)

    def test_compressed_once(self) -> None:
        """Clients that take gzip share its bytes too."""
        self.patch(answers, "in_thread", lambda _, name, call, *given: succeed(call(*given)))
        one, other = (self.api.get("/jobs", Accept_Encoding="gzip") for _ in range(2))
        self.assertEqual(one.headers["content-encoding"], "gzip")
        self.assertEqual(one.body, other.body)
        self.assertEqual(len(one.json()), 600)
        self.assertEqual(one.headers["etag"], self.tag())

    def asking(self) -> Connection:
        """Return a client that has asked for the list."""
        client = Connection(self.api)
        client.send("GET", "/jobs")
        return client

    def slowly(self) -> None:
        """Let every look at the clock find that a slice is over."""
        ticks = iter(range(1, 10**9))
        seconds = self.api.clock.seconds
        self.patch(self.api.clock, "seconds", lambda: seconds() + next(ticks) * 1e-6)
        from cronstable.web import slices

        self.patch(slices, "SLICE", 0.0)


class ShownTests(Listed):
    """What a job shows."""

    def test_plain(self) -> None:
        """A job that never ran has exactly the fields that every job has."""
        self.fleet(job("a", "0 3 * * *", capture_stdout=True))
        self.assertEqual(
            self.one(),
            {
                "name": "a", "enabled": True, "schedule": "0 3 * * *", "command": "true",
                "captureStdout": True, "captureStderr": True, "utc": True, "timezone": "UTC",
                "running": False, "pids": [], "scheduled_in": 10800.0, "never_fires": False,
                "schedule_findings": [], "last_run": None, "history": [], "paused": None,
            },
        )  # fmt: skip

    def test_no_fire(self) -> None:
        """Disabled, boot and dead schedules have no fire to come; only the dead one never fires."""
        self.fleet(
            job("off", enabled=False), job("boot", "@reboot"), job("dead", "0 0 30 2 *"),
            job("off-and-dead", "0 0 30 2 *", enabled=False), job("on"),
        )  # fmt: skip
        shown = {each["name"]: each for each in self.api.get("/jobs").json()}
        for name, due, never in (
            ("off", None, False), ("boot", None, False), ("dead", None, True),
            ("off-and-dead", None, False), ("on", 60.0, False),
        ):  # fmt: skip
            self.assertEqual(
                (shown[name]["scheduled_in"], shown[name]["never_fires"]), (due, never)
            )
        self.assertEqual(shown["dead"]["schedule_findings"][0]["code"], "never-fires")

    def test_running(self) -> None:
        """A live run shows its pid and where it stands, and no next fire."""
        self.fleet(job("a"))
        self.api.post("/jobs/a/start")
        shown = self.one()
        self.assertEqual((shown["running"], shown["pids"]), (True, [1000]))
        self.assertEqual((shown["scheduled_in"], shown["never_fires"]), (None, False))
        instance = shown["instances"][0]
        self.assertEqual((instance["state"], instance["cause"]), ("running", "manual"))
        self.assertEqual(instance["output_held_by"], [])

    def test_output_held_open(self) -> None:
        """A run whose output others hold says so, and who they are."""
        self.fleet(job("a"))
        self.api.post("/jobs/a/start")
        run = self.api.runs.live("a")[0]
        run.exited(0)
        run.held_open((Leftover(4712, "sleep 600"),))
        instance = self.one()["instances"][0]
        self.assertEqual(instance["state"], "exited")
        self.assertEqual(instance["output_held_by"], [{"pid": 4712, "command": "sleep 600"}])

    def test_dead_schedule_that_runs(self) -> None:
        """A schedule without a future is told of while a run started by hand goes on."""
        self.fleet(job("a", "0 0 30 2 *"))
        self.api.post("/jobs/a/start")
        self.assertTrue(self.one()["never_fires"])

    def test_past(self) -> None:
        """The last run and the newest twenty are shown, the oldest first."""
        self.fleet(job("a", "0 0 1 1 *"))
        for number in range(25):
            self.api.post("/jobs/a/start")
            self.api.advance(1)
            self.api.launched().exit(number % 2)
        shown = self.one()
        self.assertEqual(len(shown["history"]), 20)
        self.assertEqual(shown["history"][-1], {"outcome": "success", "duration": 1.0})
        self.assertEqual(shown["history"][0]["outcome"], "failure")
        last = shown["last_run"]
        self.assertEqual((last["outcome"], last["exit_code"]), ("success", 0))
        self.assertEqual(last["ranAt"], last["finished_at"])
        self.assertEqual(last["started_at"], "2026-01-01T00:00:24+00:00")

    def test_same_last_run_more_history(self) -> None:
        """A run that ends before another that began later is in the history as well."""
        self.fleet(job("a", "0 0 1 1 *"))
        self.api.post("/jobs/a/start")
        self.api.post("/jobs/a/start")
        self.api.advance(1)
        self.api.launched(1).exit()
        self.assertEqual(len(self.one()["history"]), 1)
        self.api.launched(0).exit(1)
        self.assertEqual(
            [each["outcome"] for each in self.one()["history"]], ["success", "failure"]
        )

    def test_retry(self) -> None:
        """An armed retry shows when it comes; without an end its maximum is null."""
        for most, shown_most in ((3, 3), (-1, None)):
            self.fleet(job("a", retry=RetryPolicy(maximum_retries=most, initial_delay=30.0)))
            self.api.advance(60.5)
            self.assertNotIn("retry", self.one())
            self.api.launched().exit(1)
            self.assertEqual(
                self.one()["retry"],
                {
                    "attempt": 1, "maxAttempts": shown_most, "delaySeconds": 30.0,
                    "nextRetryAt": "2026-01-01T00:01:30.500000+00:00",
                },
            )  # fmt: skip

    def test_lateness(self) -> None:
        """Thresholds show how the job stands; what was observed grows by itself."""
        self.fleet(job("a", "0 0 1 1 *", sla=Sla(max_time_since_success=60, max_runtime=5)))
        self.assertEqual(
            self.one()["sla"],
            {
                "thresholds": {"maxTimeSinceSuccessSeconds": 60, "maxRuntimeSeconds": 5},
                "state": "ok",
                "breaches": [],
            },
        )
        self.api.sla.judge(self.api.runs.jobs)
        self.api.advance(100)
        self.api.sla.judge(self.api.runs.jobs)
        self.api.advance(7)
        self.assertEqual(self.one()["sla"]["state"], "late")
        self.assertEqual(
            self.one()["sla"]["breaches"],
            [
                {
                    "check": "maxTimeSinceSuccess", "since": "2026-01-01T00:01:40+00:00",
                    "observed_seconds": 107.0, "threshold_seconds": 60,
                }
            ],
        )  # fmt: skip

    def test_definition(self) -> None:
        """What is configured beyond the defaults is shown, and only that."""
        self.fleet(
            job("hashed", "H 3 * * *"),
            job("argv", "0 0 1 1 *"),
            job("slow", priority="idle"),
            job("capped", limits=ResourceLimits(cpu=0.5, memory=1 << 20, required=True)),
            job("pooled", pool=PoolMembership("db", 2, 7)),
            job("shared", concurrency_scope="cluster"),
            job("checked", verify=Verify("true")),
            job("local", zone=None, utc=False),
            job("boot", "@reboot"),
        )
        shown = {each["name"]: each for each in self.api.get("/jobs").json()}
        self.assertRegex(shown["hashed"]["schedule_resolved"], r"^\d+ 3 \* \* \*$")
        self.assertEqual(shown["hashed"]["schedule"], "H 3 * * *")
        self.assertEqual(shown["slow"]["priority"], "idle")
        self.assertEqual(
            shown["capped"]["limits"],
            {"cpu": 0.5, "memory_bytes": 1 << 20, "processes": None, "required": True},
        )
        pool = {"name": "db", "slots": 2, "priority": 7, "queueUnavailable": True}
        self.assertEqual(shown["pooled"]["pool"], pool)
        self.assertEqual(shown["shared"]["concurrencyScope"], "cluster")
        self.assertEqual(shown["shared"]["slot"], {"held": False, "holder": None, "refs": 0})
        self.assertEqual(shown["checked"]["verification"], {"configured": True, "running": False})
        self.assertIsNone(shown["local"]["timezone"])
        extras = {"schedule_resolved", "priority", "limits", "pool", "slot", "verification"}
        self.assertEqual(extras & set(shown["argv"]), set())

    def test_verifying(self) -> None:
        """While the work of a run is checked the job still runs."""
        self.fleet(job("a", verify=Verify("check")))
        self.api.post("/jobs/a/start")
        self.api.launched().exit()
        shown = self.one()
        self.assertEqual(shown["verification"], {"configured": True, "running": True})
        self.assertEqual((shown["running"], shown["instances"][0]["state"]), (True, "verifying"))

    def test_resources(self) -> None:
        """What sampled live runs use is summed up."""
        self.fleet(job("a", monitor=Monitor(enabled=True)))
        self.api.executor.behave = _sampled
        self.api.post("/jobs/a/start")
        self.api.post("/jobs/a/start")
        self.assertEqual(
            self.one()["running_resources"],
            {"cpu_percent": 125.0, "cpu_seconds": 1.0, "rss_bytes": 4096, "instances": 2},
        )

    def test_boot_run_owed(self) -> None:
        """A boot run that is deferred is told of until it has run."""
        self.fleet(job("boot", "@reboot"))
        self.api.runs.pause("boot", Pause(NOW, NOW + 60))
        self.api.boot.begin(self.api.runs.jobs)
        self.assertTrue(self.one("boot")["rebootPending"])
        tag = self.tag()
        self.api.post("/jobs/boot/start")
        self.assertNotIn("rebootPending", self.one("boot"))
        self.assertEqual(self.again(tag).status, 200)

    def test_policy(self) -> None:
        """Where an election is configured each job shows its policy, from that reload on."""
        self.fleet(job("a"))
        self.assertNotIn("clusterPolicy", self.one())
        config = self.api.house.config
        self.api.house.config = attrs.evolve(config, cluster=ClusterConfig(elects=True))
        self.api.running.configuration_changed()
        self.api.install(job("a"))
        self.assertEqual(self.one()["clusterPolicy"], "Leader")

    def test_any_text(self) -> None:
        """Names and commands with any characters arrive as they are, in ASCII."""
        odd = 'q"\\\u2028\x00\x1b[2J</script>\udc80\U0001f680'
        self.fleet(job(odd))
        answer = self.api.get("/jobs")
        self.assertTrue(answer.body.isascii())
        self.assertEqual(answer.json()[0]["name"], odd)


def _sampled(launch: FakeLaunch) -> None:
    launch.observer.sampled(Usage(0.25, 0.25, 4096, 2, (), (NOW, 62.5, 2048)))
