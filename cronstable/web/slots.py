"""
The route of the slot book: what became of each due slot.

docs/http-api.md, "Slots", specifies the answer.
"""

from __future__ import annotations

import heapq

from klein import Klein

from cronstable.runs.slotbook import SlotBook, SlotEntry, SlotTicket
from cronstable.state.instants import from_text
from cronstable.web import views
from cronstable.web.answers import answer_compressed, encode
from cronstable.web.context import Context
from cronstable.web.refusal import Refused
from cronstable.web.requests import ApiRequest
from cronstable.web.routing import get
from cronstable.web.slices import sliced

DEFAULT_LIMIT = 200
"""Entries in an answer where nothing is said."""

MOST = 10_000
"""The same, whatever is said."""


def register(app: Klein, context: Context) -> None:
    """Add the route."""
    get(app, "/slots", SlotRoutes(context).slots)


class SlotRoutes:
    """Answers what became of due slots."""

    def __init__(self, context: Context) -> None:
        self._house = context.house

    async def slots(self, request: ApiRequest) -> bytes:
        """Answer with open and closed slots, the newest first."""
        house = self._house
        name = request.query("job") or None
        if name is not None:
            house.job(name)
        since, until = _bound(request, "since"), _bound(request, "until")
        newest = _Newest(request.clamped("limit", 1, MOST, DEFAULT_LIMIT), since, until)
        book = house.runs.book
        unaccounted = book.unaccounted()
        for ticket in book.open_slots():
            if name is None or ticket.job == name:
                newest.offer(ticket.slot, ticket.slot, ticket)
        names = book.jobs() if name is None else (name,)
        await sliced(house.clock, names, lambda each: _offer_closed(book, each, newest))
        shown = await sliced(house.clock, newest.found(), _text)
        body = f'{{"slots":[{",".join(shown)}],"unaccounted":{unaccounted}}}'
        return await answer_compressed(request, body.encode("ascii"))


class _Newest:
    """The newest of what is offered, up to a number, within bounds of time."""

    def __init__(self, most: int, since: float | None, until: float | None) -> None:
        self._most = most
        self._since = float("-inf") if since is None else since
        self._until = float("inf") if until is None else until
        self._heap: list[tuple[int, int, SlotTicket | SlotEntry]] = []
        self._order = 0

    def offer(self, first: int, last: int, slot: SlotTicket | SlotEntry) -> None:
        """Take a slot, or a range of them, unless it is out of bounds or older than enough."""
        if last < self._since or first > self._until:
            return
        self._order -= 1
        item = (last, self._order, slot)
        if len(self._heap) < self._most:
            heapq.heappush(self._heap, item)
        elif last > self._heap[0][0]:
            heapq.heapreplace(self._heap, item)

    def found(self) -> list[SlotTicket | SlotEntry]:
        """Return what was kept, newest first."""
        return [slot for _, _, slot in sorted(self._heap, reverse=True)]


def _offer_closed(book: SlotBook, name: str, newest: _Newest) -> None:
    for entry in reversed(book.entries(name)):
        newest.offer(entry.slot, entry.slot if entry.until is None else entry.until, entry)


def _text(slot: SlotTicket | SlotEntry) -> str:
    return encode(
        views.open_slot(slot) if isinstance(slot, SlotTicket) else views.closed_slot(slot)
    )


def _bound(request: ApiRequest, key: str) -> float | None:
    text = request.query(key)
    if not text:
        return None
    # A plus that was not percent-encoded arrives as a blank.
    at = from_text(text.replace(" ", "+"))
    if at is None:
        raise Refused(400, f"{key} must be an ISO 8601 date and time")
    return at
