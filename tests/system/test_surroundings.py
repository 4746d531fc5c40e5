"""Daemons that are started in odd ways, or whose readers leave."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from twisted.trial.unittest import TestCase

from tests.system.harness import Daemon, Kind
from tests.system.proc import together, until

CONFIG = """\
jobs:
  - name: captured
    schedule: "* * * * * * *"
    command: echo out; echo err >&2; echo x >> @WORK@/captured; exit 7
    captureStdout: true
  - name: plain
    schedule: "@reboot"
    captureStderr: false
    command: |
      echo plain; echo plain >&2
      for n in 0 1 2; do readlink /proc/$$/fd/$n; done > @WORK@/plain
      exec grep -E '^Sig(Blk|Ign)' /proc/self/status >> @WORK@/plain
"""
FLOOD = """\
jobs:
  - name: flood
    schedule: "@reboot"
    command: exec yes
    captureStdout: true
"""
BLOCKING = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])
"""
NO_SIGNALS = ["SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"]


def shell(script: str) -> Sequence[str]:
    """Return the words that run a command in this way."""
    return ["/bin/sh", "-c", script, "sh"]


class SurroundingsTests(TestCase):
    """Jobs run, and end as they do, whatever the daemon was given."""

    async def test_surroundings(self) -> None:
        """What each of the following says."""
        await together(
            self.signals(),
            self.nothing_open("cronstable"),
            self.nothing_open("twistd"),
            self.no_room(),
            self.left("1"),
            self.left("2"),
            self.stuck(),
        )

    async def signals(self) -> None:
        """Blocked and ignored signals are neither the daemon's nor its jobs' problem."""
        daemon = Daemon(self, CONFIG, prefix=[sys.executable, "-c", BLOCKING])
        await daemon.wait_for_end_of("captured", count=3)
        self.assertEqual({end.code for end in daemon.ends("captured")}, {7})
        await daemon.wait_for_end_of("plain")
        self.assertEqual((daemon.directory / "plain").read_text().splitlines()[-2:], NO_SIGNALS)
        self.assertEqual(await daemon.stop(), 0)

    async def nothing_open(self, kind: Kind) -> None:
        """Without standard streams jobs get the null device for theirs."""
        daemon = Daemon(self, CONFIG, kind=kind, prefix=shell('exec "$@" 0<&- 1>&- 2>&-'))
        await self.runs(daemon, 3)
        path = daemon.directory / "plain"
        lines = await until(
            "the signals", lambda: "SigIgn" in path.read_text() and path.read_text()
        )
        # The second is the file to which readlink's own output goes.
        self.assertEqual(lines.split()[:3:2], ["/dev/null", "/dev/null"])
        self.assertEqual(await daemon.stop(), 0)

    async def no_room(self) -> None:
        """A full disk under standard output loses what goes there, and no more."""
        daemon = Daemon(self, CONFIG, prefix=shell('exec "$@" >/dev/full'))
        await daemon.wait_for_end_of("captured", count=3)
        self.assertEqual(daemon.log.count("No space left on device"), 1)
        self.assertEqual(await daemon.stop(), 0)

    async def left(self, stream: str) -> None:
        """A reader of the output that goes away stops no job."""
        mkfifo = f'mkfifo pipe; head -n 1 pipe >/dev/null & exec "$@" {stream}>pipe'
        daemon = Daemon(self, CONFIG, prefix=shell(mkfifo))
        await self.runs(daemon, 4)
        self.assertEqual(await daemon.stop(), 0)

    async def stuck(self) -> None:
        """A reader that takes no output holds up who prints, but neither the log nor others."""
        mkfifo = 'mkfifo pipe; sleep 600 <pipe & exec "$@" >pipe'
        daemon = Daemon(self, FLOOD + CONFIG.replace("jobs:\n", ""), prefix=shell(mkfifo))
        await daemon.wait_for_log("Job flood spawned")
        await daemon.wait_for_log("Job captured spawned", count=3)
        await self.runs(daemon, 3)
        await daemon.kill()

    async def runs(self, daemon: Daemon, count: int) -> None:
        """Wait for runs by what they leave."""
        path = daemon.directory / "captured"
        await until("runs", lambda: path.exists() and path.read_text().count("x") >= count)
