"""
A store handed from one implementation to the other and back, under real daemons.

It runs the program that C{CRONSTABLE_REFERENCE} names, and is skipped without one.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Literal

from twisted.internet import reactor, task
from twisted.trial.unittest import SkipTest, TestCase

from tests.system.harness import Daemon
from tests.system.proc import until

Who = Literal["ours", "theirs"]

CONFIG = """\
web:
  listen:
    - "http://127.0.0.1:@PORT@"
state:
  path: @WORK@/state
jobs:
  # A run that ended before the other has looked for what is owed would hide it from it.
  - name: all
    schedule: "* * * * * * *"
    command: "sleep 0.4"
    onMissed: run-all
  - name: once
    schedule: "* * * * * * *"
    command: "sleep 0.4"
    onMissed: run-once
  - name: failing
    schedule: "@reboot"
    command: "false"
    onFailure:
      retry:
        maximumRetries: 20
        initialDelay: 4
        maximumDelay: 4
        backoffMultiplier: 1
"""


class HandoverTests(TestCase):
    """Both ways, with everything that one life leaves to the next."""

    timeout = 240

    def setUp(self) -> None:
        self.program = os.environ.get("CRONSTABLE_REFERENCE", "")
        if not self.program:
            raise SkipTest("CRONSTABLE_REFERENCE does not name a program to share a store with")
        self.home = Path(self.mktemp()).resolve()

    def life(self, who: Who) -> Daemon:
        theirs = ("env", "-u", "PYTHONPATH", self.program)
        program = None if who == "ours" else theirs
        return Daemon(self, CONFIG, directory=self.home, program=program)

    async def runs(self, daemon: Daemon, job: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await daemon.get(f"/jobs/{job}/runs")).json()["runs"]
        return found

    def records(self, stream: str) -> list[dict[str, Any]]:
        directory = self.home / "state" / "default" / "records" / stream
        files = sorted(directory.glob("*.json"))
        return [json.loads(each.read_bytes())["data"] for each in files]

    def noted(self, kind: str) -> bool:
        """Tell whether C{kind} is the newest note of the backfill of C{all}."""
        return any(each["kind"] == kind for each in self.records("catchup%2Fall")[-1:])

    def written(self) -> set[str]:
        """Return when each run of C{all} in the store was over."""
        return {each["finished_at"] for each in self.records("runs%2Fall")}

    async def sleep(self, seconds: float) -> None:
        clock: Any = reactor
        await task.deferLater(clock, seconds)

    async def handed(self, first: Who, second: Who, kill: bool) -> None:
        """Live as C{first}, then as C{second}, on what the first has left."""
        before = self.life(first)
        await before.wait_for_log(r"Job all exit code", 20, count=3)
        await until("a saved retry", lambda: self.records("retries%2Ffailing"))
        await until("rows", lambda: len(self.records("runs%2Fall")) >= 3)
        left = {each["finished_at"] for each in (await self.runs(before, "all"))[-2:]}
        await until("what it has told to be written", lambda: left <= self.written())
        await (before.kill() if kill else before.stop(20))
        await self.sleep(3.2)
        pending = self.records("retries%2Ffailing")[-1]
        self.assertEqual(pending["kind"], "pending")
        after = self.life(second)
        await after.wait_for_log(r"catch-up: replaying ([2-9]|\d\d+) missed run\(s\) for all", 20)
        await after.wait_for_log(r"catch-up: replaying \d+ missed run\(s\) for once", 20)
        await after.wait_for_log(rf"Job failing: re-armed pending retry #{pending['attempt']}", 20)
        await after.wait_for_log(r"\(@reboot\) already ran during this OS boot", 20)
        told = await self.runs(after, "all")
        self.assertLessEqual(left, {each["finished_at"] for each in told})
        self.assertNotIn("quarantine", after.log)
        await after.wait_for_log(r"Job failing exit code", 20)
        settled = {"kind": "settled", "reason": "launched", "attempt": pending["attempt"]}
        saved = self.records("retries%2Ffailing")
        found = [each for each in saved if settled.items() <= each.items()]
        self.assertTrue(found or len(saved) >= 8, saved)
        await until("the close", lambda: self.noted("close"))
        await after.stop(20)

    async def test_ours_to_theirs(self) -> None:
        """What our daemon left, stopped or killed, the other goes on with."""
        await self.handed("ours", "theirs", kill=False)
        await self.handed("ours", "theirs", kill=True)

    async def test_theirs_to_ours(self) -> None:
        """What the other left, ours goes on with."""
        await self.handed("theirs", "ours", kill=False)
        await self.handed("theirs", "ours", kill=True)

    async def test_open_checkpoint(self) -> None:
        """A backfill that ours was killed in is finished by the other."""
        before = self.life("ours")
        await before.wait_for_log(r"Job all exit code", 20, count=2)
        await before.kill()
        await self.sleep(6)
        killed = self.life("ours")
        await killed.wait_for_log(r"catch-up: replaying", 20)
        await until("the note", lambda: self.records("catchup%2Fall")[-1:])
        await killed.kill()
        self.assertTrue(self.noted("open"))
        after = self.life("theirs")
        await after.wait_for_log(r"catch-up: replaying \d+ missed run\(s\) for all", 20)
        await until("the close", lambda: self.noted("close"), 40)
        await after.stop(20)

    async def test_listed(self) -> None:
        """The other's commands read, count and back up what ours wrote."""
        daemon = self.life("ours")
        await daemon.wait_for_log(r"Job all exit code", 20, count=3)
        await daemon.stop()
        for words in (["state", "check"], ["state", "gc", "--dry-run"]):
            done = subprocess.run(
                [self.program, *words, "-c", str(daemon.config_path)],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("quarantine/", done.stderr)
