"""Reports that cannot be delivered, beside others; docs/reporting.md, "How hard it tries"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from tests.certs import Authority
from tests.reports.toys import RealMailServer, Servers, ToyHttpFactory, ToySmtpFactory, http
from tests.system.harness import Daemon, free_port
from tests.system.proc import descriptors, megabytes, together, until, written

MANY = 50
JOB = """\
  - name: {name}
    schedule: "@reboot"
    command: echo about {name}; exit 1
    captureStdout: true
    onFailure:
      report:
"""
MAIL = """\
        mail:
          from: cron@example.org
          to: ops@example.org
          smtpHost: {host}
          smtpPort: {port}
"""
LOGIN = """\
          username: u
          password:
            value: wrong-password
"""
WEBHOOK = """\
        webhook:
          url:
            value: {url}
"""
TICK = """\
  - name: tick
    schedule: "* * * * * * *"
    command: exec date +%s.%N >> ticks
    captureStderr: false
"""
EVIL = '"x\\r\\nBcc: a@example.org"'


def mailing(name: str, port: int, host: str = "127.0.0.1", more: str = "") -> str:
    """Return a failing job that is reported by mail."""
    return JOB.format(name=name) + MAIL.format(host=host, port=port) + more


def calling(name: str, port: int, path: str = "/") -> str:
    """Return a failing job that is reported by a webhook."""
    url = f"http://127.0.0.1:{port}{path}"
    return JOB.format(name=name) + WEBHOOK.format(url=url)


class DeadDestinationTests(TestCase):
    """Servers that are silent, that refuse, and one that works, all at once."""

    timeout = 90

    async def test_all_at_once(self) -> None:
        """
        Fifty jobs whose reports hang hold up no job, no other report, and no memory.

        Each loss is logged with its reason and without a secret; passing trouble is tried again.
        """
        servers = Servers(self, reactor)
        silent = ToySmtpFactory(greeting=b"")
        silent_port = await servers.listen(silent)
        patient = ToyHttpFactory(http("500 Oops"), http("503 Oops"), http("200 OK"))
        away = ToyHttpFactory(http("302 Found", b"", "Location: file:///etc/passwd"))
        endless = ToyHttpFactory(send_for_ever)
        busy = ToySmtpFactory(greeting=[b"421 later", b"220 now"])
        refusing = ToySmtpFactory(EHLO=b"250-toy\r\n250 AUTH PLAIN LOGIN", AUTH=b"535 no")
        dropping = ToySmtpFactory(RCPT=None)
        pair = Authority(Path(self.mktemp())).issue("mail.example.org")
        good = self.server()
        closed = self.server(cert=str(pair.cert), key=str(pair.key), starttls=True)
        jobs = [mailing(f"hang{n}", silent_port) for n in range(MANY)]
        jobs += [
            mailing("good", good.port),
            mailing(EVIL, good.port).replace(f"about {EVIL}", "evil"),
            mailing("later", await servers.listen(busy)),
            mailing("login", await servers.listen(refusing), more=LOGIN),
            mailing("dropped", await servers.listen(dropping)),
            mailing("untrusted", closed.port, more="          starttls: true\n"),
            mailing("plain", closed.port),
            mailing("nobody", free_port()),
            mailing("nameless", 25, host="no-such-host.invalid"),
            calling("patient", await servers.listen(patient), "/secret-path"),
            calling("away", await servers.listen(away)),
            calling("endless", await servers.listen(endless)),
        ]
        daemon = Daemon(self, "jobs:\n" + TICK + "".join(jobs))
        await daemon.wait_for_end_of(f"hang{MANY - 1}")
        memory = megabytes(daemon.pid)
        begun = len(daemon.ends("tick")) + 1
        await together(
            self.assert_mails(good),
            self.assert_lost(daemon, "login", "535"),
            self.assert_lost(daemon, "untrusted", "certificate"),
            self.assert_lost(daemon, "plain", "STARTTLS"),
            self.assert_lost(daemon, "away", "302"),
            self.assert_lost(daemon, "nobody", "refused"),
            self.assert_lost(daemon, "dropped", ""),
            self.assert_lost(daemon, "nameless", "no-such-host.invalid"),
            until("three requests", lambda: len(patient.requests) == 3, 40),
            until("the mail", lambda: "DATA" in busy.verbs(), 40),
        )
        self.assertLessEqual(silent.open, 8)
        self.assertLess(megabytes(daemon.pid) - memory, 40)
        self.assertLess(len(descriptors(daemon.pid)), 80)
        for secret in ("wrong-password", "secret-path"):
            self.assertNotIn(secret, daemon.log)
        self.assertNotIn("Problem reporting job patient", daemon.log)
        self.assertNotIn("Problem reporting job later", daemon.log)
        await self.assert_on_time(daemon, begun)
        await daemon.kill()

    def server(self, **options: Any) -> RealMailServer:
        """Start a real mail server for this test."""
        server = RealMailServer(**options)
        self.addCleanup(server.stop)
        return server

    async def assert_mails(self, server: RealMailServer) -> None:
        """Both mails arrive, each for the one recipient, with the job's name in one header."""
        for _ in range(2):
            mail = await deferToThread(server.taken)
            self.assertEqual(mail["to"], ["ops@example.org"])
            head = mail["data"].partition("\r\n\r\n")[0]
            self.assertNotIn("\nBcc:", head)
            self.assertEqual(head.count("\nTo:"), 1)

    async def assert_lost(self, daemon: Daemon, job: str, why: str) -> None:
        """The report of C{job} is given up with a reason."""
        found = await daemon.wait_for_log(
            rf"^ERROR:cronstable:Problem reporting job {job} failure: (.*)", 60
        )
        self.assertIn(why, found.group(1))

    async def assert_on_time(self, daemon: Daemon, begun: int) -> None:
        """No tick was late, or left out, since all jobs have failed."""
        lines = (await written(daemon.directory / "ticks")).split()
        stamps = [float(line) for line in lines[begun:]]
        seconds = [int(stamp) for stamp in stamps]
        self.assertEqual(seconds, list(range(seconds[0], seconds[0] + len(seconds))))
        self.assertLess(max(stamp % 1 for stamp in stamps), 0.5)


def send_for_ever(transport: Any) -> None:
    """Answer with a body that does not end."""

    class Source:
        def resumeProducing(self) -> None:  # noqa: N802
            for _ in range(16):
                transport.write(b"x" * 65536)

        def pauseProducing(self) -> None:  # noqa: N802
            pass

        def stopProducing(self) -> None:  # noqa: N802
            pass

    transport.write(b"HTTP/1.1 500 Oops\r\nContent-Length: 1000000000\r\n\r\n")
    transport.registerProducer(Source(), False)
