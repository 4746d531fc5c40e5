"""Names and texts outside ASCII, whatever the locale of the daemon says."""

from __future__ import annotations

import json
import re
import unicodedata
from email import message_from_string, policy
from pathlib import Path

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from tests.reports.toys import RealMailServer
from tests.system.harness import Daemon
from tests.system.proc import together, until

LONGEST = "é" * 127 + "x"
"""255 bytes of UTF-8."""

NAMES = [
    unicodedata.normalize("NFC", "ñ"),
    unicodedata.normalize("NFD", "ñ"),
    "日本 語",
    "🐇",
    "x\u202ey",
    LONGEST,
    " leading",
    "a b",
    "a%20b",
    "A",
    "a",
    "who?#what",
    "../up",
]
PLAIN = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
JOB = """\
  - name: {name}
    schedule: "@reboot"
    command: echo "ünï $VALUE"; echo {name} >&2; exit 1
    captureStdout: true
    environment: [{{key: VALUE, value: "ß€"}}]
    onFailure:
      report:
        shell:
          command: printf '%s|%s\\n' "$CRONSTABLE_JOB_NAME" "$CRONSTABLE_STDOUT" >> reported
"""
MAIL = """\
        mail:
          from: cron@example.org
          to: ops@example.org
          smtpHost: 127.0.0.1
          smtpPort: {port}
"""


class NamesTests(TestCase):
    """Odd names under two locales."""

    async def test_locales(self) -> None:
        """Every name works in log, output, reports and mail, and LANG=C makes no difference."""
        await together(self.run_all(PLAIN), self.run_all({"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}))

    async def run_all(self, environment: dict[str, str]) -> None:
        """Run a job of each name."""
        server = RealMailServer()
        self.addCleanup(server.stop)
        jobs = [JOB.format(name=json.dumps(name, ensure_ascii=False)) for name in NAMES]
        jobs[2] += MAIL.format(port=server.port)
        work = Path(self.mktemp()) / "ü"
        config = "jobs:\n" + "".join(jobs)
        daemon = Daemon(
            self, config, config_name="konfigürätion.yaml", env=environment, directory=work
        )
        for name in NAMES:
            end = await daemon.wait_for_end_of(name)
            self.assertEqual(end.code, 1, name)
            await daemon.wait_for_output("^" + re.escape(f"[{name} stdout] ünï ß€") + "$")
        mail = message_from_string(
            (await deferToThread(server.taken))["data"], policy=policy.default
        )
        self.assertIn("日本 語", mail["Subject"])
        reported = daemon.directory / "reported"
        await until(
            "all reports",
            lambda: reported.exists() and reported.read_bytes().count(b"|") == len(NAMES),
        )
        told = reported.read_text("utf-8")
        for name in NAMES:
            self.assertIn(f"{name}|ünï ß€", told)
        self.assertEqual(await daemon.stop(), 0)
        self.assertNotIn("Traceback", daemon.log)
        self.assertEqual(daemon.log.count("names that look alike"), 1)
