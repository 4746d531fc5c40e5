"""Large documents: texts of many things joined in pieces, sent as they are or compressed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from cronstable.clock import Clock
from cronstable.web.answers import JSON, LEAST_COMPRESSED, compressed, matches, not_modified
from cronstable.web.context import House
from cronstable.web.requests import ApiRequest
from cronstable.web.sending import send
from cronstable.web.sharing import Once
from cronstable.web.slices import sliced

T = TypeVar("T")

TOGETHER = 256
"""Texts that make one piece."""


class Document:
    """
    The bytes of a document, compressed once somebody wants that, and the tag that stands for them.

    Without a tag nobody is told that a document has not changed.  C{vary} names the headers of a
    request that the answer depends on.
    """

    def __init__(
        self,
        house: House,
        tag: str | None,
        pieces: Sequence[bytes],
        content_type: str = JSON,
        vary: str = "Accept-Encoding",
    ) -> None:
        self.tag = tag
        self.pieces = pieces
        self.size = sum(map(len, pieces))
        self._clock = house.clock
        self._type = content_type
        self._vary = vary
        self._gzipped = Once(lambda: compressed(house.reactor, b"".join(pieces)))

    async def answer(self, request: ApiRequest) -> bytes:
        """Answer with it, or with 304 when the client has it."""
        if self.tag is not None and matches(request, self.tag):
            return not_modified(request, self.tag)
        pieces, size = self.pieces, self.size
        gzipped = request.accepts_gzip and size >= LEAST_COMPRESSED
        if gzipped:
            pieces = [await self._gzipped.get()]
            size = len(pieces[0])
        sent = send(request, self._clock, pieces, self._type, size)
        if gzipped:
            request.setHeader("Content-Encoding", "gzip")
        request.setHeader("Vary", self._vary)
        if self.tag is not None:
            request.setHeader("ETag", self.tag)
        return await sent


async def joined(
    clock: Clock, items: Iterable[T], text: Callable[[T], str], first: str, last: str
) -> list[bytes]:
    """Return C{text} of each item between C{first} and C{last}, commas between, in pieces."""
    pieces: list[bytes] = []
    waiting: list[str] = []

    def close() -> None:
        before = first if not pieces else ","
        pieces.append((before + ",".join(waiting)).encode("ascii"))
        waiting.clear()

    def add(item: T) -> None:
        waiting.append(text(item))
        if len(waiting) >= TOGETHER:
            close()

    await sliced(clock, items, add)
    if waiting or not pieces:
        close()
    return [*pieces, last.encode("ascii")]
