"""Asked to stop while there is something to do; docs/operations.md, "Stopping"."""

from __future__ import annotations

import os
import signal
import sys

from twisted.internet import reactor, task
from twisted.trial.unittest import TestCase

from tests.system.harness import Daemon, Kind
from tests.system.proc import together, until, written

BUSY = """\
defaults:
  captureStdout: true
  killTimeout: 1
  onFailure:
    retry:
      maximumRetries: 3
      initialDelay: 0.1
      maximumDelay: 1
      backoffMultiplier: 2
    report:
      shell:
        command: echo $CRONSTABLE_JOB_NAME >> reported
jobs:
  - name: polite
    schedule: "@reboot"
    command: trap 'echo bye; sleep 0.3; exit 0' TERM; echo up; sleep 61 & wait; wait
  - name: deaf
    schedule: "@reboot"
    command: trap '' TERM; echo up; while :; do sleep 62; done
  - name: tick
    schedule: "* * * * * * *"
    command: "true"
"""
FAILING = """\
jobs:
  - name: waiting
    schedule: "@reboot"
    command: exit 1
    onFailure:
      retry:
        maximumRetries: 3
        initialDelay: 600
        maximumDelay: 1000
        backoffMultiplier: 2
  - name: telling
    schedule: "@reboot"
    command: exit 1
    onFailure:
      report:
        shell:
          command: echo begun > begun; until test -e go; do sleep 0.02; done; echo told > told
"""
DRAINED = """\
defaults:
  captureStdout: true
  onFailure:
    retry:
      maximumRetries: 3
      initialDelay: 0
      maximumDelay: 1
      backoffMultiplier: 2
    report:
      shell:
        command: echo $CRONSTABLE_JOB_NAME >> reported
  onSuccess:
    report:
      shell:
        command: echo $CRONSTABLE_JOB_NAME >> reported
jobs:
  - name: fails
    schedule: "@reboot"
    command: echo up; until test -e go; do sleep 0.02; done; exit 3
  - name: succeeds
    schedule: "@reboot"
    command: echo up; until test -e go; do sleep 0.02; done
"""

NAMED = """\
jobs:
  - name: told
    schedule: "@reboot"
    command: "true"
    statsd:
      host: name.example
      port: 8125
      prefix: told
"""
NO_ANSWER = """
import socket, sys, threading
socket.getaddrinfo = lambda *asked, **more: threading.Event().wait()
from cronstable.commands.main import main
sys.exit(main(sys.argv[1:]))
"""


class StopTests(TestCase):
    """SIGTERM, once and again."""

    timeout = 60

    async def test_again(self) -> None:
        """
        The second request ends what runs, its whole group, and the ledger says why; status 0.

        Nothing new was started after the first one, nothing is retried and nothing reported.
        """
        await together(self.cut("cronstable"), self.cut("twistd"))

    async def cut(self, kind: Kind) -> None:
        """Stop a busy daemon twice."""
        daemon = Daemon(self, BUSY, kind=kind)
        for job in ("polite", "deaf"):
            await daemon.wait_for_output(rf"^\[{job} stdout\] up")
        daemon.signal(signal.SIGTERM)
        await daemon.wait_for_log("Shutting down")
        started = daemon.log.count("Starting job")
        await task.deferLater(reactor, 1.1)
        self.assertEqual(daemon.ends("polite") + daemon.ends("deaf"), [])
        daemon.signal(signal.SIGTERM)
        await daemon.wait_for_log("^WARNING:cronstable:Asked to stop again")
        self.assertEqual(await daemon.wait_for_end(), 0)
        polite, deaf = daemon.ends("polite"), daemon.ends("deaf")
        self.assertEqual([(end.code, end.reason) for end in polite], [(0, "cut by shutdown")])
        self.assertEqual([(end.code, end.reason) for end in deaf], [(-9, "cut by shutdown")])
        self.assertIn("[polite stdout] bye", daemon.stdout)
        self.assertEqual(daemon.descendants(), [])
        self.assertEqual(daemon.log.count("Starting job"), started)
        self.assertFalse((daemon.directory / "reported").exists())

    async def test_at_once(self) -> None:
        """A repeat within a second, as supervisors send it, ends nothing."""
        daemon = Daemon(self, DRAINED)
        await daemon.wait_for_output("up", count=2)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            daemon.signal(number)
        await daemon.wait_for_log("Shutting down")
        (daemon.directory / "go").write_text("")
        self.assertEqual(await daemon.wait_for_end(), 0)
        self.assertEqual([end.code for end in daemon.ends("succeeds")], [0])
        self.assertNotIn("Asked to stop again", daemon.log)

    async def test_name_that_hangs(self) -> None:
        """A name that is being looked up, without an answer for ever, does not keep the process."""
        daemon = Daemon(self, NAMED, program=(sys.executable, "-c", NO_ANSWER))
        await daemon.wait_for_end_of("told")
        self.assertEqual(await daemon.stop(), 0)

    async def test_drained(self) -> None:
        """A run that fails while draining is recorded, but not retried and not reported."""
        daemon = Daemon(self, DRAINED)
        await daemon.wait_for_output("up", count=2)
        daemon.signal(signal.SIGTERM)
        await daemon.wait_for_log("Shutting down")
        (daemon.directory / "go").write_text("")
        self.assertEqual(await daemon.wait_for_end(), 0)
        self.assertEqual([end.code for end in daemon.ends("fails")], [3])
        self.assertEqual((daemon.directory / "reported").read_text(), "succeeds\n")
        self.assertNotIn("retried", daemon.log)

    async def test_waiting_retry(self) -> None:
        """A stop waits for a report that is being sent, not for a retry that is to come."""
        daemon = Daemon(self, FAILING)
        await daemon.wait_for_log("Cron job waiting scheduled to be retried .#1. in 600 seconds")
        await written(daemon.directory / "begun")
        daemon.signal(signal.SIGTERM)
        await daemon.wait_for_log("Shutting down")
        await until("the report", lambda: daemon.running("sleep", "0.02"))
        self.assertIsNone(daemon.status)
        (daemon.directory / "go").write_text("")
        self.assertEqual(await daemon.wait_for_end(), 0)
        self.assertEqual((daemon.directory / "told").read_text(), "told\n")

    async def test_terminal(self) -> None:
        """Ctrl-C at a terminal is for the daemon alone: jobs are in sessions of their own."""
        daemon = Daemon(self, DRAINED, prefix=["setsid"])
        await daemon.wait_for_output("up", count=2)
        os.killpg(os.getpgid(daemon.pid), signal.SIGINT)
        await daemon.wait_for_log("Shutting down")
        (daemon.directory / "go").write_text("")
        self.assertEqual(await daemon.wait_for_end(), 0)
        self.assertEqual([end.code for end in daemon.ends("succeeds")], [0])
