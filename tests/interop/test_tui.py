"""
The terminal client of an older release against this daemon: what its users see and can do.

It runs the program that C{CRONSTABLE_REFERENCE} names, and is skipped without one.
"""

from __future__ import annotations

import os

from twisted.trial.unittest import SkipTest, TestCase

from tests.interop.terminal import Terminal
from tests.system.harness import Daemon

TOKEN = "terminal-token"
CONFIG = f"""\
web:
  listen: ["http://127.0.0.1:@PORT@"]
  authTokens:
    - {{value: {TOKEN}, scopes: [control], label: terminal}}
    - {{value: watcher-token, scopes: [view], label: watcher}}
jobs:
  - name: alpha
    schedule: "0 0 1 7 *"
    command: trap 'exit 0' TERM; n=0; while n=$((n+1)); do echo "tick $n"; sleep 0.2; done
    captureStdout: true
    monitorResources: {{interval: 0.5}}
  - name: bravo
    schedule: "*/7 * * * *"
    command: echo fine
    captureStdout: true
  - name: charlie
    schedule: "@reboot"
    command: exit 3
  - name: delta/slash
    schedule: "0 5 * * *"
    command: "true"
    enabled: false
"""


class TerminalClientTests(TestCase):
    """The client's screens."""

    timeout = 120

    async def client(self, token: str = TOKEN) -> tuple[Daemon, Terminal]:
        """Start a daemon, and the client in a terminal."""
        program = os.environ.get("CRONSTABLE_REFERENCE", "")
        if not program:
            raise SkipTest("CRONSTABLE_REFERENCE does not name a program to run")
        daemon = Daemon(self, CONFIG)
        await daemon.wait_for_log("started listening on")
        await daemon.wait_for_end_of("charlie")
        terminal = Terminal(
            self,
            [
                *(program, "tui", "--url", f"http://127.0.0.1:{daemon.port}"),
                *("--no-boot", "--ascii", "--poll", "1", "--token-env", "THE_TOKEN"),
            ],
            {"THE_TOKEN": token, "TERM": "screen-256color", "TZ": "UTC"},
        )
        await terminal.wait_for("live [0-9:]{8} UTC", 30)
        await terminal.wait_for("alpha")
        return daemon, terminal

    async def test_table(self) -> None:
        """All jobs are listed with status, schedule, next fire, last run and command."""
        daemon, terminal = await self.client()
        await terminal.wait_for(r"Pending +alpha +0 0 1 7 \* .* in \d+d")
        await terminal.wait_for(r"Pending +bravo +\*/7 \* \* \* \* .* in \d+[ms].*echo fine")
        await terminal.wait_for(r"Failed +charlie +@reboot .* ago .*exit 3")
        await terminal.wait_for(r"Disabled +delta/slash")
        await terminal.wait_for(r"JOB FAILING .*charlie.*exit 3")
        answer = await daemon.get("/job-set-id", {"Authorization": f"Bearer {TOKEN}"})
        fingerprint = answer.body.decode()[:10]
        await terminal.wait_for(f"v2\\.[0-9].*{fingerprint}")
        await terminal.wait_for(r"4 jobs")

    async def test_run_watch_and_cancel(self) -> None:
        """A job is started, its output followed as it comes, and it is cancelled."""
        daemon, terminal = await self.client()
        await terminal.keys("r")
        await terminal.wait_for(r"Running +alpha")
        await daemon.wait_for_log("Job alpha spawned")
        await terminal.keys("Enter")
        await terminal.wait_for(r"alpha +Running")
        await terminal.wait_for(r"logs +history +resources +schedule")
        await terminal.wait_for(r"tick 10$")
        await terminal.wait_for(r"tick 15$")
        await terminal.keys("x")
        await terminal.wait_for(r"alpha +Cancelled")
        await terminal.wait_for(r"end of run output")
        # It asks for the history when the drawer opens.
        await self.close(terminal)
        await terminal.keys("Enter")
        await terminal.wait_for(r"logs +history +resources")
        await terminal.keys("Tab")
        await terminal.wait_for(r"1 runs +0 ok · 0 fail · 1 cancelled")
        await terminal.wait_for(r"cpu avg \d.* peak rss \d")
        await terminal.keys("Tab")
        await terminal.wait_for(r"started +cpu +peak rss *\n.* \d+\.\ds +\d.*iB")
        await terminal.keys("Tab")
        await terminal.wait_for(r"At 00:00, on the 1st of the month, in July")
        answer = await daemon.get("/jobs/alpha/runs", {"Authorization": f"Bearer {TOKEN}"})
        (run,) = answer.json()["runs"]
        self.assertEqual((run["outcome"], run["ended_by_whom"]), ("cancelled", "terminal"))

    async def test_pause_and_resume(self) -> None:
        """A job is paused and resumed with the same key."""
        daemon, terminal = await self.client()
        await terminal.keys("j")
        await terminal.keys("p")
        await terminal.wait_for(r"Paused +bravo")
        await terminal.wait_for(r"Pending +alpha")
        answer = await daemon.get("/jobs/bravo", {"Authorization": f"Bearer {TOKEN}"})
        self.assertIsNotNone(answer.json()["paused"])
        await terminal.keys("p")
        await terminal.wait_for(r"Pending +bravo")
        answer = await daemon.get("/jobs/bravo", {"Authorization": f"Bearer {TOKEN}"})
        self.assertIsNone(answer.json()["paused"])

    async def test_refusals(self) -> None:
        """What is refused is said, and the screen goes on: no permission, a disabled job."""
        daemon, terminal = await self.client("watcher-token")
        await terminal.keys("r")
        await terminal.wait_for(
            r"start alpha: token 'watcher' does not grant the 'control' permission"
        )
        await terminal.wait_for(r"Pending +alpha")
        await daemon.stop()
        await terminal.wait_for(r"live [0-9:]{8} UTC", gone=True)

    async def close(self, terminal: Terminal) -> None:
        """Close the panel that is open."""
        await terminal.keys("Escape")
        await terminal.wait_for("esc close", gone=True)

    async def test_panels(self) -> None:
        """Its panels show something: activity, node, incidents, wallboard."""
        _, terminal = await self.client()
        for typed, shown in (
            ("heatmap", r"charlie +.*\n(.*\n)*.*r refresh"),
            ("schedule load", r"schedule load"),
            ("node", r"mem_total_bytes +\d"),
        ):
            await terminal.keys("C-k")
            await terminal.wait_for("command palette")
            await terminal.keys("-l", typed)
            await terminal.wait_for(f"\u2315 {typed}")
            await terminal.keys("Enter")
            await terminal.wait_for("command palette", gone=True)
            await terminal.wait_for(shown)
            await self.close(terminal)
        await terminal.keys("i")
        await terminal.wait_for(r"incident timeline")
        await terminal.wait_for(r"charlie +exit 3 .*command exited with code 3")
        await self.close(terminal)
        await terminal.keys("w")
        await terminal.wait_for(r"esc/w exit")
        await terminal.wait_for(r"charlie")
