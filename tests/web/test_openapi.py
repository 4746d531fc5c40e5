"""The description of the API: true to the routes of the code, and to what they answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import jsonschema_rs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import (
    Monitor,
    PoolMembership,
    ResourceLimits,
    RetryPolicy,
    Sla,
    Verify,
)
from cronstable.executors.interfaces import CapsReport, Leftover, Usage
from cronstable.runs.pauses import Pause
from cronstable.web.auth import needed_scope
from cronstable.web.description import document
from cronstable.web.routing import routes
from tests.answers import Answer
from tests.fakes import FakeLaunch, job
from tests.web.api import Api, events, locked, section

ERROR = "application/json; charset=utf-8"
DOCUMENT = document()


def operations(described: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield method, path and description of each operation."""
    for path, item in described["paths"].items():
        for method, operation in item.items():
            yield method.upper(), path, operation


def resolved(described: dict[str, Any], value: Any) -> Any:
    """Return C{value}, or what it refers to."""
    while "$ref" in value:
        found: Any = described
        for part in value["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        value = found
    return value


def every(value: Any) -> Iterator[Any]:
    """Yield C{value} and everything in it."""
    yield value
    inner = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list):
        for each in inner:
            yield from every(each)


class DescriptionTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.described = DOCUMENT

    def test_routes(self) -> None:
        """Each route of the code is described, and nothing else is."""
        described = [(method, path) for method, path, _ in operations(self.described)]
        self.assertEqual(sorted(described), sorted(routes(Api().running.front.app)))

    def test_scopes(self) -> None:
        """Each operation names the scope that it needs; one that needs none says so twice."""
        for method, path, operation in operations(self.described):
            scope = operation["x-scope"]
            if scope == "none":
                self.assertEqual(operation["security"], [])
                continue
            raw = re.sub(r"\{\w+\}", "x", path).encode()
            request: Any = SimpleNamespace(
                method=method.encode(), path=raw, reads_only=method == "GET"
            )
            self.assertEqual(scope, needed_scope(request), path)
            self.assertLessEqual({"401", "403", "500"}, operation["responses"].keys())

    def test_references(self) -> None:
        """Every reference leads to something, and every component is referred to."""
        used = {
            each["$ref"]
            for each in every(self.described)
            if isinstance(each, dict) and "$ref" in each
        }
        for reference in used:
            resolved(self.described, {"$ref": reference})
        components = self.described["components"]
        there = {
            f"#/components/{kind}/{name}"
            for kind in components
            if kind != "securitySchemes"
            for name in components[kind]
        }
        self.assertEqual(there - used, set())

    def test_names(self) -> None:
        """Operations have names of their own; the parameters of a path are described."""
        names = [operation["operationId"] for _, _, operation in operations(self.described)]
        self.assertEqual(len(names), len(set(names)))
        for _, path, operation in operations(self.described):
            parameters = [
                resolved(self.described, each) for each in operation.get("parameters", ())
            ]
            in_path = [each["name"] for each in parameters if each["in"] == "path"]
            self.assertEqual(in_path, re.findall(r"\{(\w+)\}", path))
            self.assertEqual(len(parameters), len({(p["in"], p["name"]) for p in parameters}))

    def test_schemas(self) -> None:
        """Every schema is one."""
        for each in every(self.described):
            if isinstance(each, dict) and "schema" in each:
                jsonschema_rs.meta.validate(each["schema"])
        for schema in self.described["components"]["schemas"].values():
            jsonschema_rs.meta.validate(schema)

    def test_served(self) -> None:
        """It is served as it is, for who may view, and known by a tag."""
        api = Api()
        answer = api.get("/openapi.json", Accept_Encoding="gzip")
        self.assertEqual(answer.headers["content-type"], "application/json")
        self.assertEqual(answer.json(), self.described)
        again = api.get("/openapi.json", If_None_Match=answer.headers["etag"])
        self.assertEqual(again.status, 304)


