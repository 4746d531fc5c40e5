"""How a run that was killed is told from one that failed; docs/runs.md, "Outcomes"."""

from __future__ import annotations

from twisted.trial.unittest import TestCase

from tests.system.harness import Daemon
from tests.system.proc import together

DEATHS = {
    "killed": ("kill -9 $$", -9),
    "crashed": ("kill -SEGV $$", -11),
    "terminated": ("kill -TERM $$", -15),
    "inner": ("sh -c 'kill -TERM $$'; exit $?", 143),
    "status": ("exit 137", 137),
    "late": ("exec sleep 60", -100),
    "missing": ("/no/such/program", 127),
    "well": ("exit 0", 0),
    "cancelled": ("exec sleep 61", -15),
}
TOKEN = {"Authorization": "Bearer a-token-for-this-test"}
HEAD = """\
web:
  listen: [http://127.0.0.1:@PORT@]
  authTokens:
    - {value: a-token-for-this-test, scopes: [view, control], label: ops}
defaults:
  executionTimeout: 3
jobs:
"""


class DeathTests(TestCase):
    """Each way to end is told apart from the others."""

    async def test_records(self) -> None:
        """
        A signal is its negative number, an exit status stays what it is, a timeout is -100.

        The record says who ended the run: itself, its timeout, or somebody by name.
        """
        jobs = "".join(
            f'  - name: {name}\n    schedule: "@reboot"\n    command: "{command}"\n'
            for name, (command, _) in DEATHS.items()
        )
        daemon = Daemon(self, HEAD + jobs)
        await daemon.wait_for_log("Job cancelled spawned")
        await daemon.wait_for_log("started listening")
        stopped = await daemon.request("POST", "/jobs/cancelled/cancel", headers=TOKEN)
        self.assertEqual(stopped.status, 200)
        await together(*(self.assert_death(daemon, name) for name in DEATHS))
        self.assertEqual(daemon.ends("status")[0].reason, "command exited with code 137")
        self.assertEqual(await daemon.stop(), 0)

    async def assert_death(self, daemon: Daemon, name: str) -> None:
        """Log and record tell the same."""
        code = DEATHS[name][1]
        end = await daemon.wait_for_end_of(name)
        self.assertEqual((end.code, end.well), (code, code == 0), name)
        rows = (await daemon.get(f"/jobs/{name}/runs", TOKEN)).json()["runs"]
        self.assertEqual(len(rows), 1)
        row = rows[0]
        self.assertEqual(row["exit_code"], code)
        by, whom = {"late": ("timeout", None), "cancelled": ("cancel", "ops")}.get(
            name, ("itself", None)
        )
        self.assertEqual((row["ended_by"], row["ended_by_whom"]), (by, whom), name)
        outcome = "cancelled" if name == "cancelled" else "failure" if code else "success"
        self.assertEqual(row["outcome"], outcome, name)
