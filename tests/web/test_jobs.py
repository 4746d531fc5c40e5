"""Tests for the routes of one job and of the activity of all."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import Monitor, ResourceLimits
from cronstable.executors.interfaces import CapsReport, Leftover, Usage
from cronstable.runs.record import RunRecord, Verification
from tests.fakes import job
from tests.web.api import NOW, Api


def record(name: str = "a", at: float = NOW, **fields: Any) -> RunRecord:
    """Return a run that took two seconds and ended at C{at}."""
    fields.setdefault("outcome", "success")
    fields.setdefault("started_at", at - 2)
    fields.setdefault("duration", 2.0)
    fields.setdefault("exit_code", 0)
    return RunRecord(name, finished_at=at, **fields)


class RunsTests(SynchronousTestCase):
    """GET /jobs/{name}/runs."""

    def setUp(self) -> None:
        self.api = Api(job("a"), job("b"))

    def add(self, *records: RunRecord) -> None:
        """Let runs have happened."""
        for each in records:
            self.api.runs.history.add(each)

    def test_empty(self) -> None:
        """A job that never ran has no runs, and statistics of nothing."""
        shown = self.api.get("/jobs/a/runs").json()
        self.assertEqual((shown["name"], shown["runs"]), ("a", []))
        self.assertEqual(shown["stats"]["total"], 0)
        self.assertEqual(
            {key for key, value in shown["stats"].items() if value is not None},
            {"total", "success", "failure", "cancelled", "unknown"},
        )

    def test_order_and_limit(self) -> None:
        """Runs come in the order in which they were seen; a limit keeps the newest."""
        self.add(*(record(at=NOW + number, exit_code=number) for number in range(60)))
        for query, codes in (("", range(10, 60)), ("?limit=3", range(57, 60)), ("?limit=0", [59])):
            shown = self.api.get(f"/jobs/a/runs{query}").json()
            self.assertEqual([each["exit_code"] for each in shown["runs"]], list(codes))
            self.assertEqual(shown["stats"]["total"], 50)
        self.assertEqual(len(self.api.get("/jobs/a/runs?limit=99").json()["runs"]), 50)

    def test_run(self) -> None:
        """A run tells how it ended, when, why it ran and who ended it."""
        self.add(record(outcome="failure", exit_code=3, fail_reason="because", cause="retry",
                        attempt=2, slot=int(NOW), ref="r-1", overlong_lines=4,
                        leftovers=(Leftover(9, "sleep"),)))  # fmt: skip
        shown = self.api.get("/jobs/a/runs").json()["runs"][0]
        self.assertEqual(
            shown,
            {
                "outcome": "failure", "exit_code": 3, "fail_reason": "because",
                "started_at": "2025-12-31T23:59:58+00:00", "skip_reason": None,
                "finished_at": "2026-01-01T00:00:00+00:00", "ranAt": "2026-01-01T00:00:00+00:00",
                "duration": 2.0, "resources": None, "cause": "retry", "attempt": 2, "ref": "r-1",
                "slot": "2026-01-01T00:00:00+00:00", "ended_by": "itself", "ended_by_whom": None,
                "overlong_lines": 4, "leftovers": [{"pid": 9, "command": "sleep"}],
            },
        )  # fmt: skip

    def test_earlier_process(self) -> None:
        """Why a run of the ledger ran is not known, so that nothing is said of it."""
        self.add(record(cause=None))
        run = self.api.get("/jobs/a/runs").json()["runs"][0]
        self.assertEqual(run["outcome"], "success")
        self.assertFalse({"ref", "cause", "slot", "attempt", "ended_by"} & set(run))

    def test_skipped(self) -> None:
        """A skipped slot has neither start nor duration, and never ran."""
        self.add(RunRecord("a", "skipped", NOW, skip_reason="paused"))
        shown = self.api.get("/jobs/a/runs").json()
        run = shown["runs"][0]
        self.assertEqual(
            (run["skip_reason"], run["started_at"], run["duration"]), ("paused", None, None)
        )
        self.assertNotIn("ranAt", run)
        self.assertEqual((shown["stats"]["total"], shown["stats"]["success_rate"]), (1, None))

    def test_verification(self) -> None:
        """The check of a run is shown with its output."""
        check = Verification("failure", 7, "code 7", NOW - 1, NOW, 1.0, stdout="out", stderr="err")
        self.add(record(verification=check))
        shown = self.api.get("/jobs/a/runs").json()["runs"][0]["verification"]
        self.assertEqual((shown["outcome"], shown["exit_code"]), ("failure", 7))
        self.assertEqual((shown["stdout"], shown["stderr"], shown["limits"]), ("out", "err", None))
        self.assertEqual(shown["finished_at"], "2026-01-01T00:00:00+00:00")

    def test_limits(self) -> None:
        """What the caps of a run did is shown beside what they are."""
        self.api.install(job("a", limits=ResourceLimits(processes=10)))
        report = CapsReport(False, None, ("processes",), "no cgroups")
        self.add(
            record(caps=report), record(caps=CapsReport(True, "cgroup v2", process_limit_hits=2))
        )
        without, enforced = self.api.get("/jobs/a/runs").json()["runs"]
        self.assertEqual(
            without["limits"],
            {
                "cpu": None, "memory_bytes": None, "processes": 10, "required": False,
                "enforced": False, "mechanism": None, "unenforced": ["processes"],
                "reason": "no cgroups", "refused": False, "memory_exceeded": False,
                "process_limit_hits": None, "peak_memory_bytes": None,
                "cpu_throttled_seconds": None,
            },
        )  # fmt: skip
        self.assertEqual(enforced["limits"]["process_limit_hits"], 2)

    def test_stats(self) -> None:
        """Averages are over all kept runs, the last of the newest finish."""
        self.add(
            record(at=NOW, duration=1.0, usage=Usage(1.0, 0.5, 1000, 3)),
            record(at=NOW + 9, duration=3.0, outcome="failure", usage=Usage(0.5, 0.0, None, 1)),
            record(at=NOW + 5, duration=8.0, outcome="cancelled"),
        )
        stats = self.api.get("/jobs/a/runs").json()["stats"]
        self.assertEqual(
            stats,
            {
                "total": 3, "success": 1, "failure": 1, "cancelled": 1, "unknown": 0,
                "success_rate": 0.5, "avg_duration": 4.0, "min_duration": 1.0,
                "max_duration": 8.0, "last_duration": 3.0, "avg_cpu_seconds": 1.0,
                "max_cpu_seconds": 1.5, "last_cpu_seconds": 0.5, "avg_rss_bytes": 1000.0,
                "max_rss_bytes": 1000, "last_rss_bytes": None,
            },
        )  # fmt: skip

    def test_last_of_nothing(self) -> None:
        """After a skipped row the last values are null."""
        self.add(record(usage=Usage(1.0, 0.0, 5, 1)), RunRecord("a", "skipped", NOW + 1))
        stats = self.api.get("/jobs/a/runs").json()["stats"]
        for key in ("last_duration", "last_cpu_seconds", "last_rss_bytes"):
            self.assertIsNone(stats[key])

    def test_unknown(self) -> None:
        """An unknown job is 404 on each of its routes."""
        for part in ("", "/runs", "/trends", "/resources", "/logs"):
            answer = self.api.get(f"/jobs/nope{part}")
            self.assertEqual((answer.status, answer.json()["error"]), (404, "job 'nope' not found"))
        self.assertEqual(self.api.get("/jobs/a/nope").json()["error"], "404: Not Found")


class ActivityTests(SynchronousTestCase):
    """GET /activity."""

    def setUp(self) -> None:
        self.api = Api(*(job(name, "0 0 1 1 *") for name in ("b", "c", "a")))
        for number in range(4):
            self.api.runs.history.add(record("c", NOW + number))

    def test_all(self) -> None:
        """Every job is there in configuration order, with its newest runs."""
        shown = self.api.get("/activity?limit=2").json()["jobs"]
        self.assertEqual(list(shown), ["b", "c", "a"])
        self.assertEqual(shown["b"], [])
        self.assertEqual(
            shown["c"][-1],
            {
                "started_at": "2026-01-01T00:00:01+00:00",
                "finished_at": "2026-01-01T00:00:03+00:00", "outcome": "success",
            },
        )  # fmt: skip
        self.assertEqual(len(shown["c"]), 2)

    def test_some(self) -> None:
        """A number takes the first, or the smallest names."""
        for query, names in (
            ("jobs=2", ["b", "c"]), ("jobs=2&sort=name", ["a", "b"]),
            ("sort=name", ["a", "b", "c"]), ("jobs=0", ["b"]), ("jobs=x", ["b", "c", "a"]),
        ):  # fmt: skip
            self.assertEqual(list(self.api.get(f"/activity?{query}").json()["jobs"]), names)

    def test_other_order(self) -> None:
        """There is no other order."""
        answer = self.api.get("/activity?sort=size")
        self.assertEqual(answer.status, 400)
        self.assertEqual(answer.json()["error"], "sort must be 'name', got 'size'")

    def test_conditional(self) -> None:
        """The tag is good until a run ends."""
        tag = self.api.get("/activity").headers["etag"]
        self.assertEqual(self.api.get("/activity", If_None_Match=tag).status, 304)
        self.api.post("/jobs/a/start")
        self.assertEqual(self.api.get("/activity", If_None_Match=tag).status, 304)
        self.api.launched().exit()
        self.assertEqual(self.api.get("/activity", If_None_Match=tag).status, 200)

    def test_another_question(self) -> None:
        """Each question has a tag of its own, and so has another set of jobs."""
        paths = ("", "?limit=1", "?jobs=1", "?jobs=1&sort=name")
        tags = [self.api.get(f"/activity{path}").headers["etag"] for path in paths]
        self.assertEqual(len(set(tags)), 4)
        self.api.install(job("new"))
        self.assertEqual(self.api.get("/activity", If_None_Match=tags[0]).status, 200)


class TrendsTests(SynchronousTestCase):
    """GET /jobs/{name}/trends."""

    def test_windows(self) -> None:
        """Each window counts the kept runs that ended within it."""
        api = Api(job("a"))
        for age in (100.0, 5000.0, 100_000.0, 700_000.0, 5_000_000.0):
            api.runs.history.add(record(at=NOW - age))
        shown = api.get("/jobs/a/trends").json()
        self.assertEqual((shown["name"], shown["source"]), ("a", "memory"))
        self.assertEqual(shown["generated_at"], "2026-01-01T00:00:00+00:00")
        totals = {window: stats["total"] for window, stats in shown["windows"].items()}
        self.assertEqual(totals, {"1h": 1, "24h": 2, "7d": 3, "30d": 4, "all": 5})


class ResourcesTests(SynchronousTestCase):
    """GET /jobs/{name}/resources."""

    def setUp(self) -> None:
        self.usage = Usage(0.5, 0.25, 4096, 2, ((NOW, 0.0, 2048), (NOW + 1, 54.9, 4096)))
        self.api = Api(job("a", monitor=Monitor(enabled=True, interval=2.0)), job("plain"))

    def test_unmonitored(self) -> None:
        """A job that nobody measures has nothing to show."""
        self.api.runs.history.add(record("plain"))
        self.api.post("/jobs/plain/start")
        self.assertEqual(
            self.api.get("/jobs/plain/resources").json(),
            {
                "name": "plain", "monitored": False, "interval": 1.0, "limits": None,
                "live": [], "runs": [],
            },
        )  # fmt: skip

    def test_endless_interval(self) -> None:
        """An interval without end is null: JSON has no number for it."""
        self.api.install(job("a", monitor=Monitor(enabled=True, interval=float("inf"))))
        self.assertIs(self.api.get("/jobs/a/resources").json()["interval"], None)

    def test_runs(self) -> None:
        """Measured runs come with their samples."""
        for number in range(30):
            self.api.runs.history.add(record(at=NOW + number, usage=self.usage))
        self.api.runs.history.add(record(at=NOW + 99))
        shown = self.api.get("/jobs/a/resources").json()
        self.assertEqual((shown["monitored"], shown["interval"]), (True, 2.0))
        self.assertEqual(len(shown["runs"]), 20)
        self.assertEqual(
            shown["runs"][-1]["resources"],
            {
                "cpu_user_seconds": 0.5, "cpu_system_seconds": 0.25, "cpu_total_seconds": 0.75,
                "max_rss_bytes": 4096, "samples": 2,
                "series": [[NOW, 0.0, 2048], [NOW + 1, 54.9, 4096]],
            },
        )  # fmt: skip
        for query, count in (("limit=3", 3), ("runs=4", 4), ("limit=0", 0), ("limit=5&runs=9", 5)):
            shown = self.api.get(f"/jobs/a/resources?{query}").json()
            self.assertEqual(len(shown["runs"]), count)

    def test_live(self) -> None:
        """Live runs show their newest sample once there is one."""
        self.api.post("/jobs/a/start")
        live = self.api.get("/jobs/a/resources").json()["live"]
        self.assertEqual(
            live,
            [
                {
                    "started_at": "2026-01-01T00:00:00+00:00", "pid": 1000,
                    "current": None, "series": [],
                }
            ],
        )  # fmt: skip
        sampled = attrs.evolve(self.usage, latest=self.usage.series[-1])
        self.api.launched().observer.sampled(sampled)
        live = self.api.get("/jobs/a/resources").json()["live"][0]
        self.assertEqual(
            live["current"], {"cpu_seconds": 0.75, "cpu_percent": 54.9, "rss_bytes": 4096}
        )
        self.assertEqual(len(live["series"]), 2)

    def test_capped(self) -> None:
        """A capped job shows its caps."""
        self.api.install(job("a", limits=ResourceLimits(memory=5)))
        shown = self.api.get("/jobs/a/resources").json()
        self.assertEqual(shown["limits"]["memory_bytes"], 5)
