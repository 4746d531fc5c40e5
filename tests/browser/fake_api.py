"""
A small HTTP server that answers like the daemon, with made-up but steady data.

It serves the real page at C{/}.  Run it by hand to look at the page:
C{python -m tests.browser.fake_api --port 8099 [--jobs 1000] [--token secret]}.
"""

from __future__ import annotations

import argparse
import hashlib
import heapq
import itertools
import json
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from cronstable.web import dashboard
from cronstable.web.dashboard import Dashboard
from tests.browser import fake_state
from tests.browser.fake_data import (
    HOSTILE_LINES,
    HOSTILE_NAME,
    FakeJob,
    Json,
    few_jobs,
    finished,
    iso,
    many_jobs,
    stats,
)
from tests.browser.fake_schedule import pressure, preview, suggest, why

PAGE = Path(dashboard.__file__).parent / "page"
JOB_SET = "v1:" + "3f2a91c4" * 8


class Refused(Exception):
    """An error answer: a status and its reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class _Server(ThreadingHTTPServer):
    """A thread for each connection; a browser that hangs up is nothing to tell."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class FakeDaemon:
    """The state behind the answers, and the server; use as a context manager."""

    def __init__(
        self,
        jobs: int = 0,
        token: str = "",
        scopes: tuple[str, ...] = ("approve", "control", "view"),
        churn: bool = False,
        port: int = 0,
        load: Callable[[], Dashboard] = Dashboard.load,
    ) -> None:
        self.began = time.time()
        self.jobs = many_jobs(self.began, jobs) if jobs else few_jobs(self.began)
        self.by_name = {job.name: job for job in self.jobs}
        self.token = token
        self.scopes = scopes
        self.churn = churn
        self._churned: list[Json] = []
        self.load = load
        self.anonymous = False
        self.durable = False
        self.instance = "fake-1"
        self.posts: list[tuple[str, Json]] = []
        self.hits: dict[str, int] = {}
        self.down = False
        self._cut = threading.Event()
        self.stopping = threading.Event()
        daemon = self

        class Handler(_Handler):
            fake = daemon

        self.server = _Server(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> FakeDaemon:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.server.shutdown()
        self.server.server_close()
        self._thread.join(5)

    def cut_logs(self) -> None:
        """Break every log stream that is open now, without an end event."""
        self._cut.set()
        self._cut = threading.Event()

    def find(self, name: str) -> FakeJob:
        """Return a job or refuse with 404."""
        if name not in self.by_name:
            raise Refused(404, f"no job is called {name}")
        return self.by_name[name]

    def job_list(self) -> list[Json]:
        """Return what /jobs shows; with churn every job has just had another run."""
        now = time.time()
        if not self.churn:
            return [job.job(now) for job in self.jobs]
        if not self._churned:
            self._churned = [job.job(self.began) for job in self.jobs]
        tick = self.hits.get("/jobs", 0)
        for number, job in enumerate(self._churned):
            job["scheduled_in"] = 1.0 + (number * 7 + tick) % 50
            run = finished("success", now - 1 - number % 5, 0.1 + (number + tick) % 9, 0, None)
            if job["last_run"]["outcome"] == "failure":
                run |= {"outcome": "failure", "exit_code": 2}
            job["last_run"] = run
            job["history"] = [
                *job["history"][-19:],
                {"outcome": run["outcome"], "duration": run["duration"]},
            ]
            job["running"] = (number + tick) % 11 == 0
        return self._churned

    def slots(self, query: dict[str, str]) -> Json:
        """Answer /slots."""
        now = time.time()
        since = max(_instant(query.get("since")) or now - 6 * 3600, now - 14 * 3600)
        jobs = self.jobs if "job" not in query else [self.find(query["job"])]
        newest_first = heapq.merge(
            *([(-at, job.name, start) for at, start in job.slots(since, now)] for job in jobs)
        )
        found = []
        for minus_at, name, start in itertools.islice(newest_first, int(query.get("limit", "500"))):
            gap = self.by_name[name].gap(-minus_at, now)
            result, reason = gap if gap else ("ran", None)
            found.append(
                {
                    "job": name,
                    "slot": iso(-minus_at),
                    "result": result,
                    "reason": reason,
                    "started_at": iso(start) if result == "ran" else None,
                    "into": None,
                }
            )
        return {"slots": found, "unaccounted": 0}

    def act(self, name: str, what: str, body: Json) -> tuple[int, Json]:
        """Answer a POST below /jobs/NAME."""
        job = self.find(name)
        now = time.time()
        if what == "start":
            if not job.enabled:
                raise Refused(409, f"job {name!r} is disabled")
            if "pool" in job.extra:
                return 202, {"queued": name, "queueId": "q1", "pool": job.extra["pool"]["name"]}
            if job.running_since is not None:
                raise Refused(
                    409, f"job {name!r} is still running and its concurrencyPolicy is Forbid"
                )
            job.running_since = now
            return 200, {"started": name}
        if what == "cancel":
            if job.running_since is None:
                raise Refused(409, f"job {name!r} is not running")
            start, job.running_since = job.running_since, None
            job.added.append(finished("cancelled", start, now - start, -15, "cancelled by api"))
            return 200, {"cancelled": name, "instances": 1}
        if what == "pause":
            until = now + body.get("durationSeconds", 3600)
            job.paused = {
                "since": iso(now),
                "until": iso(until),
                "note": body.get("note", ""),
                "by": body.get("by", "api"),
                "channel": "api",
            }
            return 200, {"paused": job.paused}
        if what == "resume":
            job.paused = None
            return 200, {"paused": None}
        raise Refused(404, "404: Not Found")

    def pools(self) -> list[Json]:
        """Answer /pools."""
        queued = [
            entry for job in self.jobs for entry in job.extra.get("pool", {}).get("queued", ())
        ]
        if not queued:
            return []
        held = {
            "id": "q0",
            "job": "thumbnails",
            "priority": 5,
            "slots": 1,
            "state": "running",
            "queuedAt": self.began - 90,
            "expiresAt": self.began + 3000,
            "digest": "1" * 64,
        }
        return [
            {
                "name": "imaging",
                "slots": 1,
                "configuredSlots": 1,
                "maxQueued": 10,
                "used": 1,
                "queued": len(queued),
                "entries": [held, *queued],
            }
        ]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeDaemon

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._serve(self._get)

    def do_POST(self) -> None:
        self._serve(self._post)

    def _serve(self, answer: Callable[[str, dict[str, str]], None]) -> None:
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        fake = self.fake
        fake.hits[parts.path] = fake.hits.get(parts.path, 0) + 1
        try:
            if fake.down and parts.path != "/":
                self.close_connection = True
                return
            self._authorise(parts.path)
            answer(parts.path, query)
        except Refused as error:
            self._json({"error": error.reason}, error.status)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _authorise(self, path: str) -> None:
        fake = self.fake
        if path == "/" or not fake.token:
            return
        given = self.headers.get("Authorization")
        if given == f"Bearer {fake.token}":
            if self.command == "POST" and "control" not in fake.scopes:
                raise Refused(403, "token 'test' lacks the scope control")
            return
        if given is None and fake.anonymous:
            if self.command == "POST":
                raise Refused(403, "anonymous callers may only view")
            return
        raise Refused(401, "401: Unauthorized")

    def _get(self, path: str, query: dict[str, str]) -> None:
        fake = self.fake
        now = time.time()
        steps = [unquote(step) for step in path.split("/")[1:]]
        if path == "/blank":
            self._send(
                200, {"Content-Type": "text/html"}, b"<!doctype html><link rel=icon href=data:,>"
            )
        elif path.startswith("/page/") and ".." not in path:
            text = (PAGE / path.removeprefix("/page/")).read_bytes()
            self._send(200, {"Content-Type": "text/javascript"}, text)
        elif path == "/":
            headers, body = fake.load().document("gzip" in self.headers.get("Accept-Encoding", ""))
            self._send(200, headers, body)
        elif path == "/version":
            self._send(200, {"Content-Type": "text/plain"}, b"2.0.0")
        elif path == "/job-set-id":
            self._json({"job_set_id": JOB_SET, "jobs": len(fake.jobs)})
        elif path == "/jobs":
            self._conditional(fake.job_list())
        elif path == "/slots":
            self._json(fake.slots(query))
        elif path == "/whoami":
            known = not fake.token or self.headers.get("Authorization") is not None
            self._json(
                {
                    "authenticated": bool(fake.token) and known,
                    "label": None if not fake.token else "test" if known else "anonymous",
                    "scopes": sorted(fake.scopes) if known else ["view"],
                    "allScopes": known and len(fake.scopes) == 3,
                    "pairLinkBase": "",
                    "sealableSuites": [],
                    "instance": fake.instance,
                    "badges": {"public": False, "dashboard": True},
                }
            )
        elif path == "/node":
            self._json(
                {
                    "node_name": "node-a",
                    "resources": {
                        "cpu_percent": 12.5,
                        "cpu_count": 2,
                        "mem_percent": 41.0,
                        "mem_used_bytes": 1 << 30,
                        "mem_total_bytes": 1 << 32,
                    },
                    "limits": {"available": False},
                }
            )
        elif path == "/node/history":
            points = [
                [now - 5 * n, 20 + 15 * ((n * 7) % 5), 41 + n % 3]
                for n in range(300, 0, -1)
                if not 120 < n < 150
            ]
            self._json({"node_name": "node-a", "enabled": True, "interval": 5.0, "points": points})
        elif path == "/cluster":
            self._json({"enabled": False, "peers": []})
        elif path == "/dags":
            self._conditional([])
        elif path == "/pools":
            self._json(fake.pools())
        elif path == "/state":
            self._json(fake_state.inventory(now) if fake.durable else {"enabled": False})
        elif path.startswith("/state/") and not fake.durable:
            raise Refused(404, "state store is not configured")
        elif path == "/state/documents":
            self._json(fake_state.documents(query.get("ns", "")))
        elif path == "/state/records":
            self._json(fake_state.records(query.get("stream", "")))
        elif path == "/activity":
            limit = int(query.get("limit", "50"))
            keys = ("started_at", "finished_at", "outcome")
            names = [job.name for job in fake.jobs]
            if query.get("sort") == "name":
                names.sort()
            self._conditional(
                {
                    "jobs": {
                        name: [
                            {key: run[key] for key in keys}
                            for run in fake.by_name[name].runs(now, limit)
                        ]
                        for name in names[: int(query.get("jobs", str(len(names))))]
                    }
                }
            )
        elif path == "/schedule/preview":
            self._json(
                preview(
                    query.get("expr", ""), query.get("tz", "UTC"), int(query.get("limit", "12"))
                )
            )
        elif path == "/schedule/pressure":
            self._json(pressure(fake.jobs, query.get("tz", "UTC"), now))
        elif path == "/schedule/duplicates":
            self._json(
                {
                    "jobs": len(fake.jobs),
                    "groups": [
                        {
                            "expression": "*/30 * * * *",
                            "description": "Every 30 minutes",
                            "timezone": "UTC",
                            "count": 2,
                            "jobs": ["mail-digest", "watch-inbox"],
                        }
                    ],
                }
            )
        elif path == "/schedule/suggest":
            self._json(suggest(query.get("period", "hourly"), query.get("tz", "UTC"), now))
        elif path == "/schedule/why":
            self._json(why(fake.find(query["job"]), query.get("at", "")))
        elif steps[0] == "jobs" and len(steps) == 2:
            self._json(fake.find(steps[1]).job(now))
        elif steps[0] == "jobs" and len(steps) == 3:
            self._of_job(fake.find(steps[1]), steps[2], query, now)
        else:
            raise Refused(404, "404: Not Found")

    def _of_job(self, job: FakeJob, what: str, query: dict[str, str], now: float) -> None:
        if what == "runs":
            runs = job.runs(now, min(50, int(query.get("limit", "50"))))
            self._json({"name": job.name, "runs": runs, "stats": stats(job.runs(now))})
        elif what == "trends":
            self._json(
                {
                    "name": job.name,
                    "source": "durable",
                    "generated_at": iso(now),
                    "windows": {
                        window: stats(job.runs(now)[-count:])
                        for window, count in (
                            ("1h", 4),
                            ("24h", 20),
                            ("7d", 40),
                            ("30d", 50),
                            ("all", 50),
                        )
                    },
                }
            )
        elif what == "resources":
            live = []
            monitored = "running_resources" in job.extra
            if monitored and job.running_since is not None:
                series = [
                    [job.running_since + n, 40 + (n * 13) % 50, (120 + n) << 20] for n in range(90)
                ]
                live.append(
                    {
                        "started_at": iso(job.running_since),
                        "pid": 4711,
                        "series": series,
                        "current": {
                            "cpu_seconds": 41.2,
                            "cpu_percent": 63.5,
                            "rss_bytes": 184_549_376,
                        },
                    }
                )
            self._json(
                {
                    "name": job.name,
                    "monitored": monitored,
                    "interval": 1.0,
                    "limits": None,
                    "live": live,
                    "runs": [],
                }
            )
        elif what == "logs":
            self._logs(job)
        else:
            raise Refused(404, "404: Not Found")

    def _post(self, path: str, query: dict[str, str]) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(raw) if raw else {}
        steps = [unquote(step) for step in path.split("/")[1:]]
        self.fake.posts.append((path, body))
        if len(steps) != 3 or steps[0] != "jobs":
            raise Refused(404, "404: Not Found")
        status, answer = self.fake.act(steps[1], steps[2], body)
        self._json(answer, status)

    def _logs(self, job: FakeJob) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        start = job.running_since
        if start is None:
            runs = job.runs(time.time())
            if not runs:
                return self._event("end", {"reason": "no-output"})
            for number, text in enumerate(_lines(job)):
                self._event(
                    "line", {"stream": "stderr" if number % 7 == 5 else "stdout", "line": text}
                )
            return self._event("end", {"started_at": runs[-1]["started_at"]})
        number = 0
        cut = self.fake._cut
        while not self.fake.stopping.is_set() and job.running_since == start:
            if cut.is_set():
                return
            text = f"{number:04d} \x1b[32mok\x1b[0m order {90000 + number} in {3 + number % 9} ms"
            self._event("line", {"stream": "stderr" if number % 9 == 7 else "stdout", "line": text})
            number += 1
            if number > 40:
                self.fake.stopping.wait(0.15)
        self._event("end", {"started_at": iso(start)})

    def _event(self, kind: str, data: Json) -> None:
        self.wfile.write(f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode())
        self.wfile.flush()

    def _conditional(self, value: Any) -> None:
        body = json.dumps(value).encode()
        tag = f'"{hashlib.md5(body).hexdigest()}"'
        if self.headers.get("If-None-Match") == tag:
            return self._send(304, {"ETag": tag}, b"")
        self._send(200, {"Content-Type": "application/json", "ETag": tag}, body)

    def _json(self, value: Any, status: int = 200) -> None:
        self._send(status, {"Content-Type": "application/json"}, json.dumps(value).encode())

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Cronstable-Instance", self.fake.instance)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status != 304:
            self.wfile.write(body)


def _lines(job: FakeJob) -> list[str]:
    if job.name == HOSTILE_NAME:
        return list(HOSTILE_LINES)
    return [f"step {number}: {job.command}" for number in range(1, 31)]


def _instant(text: str | None) -> float | None:
    from datetime import datetime

    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() if text else None


def main() -> None:
    """Serve until interrupted; the page is assembled anew for each request."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--token", default="")
    parser.add_argument("--churn", action="store_true")
    given = parser.parse_args()
    with FakeDaemon(given.jobs, given.token, churn=given.churn, port=given.port) as fake:
        print(fake.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
