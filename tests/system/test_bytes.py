"""Output that is not text, seen where the daemon shows it; docs/executors.md, "Output"."""

from __future__ import annotations

import sys

from twisted.trial.unittest import TestCase

from tests.system.harness import COMMANDS, Daemon
from tests.system.proc import written

ODD = r"""
jobs:
  - name: odd
    schedule: "@reboot"
    command: |
      printf 'caf\351 \377\376 \000 \033[2J\033]0;owned\007 a\rb '
      printf '\342\200\256 \360\237\n'
      printf '\033[31mred\033[0m \303'; sleep 0.2; printf '\251t\303\251\n'
      echo '{{ 7*7 }} {% for x in y %}'
    captureStdout: true
    streamPrefix: ""
    onSuccess:
      report:
        shell:
          command: printenv CRONSTABLE_STDOUT > seen; echo >> seen
"""
TERMINAL = ("import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))",)


class OddOutputTests(TestCase):
    """Bytes that break decoders, terminals and templates."""

    async def test_pipe(self) -> None:
        """A pipe gets the bytes as they came; reports get text; the run is a success."""
        daemon = Daemon(self, ODD, prefix=["/bin/sh", "-c", 'exec "$@" > out', "sh"])
        self.assertTrue((await daemon.wait_for_end_of("odd")).well)
        seen = await written(daemon.directory / "seen")
        self.assertIn("caf\ufffd ", seen)
        self.assertIn("été\n", seen)
        self.assertIn("{{ 7*7 }} {% for x in y %}", seen)
        self.assertEqual(await daemon.stop(), 0)
        self.assertEqual(
            (daemon.directory / "out").read_bytes().split(b"\n")[:2],
            [
                b"caf\xe9 \xff\xfe \x00 \x1b[2J\x1b]0;owned\x07 a\rb \xe2\x80\xae \xf0\x9f",
                "\x1b[31mred\x1b[0m été".encode(),
            ],
        )
        self.assertNotIn("Traceback", daemon.log)

    async def test_terminal(self) -> None:
        """A terminal gets colours, and no other escape sequence."""
        program = (sys.executable, "-c", *TERMINAL, sys.executable, *COMMANDS["cronstable"])
        daemon = Daemon(self, ODD, program=program)
        await daemon.wait_for_output("Job odd exit code 0")
        shown = "\n".join(daemon.stdout)
        self.assertIn("\x1b[31mred\x1b[0m été", shown)
        self.assertNotIn("\x1b", shown.replace("\x1b[31m", "").replace("\x1b[0m", ""))
        self.assertNotIn("\x07", shown)
        self.assertNotIn("owned", shown)
        await daemon.kill()
