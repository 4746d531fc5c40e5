"""
Two implementations of each side: each client with the other's service.

It runs the program that C{CRONSTABLE_REFERENCE} names, and is skipped without one.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path
from unittest import SkipTest

from twisted.internet.threads import deferToThread

from tests.jobapi.test_commands import LIMITS, WIRE, Replaying

CONFIG = """
state:
  path: {directory}/state
  jobApi:
    maxValueBytes: 4096
    maxArtifactBytes: 10000
web:
  listen:
    - http://127.0.0.1:{port}
jobs:
  - name: wire
    command: "env > {directory}/env.new; mv {directory}/env.new {directory}/env; exec sleep 300"
    schedule: "0 3 1 1 *"
    stateAllowedScopes:
      - allowed-scope
    secrets:
      - name: API_TOKEN
        value: sekret
      - name: B_TOKEN
        value: other
"""


def reference() -> str:
    """Return the program to compare with, or skip the test."""
    program = os.environ.get("CRONSTABLE_REFERENCE", "")
    if not program:
        raise SkipTest("CRONSTABLE_REFERENCE does not name a program to compare with")
    return program


class TheirCommandsTests(Replaying):
    """Commands of the other implementation in a job of ours."""

    async def test_all(self) -> None:
        """They say and do what they do in a job of their own."""
        self.program = (reference(),)
        await self.serve(WIRE, **LIMITS)
        await self.replay_all()


class TheirServiceTests(Replaying):
    """Our commands in a job of the other implementation."""

    async def test_all(self) -> None:
        """They say and do what those of its own do."""
        program = reference()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        config = self.directory / "config.yaml"
        config.write_text(CONFIG.format(directory=self.directory, port=port), encoding="utf-8")
        with open(self.directory / "log", "wb") as log:
            daemon = subprocess.Popen([program, "-c", str(config)], stdout=log, stderr=log)
        self.addCleanup(self.end, daemon)
        self.environment = await deferToThread(self.begin, port)
        await self.replay_all()

    def begin(self, port: int) -> dict[str, str]:
        """Start the job once the daemon answers, and return what it was given."""
        start = urllib.request.Request(f"http://127.0.0.1:{port}/jobs/wire/start", method="POST")
        wait = ["sh", "-c", "for _ in $(seq 200); do [ -e $0 ] && exit; sleep 0.05; done; exit 1"]
        for _ in range(200):
            try:
                urllib.request.urlopen(start, timeout=10).close()
                break
            except OSError:
                subprocess.run(["sleep", "0.05"], check=True)
        given = Path(self.directory / "env")
        subprocess.run([*wait, str(given)], check=True, timeout=60)
        lines = given.read_text("utf-8").splitlines()
        pairs = (line.partition("=") for line in lines if line.startswith("CRONSTABLE_"))
        return {name: value for name, _, value in pairs}

    def end(self, daemon: subprocess.Popen[bytes]) -> None:
        """End the daemon with its job."""
        daemon.send_signal(signal.SIGTERM)
        subprocess.run(["pkill", "-KILL", "-P", str(daemon.pid)], check=False)
        try:
            daemon.wait(20)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
