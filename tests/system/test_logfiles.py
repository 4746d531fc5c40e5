"""The log file of a real daemon, rotated under it."""

from __future__ import annotations

import signal

from twisted.trial.unittest import TestCase

from tests.system.harness import Daemon
from tests.system.proc import until

CONFIG = """\
logging:
  version: 1
  disable_existing_loggers: false
  formatters:
    line:
      format: "%(levelname)s:%(name)s:%(message)s"
  handlers:
    file:
      class: logging.FileHandler
      formatter: line
      filename: @WORK@/daemon.log
  root:
    level: INFO
    handlers: [file]
jobs:
  - name: tick
    schedule: "* * * * * * *"
    command: ["/bin/echo", "tick"]
  - name: long
    schedule: "@reboot"
    command: ["/bin/sh", "-c", "sleep 2.5; echo survived"]
    captureStdout: true
"""


class RotationTests(TestCase):
    timeout = 60

    async def test_moved(self) -> None:
        """Renamed and told, it goes on in a new file; no line is lost and no job dropped."""
        daemon = Daemon(self, CONFIG)
        path = daemon.directory / "daemon.log"
        await until("the log", lambda: path.exists() and "Starting job tick" in path.read_text())
        old = path.rename(path.with_suffix(".1"))
        daemon.signal(signal.SIGHUP)
        await until(
            "the new log", lambda: path.exists() and "Starting job tick" in path.read_text()
        )
        await until("the long job's end", lambda: "Job long exit code 0" in path.read_text())
        await daemon.stop()
        both = old.read_text() + path.read_text()
        starts, ends = both.count("Starting job tick"), both.count("Job tick exit code 0")
        self.assertEqual(starts, ends)
        self.assertGreaterEqual(starts, 2)
        self.assertIn("Reload requested (SIGHUP)", path.read_text())

    async def test_unwritable(self) -> None:
        """While its file cannot be opened, the log is on stderr."""
        daemon = Daemon(self, CONFIG)
        path = daemon.directory / "daemon.log"
        await until("the log", lambda: path.exists() and "Starting job tick" in path.read_text())
        path.unlink()
        path.mkdir()
        daemon.signal(signal.SIGHUP)
        await daemon.wait_for_log(r"cannot open the log file .*daemon\.log.*go to stderr")
        await daemon.wait_for_log(r"INFO:cronstable:Starting job tick")
        path.rmdir()
        daemon.signal(signal.SIGHUP)
        await until("the log again", lambda: path.exists() and "job tick" in path.read_text())
        await daemon.stop()
