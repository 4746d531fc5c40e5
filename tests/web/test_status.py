"""Tests for the routes about the daemon as a whole."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sections_values import Badges, StateConfig
from cronstable.runs.jobset import JobSet
from cronstable.runs.pauses import Pause
from cronstable.version import __version__
from tests.fakes import IDENTITY, job
from tests.web.api import ALL, CONTROL, NOW, VIEW, Api, locked, section
from tests.web.stored import StoredApi
from tests.web.test_jobs import record

ID = "v1:" + "0" * 64


class TextTests(SynchronousTestCase):
    """Routes that are text unless JSON is asked for by name."""

    def setUp(self) -> None:
        self.api = Api(job("a", "30 0 * * *"))
        self.api.runs.install(JobSet(self.api.runs.jobs.jobs, ID))

    def test_version(self) -> None:
        """The version is plain text."""
        answer = self.api.get("/version", Accept="application/json")
        self.assertEqual((answer.text, answer.status), (__version__, 200))
        self.assertEqual(answer.headers["content-type"], "text/plain; charset=utf-8")

    def test_negotiation(self) -> None:
        """JSON is answered when it is named, with or without parameters; wildcards keep text."""
        for accepted, kind in (
            ("application/json", "application/json"),
            ("text/html, Application/JSON;q=0.5", "application/json"),
            ("application/json; charset=utf-8", "application/json"),
            ("*/*", "text/plain; charset=utf-8"),
            ("application/*", "text/plain; charset=utf-8"),
            ("text/plain", "text/plain; charset=utf-8"),
            ("application/jsonl", "text/plain; charset=utf-8"),
        ):
            for path in ("/job-set-id", "/status"):
                answer = self.api.get(path, Accept=accepted)
                self.assertEqual(answer.headers["content-type"], kind, accepted)

    def test_job_set_id(self) -> None:
        """The ID comes alone, or with the number of jobs."""
        self.assertEqual(self.api.get("/job-set-id").text, ID)
        shown = self.api.get("/job-set-id", Accept="application/json").json()
        self.assertEqual(shown, {"job_set_id": ID, "jobs": 1})


class StatusTests(SynchronousTestCase):
    """GET /status."""

    def setUp(self) -> None:
        self.api = Api(
            job("runs", "0 0 30 2 *"), job("off", enabled=False), job("boot", "@reboot"),
            job("dead", "0 0 30 2 *"), job("soon", "1 0 * * *"), job("\u00f1", "0 0 3 * *"),
        )  # fmt: skip
        for _ in range(2):
            self.api.post("/jobs/runs/start")

    def test_rows(self) -> None:
        """Each job has a row that tells how it stands."""
        self.assertEqual(
            self.api.get("/status", Accept="application/json").json(),
            [
                {"job": "runs", "status": "running", "pid": [1000, 1001], "never_fires": True},
                {"job": "off", "status": "disabled"},
                {"job": "boot", "status": "scheduled", "scheduled_in": "@reboot"},
                {"job": "dead", "status": "scheduled", "scheduled_in": None, "never_fires": True},
                {"job": "soon", "status": "scheduled", "scheduled_in": 60.0},
                {"job": "\u00f1", "status": "scheduled", "scheduled_in": 172800.0},
            ],
        )

    def test_lines(self) -> None:
        """The text has a line for each job and no newline at its end."""
        self.assertEqual(
            self.api.get("/status").text,
            "runs: running (pid: 1000, 1001)\noff: disabled\nboot: scheduled (@reboot)\n"
            "dead: no future runs (check the schedule)\nsoon: scheduled (in 60 seconds)\n"
            "\u00f1: scheduled (in 2 days)",
        )

    def test_units(self) -> None:
        """The time to go is in the largest unit that says enough."""
        for seconds, words in (
            (0.5, "0 second"), (1.9, "1 second"), (2, "2 seconds"), (119.9, "119 seconds"),
            (120, "2 minutes"), (7199, "119 minutes"), (7200, "2 hours"), (172_799, "47 hours"),
            (172_800, "2 days"), (8_640_000, "100 days"),
        ):  # fmt: skip
            from cronstable.web.status import _in_words

            self.assertEqual(_in_words(seconds), words)

    def test_nothing(self) -> None:
        """A daemon without jobs has nothing to say."""
        self.assertEqual(Api().get("/status").text, "")
        self.assertEqual(Api().get("/status", Accept="application/json").json(), [])


class SummaryTests(SynchronousTestCase):
    """GET /summary."""

    def test_counts(self) -> None:
        """Jobs are counted by how they stand."""
        api = Api(
            job("a", "0 1 * * *"), job("b", "0 2 * * *"), job("off", "0 0 1 1 *", enabled=False),
            job("dead", "0 0 30 2 *"),
        )  # fmt: skip
        api.post("/jobs/b/start")
        api.runs.history.add(record("a", outcome="failure"))
        api.runs.history.add(record("b", outcome="failure"))
        api.runs.history.add(record("b"))
        api.runs.pause("a", Pause(NOW, NOW + 86400))
        self.assertEqual(
            api.get("/summary").json(),
            {
                "version": __version__, "node_name": "node-a",
                "generated_at": "2026-01-01T00:00:00+00:00",
                "jobs": {
                    "total": 4, "enabled": 3, "disabled": 1, "running": 1, "paused": 1,
                    "failing": 1, "never_fires": 1,
                },
                "next_fire": {"job": "b", "in": 7200.0, "at": "2026-01-01T02:00:00+00:00"},
                "cluster": {"enabled": False},
            },
        )  # fmt: skip

    def test_fire_after_a_pause(self) -> None:
        """A fire inside a pause is passed over, one behind it is not."""
        api = Api(job("a", "0 1 * * *"))
        api.runs.pause("a", Pause(NOW, NOW + 60))
        self.assertEqual(api.get("/summary").json()["next_fire"]["job"], "a")
        api.runs.pause("a", Pause(NOW, NOW + 3601))
        self.assertIsNone(api.get("/summary").json()["next_fire"])

    def test_first_of_equals(self) -> None:
        """Of several that fire at once the first in configuration order is named."""
        api = Api(job("b"), job("a"))
        self.assertEqual(api.get("/summary").json()["next_fire"]["job"], "b")


class WhoamiTests(SynchronousTestCase):
    """GET /whoami where no token is configured."""

    def test_open(self) -> None:
        """Anybody may do everything and is told how the daemon can be reached."""
        api = Api()
        self.assertEqual(
            api.get("/whoami").json(),
            {
                "authenticated": False, "label": None, "scopes": ["approve", "control", "view"],
                "allScopes": True, "pairLinkBase": "", "sealableSuites": [],
                "instance": IDENTITY.instance, "badges": {"public": False, "dashboard": True},
                "listeners": [],
            },
        )  # fmt: skip

    def test_badges(self) -> None:
        """Badges are null where they are switched off."""
        for badges, ui, expected in (
            (Badges(False), True, None),
            (Badges(True, True), False, {"public": True, "dashboard": False}),
        ):
            api = Api(web=section(badges=badges, ui=ui))
            self.assertEqual(api.get("/whoami").json()["badges"], expected)


class HealthTests(SynchronousTestCase):
    """What probes are told."""

    def test_alive(self) -> None:
        """A process that answers is alive."""
        self.assertEqual(Api().get("/healthz").text, "ok")

    def test_ready(self) -> None:
        """A scheduler that makes its passes is ready, however long nothing is due."""
        api = Api(job("a", "0 0 1 1 *"))
        for _ in range(10):
            api.advance(600, step=1)
            answer = api.get("/readyz")
            self.assertEqual((answer.status, answer.json()), (200, {"status": "ready"}))

    def test_stuck(self) -> None:
        """One that has made none for long is not."""
        api = Api(job("a"))
        api.scheduler.stopService()
        api.clock.advance(149)
        self.assertEqual(api.get("/readyz").status, 200)
        api.clock.advance(2)
        answer = api.get("/readyz")
        self.assertEqual(answer.status, 503)
        self.assertEqual(answer.json(), {"status": "not ready", "component": "scheduler"})

    def test_stopping(self) -> None:
        """One that shuts down is alive and not ready."""
        api = Api()
        api.runs.quiesce()
        self.assertEqual((api.get("/healthz").status, api.get("/readyz").status), (200, 503))


class StoreReadyTests(SynchronousTestCase):
    """Readiness where jobs remember in a store."""

    def ready(self, api: Api) -> tuple[int, str | None]:
        """Return the status and the component that is to blame."""
        answer = api.get("/readyz")
        return answer.status, answer.json().get("component")

    def test_answers(self) -> None:
        """A store that answers is ready."""
        self.assertEqual(self.ready(StoredApi(self.mktemp())), (200, None))

    def test_not_started(self) -> None:
        """One that could not be started is not."""
        path = self.mktemp()
        api = StoredApi(path, start=False)
        Path(path).write_text("in the way")
        with self.assertLogs("cronstable", "ERROR"):
            api.reconcile(StateConfig(api.path))
        self.assertEqual(self.ready(api), (503, "store"))

    def test_hangs(self) -> None:
        """One that does not answer within two seconds is not."""
        api = StoredApi(self.mktemp())
        for pool in api.pools:
            pool.is_hung = True
        self.assertEqual(self.ready(api), (503, "store"))
        self.assertLess(api.clock.now(), NOW + 3)

    def test_gone(self) -> None:
        """One whose directory has gone is not."""
        api = StoredApi(self.mktemp())
        shutil.rmtree(api.path)
        self.assertEqual(self.ready(api), (503, "store"))


class ShutdownTests(SynchronousTestCase):
    """POST /shutdown."""

    def api(self, **web: Any) -> Api:
        """Return a daemon that notes when it is to stop."""
        api = Api(**web)
        self.stopped: list[bool] = []
        api.house.shutdown = lambda: self.stopped.append(True)
        return api

    def test_token(self) -> None:
        """A token with control stops the daemon, after the answer."""
        for token in (ALL, CONTROL):
            api = self.api(web=locked())
            answer = api.post("/shutdown", Authorization=f"Bearer {token}")
            self.assertEqual((answer.status, answer.json()), (200, {"shuttingDown": True}))
            api.turns()
            self.assertEqual(self.stopped, [True])

    def test_refused(self) -> None:
        """Anything less does not, least of all an open daemon."""
        api = self.api(web=locked())
        self.assertEqual(api.post("/shutdown").status, 401)
        self.assertEqual(api.post("/shutdown", Authorization=f"Bearer {VIEW}").status, 403)
        open_api = self.api()
        answer = open_api.post("/shutdown")
        self.assertEqual(answer.status, 403)
        self.assertIn("requires bearer-token authentication", answer.json()["error"])
        open_api.turns()
        self.assertEqual(self.stopped, [])
