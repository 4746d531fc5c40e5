"""The real daemon against its own description: thousands of requests made up from it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SkipTest, TestCase

from tests.system.harness import Daemon

TOKEN = "all-of-it"
CONFIG = f"""\
web:
  listen: ["http://127.0.0.1:@PORT@"]
  authTokens:
    - {{value: {TOKEN}, scopes: [view, control, approve], label: tester}}
jobs:
  - name: nightly-backup
    schedule: "* * * * * * *"
    command: echo backed up
    captureStdout: true
    monitorResources: true
  - name: a/b
    schedule: "0 0 1 7 *"
    command: exit 1
    onFailure:
      retry: {{maximumRetries: 1, initialDelay: 1, maximumDelay: 1, backoffMultiplier: 1}}
"""

CLAMPED = ("negative_data_rejection", "positive_data_acceptance")
"""
What does not hold of queries, on purpose: numbers out of bounds are moved into them, and what may
be a time zone, a moment or a label is more than a schema can say.
"""

LONGEST = 240.0


class SchemathesisTests(TestCase):
    """No answer is an internal error, and none contradicts the description."""

    timeout = 2 * LONGEST

    async def check(self, *options: str) -> None:
        """Let a daemon be asked, and see that it is well afterwards."""
        if importlib.util.find_spec("schemathesis") is None:
            raise SkipTest("schemathesis is not installed")
        daemon = Daemon(self, CONFIG)
        await daemon.wait_for_log("started listening on")
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "run", "--no-color"),
            *("--header", f"Authorization: Bearer {TOKEN}", "--exclude-path", "/shutdown"),
            *("--seed", "1", "--request-timeout", "20", "--wait-for-schema", "10"),
            *options,
            f"http://127.0.0.1:{daemon.port}/openapi.json",
        ]
        done: subprocess.CompletedProcess[str] = await deferToThread(
            subprocess.run,
            command,
            cwd=daemon.directory,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stdout[-8000:] + done.stderr[-2000:])
        slots = await daemon.get("/slots?limit=1", {"Authorization": f"Bearer {TOKEN}"})
        self.assertEqual(json.loads(slots.body)["unaccounted"], 0)
        self.assertEqual(await daemon.stop(), 0)
        for trouble in ("please report this as a bug", "Traceback", "Unhandled"):
            self.assertNotIn(trouble, daemon.log)

    async def test_everything(self) -> None:
        """Whatever is asked for, status, type, headers and body are among those described."""
        await self.check("--max-examples", "8", "--exclude-checks", ",".join(CLAMPED))

    async def test_bodies(self) -> None:
        """Bodies that are not as described are refused."""
        await self.check(
            *("--max-examples", "20", "--phases", "coverage,fuzzing"),
            *("--include-method", "POST", "--exclude-checks", "positive_data_acceptance"),
        )
