"""A store in trouble under a real daemon: jobs go on, losses are counted, it heals by itself."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from twisted.trial.unittest import SkipTest, TestCase

from tests.system.harness import Daemon, require_root
from tests.system.proc import megabytes, together, until

CONFIG = """\
web:
  listen:
    - http://127.0.0.1:@PORT@
state:
  path: @WORK@/state
jobs:
  - name: tick
    schedule: "* * * * * * *"
    command: ["/bin/echo", "tick"]
    captureStdout: true
    archiveOutput: true
    onMissed: run-all
  - name: failing
    schedule: "*/5 * * * * * *"
    command: ["/bin/false"]
    onFailure:
      retry:
        maximumRetries: 3
        initialDelay: 0.5
        maximumDelay: 1
        backoffMultiplier: 1
"""
DROPPED = re.compile(r"^cronstable_state_dropped_writes_total\{.*\} (\d+)", re.MULTILINE)


class TroubleCase(TestCase):
    timeout = 90

    def faulty(self, fault: str) -> Daemon:
        program = (sys.executable, "-m", "tests.system.faulty", fault)
        return Daemon(self, CONFIG, program=program)

    async def dropped(self, daemon: Daemon) -> int:
        text = (await daemon.get("/metrics")).body.decode()
        return sum(map(int, DROPPED.findall(text)))

    async def unaccounted(self, daemon: Daemon) -> int:
        found: int = (await daemon.get("/slots")).json()["unaccounted"]
        return found

    def ticks(self, daemon: Daemon) -> int:
        return len(daemon.ends("tick"))

    async def goes_on(self, daemon: Daemon, ticks: int) -> None:
        """Wait for this many more ticks; a store that hangs delays none of them."""
        before = self.ticks(daemon)
        more: Callable[[], bool] = lambda: self.ticks(daemon) >= before + ticks  # noqa: E731
        await until(f"{ticks} more ticks", more, ticks + 4)

    def storm(self, daemon: Daemon, since: int) -> int:
        """Return how many complaints there are from a line of the log on."""
        return sum(not line.startswith("INFO:") for line in daemon.stderr[since:])


class FaultTests(TroubleCase):
    """Errors of the system, one kind after another."""

    async def trouble(self, fault: str) -> None:
        daemon = self.faulty(fault)
        await daemon.wait_for_end_of("tick", 20, count=2)
        self.assertEqual(await self.dropped(daemon), 0)
        since = len(daemon.stderr)
        daemon.signal(signal.SIGUSR1)
        await self.goes_on(daemon, 4)
        lost = await self.dropped(daemon)
        self.assertGreater(lost, 0, fault)
        self.assertIn("failed to persist", daemon.log)
        self.assertLessEqual(self.storm(daemon, since), 20, fault)
        daemon.signal(signal.SIGUSR2)
        await self.goes_on(daemon, 2)
        lost = await self.dropped(daemon)
        await self.goes_on(daemon, 2)
        self.assertEqual(await self.dropped(daemon), lost, f"{fault}: it heals by itself")
        self.assertEqual(await self.unaccounted(daemon), 0)
        self.assertEqual(await daemon.stop(), 0)
        self.assertNotIn("Traceback", daemon.log)

    async def test_errors(self) -> None:
        """A full, broken, forbidden, stale or read-only store costs rows, not runs."""
        await together(*map(self.trouble, ("ENOSPC", "EIO")))
        await together(*map(self.trouble, ("EACCES", "ESTALE")))
        await self.trouble("EROFS")

    async def test_slow(self) -> None:
        """A store that takes a third of a second for each call loses nothing."""
        daemon = self.faulty("slow:0.3")
        await daemon.wait_for_end_of("tick", 20)
        daemon.signal(signal.SIGUSR1)
        await self.goes_on(daemon, 8)
        self.assertEqual(await self.dropped(daemon), 0)
        daemon.signal(signal.SIGUSR2)
        await self.goes_on(daemon, 2)
        self.assertEqual(await daemon.stop(), 0)
        self.assertEqual(await self.rows(daemon), self.ticks(daemon))

    async def rows(self, daemon: Daemon) -> int:
        directory = daemon.directory / "state" / "default" / "records" / "runs%2Ftick"
        return len(list(directory.glob("*.json")))


class HangTests(TroubleCase):
    """A file system that answers nothing at all."""

    async def test_hangs(self) -> None:
        """Jobs, retries and pages go on; nothing is lost when it wakes."""
        daemon = self.faulty("hang")
        await daemon.wait_for_end_of("tick", 20, count=2)
        daemon.signal(signal.SIGUSR1)
        before, since = megabytes(daemon.pid), len(daemon.stderr)
        # A call that hangs for thirty seconds is given up.
        await self.goes_on(daemon, 8)
        await daemon.wait_for_log("scheduled to be retried", 10, since=since)
        self.assertLess(megabytes(daemon.pid) - before, 8)
        self.assertEqual((await daemon.get("/jobs/tick/runs")).status, 200)
        daemon.signal(signal.SIGUSR2)
        await self.goes_on(daemon, 2)
        self.assertEqual(await self.dropped(daemon), 0)
        self.assertEqual(await self.unaccounted(daemon), 0)
        self.assertEqual(await daemon.stop(), 0)

    async def test_stop(self) -> None:
        """A stop while threads hang in the store takes the bound of the flush, and status 0."""
        daemon = self.faulty("hang")
        await daemon.wait_for_end_of("tick", 20, count=2)
        daemon.signal(signal.SIGUSR1)
        await self.goes_on(daemon, 3)
        self.assertEqual(await daemon.stop(12), 0)
        self.assertIn("could not be flushed", daemon.log)
        self.assertIn("Stopping state backend", daemon.log)

    async def test_stop_at_the_start(self) -> None:
        """So does one that comes while the store starts."""
        daemon = self.faulty("hang")
        await daemon.wait_for_log("Job set id")
        daemon.signal(signal.SIGUSR1)
        self.assertEqual(await daemon.stop(12), 0)


class MountTests(TroubleCase):
    """A small file system of the daemon's own, in a mount namespace."""

    def setUp(self) -> None:
        require_root()
        if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
            raise SkipTest("no mount namespace can be made here")

    def mounted(self, options: str) -> Daemon:
        mount = f'mkdir -p state && mount -t tmpfs -o {options} tmpfs state && exec "$@"'
        prefix = ["unshare", "-m", "--propagation", "private", "sh", "-c", mount, "sh"]
        return Daemon(self, CONFIG, prefix=prefix)

    def inside(self, daemon: Daemon, script: str) -> None:
        command = ["nsenter", "-t", str(daemon.pid), "-m", "sh", "-c", script]
        subprocess.run(command, cwd="/", capture_output=True, timeout=20, check=False)

    async def trouble(self, options: str, take: str, give: str) -> None:
        daemon = self.mounted(options)
        state = daemon.directory / "state"
        await daemon.wait_for_end_of("tick", 20, count=2)
        since = len(daemon.stderr)
        self.inside(daemon, take.replace("@", str(state)))
        await self.goes_on(daemon, 5)
        self.assertGreater(await self.dropped(daemon), 0)
        self.assertLessEqual(self.storm(daemon, since), 20)
        self.inside(daemon, give.replace("@", str(state)))
        await self.goes_on(daemon, 2)
        lost = await self.dropped(daemon)
        await self.goes_on(daemon, 2)
        self.assertEqual(await self.dropped(daemon), lost)
        root = Path(f"/proc/{daemon.pid}/root{state}")
        self.assertEqual([p.name for p in root.rglob("*.bad")], [])
        self.assertEqual(await self.unaccounted(daemon), 0)
        self.assertEqual(await daemon.stop(), 0)

    async def test_full(self) -> None:
        """A disk that is full, of bytes or of inodes, and one that turns read-only."""
        fill = "cat /dev/zero > @/hog; true"
        many = "i=0; while touch @/hog$i; do i=$((i+1)); done"
        await together(
            self.trouble("size=2m", fill, "rm @/hog"),
            self.trouble("size=8m,nr_inodes=150", many, "rm @/hog*"),
        )
        await self.trouble("size=8m", "mount -o remount,ro @", "mount -o remount,rw @")

    async def test_gone(self) -> None:
        """A mount that goes away is not written below; jobs go on, and the stop is clean."""
        daemon = self.mounted("size=8m")
        await daemon.wait_for_end_of("tick", 20, count=2)
        self.inside(daemon, f"umount -l {daemon.directory}/state")
        await self.goes_on(daemon, 3)
        self.assertGreater(await self.dropped(daemon), 0)
        self.assertEqual(list((daemon.directory / "state").iterdir()), [])
        self.assertEqual(await daemon.stop(), 0)


