"""How another identity is taken, without taking one."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from cronstable.executors.become import Become, find_setpriv
from cronstable.executors.interfaces import DropTo
from cronstable.executors.program import NotStarted, Program, blocked_for

STATUS = "Name:\tpython\nCapEff:\t{:016x}\n"


class BecomeTests(SynchronousTestCase):
    """The prefix of a switch, and what is known to speak against it."""

    def become(self, capabilities: int = 0xFF, maps: str = "0 0 4294967295\n") -> Become:
        proc = Path(self.mktemp())
        (proc / "self").mkdir(parents=True)
        (proc / "self/status").write_text(STATUS.format(capabilities))
        for kind in ("uid", "gid"):
            (proc / f"self/{kind}_map").write_text(maps)
        return Become(lambda login, gid: (gid, 70), proc, "/usr/bin/setpriv", True)

    def test_prefix(self) -> None:
        """Groups by the login where setpriv would find the same one, else one by one, else none."""
        become = self.become()
        self.patch(Become, "_named_by_uid", lambda self, login, uid: login == "app")
        cases = {"app": b"--init-groups", "alias": b"--groups=60,70", None: b"--clear-groups"}
        for login, groups in cases.items():
            words = become.prefix(DropTo(50, 60, login))
            self.assertEqual(
                words, [b"/usr/bin/setpriv", b"--reuid=50", b"--regid=60", groups, b"--"]
            )

    def test_missing_capability(self) -> None:
        """A daemon without the right to switch says which it lacks."""
        with self.assertRaises(NotStarted) as caught:
            self.become(capabilities=1 << 6).prefix(DropTo(50, 60))
        self.assertEqual(
            str(caught.exception), "cannot become uid 50, gid 60: the daemon lacks CAP_SETUID"
        )

    def test_namespace(self) -> None:
        """A number that the user namespace does not have is refused."""
        become = self.become(maps="0 1000 1\n1 100000 65536\n")
        become.prefix(DropTo(65536, 5))
        reason = become.refusal(DropTo(65537, 5))
        self.assertIn("uid 65537 does not exist in this user namespace", reason or "")

    def test_which_setpriv(self) -> None:
        """The one of busybox, which cannot switch users, is not taken."""
        place = Path(self.mktemp())
        place.mkdir()
        (place / "busybox").touch(0o755)
        (place / "real").touch(0o755)
        (place / "setpriv").symlink_to("busybox")
        places = [f"{place}/missing", f"{place}/setpriv", f"{place}/real"]
        self.assertEqual(find_setpriv(places), f"{place}/real")
        self.assertIsNone(find_setpriv(places[:2]))

    def test_blocked(self) -> None:
        """A path is followed with the user's own rights, group by group."""
        place = Path(self.mktemp()).absolute()
        place.mkdir()
        place.parent.chmod(0o755)
        tool = place / "tool"
        tool.touch()
        tool.chmod(0o710)
        path = bytes(tool)
        owner, group = tool.stat().st_uid, tool.stat().st_gid
        self.assertIsNone(blocked_for(path, 77_777, (group,)))
        self.assertEqual(blocked_for(path, 77_777, (77_777,)), f"{tool} is not executable")
        place.chmod(0o701)
        self.assertEqual(blocked_for(path, 77_777, (group,)), f"{place} cannot be entered")
        self.assertIsNone(blocked_for(path, 0, ()))
        self.assertIsNone(blocked_for(path, owner, (group,)))
        self.assertIsNone(blocked_for(b"/no/such/file", 77_777, ()))

    def test_groups_decide(self) -> None:
        """Supplementary groups are looked up only when they may decide."""
        asked: list[str] = []

        def look(login: str, gid: int) -> tuple[int, ...]:
            asked.append(login)
            return (gid,)

        become = Become(look)
        become.check(DropTo(77_777, 77_777, "app"), Program(b"/bin/sh", b"/bin/sh"))
        self.assertEqual(asked, [])
        tool = Path(self.mktemp()).absolute()
        tool.touch(0o700)
        with self.assertRaises(NotStarted):
            become.check(DropTo(77_777, 77_777, "app"), Program(bytes(tool), bytes(tool)))
        self.assertEqual(asked, ["app"])
