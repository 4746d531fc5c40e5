"""
The API against recorded answers: status, headers, and the shape of every body.

The recordings in tests/vectors/http come from an older daemon with the same interface.  Values are
of their moment; what is compared is described in L{shape}.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.load import load
from cronstable.executors.cgroups import CapsSupport
from cronstable.executors.host import HostUse
from cronstable.executors.interfaces import CapsReport, Usage
from cronstable.runs.record import RunRecord, Verification
from tests.answers import Answer
from tests.web.api import NOW, Api
from tests.web.test_jobs import record

VECTORS = Path(__file__).parents[1] / "vectors" / "http"
FIXTURES = VECTORS / "_fixtures"

HEADERS = (
    "content-type", "vary", "www-authenticate", "allow", "cache-control", "x-accel-buffering",
    "x-demo", "x-content-type-options", "x-frame-options", "referrer-policy",
)  # fmt: skip
"""Headers whose values are compared."""

PRESENT = ("etag", "cronstable-instance", "transfer-encoding")
"""Headers that are there exactly when they are in the recording."""

ROUTER_ERRORS = ("401: Unauthorized", "404: Not Found", "405: Method Not Allowed")


def shape(value: Any) -> Any:
    """
    Return the shape of a JSON value: members by name, one shape for all elements of an array.

    Numbers are alike; a null may stand for anything.
    """
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [merged([shape(each) for each in value])]
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    return None if value is None else type(value).__name__


def merged(shapes: list[Any]) -> Any:
    """Return a shape that has the members of all of C{shapes}."""
    result: Any = None
    for each in shapes:
        if isinstance(result, dict) and isinstance(each, dict):
            for key, member in each.items():
                result[key] = merged([result.get(key), member])
        elif isinstance(result, list) and isinstance(each, list):
            result = [merged([result[0], each[0]])]
        elif each is not None:
            result = each
    return result


def differences(recorded: Any, ours: Any, where: str = "") -> list[str]:
    """Return where our shape lacks something of the recorded one or has another type."""
    if recorded is None or ours is None:
        return []
    if isinstance(recorded, dict) and isinstance(ours, dict):
        found = []
        for key, member in recorded.items():
            if key not in ours:
                found.append(f"{where}.{key} is missing")
            else:
                found += differences(member, ours[key], f"{where}.{key}")
        return found
    if isinstance(recorded, list) and isinstance(ours, list):
        return differences(recorded[0], ours[0], f"{where}[]")
    return [] if recorded == ours else [f"{where} is {ours}, recorded {recorded}"]


@attrs.frozen
class Vector:
    """One recording."""

    id: str
    fixture: str
    request: dict[str, Any]
    response: dict[str, Any]

    @classmethod
    def read(cls, name: str) -> Vector:
        """Read a recording by its name."""
        found = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
        return cls(found["id"], found["fixture"], found["request"], found["response"])

    def ask(self, api: Api) -> Answer:
        """Make the recorded request."""
        request = self.request
        body = b""
        if "json" in request:
            body = json.dumps(request["json"]).encode()
        elif "raw" in request:
            body = request["raw"].encode()
        headers = {
            name.replace("-", "_"): text for name, text in request.get("headers", {}).items()
        }
        if headers.get("Origin", "").endswith(":18080"):
            headers["Origin"] = "https://localhost"
        return api.ask(request["method"], request["path"], body, **headers)


class VectorCase(SynchronousTestCase):
    """A daemon as the recordings had it."""

    def daemon(self, fixture: str) -> Api:
        """Return a daemon of a recorded configuration."""
        config = load(str(FIXTURES / f"{fixture}.yaml"), environ={}, now=NOW).config
        assert config.web is not None
        api = Api(*config.jobs.values(), web=config.web)
        api.running.node.stop()
        return api

    def replay(self, api: Api, *names: str) -> None:
        """Compare our answers with recorded ones."""
        for name in names:
            with self.subTest(vector=name):
                self.compare(api, Vector.read(name))

    def compare(self, api: Api, vector: Vector) -> None:
        """Compare one answer."""
        answer, recorded = vector.ask(api), vector.response
        self.assertEqual(answer.status, recorded["status"], answer.body)
        headers = {name.lower(): text for name, text in recorded["headers"].items()}
        for name in HEADERS:
            if name != "content-type" or recorded["status"] < 400:
                self.assertEqual(answer.headers.get(name), headers.get(name), name)
        for name in PRESENT:
            self.assertEqual(name in answer.headers, name in headers, name)
        body = recorded["body"]
        if body.get("empty"):
            self.assertEqual(answer.body, b"")
        elif "json" in body:
            self.assertEqual(differences(shape(body["json"]), shape(answer.json())), [])
            error = body["json"].get("error") if isinstance(body["json"], dict) else None
            if error in ROUTER_ERRORS:
                self.assertEqual(answer.json()["error"], error)
        elif "text" in body and headers["content-type"].startswith("text/event-stream"):
            mine = [line for line in answer.text.splitlines() if line.startswith("event:")]
            theirs = [line for line in body["text"].splitlines() if line.startswith("event:")]
            self.assertEqual(mine[-1:], theirs[-1:])

    def prints(self, api: Api, text: str) -> None:
        """Let the newest run print and end well."""
        launch = api.launched()
        launch.observer.output("stdout", text.encode())
        launch.exit()


class StatelessTests(VectorCase):
    """A daemon with one job and everything switched off."""

    def test_replay(self) -> None:
        """It answers as recorded, for absent sections too."""
        self.replay(
            self.daemon("stateless"),
            "stateless-badges-off", "stateless-dag-backfill", "stateless-dag-run",
            "stateless-dag-runs", "stateless-dag-trigger", "stateless-dags",
            "stateless-job-logs-never-ran", "stateless-mcp-off", "stateless-metrics-off",
            "stateless-node-history-off", "stateless-pools", "stateless-state-documents",
            "stateless-state-records", "stateless-state", "stateless-ui-off",
            "stateless-whoami-badges-off", "job-trends-memory",
        )  # fmt: skip


class AuthTests(VectorCase):
    """A daemon with scoped tokens."""

    def test_replay(self) -> None:
        """It lets in and refuses as recorded."""
        api = self.daemon("auth")
        api.runs.history.add(record("only"))
        self.replay(
            api,
            "auth-200-case-insensitive", "auth-200-control-start", "auth-401-missing",
            "auth-401-query-token", "auth-401-unmatched-path", "auth-401-wrong-scheme",
            "auth-401-wrong-token", "auth-403-approve-start", "auth-403-control-decision",
            "auth-403-view-start", "auth-404-headers", "auth-404-unmatched-path",
            "auth-409-headers", "auth-approve-decision", "auth-badge-401", "auth-ics-401",
            "auth-index-public", "auth-jobs-headers", "auth-metrics-401", "auth-options-401",
            "auth-options-preflight", "auth-shutdown-403-view", "auth-whoami-all",
            "auth-whoami-approve", "auth-whoami-control", "auth-whoami-view",
        )  # fmt: skip

    def test_anonymous(self) -> None:
        """So it does for readers without a credential."""
        self.replay(
            self.daemon("anonymous"),
            "anon-401-query-token", "anon-401-wrong-token", "anon-jobs-200", "anon-mcp-403",
            "anon-origin-403", "anon-push-403", "anon-shutdown-403", "anon-start-403",
            "anon-whoami",
        )  # fmt: skip


class MainTests(VectorCase):
    """A daemon with many jobs, some of which run, ran, wait or are late."""

    def setUp(self) -> None:
        self.api = self.daemon("main")
        api = self.api
        use = HostUse(1.0, 2, 3.0, 4, 5, 6, 7.0)
        api.running.node._now, api.running.node._read_at = use, float("inf")
        api.house.caps = lambda: CapsSupport(False, "cgroup v2", (), "none", "mount it")
        usage = Usage(0.5, 0.1, 2048, 2, ((NOW, 0.0, 1024), (NOW + 1, 5.0, 2048)),
                      (NOW + 1, 5.0, 2048))  # fmt: skip
        for name in ("ok-minutely", "fails"):
            api.runs.history.add(record(name, outcome="failure", fail_reason="why", exit_code=1))
        api.runs.history.add(record("monitored", usage=usage))
        api.runs.history.add(
            record("killed-by-timeout", outcome="failure", exit_code=-100, fail_reason="late")
        )
        for name in ("long", "slotted"):
            api.post(f"/jobs/{name}/start")
            api.launched().observer.sampled(usage)
        api.sla.judge(api.runs.jobs)
        api.advance(2.5)
        api.sla.judge(api.runs.jobs)

    def test_reading(self) -> None:
        """What is read has every recorded field."""
        self.replay(
            self.api,
            "activity", "activity-400", "activity-jobs-sort", "cluster-none", "fleet-none",
            "head-jobs", "job-detail", "job-detail-404", "job-detail-encoded-name",
            "job-detail-running-monitored", "job-logs-404", "job-logs-no-output",
            "job-resources", "job-resources-404", "job-resources-runs",
            "job-resources-unmonitored", "job-runs", "job-runs-404", "job-runs-empty",
            "job-runs-failure", "job-runs-limit", "job-runs-monitored", "job-runs-timeout",
            "job-set-id-json", "job-set-id-text", "job-trends", "job-trends-404", "node",
            "options-405", "post-to-get-405", "status-json", "status-text", "unmatched-404",
        )  # fmt: skip

    def test_summary(self) -> None:
        """The summary has every recorded field but the number of workflows."""
        vector = Vector.read("summary")
        del vector.response["body"]["json"]["dags"]
        self.compare(self.api, vector)

    def test_list(self) -> None:
        """Each job of the list has the recorded members, however it stands."""
        vector = Vector.read("jobs")
        ours = {each["name"]: each for each in vector.ask(self.api).json()}
        absent = {"retry"}
        for theirs in vector.response["body"]["json"]:
            theirs = {key: member for key, member in theirs.items() if key not in absent}
            with self.subTest(job=theirs["name"]):
                self.assertEqual(differences(shape(theirs), shape(ours[theirs["name"]])), [])

    def test_conditional(self) -> None:
        """A client that has the list gets the recorded 304."""
        tag = self.api.get("/jobs").headers["etag"]
        vector = Vector.read("jobs-304")
        vector.request["headers"]["If-None-Match"] = tag
        self.compare(self.api, vector)

    def test_acting(self) -> None:
        """What is done, and what is refused, is answered as recorded."""
        self.replay(
            self.api,
            "jobs-cancel-200", "jobs-cancel-404", "jobs-cancel-409", "jobs-pause-200",
            "jobs-pause-200-empty-body", "jobs-pause-400-badjson", "jobs-pause-400-both",
            "jobs-pause-400-notobject", "jobs-pause-400-past", "jobs-pause-400-range",
            "jobs-pause-400-type", "jobs-pause-404", "jobs-resume-200", "jobs-resume-404",
            "jobs-start-200", "jobs-start-404", "jobs-start-409-disabled",
            "jobs-start-409-forbid", "origin-403", "origin-get-200", "origin-null-403",
            "origin-same-200", "push-devices-404", "push-pair-404", "push-revoke-404",
            "pools-none", "pools-cancel-unknown", "dag-decision-unknown-dag",
            "dag-recover-unknown", "dags-trigger-404", "shutdown-403-open",
        )  # fmt: skip

    def test_streams(self) -> None:
        """A finished run is replayed to the same events."""
        self.api.post("/jobs/ok-minutely/start")
        launch = self.api.launched()
        launch.observer.output("stderr", b"oops\n")
        self.prints(self.api, "hello\n")
        vector = Vector.read("job-logs-finished")
        recorded = vector.response["body"]["text"].partition("event: end")[0]
        self.assertEqual(vector.ask(self.api).text.partition("event: end")[0], recorded)
        self.api.post("/jobs/chatty/start")
        self.prints(self.api, "".join(f"{number}\n" for number in range(1, 41)))
        self.replay(self.api, "job-logs-finished", "job-logs-savelimit")


class ExtraTests(VectorCase):
    """A daemon with pools, checks, caps and retries."""

    def setUp(self) -> None:
        self.api = self.daemon("extra")

    def test_runs(self) -> None:
        """Runs with a check, with caps, skipped, unknown and cancelled are shown as recorded."""
        api = self.api
        check = Verification("failure", 7, "code 7", NOW, NOW, 0.0)
        report = CapsReport(False, None, ("memory",), "no cgroups")
        for each in (
            record("verified", outcome="failure", fail_reason="check", verification=check),
            record("verified-ok", verification=attrs.evolve(check, outcome="success")),
            record("capped", caps=report),
            record("crashy", started_at=None, duration=None, outcome="unknown", exit_code=None),
            record("timeoutless"),
        ):
            api.runs.history.add(each)
        api.runs.history.add(record("skippy"))
        for _ in range(3):
            api.runs.history.add(RunRecord("skippy", "skipped", NOW, skip_reason="paused"))
        api.post("/jobs/skippy/pause")
        self.replay(
            api,
            "job-detail-limits", "job-detail-paused-skipped", "job-detail-unknown",
            "job-detail-verified", "job-logs-rehydrated", "job-runs-rehydrated",
            "job-runs-skipped", "job-runs-unknown", "job-runs-verified", "job-runs-verified-ok",
        )  # fmt: skip

    def test_retries(self) -> None:
        """An armed retry is shown as recorded."""
        self.api.advance(30.5)
        for launch in tuple(self.api.executor.live):
            launch.exit(2)
        self.replay(self.api, "job-detail-retry", "job-detail-retry-unlimited")


class CoverageTests(SynchronousTestCase):
    """No recording lies about unused."""

    others = {
        "anon-badge-": "web/test_badges.py",
        "badge-": "web/test_badges.py",
        "calendar-": "web/test_calendar.py",
        "schedule-": "web/test_schedule.py",
        "state-": "web/test_state.py",
        "v1-cli-": "jobapi/test_commands.py",
        "v1-": "jobapi/test_vectors.py",
    }
    """Where recordings with a common beginning are replayed, if not here."""

    def test_every_recording_is_replayed(self) -> None:
        """Each recording in the directory is named here, or of a family that has its own module."""
        text = Path(__file__).read_text(encoding="utf-8")
        stems = {path.stem for path in VECTORS.glob("*.json")}
        unused = {stem for stem in stems if f'"{stem}"' not in text}
        for family, module in self.others.items():
            theirs = (Path(__file__).parents[1] / module).read_text(encoding="utf-8")
            self.assertIn(family, theirs, f"{module} replays no {family}")
            unused -= {stem for stem in unused if f"{stem}-".startswith(family)}
        self.assertEqual(unused, set())
