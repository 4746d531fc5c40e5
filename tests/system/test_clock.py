"""When things start, and clocks that jump or stand still; docs/slots.md."""

from __future__ import annotations

import datetime
import signal
import time
from pathlib import Path

from twisted.internet import reactor, task
from twisted.trial.unittest import TestCase

from tests.system.harness import Daemon, faketime
from tests.system.proc import together, until, written

SECONDS = """\
jobs:
  - name: second
    schedule: "* * * * * * *"
    command: ["/bin/date", "+%s.%N"]
    captureStdout: true
    streamPrefix: ""
"""
DAILY = """\
jobs:
  - name: daily
    schedule: "30 10 * * *"
    command: echo daily >> @WORK@/ran
  - name: half
    schedule: "30 * * * * * *"
    command: date +%H:%M:%S >> @WORK@/halves
  - name: second
    schedule: "* * * * * * *"
    command: date "+%F %T" >> @WORK@/seconds
"""


class Wall:
    """A wall clock that a test sets while processes look at it; durations stay true."""

    def __init__(self, directory: Path, start: str) -> None:
        self._file = directory / "clock"
        self.set(start)

    def set(self, when: str) -> None:
        """Show C{when}, in UTC, from now."""
        moment = datetime.datetime.fromisoformat(when + "+00:00").timestamp()
        new = self._file.with_suffix(".new")
        new.write_text(f"{moment - time.time():+.6f}s\n")
        new.replace(self._file)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process that lives by this clock."""
        environment = faketime("")
        del environment["FAKETIME"]
        return {
            **environment,
            "FAKETIME_TIMESTAMP_FILE": str(self._file.resolve()),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }


class AccuracyTests(TestCase):
    """An idle daemon."""

    async def test_lateness(self) -> None:
        """A job starts within a few milliseconds after its instant, never before it."""
        daemon = Daemon(self, SECONDS)
        await daemon.wait_for_output(r"^\d+\.\d+$", count=6)
        await daemon.kill()
        late = sorted(float(line) % 1 for line in daemon.stdout)
        self.assertLess(late[len(late) // 2], 0.1, late)
        self.assertLess(late[-1], 0.9, late)


class ClockTests(TestCase):
    """Clocks that jump, and processes that stand still, all at the same time to save some."""

    timeout = 90

    async def test_clocks(self) -> None:
        """What each of the following says."""
        await together(
            self.briefly(),
            self.for_long(),
            self.forward(),
            self.a_few_seconds(),
            self.back_by_hours(),
        )

    async def briefly(self) -> None:
        """Three slots that a stopped process slept through run late, once each."""
        daemon = Daemon(self, SECONDS)
        await self.stand_still(daemon, 3.2)
        stamps = list(map(float, daemon.stdout))
        self.assertEqual(len(stamps), int(stamps[-1]) - int(stamps[0]) + 1)
        self.assertNotIn("stood still", daemon.log)

    async def for_long(self) -> None:
        """After a longer stop only the newest slot runs; the gap is told once."""
        daemon = Daemon(self, SECONDS)
        await self.stand_still(daemon, 13.5)
        stamps = list(map(float, daemon.stdout))
        gaps = [later - earlier for earlier, later in zip(stamps, stamps[1:], strict=False)]
        self.assertGreater(max(gaps), 12)
        self.assertEqual(len(set(map(int, stamps))), len(stamps))
        self.assertEqual(daemon.log.count("stood still"), 1)

    async def stand_still(self, daemon: Daemon, seconds: float) -> None:
        """Stop a daemon between two of its runs, and let it go on for two more."""
        await daemon.wait_for_output(r"\d", count=2)
        await daemon.wait_for_end_of("second", count=2)
        daemon.signal(signal.SIGSTOP)
        await task.deferLater(reactor, seconds)
        runs = len(daemon.stdout)
        daemon.signal(signal.SIGCONT)
        await daemon.wait_for_output(r"\d", count=runs + 3)
        await daemon.kill()

    async def forward(self) -> None:
        """A clock set days ahead starts nothing that is not due then; a later slot runs once."""
        daemon, wall = self.daemon("2026-03-10 09:00:10")
        await self.seconds(daemon, "2026-03-10 09:0")
        wall.set("2026-03-13 06:00:10")
        await self.seconds(daemon, "2026-03-13 06:0")
        self.assertFalse((daemon.directory / "ran").exists())
        await daemon.wait_for_log("WARNING:.*stood still")
        wall.set("2026-03-13 10:29:58")
        self.assertEqual(await written(daemon.directory / "ran"), "daily\n")
        await self.seconds(daemon, "2026-03-13 10:30:02")
        self.assertEqual(await written(daemon.directory / "ran"), "daily\n")
        self.assertEqual(await daemon.stop(), 0)

    async def a_few_seconds(self) -> None:
        """A slot that a small step jumps over runs once, also when the step is taken back."""
        daemon, wall = self.daemon("2026-03-10 09:00:02")
        await self.seconds(daemon, "2026-03-10 09:00")
        wall.set("2026-03-10 09:00:27")
        await self.seconds(daemon, "2026-03-10 09:00:28")
        wall.set("2026-03-10 09:00:32")
        halves = daemon.directory / "halves"
        await written(halves)
        await self.seconds(daemon, "2026-03-10 09:00:33")
        await until("no run to be on its way", lambda: self.nothing_runs(daemon))
        wall.set("2026-03-10 09:00:28")
        runs = (daemon.directory / "seconds").read_text().count("\n")
        await self.seconds(daemon, "2026-03-10 09:00:36", since=runs)
        self.assertEqual(len((await written(halves)).split()), 1)
        again = (daemon.directory / "seconds").read_text().split("\n")[runs:]
        # What had run does not run again; one run may have been about to look at the clock.
        self.assertLessEqual(sum(line < "2026-03-10 09:00:33" for line in again if line), 1)
        self.assertEqual(await daemon.stop(), 0)

    def nothing_runs(self, daemon: Daemon) -> bool:
        """Whether each run of the job of each second that has been started is over."""
        started = daemon.log.count("Starting job second")
        return started == daemon.log.count("Job second exit code")

    async def back_by_hours(self) -> None:
        """A step back of hours is a correction: schedules go on from the new time at once."""
        daemon, wall = self.daemon("2026-03-10 15:00:26")
        await self.seconds(daemon, "2026-03-10 15:0")
        wall.set("2026-03-10 09:00:26")
        await daemon.wait_for_log("^WARNING:.*clock was set back", 45)
        await self.seconds(daemon, "2026-03-10 09:0")
        self.assertEqual(await daemon.stop(), 0)

    def daemon(self, start: str) -> tuple[Daemon, Wall]:
        """Start a daemon whose clock shows C{start}."""
        work = Path(self.mktemp())
        work.mkdir()
        wall = Wall(work, start)
        return Daemon(self, DAILY, directory=work, env=wall.environment), wall

    async def seconds(self, daemon: Daemon, prefix: str, since: int = 0) -> None:
        """Wait for a run of the job of each second at an instant that begins with C{prefix}."""
        path = daemon.directory / "seconds"

        def look() -> bool:
            lines = path.read_text().split("\n")[since:] if path.exists() else []
            return any(line.startswith(prefix) for line in lines)

        await until(f"a run at {prefix}", look, 45)
