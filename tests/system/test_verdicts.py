"""How a run that was killed is told from one that failed; docs/runs.md, "Verdicts"."""

from __future__ import annotations

from twisted.trial.unittest import TestCase

from tests.system.harness import Daemon

DEATHS = {
    "killed": ("kill -9 $$", -9),
    "crashed": ("kill -SEGV $$", -11),
    "terminated": ("kill -TERM $$", -15),
    "inner": ("sh -c 'kill -TERM $$'; exit $?", 143),
    "status": ("exit 137", 137),
    "late": ("exec sleep 60", -100),
    "missing": ("/no/such/program", 127),
    "well": ("exit 0", 0),
}


class DeathTests(TestCase):
    """Each way to end is told apart from the others."""

    async def test_codes(self) -> None:
        """A signal is its negative number, an exit status stays what it is, a timeout is -100."""
        jobs = "".join(
            f'  - name: {name}\n    schedule: "@reboot"\n    command: "{command}"\n'
            for name, (command, _) in DEATHS.items()
        )
        daemon = Daemon(self, "defaults:\n  executionTimeout: 1.5\njobs:\n" + jobs)
        for name, (_, code) in DEATHS.items():
            end = await daemon.wait_for_end_of(name)
            self.assertEqual((end.code, end.well), (code, code == 0), name)
        reason = daemon.ends("late")[0].reason
        self.assertIn("executionTimeout", reason)
        self.assertEqual(daemon.ends("status")[0].reason, "command exited with code 137")
        self.assertEqual(await daemon.stop(), 0)
