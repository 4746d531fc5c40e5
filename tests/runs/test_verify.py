"""The check after a run."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import Verify
from tests.fakes import FakeLaunch, job
from tests.runs.test_scheduler import NOON
from tests.runs.world import World


class VerifyTests(SynchronousTestCase):
    def world(self, command: int, check: int | None, **fields: object) -> World:
        """Run a job whose command and check exit with these statuses."""
        world = World(NOON, job("a", "0 13 * * *", verify=Verify("test -e done", 5.0), **fields))

        def behave(launch: FakeLaunch) -> None:
            if launch.job:
                launch.exit(command)
            elif check is not None:
                launch.observer.output("stderr", b"checked\n")
                launch.exit(check)

        world.executor.behave = behave
        world.runs.start_now("a")
        return world

    def test_passes(self) -> None:
        """A check that passes leaves a success, with its output in the record."""
        (row,) = self.world(0, 0).records("a")
        assert row.verification is not None
        self.assertEqual((row.outcome, row.verification.outcome), ("success", "success"))
        self.assertEqual(row.verification.stderr, "checked\n")

    def test_fails(self) -> None:
        """A check that fails fails the run, whose own exit code stays."""
        (row,) = self.world(0, 4).records("a")
        self.assertEqual((row.outcome, row.exit_code), ("failure", 0))
        self.assertEqual(row.fail_reason, "verification failed: exited with code 4")

    def test_not_after_a_failure(self) -> None:
        """A command that failed is not checked."""
        world = self.world(1, 0)
        self.assertEqual(len(world.executor.launches), 1)
        (row,) = world.records("a")
        self.assertIs(row.verification, None)

    def test_launched_as_the_command(self) -> None:
        """The check runs as the command did, with both streams kept and its own timeout."""
        world = self.world(0, None, execution_timeout=99.0, working_directory="/srv")
        check = world.executor.launches[1].spec
        self.assertEqual(check.argv, ("/bin/sh", "-c", "test -e done"))
        self.assertEqual(
            (check.cwd, check.execution_timeout, check.capture_stdout, check.capture_stderr),
            ("/srv", 5.0, True, True),
        )
        self.assertEqual(world.runs.live("a")[0].state, "verifying")

    def test_cancel_goes_to_the_check(self) -> None:
        """A cancel during the check ends the check; the run is recorded as cancelled."""
        world = self.world(0, None)
        world.runs.cancel("a", "somebody")
        self.assertEqual(world.executor.live, [])
        (row,) = world.records("a")
        self.assertEqual((row.outcome, row.exit_code), ("cancelled", 0))
