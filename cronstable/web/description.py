"""The route of the API's own description, which is kept in C{openapi.yaml} beside this module."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import attrs
from klein import Klein

from cronstable.threads import in_thread
from cronstable.version import __version__
from cronstable.web.answers import (
    JSON,
    answer_compressed,
    encode,
    etag,
    matches,
    not_modified,
)
from cronstable.web.context import Context, House
from cronstable.web.requests import ApiRequest
from cronstable.web.routing import get
from cronstable.web.sharing import Once


def register(app: Klein, context: Context) -> None:
    """Add the route."""
    get(app, "/openapi.json", DescriptionRoute(context.house).description)


@attrs.frozen
class Description:
    """The document in bytes, and its tag."""

    body: bytes
    tag: str


class DescriptionRoute:
    """Answers with the description, read once it is asked for."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._read = Once(self._in_thread)

    async def description(self, request: ApiRequest) -> bytes:
        """Answer with the OpenAPI document."""
        document = await self._read.get()
        if matches(request, document.tag):
            return not_modified(request, document.tag)
        written = await answer_compressed(request, document.body, JSON)
        request.setHeader("ETag", document.tag)
        return written

    async def _in_thread(self) -> Description:
        return await in_thread(self._house.reactor, "openapi", load)


def load() -> Description:
    """Read the description; takes some tens of milliseconds."""
    body = encode(document()).encode("ascii")
    return Description(body, etag(body))


def document() -> dict[str, Any]:
    """Return the description of this release's API."""
    import yaml

    text = files("cronstable.web").joinpath("openapi.yaml").read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: dict[str, Any] = yaml.load(text, Loader=loader)
    del found["x-common"]
    found["info"]["version"] = __version__
    return found
