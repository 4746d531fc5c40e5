"""HTTP answers as tests read them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from typing import Any

import attrs


@attrs.frozen
class Answer:
    """An HTTP answer; header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def content(self) -> bytes:
        """The body without its compression."""
        gzipped = self.headers.get("content-encoding") == "gzip"
        return gzip.decompress(self.body) if gzipped else self.body

    @property
    def text(self) -> str:
        """The content as text."""
        return self.content.decode("utf-8")

    def json(self) -> Any:
        """Return the content as JSON."""
        return json.loads(self.content)

    @property
    def error(self) -> str:
        """What an error answer says."""
        text: str = self.json()["error"]
        return text


def unchunked(body: bytes) -> bytes:
    """Return what chunks are of."""
    pieces = []
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        pieces.append(body[:length])
        body = body[length + 2 :]
    return b"".join(pieces)
