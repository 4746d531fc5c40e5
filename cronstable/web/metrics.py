"""
The route of metrics.

docs/metrics.md lists the families and tells which format is answered when.
"""

from __future__ import annotations

from functools import partial

from klein import Klein

from cronstable.metrics.exposition import content_type, wanted_format
from cronstable.web.context import Context, House
from cronstable.web.documents import Document
from cronstable.web.requests import ApiRequest
from cronstable.web.routing import get
from cronstable.web.sending import stepped
from cronstable.web.sharing import Shared

ONE_PIECE = 64 << 10
"""Bytes up to which a scrape is written as a whole."""

VARY = "Accept, Accept-Encoding"


def register(app: Klein, context: Context) -> None:
    """Add the route, unless it is switched off."""
    if context.web.metrics.enabled:
        get(app, "/metrics", MetricsRoute(context.house).metrics)


class MetricsRoute:
    """Answers scrapes, each format rendered once for all who ask at the same time."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._scrapes = {
            openmetrics: Shared(house.clock, self._state, partial(self._render, openmetrics))
            for openmetrics in (False, True)
        }

    async def metrics(self, request: ApiRequest) -> bytes:
        """Answer with everything that is measured."""
        accepted = request.requestHeaders.getRawHeaders("accept", ())
        openmetrics = wanted_format(",".join(accepted))
        scrape = await self._scrapes[openmetrics].get()
        return await scrape.answer(request)

    def _state(self) -> object:
        return self._house.runs.revision, self._house.registry.loaded()

    async def _render(self, openmetrics: bool) -> Document:
        text = self._house.registry.render(openmetrics)
        made = await stepped(self._house.clock, (piece.encode("utf-8") for piece in text))
        pieces = [piece for piece in made if piece]
        if sum(map(len, pieces)) <= ONE_PIECE:
            pieces = [b"".join(pieces)]
        return Document(self._house, None, pieces, content_type(openmetrics), VARY)
