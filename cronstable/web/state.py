"""
Routes of the durable store: what is in it, counted, and what single streams and namespaces hold.

They tell of metadata only: values of keys and archived output are never served.
docs/http-api.md, "The store", specifies the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from klein import Klein

from cronstable.state import inspection, inventory
from cronstable.state.encoding import Data
from cronstable.state.errors import TROUBLE
from cronstable.state.inventory import Inventory
from cronstable.state.store import Store
from cronstable.state.workers import StoreSlow
from cronstable.web import storeviews
from cronstable.web.answers import JSON, answer, answer_json, encode
from cronstable.web.context import Context
from cronstable.web.keeping import Kept
from cronstable.web.refusal import Refused, not_found
from cronstable.web.requests import ApiRequest
from cronstable.web.routing import get
from cronstable.web.slices import sliced
from cronstable.web.views import Json

NO_STORE = "state store is not configured"
SLOW = "the state store did not answer in time"
TROUBLED = "the state store cannot be read now"

KINDS: dict[str, Callable[[str, Data], Json]] = {
    "kv/": storeviews.key_value,
    "cursor/": storeviews.cursor,
    "idem/": storeviews.claim,
}
"""How the documents of each kind of namespace are shown; others are not."""

DEFAULT_RECORDS = 100
MOST_RECORDS = 500

FRESH = 2.0
"""Seconds for which an inventory is good at least."""

REST = 10.0
"""How many times as long as an inventory took the next one has to wait."""


def register(app: Klein, context: Context) -> None:
    """Add the routes."""
    routes = StateRoutes(context)
    get(app, "/state", routes.state)
    get(app, "/state/documents", routes.documents)
    get(app, "/state/records", routes.records)


class StateRoutes:
    """Answers what is asked about the store."""

    def __init__(self, context: Context) -> None:
        self._house = context.house
        self._inventory = Kept(
            context.house.clock, self._take, lambda took: max(FRESH, REST * took)
        )

    async def state(self, request: ApiRequest) -> bytes:
        """Answer with what is in the store and how it fares, and with what waits on this node."""
        house = self._house
        store = house.store
        if not store.configured:
            return answer_json(request, {"enabled": False})
        found = await self._inventory.get(store.view)
        retries = await sliced(house.clock, tuple(house.runs.jobs.jobs), self._retry)
        shown = {
            "enabled": True,
            **storeviews.contents(found, house.clock.now()),
            "view": storeviews.view(store, house.runs.jobs.job_set_id),
            "stats": storeviews.stats(store),
            "node": {
                "host": house.identity.host,
                "retries": [each for each in retries if each is not None],
                "slots": self._slots(found),
            },
        }
        return answer_json(request, shown)

    async def documents(self, request: ApiRequest) -> bytes:
        """Answer with the keys, cursors or claims of one scope."""
        namespace = request.query("ns") or ""
        show = next((KINDS[kind] for kind in KINDS if namespace.startswith(kind)), None)
        if show is None:
            raise Refused(400, "ns must be a kv/, cursor/ or idem/ namespace")

        def look(store: Store) -> list[bytes]:
            found = inspection.documents(store, namespace)
            texts = [_text(show(key, body)) for key, body in found.items]
            return _document("namespace", namespace, "documents", texts, found.complete)

        return await self._answer(request, ("documents", namespace), look)

    async def records(self, request: ApiRequest) -> bytes:
        """Answer with the newest records of a stream."""
        stream = request.query("stream") or ""
        if not stream:
            raise Refused(400, "stream is required")
        if stream == "logs" or stream.startswith("logs/"):
            raise Refused(403, "archived output is not served here")
        limit = request.clamped("limit", 1, MOST_RECORDS, DEFAULT_RECORDS)

        def look(store: Store) -> list[bytes]:
            found = inspection.records(store, stream, limit)
            texts = [_text(body) for _, body in found.items]
            return _document("stream", stream, "records", texts, found.complete)

        return await self._answer(request, ("records", stream), look)

    async def _answer(
        self, request: ApiRequest, about: Hashable, look: Callable[[Store], list[bytes]]
    ) -> bytes:
        if not self._house.store.configured:
            raise not_found(NO_STORE)
        try:
            pieces = await self._house.looks.ask(about, look)
        except StoreSlow:
            raise Refused(504, SLOW) from None
        except TROUBLE:
            raise Refused(503, TROUBLED) from None
        return answer(request, b"".join(pieces), JSON)

    async def _take(self) -> Inventory | None:
        try:
            return await self._house.looks.ask("inventory", inventory.take)
        except TROUBLE:
            return None

    def _retry(self, job: str) -> Json | None:
        pending = self._house.runs.pending_retry(job)
        if pending is None:
            return None
        return storeviews.armed_retry(job, pending.attempt, pending.not_before, pending.delay)

    def _slots(self, found: Inventory | None) -> list[Json]:
        house = self._house
        return [
            storeviews.slot(lease, len(house.runs.live(lease.name[len(storeviews.SLOTS) :])))
            for lease in storeviews.slots_of(house.identity.holder, found)
        ]


def _text(value: object) -> bytes:
    """Return one item as JSON; each on its own, so that other threads get their turn between."""
    return encode(value).encode("ascii")


def _document(kind: str, name: str, what: str, texts: list[bytes], complete: bool) -> list[bytes]:
    """Return the pieces of an answer; what is not C{complete} says so."""
    head = f'{{"{kind}":{encode(name)},"{what}":['
    tail = b"]}" if complete else b'],"truncated":true}'
    return [head.encode("ascii"), b",".join(texts), tail]
