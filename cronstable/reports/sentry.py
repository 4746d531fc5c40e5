"""
The sentry reporter: an event built by the SDK, delivered by our own bounded client.

The SDK is optional (C{cronstable[sentry]}); it is imported at the first report that needs it.

docs/reporting.md, "Sentry", tells users what is sent.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from cronstable.config.values import SentryReport
from cronstable.reports.http import Request
from cronstable.reports.templates import Templates
from cronstable.reports.trouble import ReportFailed

_MOST_CLIENTS = 64


class SentryClients:
    """SDK clients, one per DSN, environment and string limit; usable from any thread."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._clients: dict[tuple[str, str | None, int], tuple[Any, list[Any]]] = {}
        self._lock = threading.Lock()

    def compose(
        self, report: SentryReport, dsn: str, variables: Mapping[str, Any], templates: Templates
    ) -> Request:
        """
        Return the request that carries the event of C{report}.

        @raise ReportFailed: the library is missing, the DSN is none, or a template fails.
        """
        try:
            from sentry_sdk import Scope
            from sentry_sdk.utils import BadDsn, Dsn
        except ImportError:
            raise ReportFailed(
                "the Sentry library is missing; install cronstable[sentry]"
            ) from None
        try:
            auth = Dsn(dsn).to_auth("cronstable")
        except (BadDsn, ValueError):
            raise ReportFailed("sentry.dsn: not a DSN") from None
        scope = Scope()
        scope.fingerprint = [
            templates.render("sentry.fingerprint", each, variables) for each in report.fingerprint
        ]
        for key, value in {**_extras(variables), **dict(report.extra or ())}.items():
            scope.set_extra(key, value)
        message = templates.render("sentry.body", report.body, variables)
        event = {"message": message, "level": report.level or "error"}
        return Request(
            url=auth.get_api_url(),
            body=self._envelope(report, dsn, event, scope),
            headers=(
                ("Content-Type", "application/x-sentry-envelope"),
                ("X-Sentry-Auth", auth.to_header()),
            ),
        )

    def _envelope(
        self, report: SentryReport, dsn: str, event: Mapping[str, Any], scope: Any
    ) -> bytes:
        with self._lock:
            client, caught = self._client(dsn, report.environment, report.max_string_length)
            client.capture_event(event, scope=scope)
            envelopes = list(caught)
            caught.clear()
        if not envelopes:
            raise ReportFailed("the Sentry library made no event of it")
        return bytes(envelopes[-1].serialize())

    def _client(self, dsn: str, environment: str | None, longest: int) -> tuple[Any, list[Any]]:
        key = (dsn, environment, longest)
        known = self._clients.get(key)
        if known is None:
            if len(self._clients) >= _MOST_CLIENTS:
                self._clients.clear()
            known = self._clients[key] = _make_client(dsn, environment, longest, self._host)
        return known


def _make_client(
    dsn: str, environment: str | None, longest: int, host: str
) -> tuple[Any, list[Any]]:
    """Return an SDK client that sends nothing itself, and the list where it leaves envelopes."""
    from sentry_sdk import Client
    from sentry_sdk.transport import Transport

    caught: list[Any] = []

    class Catch(Transport):
        """Keeps envelopes instead of sending them."""

        def capture_envelope(self, envelope: Any) -> None:
            caught.append(envelope)

    client = Client(
        dsn=dsn,
        environment=environment,
        max_value_length=longest,
        server_name=host,
        transport=Catch,
        integrations=[],
        default_integrations=False,
        auto_enabling_integrations=False,
        auto_session_tracking=False,
        enable_backpressure_handling=False,
        send_client_reports=False,
    )
    return client, caught


def _extras(variables: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "job": variables.get("name"),
        "exit_code": variables.get("exit_code"),
        "command": variables.get("command"),
        "shell": variables.get("shell"),
        "success": variables.get("success"),
    }
