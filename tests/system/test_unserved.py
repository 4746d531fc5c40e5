"""Settings that this release reads and checks but does not carry out: it says so, once a load."""

from __future__ import annotations

import signal

from twisted.trial.unittest import TestCase

from tests.system.harness import Daemon

CONFIG = """\
state:
  path: @WORK@/state
pools:
  db:
    slots: 2
notify:
  events: [dag_failure]
dags:
  - name: nightly
    tasks:
      - id: only
        command: "true"
jobs:
  - name: first
    schedule: "0 0 1 1 *"
    command: "true"
    concurrencyPolicy: Forbid
    concurrencyScope: cluster
  - name: second
    schedule: "0 0 1 1 *"
    command: "true"
    concurrencyPolicy: Replace
    concurrencyScope: cluster
"""


class UnservedTests(TestCase):
    async def test_said_once_a_load(self) -> None:
        """Each such section has one WARNING that names it, each such job setting one for all."""
        daemon = Daemon(self, CONFIG)
        await daemon.wait_for_log("filesystem backend ready")
        for load in (1, 2):
            for section in ("pools", "notify", "dags"):
                told = f"WARNING:cronstable:The section {section}: is valid, but this release"
                self.assertEqual(daemon.log.count(told), load, section)
            scope = "WARNING:cronstable:concurrencyScope: cluster is not enforced"
            self.assertEqual(daemon.log.count(scope), load)
            self.assertEqual(daemon.log.count("runs of this node: first, second"), load)
            self.assertNotIn("The section state:", daemon.log)
            if load == 1:
                seen = len(daemon.stderr)
                daemon.signal(signal.SIGHUP)
                await daemon.wait_for_log("concurrencyScope: cluster", since=seen)
        self.assertEqual(await daemon.stop(), 0)