class Strict:
    """Compares answers with the description, as if it allowed nothing that it does not name."""

    def __init__(self, test: SynchronousTestCase, api: Api) -> None:
        self._test = test
        self._api = api
        self._described = deepcopy(DOCUMENT)
        self._validators: dict[int, Any] = {}
        self.seen: set[tuple[str, str, str]] = set()
        for each in every(self._described):
            if isinstance(each, dict) and "properties" in each and "allOf" not in each:
                each.setdefault("unevaluatedProperties", False)
        for each in every(self._described):
            # What is put together may name more than each of its parts.
            for part in each.get("allOf", ()) if isinstance(each, dict) else ():
                resolved(self._described, part).pop("unevaluatedProperties", None)

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Make a request and hold its answer against the description."""
        answer = self._api.ask(method, path, body, **headers)
        template, operation = self._operation(method, path.partition("?")[0])
        status = str(answer.status)
        self._test.assertIn(status, operation["responses"], f"{method} {path}: {answer.body!r}")
        response = resolved(self._described, operation["responses"][status])
        self.seen.add((method, template, status))
        for name, header in response.get("headers", {}).items():
            value = answer.headers[name.lower()]
            self._validate(resolved(self._described, header)["schema"], value)
        if "content" not in response:
            self._test.assertEqual(answer.body, b"")
            return answer
        media = answer.headers["content-type"]
        if media == ERROR:
            media = "application/json"
        self._test.assertIn(media, response["content"], f"{method} {path}")
        schema = response["content"][media]["schema"]
        if media == "text/event-stream":
            for kind, data in events(answer.text):
                self._validate(schema, {"event": kind, "data": json.dumps(data)})
        else:
            self._validate(schema, answer.json() if media == "application/json" else answer.text)
        return answer

    def get(self, path: str, **headers: str) -> Answer:
        """GET C{path}."""
        return self.ask("GET", path, **headers)

    def _operation(self, method: str, path: str) -> tuple[str, dict[str, Any]]:
        found = []
        for template, item in self._described["paths"].items():
            pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template))
            if re.fullmatch(pattern, path) and method.lower() in item:
                found.append((template.count("{"), template, item[method.lower()]))
        _, template, operation = min(found)
        return template, operation

    def _validate(self, schema: Any, value: Any) -> None:
        validator = self._validators.get(id(schema))
        if validator is None:
            whole = {**schema, "components": self._described["components"]}
            validator = jsonschema_rs.Draft202012Validator(whole, validate_formats=True)
            self._validators[id(schema)] = validator
        errors = [str(error)[:2000] for error in validator.iter_errors(value)]
        self._test.assertEqual(errors, [])


class AnswerTests(SynchronousTestCase):
    """What is answered is described in full."""

    def api(self) -> Api:
        """Make a daemon whose jobs have everything that a job can have."""
        self.served = Api(
            job("plain", "0 0 1 7 *"),
            job("hashed", "H H 30 2 *", priority="high"),
            job("boot", "@reboot"),
            job("off", enabled=False),
            job("a/b", "0 9 * * *", zone="Europe/London"),
            job(
                "full",
                "0 0 1 7 *",
                capture_stdout=True,
                monitor=Monitor(enabled=True),
                limits=ResourceLimits(memory=1 << 30),
                retry=RetryPolicy(maximum_retries=3, initial_delay=100.0),
                sla=Sla(max_time_since_success=60, max_runtime=5, late_after=9),
                pool=PoolMembership("p", 1, 0),
                concurrency_scope="cluster",
                concurrency_policy="Allow",
            ),
            job("checked", "0 0 1 7 *", verify=Verify("true", 5.0)),
            web=section(headers=(("X-Demo", "yes"),)),
        )
        return self.served

    def ended(self, launch: FakeLaunch, status: int) -> None:
        """End a run with everything that a record can have."""
        launch.exit(
            status,
            usage=Usage(0.5, 0.25, 1 << 20, 2, [[1.0, 2.0, 3]]),
            caps=CapsReport(True, "cgroup", (), None, False, False, 0, 1 << 20, 0.5),
            leftovers=(Leftover(77, "sleep 60"),),
        )

    def test_reading(self) -> None:
        """Every route that reads answers what it is described to answer, whatever has happened."""
        api = self.api()
        strict = Strict(self, api)
        self.everything(strict)
        for name in ("plain", "full", "checked", "a/b"):
            api.runs.start_now(name, "ops")
        self.everything(strict)
        api.advance(90, 1)
        api.sla.judge(api.runs.jobs)
        self.everything(strict)
        for launch in list(api.executor.live):
            self.ended(launch, 1 if launch.job == "full" else 0)
        for launch in list(api.executor.live):
            launch.exit(3)
        now = api.clock.now()
        api.runs.pause("plain", Pause(now, now + 3600, "why", "ops"))
        api.book.gap("plain", 0, int(now) - 600, int(now), 3, "delayed")
        self.everything(strict)
        described = {(method, path) for method, path, _ in operations(DOCUMENT) if method == "GET"}
        self.assertEqual({(method, path) for method, path, _ in strict.seen}, described)

    def everything(self, strict: Strict) -> None:
        """Ask all that can be asked without changing anything, with and without success."""
        for method, path, _ in operations(DOCUMENT):
            plain = re.sub(r"\{(?!name)\w+\}", "x", path)
            for name in ("full", "nope") if "{name}" in path else ("",):
                if method == "GET" and (path, name) != ("/jobs/{name}/logs", "full"):
                    strict.get(plain.replace("{name}", name))
        for path in (
            *(f"/jobs/{quote(name, safe='')}" for name in self.served.runs.jobs.jobs),
            *(f"/jobs/{name}/runs" for name in ("plain", "checked", "boot")),
            "/jobs/boot/logs",
            "/jobs/off/calendar.ics",
            "/activity?sort=up",
            "/slots?since=yesterday",
            "/slots?job=nope",
            *(f"/schedule/preview?expr={each}" for each in ("", "%40reboot", "61+*+*+*+*")),
            *(f"/schedule/preview?expr={each}&seed=a" for each in ("H+*+*+*+*", "0+0+30+2+*")),
            "/schedule/preview?expr=0+3+*+*+*&tz=Mars/X",
            *(f"/schedule/why?job={each}&at=2026-01-01T00:00" for each in ("plain", "boot", "x")),
            "/schedule/why?job=hashed&at=2026-01-01T00:00:30.5Z",
            "/schedule/why?job=plain&at=then",
            "/schedule/suggest?period=daily",
            "/schedule/suggest?period=weekly",
            "/schedule/pressure?tz=Mars/X",
            "/badge.svg?style=x",
            "/state/documents?ns=kv/a",
            "/state/records?stream=runs/a",
            "/state/records?stream=logs/a",
        ):
            strict.get(path)
        for path in ("/status", "/job-set-id"):
            strict.get(path, Accept="application/json")
        strict.get("/metrics", Accept="application/openmetrics-text")
        for path in ("/", "/jobs", "/activity", "/fleet", "/dags", "/badge.svg", "/openapi.json"):
            self.assertEqual(strict.get(path, If_None_Match="*").status, 304)

    def test_acting(self) -> None:
        """Every route that changes something answers what it is described to answer."""
        api = self.api()
        strict = Strict(self, api)
        for path, status in (
            ("/jobs/plain/start", 200),
            ("/jobs/plain/start", 200),
            ("/jobs/off/start", 409),
            ("/jobs/nope/start", 404),
            ("/jobs/plain/cancel", 200),
            ("/jobs/plain/cancel", 409),
            ("/jobs/nope/cancel", 404),
            ("/shutdown", 403),
            ("/dags/x/trigger", 404),
            ("/push/devices", 404),
            ("/push/devices/x/test", 404),
            ("/pools/x/queue/y/cancel", 409),
        ):
            self.assertEqual(strict.ask("POST", path).status, status, path)
        for path, body, status in (
            ("/jobs/plain/pause", b"", 200),
            ("/jobs/plain/pause", b'{"durationSeconds": 60, "note": "n", "by": "b"}', 200),
            ("/jobs/plain/pause", b'{"durationSeconds": true}', 400),
            ("/jobs/plain/pause", b"[]", 400),
            ("/jobs/nope/pause", b"", 404),
            ("/jobs/plain/resume", b'{"by": "b"}', 200),
            ("/jobs/plain/resume", b'{"by": 1}', 400),
            ("/jobs/nope/resume", b"", 404),
            ("/dags/x/backfill", b'{"from": "2026-01-01", "to": "2026-01-02"}', 400),
            ("/dags/x/recover", b"{}", 409),
            ("/dags/x/recover", b"{", 400),
            ("/dags/x/runs/y/recover", b"{}", 409),
            ("/dags/x/runs/y/tasks/z/decision", b'{"decision": "approve"}', 409),
            ("/dags/x/runs/y/tasks/z/decision", b"", 400),
        ):
            self.assertEqual(strict.ask("POST", path, body).status, status, path)
        self.assertEqual(strict.ask("DELETE", "/push/devices/x").status, 404)
        described = {(method, path) for method, path, _ in operations(DOCUMENT) if method != "GET"}
        self.assertEqual({(method, path) for method, path, _ in strict.seen}, described)

    def test_refused(self) -> None:
        """Every operation that needs a token is refused without one as described."""
        self.served = Api(job("a"), web=locked())
        strict = Strict(self, self.served)
        for method, path, operation in operations(DOCUMENT):
            if operation["x-scope"] != "none":
                plain = re.sub(r"\{\w+\}", "a", path)
                self.assertEqual(strict.ask(method, plain).status, 401, path)
                self.assertIn(operation["x-scope"], ("view", "control", "approve"))
