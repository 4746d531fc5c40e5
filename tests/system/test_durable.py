"""What one life of the real daemon leaves to the next: missed slots, retries, boot runs."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from twisted.trial.unittest import TestCase

from cronstable.runs import checkpoints
from tests.state.support import disk_store
from tests.system.harness import Daemon, faketime
from tests.system.proc import exists, until

HEAD = """\
web:
  listen:
    - http://127.0.0.1:@PORT@
state:
  path: @WORK@/state
"""


class Lives(TestCase):
    """Daemons that live one after another in one directory."""

    timeout = 120

    def setUp(self) -> None:
        self.home = Path(self.mktemp()).resolve()

    def life(self, config: str, **options: Any) -> Daemon:
        return Daemon(self, HEAD + config, directory=self.home, **options)

    async def slots(self, daemon: Daemon, job: str) -> list[dict[str, Any]]:
        """Return the slots of a job, oldest first; none is unaccounted for."""
        answer = (await daemon.get(f"/slots?job={job}&limit=1000")).json()
        self.assertEqual(answer["unaccounted"], 0)
        found: list[dict[str, Any]] = answer["slots"][::-1]
        return found

    async def ran(self, daemon: Daemon, job: str) -> list[str]:
        """Return the slots of a job that have run, in the order of their starts."""
        ran = [each for each in await self.slots(daemon, job) if each["result"] == "ran"]
        return [each["slot"][:16] for each in sorted(ran, key=lambda each: each["started_at"])]

    async def outcomes(self, daemon: Daemon, job: str) -> list[str]:
        runs = (await daemon.get(f"/jobs/{job}/runs")).json()["runs"]
        return [each["outcome"] for each in runs]


def jobs(*described: Sequence[str], command: str = '["/bin/true"]') -> str:
    """Return the C{jobs} section for (name, schedule, more lines) of each."""
    text = "jobs:\n"
    for name, schedule, *more in described:
        text += f'  - name: {name}\n    schedule: "{schedule}"\n    command: {command}\n'
        text += "".join(f"    {line}\n" for line in more)
        # Where the clock is shifted, that is for the daemon alone.
        text += "    environment:\n      - {key: LD_PRELOAD, value: ''}\n"
    return text


class TwoDaysDownTests(Lives):
    """Fifty hours without a daemon."""

    described = (
        ("daily", "1 22 * * *", "onMissed: run-once"),
        ("minutely", "* * * * *", "onMissed: run-all", "startingDeadlineSeconds: 3600"),
        ("hourly", "1 * * * *", "onMissed: run-all"),
        ("weekly", "1 22 * * 1,3"),
        ("never", "0 0 1 1 *", "onMissed: run-all"),
    )
    new = ("new", "*/10 * * * *", "onMissed: run-all")

    async def first(self) -> None:
        """Live from a Monday's 22:00:55 until each job but one has run, at 22:01."""
        daemon = self.life(jobs(*self.described), env=faketime("@2026-03-09 22:00:55"))
        for name in ("daily", "minutely", "hourly", "weekly"):
            await daemon.wait_for_end_of(name, 20)
        self.assertEqual(await daemon.stop(), 0)

    def second(self, when: str, *more: Sequence[str]) -> Daemon:
        return self.life(jobs(*self.described, *more), env=faketime(f"@{when}"))

    async def test_fifty_hours(self) -> None:
        """Each job makes up for what it missed as it says, once; a further start adds nothing."""
        await self.first()
        daemon = self.second("2026-03-12 00:01:05", self.new)
        await daemon.wait_for_log(r"replaying 60 missed run\(s\) for minutely")
        await daemon.wait_for_end_of("minutely", 60, count=59)
        await daemon.wait_for_end_of("hourly", 60, count=50)
        self.assertEqual(await self.ran(daemon, "daily"), ["2026-03-11T22:01"])
        daily = [each["result"] for each in await self.slots(daemon, "daily")]
        self.assertEqual(daily, ["merged", "ran"])
        minutely = await self.ran(daemon, "minutely")
        self.assertEqual(minutely[0], "2026-03-11T23:02")
        late = [each for each in minutely if each <= "2026-03-12T00:01"]
        self.assertEqual((late, len(late)), (sorted(set(late)), 60))
        hourly = await self.ran(daemon, "hourly")
        self.assertEqual((len(hourly), hourly), (50, sorted(set(hourly))))
        weekly = await self.slots(daemon, "weekly")
        self.assertEqual(
            [(each["slot"][:16], each["result"], each["reason"]) for each in weekly],
            [("2026-03-11T22:01", "missed", "down")],
        )
        for name in ("new", "never"):
            self.assertEqual(await self.slots(daemon, name), [])
        self.assertEqual(await daemon.stop(), 0)
        again = self.second("2026-03-12 00:03:02", self.new)
        await again.wait_for_log("rehydrated run history")
        await again.wait_for_end_of("minutely", 20)
        self.assertNotIn("for hourly", again.log)
        self.assertNotIn("for daily", again.log)
        self.assertEqual(await self.ran(again, "hourly"), [])
        self.assertEqual(await again.stop(), 0)

    async def test_one_slot(self) -> None:
        """Down for a moment over one slot: it is run, late, once."""
        await self.first()
        daemon = self.second("2026-03-09 22:02:02")
        await daemon.wait_for_end_of("minutely", 20)
        self.assertEqual(await self.ran(daemon, "minutely"), ["2026-03-09T22:02"])
        self.assertEqual(await daemon.stop(), 0)

    async def test_more_than_a_hundred(self) -> None:
        """More than the cap without a deadline: said with the cap, and no dead end."""
        self.described = (("minutely", "* * * * *", "onMissed: run-all"),)
        daemon = self.life(jobs(*self.described), env=faketime("@2026-03-09 22:00:55"))
        await daemon.wait_for_end_of("minutely", 20)
        await daemon.stop()
        daemon = self.second("2026-03-10 03:00:05")
        await daemon.wait_for_log("WARNING.*199 missed run.*minutely.*catchupLimit of 100")
        await daemon.wait_for_end_of("minutely", 60, count=100)
        self.assertEqual(await daemon.stop(), 0)

    async def test_killed(self) -> None:
        """Killed in the middle of it all, it goes on; nothing that was recorded is repeated."""
        await self.first()
        self.assertEqual(owed := self.owed("2026-03-10T02:30"), HOURS)
        for number in range(4):
            daemon = self.second("2026-03-10 02:30:05")
            # A life may have been long enough for all of them, and the next then owes none.
            await daemon.wait_for_end_of("hourly" if owed else "minutely", 20)
            if number == 3:
                await daemon.wait_for_log("Job minutely exit code", 30, count=40)
            ran = await self.ran(daemon, "hourly")
            if number < 3:
                await daemon.kill()
            else:
                self.assertEqual(await daemon.stop(), 0)
            self.assertEqual(sorted(set(ran)), ran)
            self.assertLessEqual(set(ran), set(owed))
            before, owed = owed, self.owed("2026-03-10T02:30")
            self.assertLessEqual(
                len(set(before) - set(owed)), daemon.log.count("Starting job hourly")
            )
        self.assertEqual(owed, [])

    def owed(self, until: str) -> list[str]:
        """Return the slots of "hourly" that the store says are owed at C{until}."""
        at = datetime.fromisoformat(f"{until}+00:00").timestamp()
        store = disk_store(self.home / "state")
        stretches = checkpoints.read(store, "hourly", at + 600).owed(at)
        hours = [(each, datetime.fromisoformat(f"{each}+00:00").timestamp()) for each in HOURS]
        return [
            text for text, hour in hours if any(one.after < hour <= one.until for one in stretches)
        ]


