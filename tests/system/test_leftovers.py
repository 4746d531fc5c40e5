"""Jobs that do not end as they should; docs/executors.md, "How a run ends", has the rules."""

from __future__ import annotations

import os
import signal

from twisted.trial.unittest import TestCase

from tests.system.harness import Daemon
from tests.system.proc import defunct, descriptors, together, until, written

HOLDERS = """\
defaults:
  captureStdout: true
  killTimeout: 1
jobs:
  - name: pipe
    schedule: "@reboot"
    command: (sleep 300.1 &); echo done
    executionTimeout: 2
  - name: grace
    schedule: "@reboot"
    command: (sleep 300.2 &); echo done
    executionTimeout: 60
    outputGraceSeconds: 1
  - name: mute
    schedule: "@reboot"
    command: exec >&- 2>&-; sleep 0.5; exit 5
  - name: bare
    schedule: "@reboot"
    command: setsid -f sleep 300.3; exit 3
    captureStdout: false
    captureStderr: false
  - name: escaped
    schedule: "@reboot"
    command: setsid -f sleep 300.4; exit 3
    executionTimeout: 1
  - name: forgotten
    schedule: "@reboot"
    command: (sleep 300.5 &); exit 4
"""
STUBBORN = """\
defaults:
  killTimeout: 1
jobs:
  - name: worker
    schedule: "* * * * * * *"
    command: sleep 300.6
    concurrencyPolicy: Forbid
    executionTimeout: 1
  - name: deaf
    schedule: "@reboot"
    command: trap '' TERM; while :; do sleep 300.7; done
    executionTimeout: 1
  - name: flood
    schedule: "@reboot"
    command: trap '' TERM; yes | cat
    captureStdout: true
    streamPrefix: ""
    executionTimeout: 1
  - name: frozen
    schedule: "@reboot"
    command: kill -STOP $$
    executionTimeout: 1
  - name: polite
    schedule: "@reboot"
    command: trap 'echo bye; exit 0' TERM; sleep 300.8 & wait
    captureStdout: true
    executionTimeout: 1
"""
KILLED = """\
jobs:
  - name: alone
    schedule: "@reboot"
    command: echo $$ > alone; sleep 300.9; true
    captureStderr: false
  - name: parent
    schedule: "@reboot"
    command: echo $$ > parent; sleep 300.11; true
    outputGraceSeconds: 1
  - name: itself
    schedule: "@reboot"
    command: kill -9 $$
"""


class LeftoverTests(TestCase):
    """Children in the background, deaf ones, and shells that are killed; all at the same time."""

    timeout = 60

    async def test_leftovers(self) -> None:
        """What each of the following says."""
        await together(self.held_output(), self.stubborn(), self.killed())

    async def held_output(self) -> None:
        """
        What still holds a captured stream at the deadline makes a timeout, and the group is killed.

        outputGraceSeconds bounds the wait instead: the verdict is the main process's and what is
        left over is left alone.  A stream that is not captured holds nothing.
        """
        daemon = Daemon(self, HOLDERS)
        bare = await daemon.wait_for_end_of("bare", 5)
        self.assertEqual(bare.code, 3)
        # Streams that end before the process say nothing about its end.
        self.assertEqual((await daemon.wait_for_end_of("mute", 5)).code, 5)
        grace = await daemon.wait_for_end_of("grace")
        self.assertEqual((grace.code, grace.reason), (0, "None"))
        self.assertIn("[grace stdout] done", daemon.stdout)
        pipe = await daemon.wait_for_end_of("pipe")
        self.assertEqual((pipe.code, pipe.well), (-100, False))
        self.assertEqual(len(daemon.running("sleep", "300.1")), 0)
        self.assertEqual(len(daemon.running("sleep", "300.2")), 1)
        self.assertEqual(len(daemon.running("sleep", "300.3")), 1)
        # It left its session, so only the end of the stream tells that it is gone.
        self.assertEqual(daemon.ends("escaped"), [])
        for pid in daemon.running("sleep", "300.4"):
            os.kill(pid, signal.SIGKILL)
        self.assertEqual((await daemon.wait_for_end_of("escaped")).code, -100)
        forgotten = daemon.running("sleep", "300.5")
        await daemon.wait_for_log(
            rf"^WARNING:.*Job forgotten: .*held open by pid {forgotten[0]} \(sleep\)"
        )
        self.assertEqual(daemon.ends("forgotten"), [])
        os.kill(forgotten[0], signal.SIGKILL)
        self.assertEqual((await daemon.wait_for_end_of("forgotten")).code, 4)
        await daemon.kill()

    async def stubborn(self) -> None:
        """
        A whole group is ended at its deadline, whatever it does with SIGTERM, and the next runs.

        Nothing is left of it: no process, no zombie, no descriptor.
        """
        daemon = Daemon(self, STUBBORN, prefix=["/bin/sh", "-c", 'exec "$@" >/dev/null', "sh"])
        for job in ("worker", "deaf", "flood", "frozen", "polite"):
            end = await daemon.wait_for_end_of(job)
            self.assertEqual((end.code, end.well), (-100, False), job)
        killed = "WARNING:cronstable:Job {} did not gracefully terminate after 1 seconds, killing"
        self.assertIn(killed.format("deaf"), daemon.log)
        self.assertIn(killed.format("flood"), daemon.log)
        self.assertIn(killed.format("frozen"), daemon.log)
        self.assertNotIn(killed.format("polite"), daemon.log)
        self.assertNotIn(killed.format("worker"), daemon.log)
        for argument in ("300.7", "300.8"):
            self.assertEqual(daemon.running("sleep", argument), [])
        await daemon.wait_for_end_of("worker", count=3)
        self.assertLessEqual(len(daemon.running("sleep", "300.6")), 1)
        self.assertEqual(defunct(daemon.pid), [])
        await daemon.kill()

    async def killed(self) -> None:
        """
        A killed shell is recorded as killed by its signal, also when its child lives on.

        The descriptors that the daemon had for it are given back.
        """
        daemon = Daemon(self, KILLED)
        self.assertEqual((await daemon.wait_for_end_of("itself")).code, -9)
        names = ("alone", "parent")
        shells = {name: int(await written(daemon.directory / name)) for name in names}
        for argument in ("300.9", "300.11"):
            await until("the sleeper", lambda number=argument: daemon.running("sleep", number))
        before = len(descriptors(daemon.pid))
        for name, pid in shells.items():
            os.kill(pid, signal.SIGKILL)
            end = await daemon.wait_for_end_of(name)
            self.assertEqual((end.code, end.reason), (-9, "command exited with code -9"))
        self.assertEqual(defunct(daemon.pid), [])
        # One pidfd each, and the parent's stream.
        self.assertEqual(len(descriptors(daemon.pid)), before - 3)
        for argument in ("300.9", "300.11"):
            self.assertEqual(len(daemon.running("sleep", argument)), 1)
        await daemon.kill()
