"""Jobs that print more than anybody wants; docs/executors.md, "Output"."""

from __future__ import annotations

from twisted.internet import task
from twisted.trial.unittest import TestCase

from tests.system.harness import Daemon
from tests.system.proc import defunct, megabytes, written

FLOODS = """\
defaults:
  captureStdout: true
jobs:
  - name: flood
    schedule: "@reboot"
    command: yes | head -c 600000000
  - name: longline
    schedule: "@reboot"
    command: head -c 100000000 /dev/zero | tr '\\0' x
  - name: spin
    schedule: "@reboot"
    command: while :; do echo e >&2; echo o; done
    executionTimeout: 5
    killTimeout: 1
  - name: fragment
    schedule: "@reboot"
    command: printf 'first\\nno newline at end'
    onSuccess:
      report:
        shell:
          command: printf '%s\\n' "$CRONSTABLE_STDOUT" > fragment
  - name: counted
    schedule: "@reboot"
    command: seq 1 500000
    saveLimit: 200
    onSuccess:
      report:
        shell:
          command: printf '%s\\n' "$CRONSTABLE_STDOUT" > counted
  - name: clock
    schedule: "* * * * * * *"
    command: exec date +%s.%N >> clock
    captureStdout: false
    captureStderr: false
"""


class FloodTests(TestCase):
    """Half a gigabyte, a line of a hundred megabytes, and two streams at once."""

    timeout = 60

    async def test_floods(self) -> None:
        """
        Memory stays flat and other jobs start on time; what is dropped is counted.

        The jobs themselves end as they would without a reader, the fastest ones slowed down.
        """
        daemon = Daemon(
            self,
            FLOODS,
            prefix=["/bin/sh", "-c", 'exec "$@" >/dev/null', "sh"],
            drop=b"[spin stderr]",
        )
        await daemon.wait_for_log("Job set id")
        before = megabytes(daemon.pid)
        peak = [before]
        looking = task.LoopingCall(lambda: peak.append(megabytes(daemon.pid)))
        looked = looking.start(0.05)
        spin = await daemon.wait_for_end_of("spin", 30)
        flood = await daemon.wait_for_end_of("flood", 30)
        longline = await daemon.wait_for_end_of("longline", 30)
        looking.stop()
        await looked
        self.assertEqual((spin.code, flood.code, longline.code), (-100, 0, 0))
        self.assertIn("job longline: ignored a very long line", daemon.log)
        self.assertLess(max(peak) - before, 60)
        self.assertEqual(defunct(daemon.pid), [])
        await self.assert_kept(daemon)
        await self.assert_on_time(daemon)
        self.assertEqual(await daemon.stop(), 0)

    async def assert_kept(self, daemon: Daemon) -> None:
        """The first and the last lines are there, and how many were between."""
        fragment = await written(daemon.directory / "fragment")
        self.assertEqual(fragment.split("\n"), ["first", "no newline at end", ""])
        lines = (await written(daemon.directory / "counted")).rstrip("\n").split("\n")
        self.assertEqual(lines[:100], [str(number) for number in range(1, 101)])
        self.assertEqual(lines[-100:], [str(number) for number in range(499_901, 500_001)])
        self.assertEqual(len(lines), 201)
        self.assertIn("499800", lines[100])

    async def assert_on_time(self, daemon: Daemon) -> None:
        """The job of each second started in each of them, soon after it began."""
        stamps = [float(line) for line in (await written(daemon.directory / "clock")).split()]
        late = sorted(stamp % 1 for stamp in stamps)
        seconds = [int(stamp) for stamp in stamps]
        self.assertEqual(seconds, list(range(seconds[0], seconds[0] + len(seconds))))
        self.assertGreaterEqual(len(seconds), 4)
        self.assertLess(late[len(late) // 2], 0.1, late)
        self.assertLess(late[-1], 0.5, late)
