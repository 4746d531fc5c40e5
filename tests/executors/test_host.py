"""Tests for what a host has in use, as a whole and within a control group."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock
from cronstable.executors.host import HostReader, Slice


class GroupCase(SynchronousTestCase):
    """A made-up tree of control groups."""

    def setUp(self) -> None:
        self.root = Path(self.mktemp())
        self.proc, self.groups = self.root / "proc", self.root / "cgroup"
        self.write("proc/self/cgroup", "0::/outer/inner\n")
        (self.groups / "outer/inner").mkdir(parents=True)

    def write(self, path: str, text: str) -> None:
        """Put a file in place."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def find(self) -> Slice:
        """Return the limits."""
        return Slice.find(self.proc, self.groups)


class SliceTests(GroupCase):
    """Limits of control groups."""

    def test_none(self) -> None:
        """Without limits there is no slice, whatever is missing."""
        self.assertEqual(self.find(), Slice())
        self.write("cgroup/outer/cpu.max", "max 100000\n")
        self.write("cgroup/outer/memory.max", "max\n")
        self.assertEqual(self.find(), Slice())
        self.assertEqual(Slice.find(self.root / "nowhere", self.groups), Slice())

    def test_other_hierarchy(self) -> None:
        """The first version of control groups is not read."""
        self.write("proc/self/cgroup", "3:cpu:/outer\n")
        self.write("cgroup/cpu.max", "100000 100000\n")
        self.assertEqual(self.find(), Slice())

    def test_tightest(self) -> None:
        """The tightest limit on the way up counts."""
        self.write("cgroup/outer/cpu.max", "50000 100000\n")
        self.write("cgroup/outer/inner/cpu.max", "200000 100000\n")
        self.write("cgroup/outer/memory.max", "4096\n")
        self.write("cgroup/outer/inner/memory.max", "1024\n")
        self.write("cgroup/outer/cpu.stat", "usage_usec 1500000\nuser_usec 1\n")
        self.write("cgroup/outer/inner/memory.current", "1000\n")
        self.write("cgroup/outer/inner/memory.stat", "anon 5\ninactive_file 300\n")
        found = self.find()
        self.assertEqual((found.cpu_limit, found.memory_limit), (0.5, 1024))
        self.assertEqual((found.cpu_used(), found.memory_used()), (1.5, 700))

    def test_tightest_is_outer(self) -> None:
        """One further out counts as well; caches that are more than what is used make it 0."""
        self.write("cgroup/outer/memory.max", "1024\n")
        self.write("cgroup/outer/inner/memory.max", "4096\n")
        self.write("cgroup/outer/memory.current", "200\n")
        self.write("cgroup/outer/memory.stat", "inactive_file 300\n")
        found = self.find()
        self.assertEqual((found.memory_limit, found.memory_used()), (1024, 0))

    def test_own_namespace(self) -> None:
        """In a container of its own the root of the tree is its group."""
        self.write("proc/self/cgroup", "0::/\n")
        self.write("cgroup/memory.max", "1024\n")
        self.assertEqual(self.find().memory_limit, 1024)

    def test_nonsense(self) -> None:
        """Files that cannot be understood limit nothing."""
        self.write("cgroup/outer/cpu.max", "soon\n")
        self.write("cgroup/outer/memory.max", "lots\n")
        self.assertEqual(self.find(), Slice())


class ReaderTests(GroupCase):
    """What is read."""

    def test_host(self) -> None:
        """The real host has some memory, some of it in use, and this process has its share."""
        reader = HostReader(ManualClock(), self.proc, self.groups)
        use = reader.read()
        self.assertGreater(use.mem_total, use.mem_used)
        self.assertGreater(use.mem_used, 0)
        self.assertGreaterEqual(use.cpu_count, 1)
        self.assertTrue(0 <= use.mem_percent <= 100)
        assert use.proc_rss is not None
        self.assertGreater(use.proc_rss, 1 << 20)

    def test_slice(self) -> None:
        """Within limits, percentages are of the limits."""
        self.write("cgroup/outer/cpu.max", "50000 100000\n")
        self.write("cgroup/outer/cpu.stat", "usage_usec 1000000\n")
        self.write("cgroup/outer/memory.max", "1048576\n")
        self.write("cgroup/outer/memory.current", "786432\n")
        self.write("cgroup/outer/memory.stat", "inactive_file 262144\n")
        clock = ManualClock()
        reader = HostReader(clock, self.proc, self.groups)
        clock.advance(10)
        self.write("cgroup/outer/cpu.stat", "usage_usec 2000000\n")
        use = reader.read()
        self.assertEqual((use.cpu_percent, use.cpu_count), (20.0, 1))
        self.assertEqual((use.mem_percent, use.mem_used, use.mem_total), (50.0, 524288, 1048576))

    def test_no_time_has_passed(self) -> None:
        """Two readings at one instant are no division by zero."""
        reader = HostReader(ManualClock(), self.proc, self.groups)
        self.assertEqual(reader.read().cpu_percent, 0.0)
        self.assertEqual(reader.read().proc_cpu_percent, 0.0)

    def test_counters_that_go_back(self) -> None:
        """A counter that was reset is no negative percentage."""
        self.write("cgroup/outer/cpu.max", "50000 100000\n")
        self.write("cgroup/outer/cpu.stat", "usage_usec 9000000\n")
        clock = ManualClock()
        reader = HostReader(clock, self.proc, self.groups)
        clock.advance(10)
        self.write("cgroup/outer/cpu.stat", "usage_usec 0\n")
        self.assertEqual(reader.read().cpu_percent, 0.0)
