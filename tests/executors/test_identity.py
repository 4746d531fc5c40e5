"""Real processes as other users, with setpriv and without."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.internet import reactor

from cronstable.executors.become import Become
from cronstable.executors.interfaces import DropTo, LaunchSpec
from cronstable.executors.local import LocalExecutor
from cronstable.executors.spawn import Spawner
from tests.executors.support import LaunchCase, Recorder, program, shell

NOBODY = DropTo(65534, 65534, "nobody")
STRANGER = DropTo(54399, 54398)
STATUS = "exec grep -E '^(Uid|Gid|Groups|CapEff|CapPrm|Sig(Ign|Blk))' /proc/self/status"


def look(login: str, gid: int) -> tuple[int, ...]:
    """Return groups like those that an account file gives."""
    return (5, 60, gid) if login == "alias" else (gid,)


class IdentityTests(LaunchCase):
    """Launches as another user, as root."""

    def make_executor(self) -> LocalExecutor:
        spawner = Spawner(become=Become(look))
        return LocalExecutor(reactor, self.clock, spawner=spawner)

    def setUp(self) -> None:
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("changing users needs root")

    async def status(self, spec: LaunchSpec) -> dict[str, list[str]]:
        run = await self.run_to_end(spec)
        lines = [line.split() for line in run.text().splitlines()]
        return {line[0].rstrip(":"): line[1:] for line in lines if line}

    async def test_user(self) -> None:
        """All ids are the user's, no capability is left, signals are at their defaults."""
        found = await self.status(shell(STATUS, drop_to=NOBODY))
        self.assertEqual(found["Uid"], ["65534"] * 4)
        self.assertEqual(found["Gid"], ["65534"] * 4)
        self.assertEqual(found["Groups"], ["65534"])
        for name in ("CapEff", "CapPrm", "SigIgn", "SigBlk"):
            self.assertEqual(found[name], ["0" * 16], name)

    async def test_no_account(self) -> None:
        """A number without an account has no supplementary groups, none of root's either."""
        found = await self.status(shell(STATUS, drop_to=STRANGER))
        self.assertEqual((found["Uid"][0], found["Gid"][0]), ("54399", "54398"))
        self.assertEqual(found.get("Groups", []), [])

    async def test_supplementary_groups(self) -> None:
        """The groups of the login are given, also of one that shares its uid with another."""
        found = await self.status(shell(STATUS, drop_to=DropTo(65534, 65534, "alias")))
        self.assertEqual(found["Groups"], ["5", "60", "65534"])

    async def test_group_only(self) -> None:
        """Only the group may be changed; root's other groups are gone."""
        found = await self.status(shell(STATUS, drop_to=DropTo(0, 60, "root")))
        self.assertEqual((found["Uid"][0], found["Gid"][0]), ("0", "60"))

    async def test_directory_before_the_switch(self) -> None:
        """A working directory that only root may enter is entered all the same."""
        place = Path(self.mktemp()).absolute()
        place.mkdir(mode=0o700)
        run = await self.run_to_end(shell("pwd; umask", drop_to=NOBODY, cwd=str(place), umask=0o77))
        self.assertEqual(run.text(), f"{place}\n0077\n")

    async def test_status_is_the_jobs_own(self) -> None:
        """What the program itself ends with is never taken for a failed start."""
        for status in (1, 125, 126, 127):
            run = await self.run_to_end(shell(f"exit {status}", drop_to=NOBODY))
            assert run.result is not None
            self.assertEqual((run.result.cause, run.result.status), ("exited", status))

    async def refused(self, *argv: str, drop_to: DropTo = NOBODY) -> tuple[Recorder, str]:
        run = await self.run_to_end(program(*argv, drop_to=drop_to))
        assert run.result is not None
        self.assertEqual((run.result.cause, run.result.status), ("not-started", None))
        return run, run.result.reason or ""

    async def test_missing_program(self) -> None:
        """What is missing is found out before the start."""
        run, reason = await self.refused("/no/such/program")
        self.assertEqual((run.pid, reason), (None, "program not found: /no/such/program"))

    async def test_script_without_interpreter(self) -> None:
        """A text is no program for other users either."""
        script = Path(self.mktemp()).absolute()
        script.parent.chmod(0o755)
        script.write_text("echo no shebang\n")
        script.chmod(0o755)
        _, reason = await self.refused(str(script))
        self.assertIn("#! line", reason)

    async def test_failed_switch(self) -> None:
        """A switch that fails after the start is no run: the reason says what was tried."""
        spawner = Spawner(become=Become(look, setpriv="/usr/bin/setpriv", searched=True))
        self.executor = LocalExecutor(reactor, self.clock, spawner=spawner)
        drop = DropTo(65533, 65533, "nobody")
        self.patch(Become, "_named_by_uid", lambda self, login, uid: True)
        run, reason = await self.refused("/bin/true", drop_to=drop)
        self.assertIn("cannot become uid 65533, gid 65533 and run /bin/true", reason)
        self.assertEqual(run.calls[0], "started")
        self.assertIn("setpriv", run.text("stderr"))

    async def test_not_for_this_user(self) -> None:
        """A program that only root may run is a start that failed, naming what is closed."""
        place = Path(self.mktemp()).absolute()
        place.parent.chmod(0o755)
        place.mkdir(mode=0o700)
        script = place / "script"
        script.write_text("#!/bin/sh\nexit 0\n")
        script.chmod(0o755)
        _, reason = await self.refused(str(script))
        self.assertEqual(reason, f"{place} cannot be entered for uid 65534, gid 65534")


class ForkedIdentityTests(IdentityTests):
    """The same where the system has no setpriv."""

    def make_executor(self) -> LocalExecutor:
        spawner = Spawner(become=Become(look, searched=True))
        return LocalExecutor(reactor, self.clock, spawner=spawner)
