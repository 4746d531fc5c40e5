"""Everybody at the top of the hour; docs/executors.md, "When there is no room"."""

from __future__ import annotations

import time

from twisted.trial.unittest import TestCase

from tests.system.harness import Daemon
from tests.system.proc import defunct, descriptors, together, until

LEAD = 10.0
"""Seconds from now to the burst, enough for a start."""

TICK = """\
  - name: tick
    schedule: "* * * * * * *"
    command: "true"
    captureStderr: false
"""
JOB = """\
  - name: j{number}
    schedule: "{when}"
    command: {command}
"""
LIMITED = ("/bin/sh", "-c", 'ulimit -n {limit}; exec "$@"', "sh")


def limited(limit: str) -> list[str]:
    """Return the words that run a command with this many descriptors at most."""
    return [word.format(limit=limit) for word in LIMITED]


class Burst:
    """Jobs that are all due in the same second, and what became of them."""

    def __init__(self, test: TestCase, limit: str, many: int, command: str) -> None:
        self.at = int(time.time() + LEAD)
        moment = time.gmtime(self.at)
        when = f"{moment.tm_sec} {moment.tm_min} {moment.tm_hour} * * * *"
        jobs = (JOB.format(number=n, when=when, command=command) for n in range(many))
        self.many = many
        self.daemon = Daemon(test, "jobs:\n" + TICK + "".join(jobs), prefix=limited(limit))

    @property
    def ended(self) -> int:
        """How many have succeeded."""
        return self.daemon.log.count("exit code 0;") - self.ticks

    @property
    def ticks(self) -> int:
        """How often the job beside them has succeeded."""
        return self.daemon.log.count("Job tick exit code 0;")

    async def over(self) -> float:
        """Return the seconds from the slot to the end of the last one."""
        await self.daemon.wait_for_log("Job set id")
        assert time.time() < self.at, "the daemon was not up in time for the burst"
        await until(f"{self.many} runs", lambda: self.ended >= self.many, 60)
        return time.time() - self.at


class BurstTests(TestCase):
    """More jobs in one second than can be started in it."""

    timeout = 120

    async def test_bursts(self) -> None:
        """Both of the following, at the same time to save some."""
        await together(self.few_descriptors(), self.many_descriptors())

    async def few_descriptors(self) -> None:
        """Jobs for which there is no descriptor wait, with one warning; none of them fails."""
        burst = Burst(self, "256", 500, "exec sleep 1.5")
        await burst.over()
        self.assertEqual(burst.daemon.log.count("cannot be started yet"), 1)
        await self.assert_all_ran(burst)

    async def many_descriptors(self) -> None:
        """What a start costs does not depend on how many descriptors could be open."""
        burst = Burst(self, "1000000 || ulimit -n $(ulimit -H -n)", 1500, '["/bin/true"]')
        self.assertLess(await burst.over(), 40)
        self.assertEqual(burst.daemon.log.count("cannot be started yet"), 0)
        await self.assert_all_ran(burst)

    async def assert_all_ran(self, burst: Burst) -> None:
        """Each job has started and ended once, the job beside them goes on, nothing is open."""
        daemon = burst.daemon
        await daemon.wait_for_end_of("tick", 30, count=burst.ticks + 2)
        self.assertEqual(burst.ended, burst.many)
        self.assertEqual(daemon.log.count("Starting job j"), burst.many)
        self.assertEqual([line for line in daemon.stderr if "ERROR" in line], [])
        self.assertEqual(daemon.log.count("Traceback"), 0)
        self.assertEqual(defunct(daemon.pid), [])
        self.assertLess(len(descriptors(daemon.pid)), 40)
        self.assertEqual(await daemon.stop(), 0)
