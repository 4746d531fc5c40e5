"""
Answers: JSON, text, errors; compressed and conditional where the API says so.

A handler returns what one of these functions returns.  Headers of the operator go on first, so
that none of them can replace a header that the protocol needs.

docs/http-api.md, "Answers", tells clients.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import zlib
from typing import Any

from cronstable.threads import in_thread
from cronstable.web.refusal import Refused
from cronstable.web.requests import ApiRequest

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"

LEAST_COMPRESSED = 1024
"""Bytes below which compression is not worth its header."""

INLINE_COMPRESSED = 32 << 10
"""Bytes above which compression leaves the reactor thread."""


def encode(value: Any) -> str:
    """Return C{value} as JSON in ASCII, whatever its texts hold; infinity and NaN become null."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), separators=(",", ":"), allow_nan=False)


def _finite(value: Any) -> Any:
    """Return C{value} with null for infinite and undefined numbers, which JSON cannot spell."""
    if isinstance(value, dict):
        return {key: _finite(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(member) for member in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def answer(request: ApiRequest, body: bytes, content_type: str, status: int = 200) -> bytes:
    """Answer with C{body} and the operator's headers."""
    request.setResponseCode(status)
    request.front.dress(request)
    request.setHeader("Content-Type", content_type)
    request.setHeader("Content-Length", str(len(body)))
    return body


def answer_json(request: ApiRequest, value: Any, status: int = 200) -> bytes:
    """Answer with a JSON document."""
    return answer(request, encode(value).encode("ascii"), JSON, status)


def answer_text(request: ApiRequest, text: str) -> bytes:
    """Answer with plain text."""
    return answer(request, text.encode("utf-8", "replace"), TEXT)


def refuse(request: ApiRequest, refused: Refused) -> bytes:
    """Answer with an error as JSON."""
    body = encode({"error": refused.reason}).encode("ascii")
    request.setResponseCode(refused.status)
    if refused.dressed:
        request.front.dress(request)
    request.setHeader("Content-Type", "application/json; charset=utf-8")
    request.setHeader("Content-Length", str(len(body)))
    for name, value in refused.headers.items():
        request.setHeader(name, value)
    return body


async def answer_compressed(request: ApiRequest, body: bytes, content_type: str = JSON) -> bytes:
    """Answer with C{body}, compressed if the client takes that and it is worth it."""
    if request.accepts_gzip and len(body) >= LEAST_COMPRESSED:
        body = await compressed(request.reactor, body)
        written = answer(request, body, content_type)
        request.setHeader("Content-Encoding", "gzip")
    else:
        written = answer(request, body, content_type)
    request.setHeader("Vary", "Accept-Encoding")
    return written


async def answer_conditional(request: ApiRequest, value: Any) -> bytes:
    """Answer with a JSON document and its ETag, or with 304 when the client has it."""
    body = encode(value).encode("ascii")
    tag = etag(body)
    if matches(request, tag):
        return not_modified(request, tag)
    written = await answer_compressed(request, body)
    request.setHeader("ETag", tag)
    return written


def etag(content: bytes) -> str:
    """Return the strong entity tag of C{content}."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def matches(request: ApiRequest, tag: str) -> bool:
    """Return whether the client says that it has what C{tag} stands for."""
    for header in request.requestHeaders.getRawHeaders("if-none-match", ()):
        for candidate in header.split(","):
            named = candidate.strip()
            if named == "*" or named.removeprefix("W/") == tag:
                return True
    return False


def not_modified(request: ApiRequest, tag: str) -> bytes:
    """Answer that the client's copy is good."""
    request.setResponseCode(304)
    request.front.dress(request)
    request.setHeader("ETag", tag)
    request.setHeader("Vary", "Accept-Encoding")
    return b""


async def compressed(reactor: Any, body: bytes) -> bytes:
    """Return C{body} compressed, a large one on a thread."""
    if len(body) <= INLINE_COMPRESSED:
        return gzip.compress(body, 6, mtime=0)
    return await in_thread(reactor, "gzip", _quickly, body)


def _quickly(body: bytes) -> bytes:
    # zlib lets go of the interpreter while it works, which the gzip module does block by block.
    machine = zlib.compressobj(1, zlib.DEFLATED, 31)
    return machine.compress(body) + machine.flush()
