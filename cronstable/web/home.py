"""
The route of the dashboard.

docs/http-api.md, "The page", specifies its headers.
"""

from __future__ import annotations

from klein import Klein

from cronstable.web.answers import matches
from cronstable.web.context import Context
from cronstable.web.dashboard import Dashboard
from cronstable.web.requests import ApiRequest
from cronstable.web.routing import get


def register(app: Klein, context: Context) -> None:
    """Add the route, unless the page is switched off."""
    if context.web.ui:
        get(app, "/", PageRoute().page)


class PageRoute:
    """Serves the page, assembled once it is asked for."""

    def __init__(self) -> None:
        self._dashboard: Dashboard | None = None

    def page(self, request: ApiRequest) -> bytes:
        """Answer with the page; headers of the operator replace its own of the same name."""
        if self._dashboard is None:
            self._dashboard = Dashboard.load()
        headers, body = self._dashboard.document(request.accepts_gzip)
        for name, value in headers.items():
            request.setHeader(name, value)
        request.front.dress(request, keep=("etag", "cache-control", "vary"))
        if matches(request, self._dashboard.etag):
            request.setResponseCode(304)
            return b""
        request.setHeader("Content-Length", str(len(body)))
        return body
