"""
Routes of the coming fires for calendar programs.

docs/schedules.md, "Asking about schedules", tells what an entry holds.
"""

from __future__ import annotations

from collections.abc import Iterable

from klein import Klein

from cronstable.schedule.ical import DAYS, LIMITS, Entry, calendar_parts
from cronstable.version import __version__
from cronstable.web import timed
from cronstable.web.context import Context, House
from cronstable.web.requests import ApiRequest
from cronstable.web.routing import get
from cronstable.web.sending import Sending
from cronstable.web.slices import sliced
from cronstable.web.timed import Timed

AHEAD = 14
"""Days that a calendar looks ahead where nothing is said."""

PER_JOB = 100
"""Fires of one job in a calendar where nothing is said."""

ICALENDAR = "text/calendar; charset=utf-8"


def register(app: Klein, context: Context) -> None:
    """Add the routes."""
    routes = CalendarRoutes(context.house)
    get(app, "/calendar.ics", routes.fleet)
    get(app, "/jobs/<segment:name>/calendar.ics", routes.job)


class CalendarRoutes:
    """Answers with calendars, made no faster than their readers take them."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._sending = Sending(house.clock)

    async def fleet(self, request: ApiRequest) -> bytes:
        """Answer with the fires of everything that has a timetable."""
        firing = (each for each in timed.everything(self._house) if each.fires)
        return await self._calendar(request, firing, None)

    async def job(self, request: ApiRequest, name: str) -> bytes:
        """Answer with the fires of one job or workflow; there are none where it is disabled."""
        asked = timed.find(self._house, name)
        return await self._calendar(request, [asked] if asked.fires else [], name)

    async def _calendar(
        self, request: ApiRequest, firing: Iterable[Timed], name: str | None
    ) -> bytes:
        days = request.clamped("days", *DAYS, AHEAD)
        alias = "limit" if request.query("limit") is not None else "per_job"
        limit = request.clamped(alias, *LIMITS, PER_JOB)
        clock = self._house.clock
        entries = await sliced(clock, firing, self._entry)
        parts = calendar_parts(
            entries, clock.now(), version=__version__, days=days, limit=limit, job=name
        )
        sent = self._sending.answer(request, (part.encode() for part in parts), ICALENDAR)
        request.setHeader("Content-Disposition", 'inline; filename="cronstable.ics"')
        return await sent

    def _entry(self, each: Timed) -> Entry:
        assert each.schedule is not None
        records = self._house.runs.history.runs(each.name) if each.is_job else ()
        durations = [record.duration for record in records if record.duration is not None]
        mean = sum(durations) / len(durations) if durations else None
        return Entry(each.name, each.schedule, mean)
