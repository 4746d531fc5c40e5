"""Report blocks: what each reporter's keys come to."""

from __future__ import annotations

import json
from pathlib import Path

from cronstable.config import templates
from cronstable.config.values import (
    LATE_REPORT,
    NOTIFY_REPORT,
    STANDARD_REPORT,
    EventlogReport,
    MailReport,
    PushReport,
    Secret,
    SentryReport,
    ShellReport,
    WebhookReport,
)
from tests.config.helpers import ConfigCase, job, section

PREIMAGE = Path(__file__).parents[1] / "vectors" / "fingerprint" / "default-job.preimage.bin"


def on_failure(reporter: str) -> str:
    """Return a job whose failures go to C{reporter}, in flow style."""
    return job(f"onFailure: {{report: {{{reporter}}}}}")


class ReporterTests(ConfigCase):
    """Tests for the reporters' keys."""

    def test_all_keys(self) -> None:
        """Every key goes to its field."""
        for written, expected in (
            (
                "mail: {from: a, to: b, smtpHost: h, smtpPort: 465, subject: s, body: t, "
                "username: u, password: {fromEnvVar: P}, tls: yes, validate_certs: no, html: yes}",
                MailReport(
                    "a",
                    "b",
                    "h",
                    465,
                    "s",
                    "t",
                    "u",
                    Secret(None, None, "P"),
                    True,
                    False,
                    False,
                    True,
                ),
            ),
            ("mail: {from: , to: , starttls: yes}", MailReport(starttls=True)),
            (
                "sentry: {dsn: {fromFile: f}, fingerprint: [x], level: warning, body: b, "
                "extra: {n: 5, t: true}, environment: prod, maxStringLength: 10}",
                SentryReport(
                    Secret(None, "f"),
                    "b",
                    ("x",),
                    "warning",
                    (("n", "5"), ("t", "true")),
                    "prod",
                    10,
                ),
            ),
            (
                "shell: {shell: /bin/bash, command: [x, y], timeout: 5}",
                ShellReport("/bin/bash", ("x", "y"), 5.0),
            ),
            ("shell: {command: }", ShellReport(command="")),
            (
                "webhook: {url: {value: u}, method: PUT, contentType: text/plain, "
                "headers: {X-A: b}, body: t, timeout: 3}",
                WebhookReport(Secret("u"), "PUT", "text/plain", (("X-A", "b"),), "t", 3.0),
            ),
            (
                "push: {enabled: no, priority: passive, includeLogTail: no}",
                PushReport(False, "passive", False),
            ),
            (
                "eventlog: {enabled: yes, source: x, includeOutput: yes}",
                EventlogReport(True, "x", True),
            ),
        ):
            report = self.config(on_failure(written)).jobs["a"].on_failure
            self.assertEqual(getattr(report, written.partition(":")[0]), expected, written)

    def test_others_stay(self) -> None:
        """A block says nothing about the other reporters, nor about the other hooks."""
        found = self.config(on_failure("mail: {from: a, to: b}")).jobs["a"]
        self.assertEqual(found.on_failure.webhook, STANDARD_REPORT.webhook)
        self.assertEqual(found.on_permanent_failure, STANDARD_REPORT)

    def test_words(self) -> None:
        """Words of an enumeration are checked."""
        self.assert_refused(
            on_failure("push: {priority: loud}"), "allowed: time-sensitive, passive"
        )

    def test_timeouts(self) -> None:
        """A timeout that is not above zero is told and replaced, but kept as it was written."""
        for name, seconds in (("shell: {command: x, ", 60), ("webhook: {", 10)):
            for written in ("0", "-1", "nan"):
                text = on_failure(f"{name}timeout: {written}}}")
                hook = f"job 'a': onFailure.report.{name.partition(':')[0]}.timeout"
                self.assert_notices(text, f"{hook}: must be more than 0")
                report = self.config(text).jobs["a"].on_failure
                self.assertEqual(getattr(report, name.partition(":")[0]).seconds, seconds)
        self.assertEqual(WebhookReport(timeout=3.0).seconds, 3.0)

    def test_impossible_hosts(self) -> None:
        """A mail server whose name no resolver takes is told at load; addresses pass."""
        for host in ("a" * 64, "mail..example.org", ".", "ü" * 70):
            self.assert_refused(
                on_failure(f"mail: {{from: a, to: b, smtpHost: {host}}}"),
                "onFailure.report.mail.smtpHost: not a host name",
            )
        for host in ("", "a" * 63, "mail.example.org.", "ü.example.org", "mail_1", "'::1'"):
            self.load(on_failure(f"mail: {{from: a, to: b, smtpHost: {host}}}"))

    def test_impossible_url(self) -> None:
        """So is a webhook's, where the URL is written there; what is secret is not told."""
        for host in ("a" * 64, "hook..example.org"):
            text = on_failure(f"webhook: {{url: {{value: 'https://u:hunter2@{host}/hunter2'}}}}")
            self.assert_refused(text, "onFailure.report.webhook.url.value: ", "host name")
            self.assertNotIn("hunter2", str(self.problem(text)))
        for url in ("https://hook.example.org/a..b", "http://[::1/", "ftp://x", ""):
            self.load(on_failure(f"webhook: {{url: {{value: '{url}'}}}}"))

    def test_repr_hides_values(self) -> None:
        """What may be secret is in no value's text."""
        found = self.config(
            on_failure(
                "webhook: {url: {value: hunter2}, headers: {X: hunter2}}, "
                "mail: {from: a, to: b, password: {value: hunter2}}"
            )
            + section(
                "web",
                "listen: ['http://localhost:1']",
                "authToken: {value: hunter2}",
                "headers: {X: hunter2}",
            )
            + section(
                "cluster",
                "backend: etcd",
                "etcd: {endpoints: ['https://x'], username: u, password: {value: hunter2}}",
            )
        )
        self.assertNotIn("hunter2", repr(found))


