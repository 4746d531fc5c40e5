"""
Routes that answer questions about schedules.

docs/schedules.md, "Asking about schedules", specifies the answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from math import floor
from typing import Any

from klein import Klein
from twisted.internet.defer import DeferredLock

from cronstable.runs.slotbook import SlotBook
from cronstable.schedule import NoZoneData, Schedule, UnknownZone
from cronstable.schedule.duplicates import Duplicates
from cronstable.schedule.explain import why, why_reboot
from cronstable.schedule.moments import BadTimestamp
from cronstable.schedule.pressure import HOURS, Pressure
from cronstable.schedule.preview import LIMITS, preview
from cronstable.schedule.suggest import HOURS as SUGGESTED_FROM
from cronstable.schedule.suggest import BadPeriod, check_period, suggestion
from cronstable.web import timed, views
from cronstable.web.answers import answer_json
from cronstable.web.context import Context, House
from cronstable.web.refusal import Refused
from cronstable.web.requests import ApiRequest
from cronstable.web.routing import get
from cronstable.web.sending import stepped
from cronstable.web.timed import Timed

PREVIEWED = 12
"""Fires that a preview shows where nothing is said."""

WINDOW = 24
"""Hours that pressure looks ahead where nothing is said."""


def register(app: Klein, context: Context) -> None:
    """Add the routes."""
    routes = ScheduleRoutes(context.house)
    get(app, "/schedule/preview", routes.preview)
    get(app, "/schedule/why", routes.why)
    get(app, "/schedule/pressure", routes.pressure)
    get(app, "/schedule/duplicates", routes.duplicates)
    get(app, "/schedule/suggest", routes.suggest)


class ScheduleRoutes:
    """Answers what schedules do; what takes long is done in slices, one request at a time."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._lock = DeferredLock()

    def preview(self, request: ApiRequest) -> bytes:
        """Answer what a schedule would do that somebody is about to write."""
        text = request.query("expr") or ""
        if not text.strip():
            raise Refused(400, "the query parameter expr is missing or blank")
        alias = "limit" if request.query("limit") is not None else "count"
        try:
            shown = preview(
                text,
                self._house.clock.now(),
                zone=_zone(request),
                limit=request.clamped(alias, *LIMITS, PREVIEWED),
                seed=request.query("seed"),
            )
        except (UnknownZone, NoZoneData) as error:
            raise Refused(400, str(error)) from None
        return answer_json(request, shown)

    def why(self, request: ApiRequest) -> bytes:
        """Answer whether a timetable selects a moment, and what became of it."""
        name, at = request.query("job") or "", request.query("at") or ""
        if not name or not at.strip():
            raise Refused(400, "the query parameters job and at are both needed")
        asked = timed.find(self._house, name)
        try:
            shown = self._explained(asked, at)
        except BadTimestamp as error:
            raise Refused(400, str(error)) from None
        return answer_json(request, shown)

    async def pressure(self, request: ApiRequest) -> bytes:
        """Answer how many runs fall on each minute of the day."""
        hours = request.clamped("hours", *HOURS, WINDOW)
        tally = self._tally(request, hours)
        excluded: Counter[str] = Counter()
        await self._lock.run(self._work, tally.steps(self._firing(excluded)))
        counted = tally.answer(disabled=excluded["disabled"], reboot=excluded["reboot"])
        return answer_json(request, counted)

    async def duplicates(self, request: ApiRequest) -> bytes:
        """Answer which jobs are due at exactly the same times."""
        found = Duplicates()
        await self._lock.run(self._work, found.steps(self._firing(Counter())))
        return answer_json(request, found.answer())

    async def suggest(self, request: ApiRequest) -> bytes:
        """Answer with a quiet slot for a new job."""
        tally = self._tally(request, SUGGESTED_FROM)
        period = request.query("period") or "hourly"
        try:
            check_period(period)
        except BadPeriod as error:
            raise Refused(400, str(error)) from None
        await self._lock.run(self._work, tally.steps(self._firing(Counter())))
        return answer_json(request, suggestion(tally, period))

    def _explained(self, asked: Timed, at: str) -> dict[str, Any]:
        paused = self._paused(asked)
        if asked.schedule is None:
            frame = asked.frame
            shown = why_reboot(asked.name, frame, at, enabled=asked.enabled, paused=paused)
            shown["slot"] = None
            return shown
        shown = why(asked.name, asked.schedule, at, enabled=asked.enabled, paused=paused)
        slot = floor(datetime.fromisoformat(shown["at_in_zone"]).timestamp())
        book = self._house.runs.book
        shown["slot"] = slot_at(book, asked.name, slot, shown["matches"]) if asked.is_job else None
        return shown

    def _paused(self, asked: Timed) -> str | None:
        """Return what to say of the pause of a job, None if it is not paused."""
        pause = self._house.runs.pause_of(asked.name) if asked.is_job else None
        if pause is None:
            return None
        said = f"the job is paused until {views.iso(pause.until)}"
        if pause.by:
            said += f", by {pause.by}"
        return f"{said}: {pause.note}" if pause.note else said

    def _tally(self, request: ApiRequest, hours: int) -> Pressure:
        try:
            return Pressure(self._house.clock.now(), hours, _zone(request))
        except (UnknownZone, NoZoneData) as error:
            raise Refused(400, str(error)) from None

    def _firing(self, excluded: Counter[str]) -> Iterator[tuple[str, Schedule]]:
        """Yield what fires, counting in C{excluded} what does not."""
        for each in timed.everything(self._house):
            if not each.enabled:
                excluded["disabled"] += 1
            elif each.schedule is None:
                excluded["reboot"] += 1
            else:
                yield each.name, each.schedule

    async def _work(self, steps: Iterable[None]) -> None:
        await stepped(self._house.clock, steps)


def slot_at(book: SlotBook, job: str, slot: int, selected: bool) -> views.Json | None:
    """
    Return what the slot book knows of the slot of C{job} at one instant, None if nothing.

    C{selected} tells whether the timetable selects it: a range of slots holds other instants too.
    """
    for ticket in book.open_slots():
        if ticket.job == job and ticket.slot == slot:
            return views.open_slot(ticket)
    for entry in reversed(book.entries(job)):
        among = selected and entry.until is not None and entry.slot <= slot <= entry.until
        if entry.slot == slot or among:
            return views.closed_slot(entry)
    return None


def _zone(request: ApiRequest) -> str:
    return request.query("tz") or "UTC"
