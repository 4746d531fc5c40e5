"""
Routes of jobs that only read: the list, one job, its runs, activity, resources.

docs/http-api.md, "Jobs" and "Runs", specifies the answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from klein import Klein

from cronstable.config.values import JobConfig
from cronstable.runs import rows
from cronstable.runs.history import KEPT
from cronstable.runs.record import RunRecord
from cronstable.web import views
from cronstable.web.answers import (
    JSON,
    answer,
    answer_json,
    encode,
    etag,
    matches,
    not_modified,
)
from cronstable.web.context import Context
from cronstable.web.documents import Document, joined
from cronstable.web.refusal import Refused
from cronstable.web.requests import ApiRequest
from cronstable.web.routing import get

RESOURCE_RUNS = 20
"""Runs whose resources are told where nothing is said."""


def register(app: Klein, context: Context) -> None:
    """Add the routes."""
    routes = JobRoutes(context)
    get(app, "/jobs", routes.all)
    get(app, "/activity", routes.activity)
    get(app, "/jobs/<segment:name>", routes.one)
    get(app, "/jobs/<segment:name>/runs", routes.runs)
    get(app, "/jobs/<segment:name>/resources", routes.resources)


class JobRoutes:
    """Answers what is asked about jobs."""

    def __init__(self, context: Context) -> None:
        self._house = context.house
        self._list = context.job_list
        self._texts = context.job_texts

    async def all(self, request: ApiRequest) -> bytes:
        """Answer with every job, or with 304 when nothing has changed."""
        tag = self._list.current_tag()
        if tag is not None and matches(request, tag):
            return not_modified(request, tag)
        document = await self._list.document()
        return await document.answer(request)

    def one(self, request: ApiRequest, name: str) -> bytes:
        """Answer with one job."""
        job = self._house.job(name)
        text = self._texts.of(job, self._house.clock.now()).text
        return answer(request, text.encode("ascii"), JSON)

    def runs(self, request: ApiRequest, name: str) -> bytes:
        """Answer with the kept runs of a job, oldest first, and their statistics."""
        job = self._house.job(name)
        records = self._house.runs.history.runs(name)
        limit = request.clamped("limit", 1, KEPT, KEPT)
        return answer_json(
            request,
            {
                "name": name,
                "runs": [views.run(each, job.limits, detail=True) for each in records[-limit:]],
                "stats": views.stats(records),
            },
        )

    async def activity(self, request: ApiRequest) -> bytes:
        """Answer with the newest runs of every job, or of the first C{jobs} of them."""
        house = self._house
        sort = request.query("sort")
        if sort not in (None, "", "name"):
            raise Refused(400, f"sort must be 'name', got '{sort}'")
        names = list(house.runs.jobs.jobs)
        if sort:
            names.sort()
        names = names[: request.clamped("jobs", 1, len(names), len(names))]
        limit = request.clamped("limit", 1, KEPT, KEPT)
        tag = self._activity_tag(len(names), limit, bool(sort))
        if matches(request, tag):
            return not_modified(request, tag)
        history = house.runs.history

        def shown(name: str) -> str:
            return f"{encode(name)}:{encode(_activity(history.runs(name)[-limit:]))}"

        pieces = await joined(house.clock, names, shown, '{"jobs":{', "}}")
        return await Document(house, tag, pieces).answer(request)

    def _activity_tag(self, *asked: object) -> str:
        runs = self._house.runs
        known = self._house.identity.instance, self._list.job_set(), runs.history.revision
        return etag(repr((known, asked)).encode())

    def resources(self, request: ApiRequest, name: str) -> bytes:
        """Answer with what live and finished runs of a job used."""
        job = self._house.job(name)
        records = [
            each
            for each in self._house.runs.history.runs(name)
            if each.usage is not None or each.caps is not None
        ]
        limit = request.clamped(
            "limit" if request.query("limit") is not None else "runs", 0, KEPT, RESOURCE_RUNS
        )
        return answer_json(
            request,
            {
                "name": name,
                "monitored": job.monitor.enabled,
                "interval": job.monitor.interval,
                "limits": rows.limits(job.limits) if job.limits.any else None,
                "live": self._live_resources(job),
                "runs": [
                    views.run(each, job.limits, series=True, detail=True)
                    for each in (records[-limit:] if limit else ())
                ],
            },
        )

    def _live_resources(self, job: JobConfig) -> list[Any]:
        if not job.monitor.enabled:
            return []
        return [views.live_resources(each) for each in self._house.runs.live(job.name)]


def _activity(records: Sequence[RunRecord]) -> list[views.Json]:
    return [
        {
            "started_at": views.iso(each.started_at),
            "finished_at": views.iso(each.finished_at),
            "outcome": each.outcome,
        }
        for each in records
    ]
