"""
Routes about the daemon as a whole: version, job set, status, summary, health, who asks, shutdown.

docs/http-api.md, "The daemon", specifies the answers.
"""

from __future__ import annotations

import os
from typing import Any

from klein import Klein

from cronstable.config.values import JobConfig
from cronstable.runs.scheduler import LONGEST_SLEEP
from cronstable.state.errors import TROUBLE
from cronstable.version import __version__
from cronstable.web import views
from cronstable.web.answers import JSON, answer, answer_json, answer_text, encode
from cronstable.web.auth import SCOPES
from cronstable.web.context import Context
from cronstable.web.refusal import Refused
from cronstable.web.requests import ApiRequest
from cronstable.web.routing import get, post
from cronstable.web.slices import sliced

STALE_PASS = 5 * LONGEST_SLEEP
"""Seconds without a completed pass of the scheduler after which it does not count as ready."""

STORE_BOUND = 2.0
"""Seconds that a store may take to answer and still count as ready."""

NO_SHUTDOWN = (
    "POST /shutdown requires bearer-token authentication: configure web.authToken (or a "
    "web.authTokens entry whose scopes include `control`) and present it on this request"
)
NEVER = "no future runs (check the schedule)"

_UNITS = ((120, 1, "second"), (120 * 60, 60, "minute"), (48 * 3600, 3600, "hour"))
_DAY = (86400, "day")


def register(app: Klein, context: Context) -> None:
    """Add the routes."""
    routes = StatusRoutes(context)
    get(app, "/version", routes.version)
    get(app, "/job-set-id", routes.job_set_id)
    get(app, "/status", routes.status)
    get(app, "/summary", routes.summary)
    get(app, "/whoami", routes.whoami)
    get(app, "/healthz", routes.alive)
    get(app, "/readyz", routes.ready)
    post(app, "/shutdown", routes.shutdown)