HOURS = [f"2026-03-{each}:01" for each in ("09T23", "10T00", "10T01", "10T02")]


class BootTests(Lives):
    """@reboot on a host that does not reboot."""

    boot = """\
jobs:
  - name: boot
    schedule: "@reboot"
    command: {command}
"""
    skipped = r"boot \(@reboot\) already ran during this OS boot; skipping"

    async def test_once(self) -> None:
        """Restarts, stops within a second, reloads and crashes do not repeat it; an edit does."""
        quick = self.boot.format(command='["/bin/true"]')
        daemon = self.life(quick)
        await daemon.wait_for_end_of("boot")
        self.assertEqual(await daemon.stop(), 0)
        for number in range(2):
            daemon = self.life(quick)
            await daemon.wait_for_log(self.skipped)
            await daemon.stop() if number else await daemon.kill()
        more = quick + '  - name: late\n    schedule: "@reboot"\n    command: ["/bin/true"]\n'
        daemon = self.life(quick)
        await daemon.wait_for_log(self.skipped)
        daemon.write(HEAD + more)
        daemon.signal(signal.SIGHUP)
        await daemon.wait_for_log("Jobs added: late")
        self.assertEqual(await daemon.stop(), 0)
        self.assertNotIn("Starting job", daemon.log)
        edited = self.boot.format(command='["/bin/echo"]')
        daemon = self.life(edited)
        await daemon.wait_for_end_of("boot")
        self.assertEqual(await daemon.stop(), 0)

    async def test_new_store(self) -> None:
        """A container without its old store runs it, on whatever boot."""
        daemon = self.life(self.boot.format(command='["/bin/true"]'))
        await daemon.wait_for_end_of("boot")
        await daemon.stop()
        (self.home / "state").rename(self.home / "elsewhere")
        daemon = self.life(self.boot.format(command='["/bin/true"]'))
        await daemon.wait_for_end_of("boot")
        await daemon.stop()

    async def test_container(self) -> None:
        """Where starts of the container count, each of them runs it, and one only once."""
        config = "  boot: container\n" + self.boot.format(command='["/bin/true"]')
        for _ in range(2):
            daemon = self.life(config, as_pid1=True)
            await daemon.wait_for_end_of("boot")
            self.assertEqual(await daemon.stop(), 0)
        daemon = self.life(config)
        await daemon.wait_for_end_of("boot")
        self.assertEqual(await daemon.stop(), 0)
        daemon = self.life(config)
        await daemon.wait_for_log(self.skipped)
        self.assertEqual(await daemon.stop(), 0)

    async def test_survivor(self) -> None:
        """A crash leaves its run alive: the next start leaves it alone and starts no second."""
        # What the job does not hold of the daemon's own output ends with the daemon.
        slow = self.boot.format(command='["/bin/sleep", "3600"]\n    captureStdout: true')
        daemon = self.life(slow)
        await daemon.wait_for_log("Job boot spawned")
        (job,) = daemon.running("/bin/sleep", "3600")
        await until("the record", lambda: self.records("inflight%2Fboot"))
        os.kill(daemon.pid, signal.SIGKILL)
        await daemon.wait_for_end()
        self.assertTrue(exists(job))
        for marker in self.records("reboot%2Fboot"):
            marker.unlink()
        again = self.life(slow)
        await again.wait_for_log(rf"WARNING.*pid {job}\) is still alive")
        await again.wait_for_log("still runs from an earlier daemon; skipping")
        self.assertEqual(self.records("reboot%2Fboot"), [])
        await again.stop()
        os.kill(job, signal.SIGKILL)
        await until("its end", lambda: not exists(job))
        last = self.life(slow)
        await last.wait_for_log("WARNING.*was interrupted")
        await last.wait_for_log("Job boot spawned")
        self.assertEqual((await self.outcomes(last, "boot"))[-1:], ["unknown"])
        await last.kill()

    def records(self, stream: str) -> list[Path]:
        return list((self.home / "state" / "default" / "records" / stream).glob("*.json"))


