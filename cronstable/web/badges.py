"""
Routes of status badges: a word about one job, or about all of them, as a small picture.

docs/badges.md tells how to use them, and which word is shown when.
"""

from __future__ import annotations

from collections import Counter

from klein import Klein

from cronstable.config.values import JobConfig
from cronstable.web.answers import answer, etag, matches
from cronstable.web.context import Context
from cronstable.web.picture import STYLES, badge
from cronstable.web.refusal import Refused
from cronstable.web.requests import ApiRequest
from cronstable.web.routing import get
from cronstable.web.sharing import Shared
from cronstable.web.slices import sliced

SVG = "image/svg+xml; charset=utf-8"
LABEL = 64
"""The most characters of a label."""

FLEET = "cronstable"
TOLD_OF_ALL = ("failing", "overdue", "passing")
"""What is told of all jobs, the most urgent first."""

_EVERYBODY = {
    "Content-Security-Policy": "default-src 'none'",
    "Cross-Origin-Resource-Policy": "cross-origin",
}
_SAME_ORIGIN = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'self'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "SAMEORIGIN",
}


def register(app: Klein, context: Context) -> None:
    """Add the routes, unless badges are switched off."""
    if context.web.badges.enabled:
        routes = BadgeRoutes(context)
        get(app, "/badge.svg", routes.fleet)
        get(app, "/jobs/<segment:name>/badge.svg", routes.job)


class BadgeRoutes:
    """Answers with badges."""

    def __init__(self, context: Context) -> None:
        self._house = house = context.house
        self._headers = _EVERYBODY if context.web.badges.public else _SAME_ORIGIN
        self._fleet = Shared(house.clock, lambda: house.runs.revision, self._all)

    async def fleet(self, request: ApiRequest) -> bytes:
        """Answer with the badge of all jobs."""
        label, style = _asked(request, FLEET)
        word, text = await self._fleet.get()
        return self._answer(request, badge(label, text, word, style))

    def job(self, request: ApiRequest, name: str) -> bytes:
        """Answer with the badge of one job."""
        job = self._house.job(name)
        label, style = _asked(request, name)
        word = self._word(job)
        return self._answer(request, badge(label, word, word, style))

    async def _all(self) -> tuple[str, str]:
        jobs = tuple(self._house.runs.jobs.jobs.values())
        count = Counter(await sliced(self._house.clock, jobs, self._word))
        for word in TOLD_OF_ALL:
            if count[word]:
                return word, f"{count[word]} {word}"
        return "", "no status" if jobs else "no jobs"

    def _word(self, job: JobConfig) -> str:
        runs, name = self._house.runs, job.name
        if not job.enabled:
            return "disabled"
        if runs.pause_of(name) is not None:
            return "paused"
        last = runs.history.last_run(name)
        outcome = "pending" if last is None else last.outcome
        if outcome == "failure":
            return "failing"
        if self._house.sla.breaches(name):
            return "overdue"
        if outcome == "success":
            return "passing"
        return "running" if runs.live(name) else outcome

    def _answer(self, request: ApiRequest, picture: str) -> bytes:
        body = picture.encode()
        tag = etag(body)
        if matches(request, tag):
            request.setResponseCode(304)
            request.front.dress(request)
            body = b""
        else:
            body = answer(request, body, SVG)
        for name, value in self._headers.items():
            request.setHeader(name, value)
        request.setHeader("X-Content-Type-Options", "nosniff")
        request.setHeader("Cache-Control", "no-cache")
        request.setHeader("ETag", tag)
        return body


def _asked(request: ApiRequest, name: str) -> tuple[str, str]:
    """Return the label and the style that are asked for; L{Refused} for one that is not good."""
    style = request.query("style") or STYLES[0]
    if style not in STYLES:
        raise Refused(400, f"style must be one of: {', '.join(STYLES)}")
    label = request.query("label")
    if label is None:
        return name, style
    if not label.strip():
        raise Refused(400, "label must not be blank")
    if len(label) > LABEL:
        raise Refused(400, f"label must be at most {LABEL} characters")
    if not label.isprintable():
        raise Refused(400, "label must hold printable characters only")
    return label, style
