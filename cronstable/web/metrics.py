"""
The route of metrics.

docs/metrics.md lists the families and tells which format is answered when.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from klein import Klein

from cronstable.metrics.exposition import content_type, wanted_format
from cronstable.web.answers import LEAST_COMPRESSED, compressed
from cronstable.web.context import Context, House
from cronstable.web.requests import ApiRequest
from cronstable.web.routing import get
from cronstable.web.sending import send, stepped
from cronstable.web.sharing import Once, Shared

ONE_PIECE = 64 << 10
"""Bytes up to which a scrape is written as a whole."""


def register(app: Klein, context: Context) -> None:
    """Add the route, unless it is switched off."""
    if context.web.metrics.enabled:
        get(app, "/metrics", MetricsRoute(context.house).metrics)


class Scrape:
    """A rendered scrape, and its compressed form once somebody wants that."""

    def __init__(self, house: House, pieces: Sequence[bytes]) -> None:
        self.size = sum(map(len, pieces))
        self.pieces = [b"".join(pieces)] if self.size <= ONE_PIECE else pieces
        self.gzipped = Once(lambda: compressed(house.reactor, b"".join(self.pieces)))


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
        gzipped = request.accepts_gzip and scrape.size >= LEAST_COMPRESSED
        pieces, size = scrape.pieces, scrape.size
        if gzipped:
            pieces = [await scrape.gzipped.get()]
            size = len(pieces[0])
        sent = send(request, self._house.clock, pieces, content_type(openmetrics), size)
        if gzipped:
            request.setHeader("Content-Encoding", "gzip")
        request.setHeader("Vary", "Accept, Accept-Encoding")
        return await sent

    def _state(self) -> object:
        return self._house.runs.revision, self._house.registry.loaded()

    async def _render(self, openmetrics: bool) -> Scrape:
        text = self._house.registry.render(openmetrics)
        made = await stepped(self._house.clock, (piece.encode("utf-8") for piece in text))
        return Scrape(self._house, [piece for piece in made if piece])
