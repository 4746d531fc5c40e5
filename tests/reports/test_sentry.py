"""Tests for the Sentry reporter: the event as the SDK writes it."""

from __future__ import annotations

import json
import sys
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import SentryReport
from cronstable.reports.http import Request
from cronstable.reports.sentry import SentryClients
from cronstable.reports.templates import Templates
from cronstable.reports.trouble import ReportFailed
from cronstable.reports.variables import of_run
from tests.reports.values import finished

DSN = "http://0123456789abcdef@sentry.example.org:9000/42"


class ComposeTests(SynchronousTestCase):
    """The request that carries an event."""

    def setUp(self) -> None:
        self.clients = SentryClients("node-a")

    def request(self, dsn: str = DSN, **fields: Any) -> Request:
        """Compose the report of a failed run."""
        facts = of_run(finished(stdout="hello\n", environment={"HOSTNAME": "h"}), "node-a")
        return self.clients.compose(SentryReport(**fields), dsn, facts, Templates())

    def event(self, **fields: Any) -> dict[str, Any]:
        """Return the event inside the request."""
        parts = self.request(**fields).body.split(b"\n")
        event: dict[str, Any] = json.loads(parts[2])
        return event

    def test_event(self) -> None:
        """The event has message, level, fingerprint, environment and the facts of the run."""
        event = self.event(environment="prod")
        self.assertTrue(event["message"].startswith("Cron job 'job' failed\n"))
        self.assertIn("hello", event["message"])
        self.assertEqual((event["level"], event["environment"]), ("error", "prod"))
        self.assertEqual(event["fingerprint"], ["cronstable", "h", "job"])
        self.assertEqual(
            {key: event["extra"][key] for key in ("job", "exit_code", "command", "success")},
            {"job": "job", "exit_code": 2, "command": "true", "success": False},
        )
        self.assertEqual(event["server_name"], "node-a")

    def test_own_extra(self) -> None:
        """Configured extras win over the built-in ones, the configured level over C{error}."""
        event = self.event(extra=(("job", "mine"), ("team", "a")), level="warning")
        self.assertEqual((event["extra"]["job"], event["extra"]["team"]), ("mine", "a"))
        self.assertEqual(event["extra"]["exit_code"], 2)
        self.assertEqual(event["level"], "warning")

    def test_longest_string(self) -> None:
        """Long texts are cut where C{maxStringLength} says."""
        event = self.event(body="{{ 'x' * 5000 }}", max_string_length=100)
        self.assertLessEqual(len(event["message"]), 110)
        self.assertEqual(len(self.event(body="{{ 'x' * 5000 }}")["message"]), 5000)

    def test_where(self) -> None:
        """The event goes to the DSN's project, with its key in a header."""
        request = self.request()
        self.assertEqual(request.url, "http://sentry.example.org:9000/api/42/envelope/")
        self.assertIn("sentry_key=0123456789abcdef", dict(request.headers)["X-Sentry-Auth"])
        self.assertNotIn("0123456789abcdef", repr(request))

    def test_one_client(self) -> None:
        """Clients are kept by DSN, environment and string limit; events do not mix."""
        first, second = self.event(body="one"), self.event(body="two")
        self.assertEqual((first["message"], second["message"]), ("one", "two"))
        self.event(environment="other")
        self.assertEqual(len(self.clients._clients), 2)

    def test_bad_dsn(self) -> None:
        """A DSN that is none is told without it."""
        for dsn in ("nonsense-5590ab", "http://host-5590ab/x", "http://:5590ab@h/1", "http://[/"):
            failed = self.assertRaises(ReportFailed, self.request, dsn=dsn)
            self.assertEqual(str(failed), "sentry.dsn: not a DSN")

    def test_library_missing(self) -> None:
        """Without the library the error names what to install."""
        for name in [each for each in sys.modules if each.split(".")[0] == "sentry_sdk"]:
            self.patch_module(name)
        self.patch_module("sentry_sdk")
        failed = self.assertRaises(ReportFailed, self.request)
        self.assertIn("cronstable[sentry]", str(failed))

    def patch_module(self, name: str) -> None:
        """Make the import of C{name} fail during this test."""
        known = sys.modules.get(name)
        sys.modules[name] = None  # type: ignore[assignment]

        def restore() -> None:
            if known is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = known

        self.addCleanup(restore)