class RetryTests(Lives):
    """A ladder over restarts."""

    config = """\
jobs:
  - name: failing
    schedule: "@reboot"
    command: ["/bin/false"]
    onFailure:
      retry:
        maximumRetries: 4
        initialDelay: 1.5
        maximumDelay: 10
        backoffMultiplier: 1
"""

    async def test_ladder(self) -> None:
        """Stopped and killed between attempts, it makes each of them once, in order."""
        made = 0
        for number in range(5):
            daemon = self.life(self.config)
            await daemon.wait_for_end_of("failing", 10)
            await until("the record", self.is_saved)
            made += len(daemon.ends("failing"))
            if number:
                self.assertIn(f"re-armed pending retry #{number}", daemon.log)
            await daemon.stop() if number % 2 else await daemon.kill()
        self.assertEqual(made, 5)
        last = self.life(self.config)
        await last.wait_for_log("already ran during this OS boot")
        self.assertNotIn("re-armed", last.log)
        await last.stop()

    def is_saved(self) -> bool:
        """Return whether what follows the last attempt is in the store."""
        records = self.home / "state" / "default" / "records" / "retries%2Ffailing"
        newest = sorted(records.glob("*.json"))[-1:]
        return any(b'"launched"' not in each.read_bytes() for each in newest)