class StandardTextTests(ConfigCase):
    """Tests for the texts that are used unless others are configured."""

    def test_identity(self) -> None:
        """The texts that take part in a job's digest are those of the canonical job."""
        report = json.loads(PREIMAGE.read_bytes())["onFailure"]["report"]
        self.assertEqual(STANDARD_REPORT.mail.subject, report["mail"]["subject"])
        self.assertEqual(STANDARD_REPORT.mail.body, report["mail"]["body"])
        self.assertEqual(STANDARD_REPORT.sentry.body, report["sentry"]["body"])
        self.assertEqual(list(STANDARD_REPORT.sentry.fingerprint), report["sentry"]["fingerprint"])
        self.assertEqual(STANDARD_REPORT.webhook.body, report["webhook"]["body"])

    def test_late(self) -> None:
        """Lateness has texts of its own, which a configuration may replace one by one."""
        found = self.job(
            "sla: {lateAfterSeconds: 5}", "onLate: {report: {mail: {from: a, to: b, body: t}}}"
        ).on_late
        self.assertEqual(found.mail.subject, templates.LATE_SUBJECT)
        self.assertEqual(found.mail.body, "t")
        self.assertEqual(found.webhook, LATE_REPORT.webhook)
        self.assertEqual(found.sentry.fingerprint, ("cronstable", "sla", "{{ name }}"))

    def test_notify(self) -> None:
        """So have the events of a node."""
        found = self.config(section("notify", "report: {mail: {from: a, to: b}}")).notify
        assert found is not None
        self.assertEqual(found.report.mail.subject, templates.NOTIFY_SUBJECT)
        self.assertEqual(found.report.webhook, NOTIFY_REPORT.webhook)

    def test_rendered(self) -> None:
        """The texts render to what the documentation shows."""
        import jinja2

        def render(text: str, **variables: object) -> str:
            return str(jinja2.Template(text).render(**variables))

        self.assertEqual(
            render(templates.SUBJECT, name="x", success=True), "Cron job 'x' completed"
        )
        body = render(templates.BODY, fail_reason="why", stdout="out", stderr="err")
        self.assertEqual(
            body.split(),
            "(job failed because why) STDOUT: --- out --- STDERR: err".split(),
        )
        payload = render(templates.WEBHOOK_BODY, name='a"b', success=False, stdout="\u00e9\n")
        self.assertTrue(json.loads(payload)["text"].startswith("Cron job 'a\"b' failed\n"))
        late = render(
            templates.LATE_BODY,
            name="x",
            sla_check="lateAfter",
            threshold_seconds=5,
            observed_seconds=9,
            last_success_at=None,
        )
        for part in ("lateAfter", "5 seconds", "9 seconds", "(none recorded)"):
            self.assertIn(part, late)
        self.assertEqual(
            render(templates.LATE_SUBJECT, name="x", sla_check="lateAfter"),
            "Cron job 'x' is overdue (lateAfter)",
        )
        self.assertEqual(
            render(templates.NOTIFY_SUBJECT, event="leader_change", subject="node-a"),
            "cronstable leader_change: node-a",
        )
