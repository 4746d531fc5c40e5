"""Tests that docs/http-api.md tells of the routes that there are."""

from __future__ import annotations

import re
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from cronstable.web import absent
from cronstable.web.auth import needed_scope
from cronstable.web.routing import empty_app, routes
from tests.fakes import job
from tests.web.api import Api

PAGE = Path(__file__).parents[2] / "docs" / "http-api.md"

_ROW = re.compile(
    r"^\| (GET|POST|DELETE) `([^`]+)` \| (\w+) \| .+ \| (yes|empty|no) \|$", re.MULTILINE
)

Route = tuple[str, str]


def without_names(route: Route) -> Route:
    """Return a route with every name in its path made the same."""
    return route[0], re.sub(r"\{\w+\}", "{}", route[1])


class RouteTableTests(SynchronousTestCase):
    """The table of routes."""

    def setUp(self) -> None:
        self.api = Api(job("a"))
        rows = _ROW.findall(PAGE.read_text(encoding="utf-8"))
        self.rows = {
            without_names((method, path)): (scope, served) for method, path, scope, served in rows
        }
        self.assertEqual(len(rows), len(self.rows))
        self.there = {without_names(route) for route in routes(self.api.running.front.app)}
        only_absent = empty_app()
        absent.register(only_absent, None)  # type: ignore[arg-type]
        self.absent = {without_names(route) for route in routes(only_absent)}

    def listed(self, served: str) -> set[Route]:
        """Return the routes that the page says this of."""
        return {route for route, (_, says) in self.rows.items() if says == served}

    def test_served(self) -> None:
        """What is served is listed as served, and the other way round."""
        self.assertEqual(self.listed("yes"), self.there - self.absent)

    def test_empty(self) -> None:
        """What is only answered as absent is listed as that."""
        self.assertEqual(self.listed("empty"), self.absent)

    def test_to_come(self) -> None:
        """What is listed as missing is missing."""
        self.assertEqual(self.listed("no") & self.there, set())

    def test_scopes(self) -> None:
        """The scopes are those that the gate asks for."""
        for (method, path), (scope, _) in self.rows.items():
            if scope == "none":
                continue
            request = _Request(method, path.replace("{}", "x"))
            self.assertEqual(needed_scope(request), scope, path)  # type: ignore[arg-type]


class _Request:
    """As much of a request as decides on its scope."""

    def __init__(self, method: str, path: str) -> None:
        self.method = method.encode()
        self.path = path.encode()
        self.reads_only = method == "GET"
