"""
The route of a job's live output.

docs/live-logs.md specifies the stream.
"""

from __future__ import annotations

from typing import Any

from klein import Klein

from cronstable.runs.output import Followed
from cronstable.runs.run import Run
from cronstable.web import views
from cronstable.web.answers import encode
from cronstable.web.context import Context
from cronstable.web.feed import event
from cronstable.web.requests import ApiRequest
from cronstable.web.routing import get


def register(app: Klein, context: Context) -> None:
    """Add the route."""
    get(app, "/jobs/<segment:name>/logs", LiveRoute(context).logs)


class LiveRoute:
    """Streams the output of a job's newest run."""

    def __init__(self, context: Context) -> None:
        self._house = context.house
        self._streams = context.streams

    def logs(self, request: ApiRequest, name: str) -> Any:
        """Answer with the retained lines of the newest run, and with what follows."""
        house = self._house
        house.job(name)
        begin(request)
        if request.method == b"HEAD":
            return b""
        if self._streams.stopping:
            return end({})
        followed = house.outputs.newest(name)
        if followed is None:
            started_at = self._last_start(name)
            return end(
                {"reason": "no-output"} if started_at is None else {"started_at": started_at}
            )
        live = self._live(name, followed)
        started = self._start_of(name, followed) if live is None else live.started_at
        last = end({"started_at": views.iso(started)})
        return self._streams.follow(request, name, followed, live, last)

    def _live(self, name: str, followed: Followed) -> Run | None:
        for run in self._house.runs.live(name):
            if run.ref == followed.ref:
                return run
        return None

    def _start_of(self, name: str, followed: Followed) -> float | None:
        for record in self._house.runs.history.runs(name):
            if record.ref == followed.ref:
                return record.started_at
        return None

    def _last_start(self, name: str) -> str | None:
        starts = [
            record.started_at
            for record in self._house.runs.history.runs(name)
            if record.started_at is not None
        ]
        return views.iso(max(starts)) if starts else None


def begin(request: ApiRequest) -> None:
    """Set the headers of a stream."""
    request.front.dress(request)
    request.setHeader("Content-Type", "text/event-stream")
    request.setHeader("Cache-Control", "no-cache")
    request.setHeader("X-Accel-Buffering", "no")


def end(data: views.Json) -> bytes:
    """Return the event that ends a stream."""
    return event("end", encode(data))
