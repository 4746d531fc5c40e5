"""Resource caps, on a directory that looks like a cgroup tree."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from cronstable.executors import cgroups as module
from cronstable.executors.cgroups import LEAF, Cage, Cgroups, Refused
from cronstable.executors.interfaces import Caps

LIMITS = ("cpu.max", "memory.max", "memory.oom.group", "memory.swap.max", "pids.max")


class CgroupsTests(SynchronousTestCase):
    """The daemon's corner of the tree."""

    def setUp(self) -> None:
        self.root = Path(self.mktemp()).absolute()
        self.base = self.root / "tree" / "service"
        self.base.mkdir(parents=True)
        self.proc = self.root / "proc"
        (self.proc / "self").mkdir(parents=True)
        (self.proc / "self/cgroup").write_text("4:memory:/elsewhere\n0::/service\n")
        mount = f"30 20 0:26 / {self.root}/tree rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
        (self.proc / "self/mountinfo").write_text(f"29 20 0:25 / /proc rw - proc proc rw\n{mount}")
        self.file("cgroup.controllers", "cpuset cpu io memory pids")
        self.file("cgroup.subtree_control", "cpu memory pids")
        self.file("cgroup.procs", f"{os.getpid()}\n")
        self.cgroups = Cgroups(self.proc)
        make = Path.mkdir

        def mkdir(
            path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False
        ) -> None:
            make(path, mode, parents, exist_ok)
            for name in (*LIMITS, "cgroup.procs", "cgroup.kill"):
                (path / name).touch()

        def rmdir(path: Path) -> None:
            for name in os.listdir(path):
                (path / name).unlink()
            os.rmdir(path)

        self.patch(Path, "mkdir", mkdir)
        self.patch(Path, "rmdir", rmdir)

    def file(self, name: str, text: str) -> None:
        (self.base / name).write_text(text)

    def groups(self) -> list[Path]:
        return [entry for entry in self.base.iterdir() if entry.name.startswith("run-")]

    def cage(self, **caps: object) -> Cage:
        return self.cgroups.cage(Caps(**caps))  # type: ignore[arg-type]

    def test_caps(self) -> None:
        """Each cap is what the kernel wants to read; a memory kill ends the whole run."""
        cage = self.cage(cpu=1.5, memory=64 << 20, processes=20)
        (group,) = self.groups()
        found = {name: (group / name).read_text() for name in LIMITS}
        self.assertEqual(
            found,
            {
                "cpu.max": "150000 100000",
                "memory.max": "67108864",
                "memory.oom.group": "1",
                "memory.swap.max": "0",
                "pids.max": "20",
            },
        )
        self.assertIsNone(cage.reason)

    def test_only_what_is_capped(self) -> None:
        """What is not capped is not written."""
        self.cage(cpu=0.01)
        (group,) = self.groups()
        self.assertEqual((group / "cpu.max").read_text(), "1000 100000")
        self.assertEqual((group / "memory.max").read_text(), "")

    def test_report(self) -> None:
        """The report counts what the caps did, and the group is gone."""
        cage = self.cage(memory=1 << 20)
        (group,) = self.groups()
        run = subprocess.Popen(["sleep", "60"])
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        cage.enclose(run.pid)
        self.assertEqual((group / "cgroup.procs").read_text(), str(run.pid))
        (group / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
        (group / "pids.events").write_text("max 3\n")
        (group / "memory.peak").write_text("1048576\n")
        (group / "cpu.stat").write_text("usage_usec 10\nthrottled_usec 2500000\n")
        report = cage.report()
        self.assertEqual((report.enforced, report.mechanism), (True, "cgroup v2"))
        self.assertEqual(
            (
                report.memory_exceeded,
                report.process_limit_hits,
                report.peak_memory,
                report.cpu_throttled,
            ),
            (True, 3, 1048576, 2.5),
        )
        self.assertEqual(self.groups(), [])
        self.assertEqual(cage.report(), report)

    def test_survivors(self) -> None:
        """A group that processes outlive is removed later."""
        cage = self.cage(memory=1 << 20)
        (group,) = self.groups()
        remove = Path.rmdir
        self.patch(Path, "rmdir", busy)
        cage.report()
        self.assertEqual(self.groups(), [group])
        self.patch(Path, "rmdir", remove)
        self.cage(memory=1 << 20).report()
        self.assertEqual(self.groups(), [])

    def test_kill(self) -> None:
        """Killing reaches every member of the group."""
        cage = self.cage(memory=1 << 20)
        (group,) = self.groups()
        cage.kill()
        self.assertEqual((group / "cgroup.kill").read_text(), "1")

    def test_missing_controller(self) -> None:
        """A cap without a controller is not in force; required, it is refused."""
        self.file("cgroup.controllers", "cpu memory")
        self.file("cgroup.subtree_control", "cpu memory")
        report = self.cage(memory=1 << 20, processes=4).report()
        self.assertFalse(report.enforced)
        self.assertEqual(report.unenforced, ("memory", "processes"))
        self.assertIn("no cgroup v2 controller for processes", report.reason or "")
        with self.assertRaises(Refused):
            self.cage(processes=4, required=True)

    def test_moves_down(self) -> None:
        """A daemon that sits in its own way moves into a leaf of its group."""
        self.file("cgroup.subtree_control", "")
        write = module._write
        refused = []

        def kernel(file: Path, text: str) -> None:
            if file.name == "cgroup.subtree_control" and not (self.base / LEAF).exists():
                refused.append(text)
                raise OSError(16, "Device or resource busy")
            write(file, text)

        self.patch(module, "_write", kernel)
        self.assertIsNone(self.cage(memory=1 << 20).reason)
        self.assertEqual(refused, ["+cpu +memory +pids"])
        leaf = self.base / LEAF / "cgroup.procs"
        self.assertEqual(leaf.read_text(), str(os.getpid()))
        self.assertEqual((self.base / "cgroup.subtree_control").read_text(), refused[0])

    def test_not_alone(self) -> None:
        """A group that others live in is left alone."""
        self.file("cgroup.subtree_control", "")
        self.file("cgroup.procs", f"{os.getpid()}\n1\n")

        def kernel(file: Path, text: str) -> None:
            raise OSError(16, "Device or resource busy")

        self.patch(module, "_write", kernel)
        reason = self.cage(memory=1 << 20).reason
        self.assertIn("processes that are not the daemon's (pid 1)", reason or "")
        self.assertFalse((self.base / LEAF).exists())

    def test_support(self) -> None:
        """What can be capped is told without touching anything."""
        self.file("cgroup.subtree_control", "")
        support = self.cgroups.support()
        self.assertTrue(support.available)
        self.assertEqual(support.resources, ("cpu", "memory", "processes"))
        self.assertEqual((self.base / "cgroup.subtree_control").read_text(), "")

    def test_no_support(self) -> None:
        """A host without the tree, or without rights to it, says so and how to get there."""
        self.file("cgroup.controllers", "hugetlb")
        support = self.cgroups.support()
        self.assertFalse(support.available)
        self.assertIn("no cgroup v2 controller", support.reason or "")
        self.assertIn("Delegate=yes", support.hint or "")
        (self.proc / "self/mountinfo").write_text("")
        self.assertIn("not mounted", self.cgroups.support().reason or "")
        (self.proc / "self/cgroup").write_text("4:memory:/elsewhere\n")
        self.assertIn("no cgroup v2 tree", self.cgroups.support().reason or "")

    def test_namespace(self) -> None:
        """In a container, where the mount shows a part of the tree, the place is found."""
        (self.proc / "self/cgroup").write_text("0::/outer/service\n")
        mount = f"30 20 0:26 /outer {self.root}/tree rw - cgroup2 cgroup2 rw\n"
        (self.proc / "self/mountinfo").write_text(mount)
        self.cage(memory=1 << 20)
        self.assertEqual(len(self.groups()), 1)


def busy(path: Path) -> None:
    """Fail as for a directory of a group that has members."""
    raise OSError(16, "Device or resource busy", str(path))
