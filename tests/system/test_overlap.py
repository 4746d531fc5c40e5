"""A job that takes longer than its period, with the real process; docs/admission.md."""

from __future__ import annotations

import re

from twisted.trial.unittest import TestCase

from tests.system.harness import Daemon

OVERLAPPING = """\
web:
  listen: [http://127.0.0.1:@PORT@]
jobs:
  - name: forbid
    schedule: "* * * * * * *"
    command: exec sleep 1.2
    concurrencyPolicy: Forbid
  - name: allow
    schedule: "* * * * * * *"
    command: exec sleep 1.2
  - name: replace
    schedule: "* * * * * * *"
    concurrencyPolicy: Replace
    command: |
      test -e alive && echo two >> both
      echo $$ > alive
      trap 'sleep 0.2; rm alive; exit 0' TERM
      sleep 60 & wait
      wait
"""


class OverlapTests(TestCase):
    """A minute and a bit, in seconds."""

    async def test_policies(self) -> None:
        """
        Each slot leaves one trace under each policy.

        Forbid runs every other slot and says so of the others, Allow runs all of them, Replace
        ends the old tree before it starts the new one.
        """
        daemon = Daemon(self, OVERLAPPING)
        await daemon.wait_for_log("Starting job allow", count=5)
        await daemon.wait_for_log("Job replace spawned", count=5)
        skipped = [line for line in daemon.stderr if "Job forbid: slot skipped" in line]
        started = daemon.stderr.count("INFO:cronstable:Starting job forbid")
        self.assertIn(len(skipped) + started, (4, 5, 6))
        self.assertLessEqual(abs(len(skipped) - started), 1)
        self.assertFalse((daemon.directory / "both").exists(), daemon.log)
        self.assertGreaterEqual(daemon.log.count("Job replace was replaced by a newer instance"), 4)
        self.assertNotIn("slot skipped", "".join(daemon.stderr).replace("forbid: slot", ""))
        await self.assert_accounted(daemon)
        await daemon.kill()

    async def assert_accounted(self, daemon: Daemon) -> None:
        """Each slot of the forbidden job is ran or skipped, alternately, and none is lost."""
        answer = (await daemon.get("/slots?job=forbid")).json()
        self.assertEqual(answer["unaccounted"], 0)
        results = [slot["result"] for slot in answer["slots"]]
        self.assertGreaterEqual(len(results), 5)
        self.assertEqual(set(results[::2]) | set(results[1::2]), {"ran", "skipped"})
        self.assertEqual(len(set(results[::2])), 1, results)
        metrics = (await daemon.get("/metrics")).body.decode()
        counted = re.search(
            r'cronstable_slots_total\{job_name="forbid",result="skipped"\} (\d+)', metrics
        )
        assert counted is not None
        self.assertGreaterEqual(int(counted[1]), results.count("skipped"))
        self.assertRegex(metrics, r"(?m)^cronstable_slots_unaccounted 0")
