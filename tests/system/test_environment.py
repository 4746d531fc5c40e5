"""Environments that do not fit; docs/executors.md, "When a process cannot be started"."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import TestCase

from tests.system.harness import Daemon
from tests.system.proc import descriptors

LONGEST = 131_069
"""What a value of the variable K can hold on Linux with pages of 4 KiB."""

HEAD = """\
jobs:
  - name: tick
    schedule: "* * * * * * *"
    command: "true"
    captureStderr: false
"""
JOB = """\
  - name: {name}
    schedule: "@reboot"
    command: test ${{#K}} -gt 0
    captureStderr: false
    environment:
"""
RETRY = """\
    onFailure:
      retry:
        maximumRetries: 1
        initialDelay: 0.1
        maximumDelay: 1
        backoffMultiplier: 2
"""
VARIABLE = "      - key: {key}\n        value: {value}\n"


def job(name: str, variables: dict[str, str], more: str = "") -> str:
    """Return a job with these variables."""
    lines = (VARIABLE.format(key=key, value=value) for key, value in variables.items())
    return JOB.format(name=name) + "".join(lines) + more


class LargeEnvironmentTests(TestCase):
    """What no process can be given."""

    async def test_too_large(self) -> None:
        """
        The run could not start and says which variables are the largest, without their values.

        It is not tried again unless its job says so, costs no descriptor, and harms no other job.
        """
        directory = Path(self.mktemp())
        directory.mkdir()
        (directory / "large.env").write_text(
            "K=1\n" + "".join(f"FROM_FILE_{n}={'f' * 100_000}\n" for n in range(50))
        )
        many = {"K": "1", **{f"V{n}": "v" * (100_000 + n) for n in range(60)}}
        config = (
            HEAD
            + job("fits", {"K": "x" * LONGEST})
            + job("one", {"K": "x" * (LONGEST + 1)})
            + job("many", many)
            + JOB.format(name="file").replace("    environment:\n", "    env_file: large.env\n")
            + job(
                "again",
                {"K": "x" * (LONGEST + 1)},
                RETRY,
            )
        )
        daemon = Daemon(self, config, directory=directory)
        self.assertTrue((await daemon.wait_for_end_of("fits")).well)
        await daemon.wait_for_end_of("again", count=2)
        for name, variable in (
            ("one", "K"),
            ("many", "V59"),
            ("file", "FROM_FILE_"),
            ("again", "K"),
        ):
            end = await daemon.wait_for_end_of(name)
            self.assertEqual((end.code, end.well), (127, False))
            line = await daemon.wait_for_log(rf"^ERROR:cronstable:Job {name} could not start: (.*)")
            self.assertIn("environment", line.group(1))
            self.assertIn(variable, line.group(1))
            self.assertLess(len(line.group(1)), 400)
        await daemon.wait_for_end_of("tick", count=2)
        self.assertEqual([len(daemon.ends(name)) for name in ("one", "many", "file")], [1, 1, 1])
        await daemon.wait_for_end_of("tick", count=len(daemon.ends("tick")) + 1)
        self.assertEqual([name for name in descriptors(daemon.pid) if "[pidfd]" in name], [])
        for value in ("xxx", "vvv", "fff"):
            self.assertNotIn(value, daemon.log)
        self.assertEqual(await daemon.stop(), 0)
