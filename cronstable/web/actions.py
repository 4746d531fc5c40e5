"""
Routes that change something about a job: start, cancel, pause, resume.

docs/http-api.md, "Acting on a job", specifies bodies and answers.
"""

from __future__ import annotations

from typing import Any

from klein import Klein

from cronstable.runs.pauses import LONGEST, Pause
from cronstable.runs.request import Decision
from cronstable.service import first_of
from cronstable.state.encoding import portable
from cronstable.state.instants import from_text
from cronstable.web import views
from cronstable.web.answers import answer_json
from cronstable.web.context import Context
from cronstable.web.refusal import Refused
from cronstable.web.requests import ApiRequest
from cronstable.web.routing import post

DEFAULT_PAUSE = 3600
"""Seconds that a pause lasts where nothing is said."""

NOTE_LENGTH = 500
"""Characters that the note of a pause may have."""

NAME_LENGTH = 100
"""Characters that the name of who pauses or resumes may have."""

GRACE = 2.0
"""Seconds beyond the kill timeout that a cancel waits for the runs of a job to be recorded."""

_REFUSED = {
    "disabled": "job '{name}' is disabled",
    "overlap": "job '{name}' is still running and its concurrencyPolicy is Forbid",
    "shutdown": "the daemon is shutting down",
}

_UNAVAILABLE = frozenset({"late", "store", "error"})
"""Reasons for which something else than the job's own state kept a start from being decided."""


def register(app: Klein, context: Context) -> None:
    """Add the routes."""
    routes = ActionRoutes(context)
    post(app, "/jobs/<segment:name>/start", routes.start)
    post(app, "/jobs/<segment:name>/cancel", routes.cancel)
    post(app, "/jobs/<segment:name>/pause", routes.pause)
    post(app, "/jobs/<segment:name>/resume", routes.resume)


class ActionRoutes:
    """Does what is asked of jobs."""

    def __init__(self, context: Context) -> None:
        self._house = context.house

    async def start(self, request: ApiRequest, name: str) -> bytes:
        """Start a job, and answer once that is decided."""
        job = self._house.job(name)
        ticket = self._house.runs.start_now(name, request.caller.label)
        decision = await ticket.when_decided()
        if decision.kind == "started":
            return answer_json(request, {"started": name})
        if decision.kind == "queued":
            pool = job.pool.name if job.pool is not None else ""
            queued = {"queued": name, "queueId": decision.ref or "", "pool": pool}
            return answer_json(request, queued, 202)
        raise _not_started(name, decision)

    async def cancel(self, request: ApiRequest, name: str) -> bytes:
        """Stop every live run of a job, and answer once they have ended or had their time."""
        job = self._house.job(name)
        count, ended = self._house.runs.cancel(name, request.caller.label)
        if not count:
            raise Refused(409, f"job '{name}' is not running", dressed=True)
        await first_of(self._house.clock, job.kill_timeout + GRACE, ended)
        return answer_json(request, {"cancelled": name, "instances": count})

    def pause(self, request: ApiRequest, name: str) -> bytes:
        """Hold back the scheduled runs of a job for a while."""
        self._house.job(name)
        body = request.json_object()
        now = self._house.clock.now()
        pause = Pause(
            now,
            _until(body, now),
            _text(body, "note", NOTE_LENGTH, ""),
            _text(body, "by", NAME_LENGTH, "api"),
        )
        self._house.runs.pause(name, pause)
        return answer_json(request, {"paused": views.pause(pause)})

    def resume(self, request: ApiRequest, name: str) -> bytes:
        """End the pause of a job, if there is one."""
        self._house.job(name)
        _text(request.json_object(), "by", NAME_LENGTH, "api")
        self._house.runs.resume(name)
        return answer_json(request, {"paused": None})


def _not_started(name: str, decision: Decision) -> Refused:
    reason = decision.reason or decision.kind
    known = _REFUSED.get(reason)
    text = known.format(name=name) if known else f"job '{name}': {decision.detail or reason}"
    return Refused(503 if reason in _UNAVAILABLE else 409, text, dressed=True)


def _until(body: dict[str, Any], now: float) -> float:
    duration, until = body.get("durationSeconds"), body.get("until")
    if until is None:
        if duration is None:
            return now + DEFAULT_PAUSE
        if isinstance(duration, bool) or not isinstance(duration, int):
            raise Refused(400, "durationSeconds must be an integer")
        if not 1 <= duration <= LONGEST:
            raise Refused(400, f"durationSeconds must be between 1 and {LONGEST:.0f}")
        return now + duration
    if duration is not None:
        raise Refused(400, "give durationSeconds or until, not both")
    at = from_text(until)
    if at is None:
        raise Refused(400, "until must be an ISO 8601 date and time")
    if at <= now:
        raise Refused(400, "until is in the past")
    if at > now + LONGEST:
        raise Refused(400, f"until must be at most {LONGEST:.0f} seconds ahead")
    return at


def _text(body: dict[str, Any], key: str, longest: int, default: str) -> str:
    value = body.get(key)
    if value is None:
        return default
    if not isinstance(value, str):
        raise Refused(400, f"{key} must be a string")
    if len(value) > longest:
        raise Refused(400, f"{key} must be at most {longest} characters")
    return portable(value)