class HostileTests(TroubleCase):
    """Records that somebody has damaged."""

    async def test_damaged(self) -> None:
        """The start needs no hand: what cannot be understood is named and set aside."""
        daemon = Daemon(self, CONFIG)
        await daemon.wait_for_end_of("failing", 20)
        await daemon.wait_for_end_of("tick", 20, count=5)
        self.assertEqual(await daemon.stop(), 0)
        records = daemon.directory / "state" / "default" / "records"
        damages: tuple[bytes, ...] = (b"", b"{", b"\xff\xfe", b"[]", b'{"schemaVersion": "v9"}')
        damaged = 0
        for stream in sorted(records.iterdir()):
            files = sorted(stream.glob("*.json"))
            if files and stream.name != "meta":
                files[-1].write_bytes(damages[damaged % len(damages)])
                damaged += 1
        self.assertGreater(damaged, 4)
        again = Daemon(self, CONFIG, directory=daemon.directory)
        await again.wait_for_end_of("tick", 20, count=2)
        state = (await again.get("/state")).json()
        self.assertGreater(state["quarantine"], 2)
        self.assertIn("quarantine", again.log)
        self.assertEqual(await self.unaccounted(again), 0)
        self.assertNotIn("Traceback", again.log)
        self.assertEqual(await again.stop(), 0)
