"""Ten thousand runs and dozens of reloads of one daemon: nothing piles up."""

from __future__ import annotations

import os
import re
import signal
import socket
from itertools import pairwise

import attrs
from twisted.internet import reactor, task
from twisted.internet.defer import gatherResults
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from tests.system.harness import Daemon, free_port
from tests.system.proc import defunct, descriptors, megabytes, until

RUNS = 10_000
JOBS = 400
RENAMED = 10
MAIL = """\
  - name: bad{number}
    schedule: "* * * * * * *"
    command: ["/bin/false"]
    onFailure:
      report:
        mail:
          from: cron@example.org
          to: ops@example.org
          smtpHost: 127.0.0.1
          smtpPort: {port}
"""
JOB = """\
  - name: {name}
    schedule: "* * * * * * *"
    command: {command}
    captureStdout: true
    streamPrefix: ""
    # A host that cannot keep up skips slots instead of letting them queue up.
    concurrencyPolicy: Forbid
"""
QUIET = '["/bin/true"]'
PRINTING = '["/usr/bin/printf", "%04096d\\n", "0"]'


def configuration(generation: int, port: int) -> str:
    """Return jobs of which some have a name that only this generation has."""
    jobs = [MAIL.format(number=number, port=port) for number in range(5)]
    for number in range(JOBS):
        name = f"r{number}-{generation}" if number < RENAMED else f"j{number}"
        jobs.append(JOB.format(name=name, command=PRINTING if number % 2 else QUIET))
    return WEB + "".join(jobs)


WEB = """\
web:
  listen: [http://127.0.0.1:@PORT@]
jobs:
"""


@attrs.frozen
class Sample:
    """What a daemon holds at one moment, apart from what belongs to its live runs."""

    memory: float
    descriptors: int
    threads: int


FLAT = 5.0
"""Megabytes by which the memory may grow over 4,000 runs, once."""


def least_growth(samples: list[Sample]) -> float:
    """Return by how many megabytes the memory grew from one sample to the next, at least."""
    return min(after.memory - before.memory for before, after in pairwise(samples))


class Counter:
    """Counts ended runs, looking at each line of the log once."""

    def __init__(self, daemon: Daemon) -> None:
        self._lines = daemon.stderr
        self._seen = self._ends = 0

    @property
    def ends(self) -> int:
        """How many runs are over."""
        new = self._lines[self._seen :]
        self._seen += len(new)
        self._ends += sum(" exit code " in line for line in new)
        return self._ends


class EnduranceTests(TestCase):
    """As many runs as weeks have for an ordinary daemon."""

    timeout = 400

    async def test_flat(self) -> None:
        """
        After 10,000 runs with output, failing mails and reloads that rename jobs all is flat.

        Memory grows by what is kept of runs, which is bounded; no descriptor, no thread, and no
        defunct process is left of any of them.
        """
        port = free_port()
        quiet = ["/bin/sh", "-c", 'exec "$@" >/dev/null', "sh"]
        daemon = Daemon(self, configuration(0, port), prefix=quiet)
        await daemon.wait_for_log("started listening", 30)
        counted = Counter(daemon)
        generation = 0
        samples: list[Sample] = []
        # A host that is slow comes later to where the memory of it all is warm.
        for share in (0.2, 0.6, 1.0, 1.4, 1.8):
            if share > 1 and least_growth(samples) < FLAT:
                break
            while counted.ends < RUNS * share:
                generation += 1
                daemon.write(configuration(generation, port))
                daemon.signal(signal.SIGHUP)
                wanted = counted.ends + JOBS
                await self.visit(daemon)
                await until("more runs", lambda wanted=wanted: counted.ends >= wanted, 60)
            samples.append(await self.sample(daemon))
        before, after = samples[0], samples[-1]
        self.assertLess(least_growth(samples), FLAT, samples)
        self.assertLess(after.memory - before.memory, 40, samples)
        self.assertLessEqual(after.descriptors, before.descriptors + 2)
        self.assertLessEqual(after.threads, before.threads + 4)
        self.assertGreater(generation, 10)
        self.assertEqual(daemon.log.count("INFO:cronstable:Job set id"), generation + 1)
        metrics = (await daemon.get("/metrics")).body.decode()
        shown = set(re.findall(r'job_name="r\d+-(\d+)"', metrics))
        self.assertEqual(shown, {str(generation)})
        # A stop would wait for the reports that queue up for the dead mail server.
        await daemon.kill()
        self.assertEqual(daemon.log.count("Traceback"), 0)
        wrong = [line for line in daemon.stderr if not line.startswith(("INFO:", "ERROR:"))]
        self.assertEqual(wrong, [])

    async def visit(self, daemon: Daemon) -> None:
        """Come and go as browsers do, some of them in the middle of a stream."""
        for path in ("/jobs", "/metrics", "/jobs/j11/runs"):
            self.assertEqual((await daemon.get(path)).status, 200)
        await gatherResults([deferToThread(glance, daemon.port) for _ in range(10)])

    async def sample(self, daemon: Daemon) -> Sample:
        """Look at a daemon at a moment at which nothing runs; mails may be on their way."""

        def idle() -> list[str]:
            found = descriptors(daemon.pid)
            busy = any("pidfd" in name for name in found) or defunct(daemon.pid)
            return [] if busy else [name for name in found if not name.startswith("socket:")]

        # A stream may be read to its end a moment after its process has gone.
        counts = []
        for _ in range(6):
            counts.append(len(await until("a quiet moment", idle)))
            await task.deferLater(reactor, 0.1)
        threads = len(os.listdir(f"/proc/{daemon.pid}/task"))
        return Sample(megabytes(daemon.pid), min(counts), threads)


def glance(port: int) -> None:
    """Begin to follow the output of a job, and leave."""
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(b"GET /jobs/j11/logs HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200" in connection.recv(1000)
