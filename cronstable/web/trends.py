"""
The route of trends: statistics of a job's runs over several windows, from its ledger.

docs/http-api.md, "Trends", specifies the answer.
"""

from __future__ import annotations

from collections import OrderedDict

from klein import Klein
from twisted.internet.defer import Deferred

from cronstable.runs.trends import Ledgers, windowed
from cronstable.state.errors import TROUBLE
from cronstable.state.store import Store
from cronstable.web import views
from cronstable.web.answers import answer_json
from cronstable.web.context import Context, House
from cronstable.web.keeping import Kept
from cronstable.web.requests import ApiRequest
from cronstable.web.routing import get

FRESH = 5.0
"""Seconds for which an answer is good while no run of the job ends here."""

KEPT_JOBS = 256

OWN_WRITES = 2.0
"""Seconds that the rows of runs which ended here get to reach the ledger before it is read."""


def register(app: Klein, context: Context) -> None:
    """Add the route."""
    get(app, "/jobs/<segment:name>/trends", TrendRoutes(context).trends)


class TrendRoutes:
    """Answers how a job has been doing."""

    def __init__(self, context: Context) -> None:
        self._house = context.house
        self._ledgers = Ledgers()
        self._kept: OrderedDict[str, Kept[views.Json]] = OrderedDict()

    async def trends(self, request: ApiRequest, name: str) -> bytes:
        """Answer from the ledger; from memory without a store, or while it cannot answer."""
        house = self._house
        house.job(name)
        if not house.store.on:
            return answer_json(request, remembered(house, name))
        return answer_json(request, await self._of(name))

    def _of(self, name: str) -> Deferred[views.Json]:
        kept = self._kept.get(name)
        if kept is None:
            kept = Kept(
                self._house.clock, lambda: _saved(self._house, self._ledgers, name), lambda _: FRESH
            )
            self._kept[name] = kept
            if len(self._kept) > KEPT_JOBS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(name)
        runs = self._house.runs.history.runs(name)
        return kept.get(runs[-1] if runs else None)


def remembered(house: House, name: str) -> views.Json:
    """Return the trends of the runs that this process has in memory."""
    now = house.clock.now()
    return _shown(name, "memory", now, windowed(house.runs.history.runs(name), now, views.stats))


async def _saved(house: House, ledgers: Ledgers, name: str) -> views.Json:
    now = house.clock.now()

    def read(store: Store) -> dict[str, views.Json]:
        return windowed(ledgers.runs(store, name), now, views.stats)

    try:
        await house.store.when_written(name, OWN_WRITES)
    except OSError:
        pass  # What is slow to write may still be quick to read.
    try:
        windows = await house.looks.ask(("trends", name), read)
    except TROUBLE:
        return remembered(house, name)
    return _shown(name, "durable", now, windows)


def _shown(name: str, source: str, now: float, windows: dict[str, views.Json]) -> views.Json:
    return {
        "name": name,
        "source": source,
        "generated_at": views.iso(now),
        "windows": windows,
    }
