"""Tests for report texts."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config import templates as default
from cronstable.reports import templates as module
from cronstable.reports.templates import Templates
from cronstable.reports.trouble import ReportFailed
from cronstable.reports.variables import of_event, of_lateness, of_run
from tests.fakes import job
from tests.reports.values import finished


class TemplatesTests(SynchronousTestCase):
    """Rendering."""

    def setUp(self) -> None:
        self.templates = Templates()

    def render(self, source: str, **variables: Any) -> str:
        """Render C{source}."""
        return self.templates.render("mail.body", source, variables)

    def test_variables(self) -> None:
        """Names are replaced, nothing is escaped, and a final line end is dropped."""
        self.assertEqual(self.render("{{ a }} <b>\n", a="<&>"), "<&> <b>")

    def test_undefined(self) -> None:
        """What is not defined is empty, however deep it is asked for."""
        self.assertEqual(self.render("[{{ x }}{{ x.y.z }}{{ n.a }}]", n=None), "[]")

    def test_syntax_error(self) -> None:
        """A template that does not compile names the key and the line."""
        failed = self.assertRaises(ReportFailed, self.render, "a\n{{ a | nosuchfilter }}")
        self.assertIn("mail.body: line 2", str(failed))
        self.assertIn("nosuchfilter", str(failed))
        self.assertFalse(failed.transient)

    def test_error_without_values(self) -> None:
        """An error while rendering names the key and the line, and no value."""
        for source in ("\n{{ [].index(secret) }}", "\n{{ secret.nosuch() }}", "\n{{ 1 / 0 }}"):
            failed = self.assertRaises(ReportFailed, self.render, source, secret="hunter22")
            self.assertIn("mail.body: the template failed", str(failed))
            self.assertIn("line 2", str(failed))
            self.assertNotIn("hunter22", str(failed))

    def test_sandbox(self) -> None:
        """A template cannot reach into the daemon."""
        self.assertRaises(
            ReportFailed, self.render, "{{ a.__class__.__mro__[1].__subclasses__() }}", a=""
        )

    def test_compiled_once(self) -> None:
        """The same text is compiled once; many texts do not grow without bound."""
        for number in range(600):
            self.assertEqual(self.render(f"{number} {{{{ a }}}}", a=1), f"{number} 1")
        compiled = self.templates._template("k", "x {{ a }}")
        self.assertIs(self.templates._template("k", "x {{ a }}"), compiled)
        self.assertLessEqual(len(self.templates._compiled), 256)

    def test_long_text(self) -> None:
        """A text that is too long is cut, and says so."""
        self.patch(module, "LONGEST", 10)
        self.assertEqual(self.render("{{ 'x' * 25 }}"), "x" * 10 + module._CUT.format(15))


class DefaultTextsTests(SynchronousTestCase):
    """The texts that are sent unless the configuration has others."""

    def setUp(self) -> None:
        self.templates = Templates()

    def render(self, source: str, variables: dict[str, Any]) -> str:
        """Render C{source}."""
        return self.templates.render("k", source, variables)

    def test_failure(self) -> None:
        """A failure tells the reason and both streams."""
        facts = of_run(finished(stdout="hello\n", stderr="err\n"), "node-a")
        self.assertEqual(self.render(default.SUBJECT, facts), "Cron job 'job' failed")
        self.assertEqual(
            self.render(default.BODY, facts),
            "\n(job failed because command exited with code 2)\n\n"
            "STDOUT:\n---\nhello\n\n---\nSTDERR:\nerr\n\n",
        )

    def test_one_stream(self) -> None:
        """A single stream stands alone; without any the text says so."""
        one = of_run(finished("success", stdout="ok\n"), "node-a")
        self.assertEqual(self.render(default.BODY, one), "\n\nok\n\n")
        none = of_run(finished("success"), "node-a")
        self.assertEqual(self.render(default.BODY, none), "\n\n(no output was captured)\n")

    def test_webhook(self) -> None:
        """The webhook's text is JSON whatever the job printed."""
        odd = 'a "quoted" \\ line\n\u2028 é <b> \x01'
        facts = of_run(finished("success", stdout=odd), "node-a")
        body = json.loads(self.render(default.WEBHOOK_BODY, facts))
        self.assertEqual(list(body), ["text"])
        self.assertTrue(body["text"].startswith("Cron job 'job' completed\n"))
        self.assertIn(odd, body["text"])

    def test_lateness(self) -> None:
        """Lateness lists the check and that no success is known."""
        facts = of_lateness(job("backup"), "node-a", "lateAfter", 60, 93.5, None)
        self.assertEqual(
            self.render(default.LATE_SUBJECT, facts), "Cron job 'backup' is overdue (lateAfter)"
        )
        body = self.render(default.LATE_BODY, facts)
        for part in ("lateAfter", "60 seconds", "93.5 seconds", "(none recorded)"):
            self.assertIn(part, body)

    def test_event(self) -> None:
        """An event is told by its subject and message."""
        facts = of_event("quorum_loss", "node-a", {"subject": "node-a", "message": "quorum lost"})
        self.assertEqual(
            self.render(default.NOTIFY_SUBJECT, facts), "cronstable quorum_loss: node-a"
        )
        self.assertEqual(self.render(default.NOTIFY_BODY, facts), "quorum lost")

    def test_fingerprints(self) -> None:
        """The parts of default fingerprints render, also without an environment."""
        facts = of_run(finished(environment=None), "node-a")
        parts = [self.render(each, facts) for each in default.FINGERPRINT]
        self.assertEqual(parts, ["cronstable", "", "job"])