class StatusRoutes:
    """Answers what is asked about the daemon."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._house = context.house
        self._texts = context.job_texts

    def version(self, request: ApiRequest) -> bytes:
        """Answer with the release."""
        return answer_text(request, __version__)

    def job_set_id(self, request: ApiRequest) -> bytes:
        """Answer with what peers compare to know that they run the same jobs."""
        jobs = self._house.runs.jobs
        if request.accepts(JSON):
            return answer_json(request, {"job_set_id": jobs.job_set_id, "jobs": len(jobs.jobs)})
        return answer_text(request, jobs.job_set_id)

    async def status(self, request: ApiRequest) -> bytes:
        """Answer with a line or a row for each job."""
        house = self._house
        jobs, now = tuple(house.runs.jobs.jobs.values()), house.clock.now()
        if request.accepts(JSON):
            rows = await sliced(house.clock, jobs, lambda job: encode(self._row(job, now)))
            return answer(request, f"[{','.join(rows)}]".encode("ascii"), JSON)
        lines = await sliced(house.clock, jobs, lambda job: _line(self._row(job, now)))
        return answer_text(request, "\n".join(lines))

    async def summary(self, request: ApiRequest) -> bytes:
        """Answer with counts over all jobs, and with what fires next."""
        house = self._house
        now = house.clock.now()
        count = dict.fromkeys(
            ("total", "enabled", "disabled", "running", "paused", "failing", "never_fires"), 0
        )
        soonest: list[tuple[int, str]] = []

        def look(job: JobConfig) -> None:
            count["total"] += 1
            count["enabled" if job.enabled else "disabled"] += 1
            count["running"] += bool(house.runs.live(job.name))
            count["never_fires"] += self._texts.never_fires(job)
            last = house.runs.history.last(job.name)
            count["failing"] += last is not None and last.outcome == "failure"
            pause = house.runs.pauses.of(job.name, now)
            count["paused"] += pause is not None
            fire = house.scheduler.index.next_fire(job.name)
            if fire is None or (pause is not None and fire < pause.until):
                return
            if not soonest or fire < soonest[0][0]:
                soonest[:] = [(fire, job.name)]

        await sliced(house.clock, tuple(house.runs.jobs.jobs.values()), look)
        shown: dict[str, Any] = {
            "version": __version__,
            "node_name": house.node_name,
            "generated_at": views.iso(now),
            "jobs": count,
            "next_fire": None,
            "cluster": {"enabled": False},
        }
        if soonest:
            fire, name = soonest[0]
            due = round(max(fire - now, 0.0), 6)
            shown["next_fire"] = {"job": name, "in": due, "at": views.iso(fire)}
        return answer_json(request, shown)

    def whoami(self, request: ApiRequest) -> bytes:
        """Answer with what the sender may do, and how this API can be reached."""
        caller, web = request.caller, self._context.web
        badges = {"public": web.badges.public, "dashboard": web.ui}
        shown: dict[str, Any] = {
            "authenticated": caller.authenticated,
            "label": caller.label,
            "scopes": sorted(caller.scopes),
            "allScopes": caller.scopes == frozenset(SCOPES),
            "pairLinkBase": "",
            "sealableSuites": [],
            "instance": self._house.identity.instance,
            "badges": badges if web.badges.enabled else None,
        }
        if not caller.anonymous:
            shown["listeners"] = self._context.listeners()
        return answer_json(request, shown)

    def alive(self, request: ApiRequest) -> bytes:
        """Answer that the process serves requests."""
        return answer_text(request, "ok")

    async def ready(self, request: ApiRequest) -> bytes:
        """Answer whether jobs start when they are due, naming what keeps them from it."""
        trouble = self._trouble()
        if trouble is None and not await self._store_answers():
            trouble = "store"
        if trouble is None:
            return answer_json(request, {"status": "ready"})
        return answer_json(request, {"status": "not ready", "component": trouble}, 503)

    def shutdown(self, request: ApiRequest) -> bytes:
        """Begin a graceful stop, for a caller that showed a token."""
        if not request.caller.authenticated:
            raise Refused(403, NO_SHUTDOWN)
        house = self._house
        house.clock.callLater(0, house.shutdown)
        return answer_json(request, {"shuttingDown": True})

    def _trouble(self) -> str | None:
        house = self._house
        last = house.scheduler.last_pass
        if house.runs.gates.draining or last is None:
            return "scheduler"
        return "scheduler" if house.clock.seconds() - last > STALE_PASS else None

    async def _store_answers(self) -> bool:
        store = self._house.store
        if not store.configured:
            return True
        try:
            await store.ask(lambda opened: os.stat(opened.tree.root), STORE_BOUND)
        except TROUBLE:
            return False
        return True

    def _row(self, job: JobConfig, now: float) -> views.Json:
        live = self._house.runs.live(job.name)
        row: views.Json = {"job": job.name}
        if live:
            row["status"] = "running"
            row["pid"] = [run.pid for run in live if run.pid is not None]
        elif not job.enabled:
            row["status"] = "disabled"
        else:
            row["status"] = "scheduled"
            row["scheduled_in"] = "@reboot" if job.reboot else self._texts.due_in(job, now)
        if self._texts.never_fires(job):
            row["never_fires"] = True
        return row


def _line(row: views.Json) -> str:
    return f"{row['job']}: {_phrase(row)}"


def _phrase(row: views.Json) -> str:
    if row["status"] == "running":
        return f"running (pid: {', '.join(map(str, row['pid']))})"
    if row["status"] == "disabled":
        return "disabled"
    due = row["scheduled_in"]
    if due is None:
        return NEVER
    return "scheduled (@reboot)" if due == "@reboot" else f"scheduled (in {_in_words(due)})"


def _in_words(due: float) -> str:
    """Return a time to wait in the smallest unit of which it has not too many."""
    size, unit = next(((size, unit) for below, size, unit in _UNITS if due < below), _DAY)
    number = int(due // size)
    return f"{number} {unit}{'' if number < 2 else 's'}"
