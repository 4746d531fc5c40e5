"""The store after deaths and power losses, cut everywhere."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state.failpoints import POINTS
from cronstable.state.faults import FaultyFiles
from cronstable.state.memory import MemoryFiles
from tests.state.scenario import complaints, perform, told
from tests.state.support import StandingClock, disk_store, memory_store

ROOT = "/state/default"


class Dead(BaseException):
    """The process is no more; nothing it would still do happens."""


def life_until(call: int, fsync: str) -> tuple[MemoryFiles, dict[str, Any], StandingClock, bool]:
    """Run the scenario up to its C{call}th use of the file system; tell if it got that far."""
    clock = StandingClock()
    inner = MemoryFiles(clock.now)
    memory_store(clock, inner, fsync=fsync)
    files = FaultyFiles(inner)
    store = memory_store(clock, files, fsync=fsync)
    files.calls.clear()

    def die() -> None:
        if len(files.calls) >= call:
            raise Dead

    files.call(act=die)
    said: list[tuple[str, Any]] = []
    try:
        perform(store, clock, lambda what, value: said.append((what, value)))
    except Dead:
        return inner, told(said), clock, True
    return inner, told(said), clock, False


def some(seed: int) -> Callable[[str], bool]:
    """Return a chooser that lets about half of what was not forced to the medium survive."""
    return lambda path: zlib.crc32(f"{seed}{path}".encode()) % 2 == 0


class EveryCallTests(SynchronousTestCase):
    """A store that is cut at every single use of the file system."""

    def afterlife(self, left: MemoryFiles, said: dict[str, Any], clock: StandingClock) -> None:
        store = memory_store(clock, left)
        self.assertEqual(complaints(store, said, clock), [])

    def cut_everywhere(self, fsync: str, cut: Callable[[MemoryFiles], MemoryFiles]) -> int:
        """Cut at each call, look at what is left; return how many calls there were."""
        call = 0
        alive = True
        while alive:
            call += 1
            inner, said, clock, alive = life_until(call, fsync)
            left = cut(inner)
            try:
                self.afterlife(left, said, clock)
            except BaseException as error:
                error.args = (f"cut before call {call} ({fsync}): {error}",)
                raise
        return call

    def test_death(self) -> None:
        """A process that dies loses nothing it had acknowledged, with any C{state.fsync}."""
        for fsync in ("always", "rename", "never"):
            calls = self.cut_everywhere(fsync, MemoryFiles.process_death)
            self.assertGreater(calls, 100)

    def test_power_loss(self) -> None:
        """Nor does a power loss take it, whatever of the rest survives, unless it is C{never}."""
        choices: list[Callable[[str], bool]] = [lambda path: False, lambda path: True]
        for fsync in ("always", "rename"):
            for survives in (*choices, some(1), some(2), some(3)):
                self.cut_everywhere(fsync, lambda files, s=survives: files.power_loss(s))

    def test_no_torn_record(self) -> None:
        """Where files are forced before they take their names, nothing is ever set aside."""
        for call in range(1, 200, 7):
            inner, _, clock, _ = life_until(call, "rename")
            for seed in range(3):
                store = memory_store(clock, inner.power_loss(some(seed)))
                before = set(store.tree.files.names(f"{ROOT}/quarantine"))
                for stream in store.streams().names:
                    store.records.read(stream)
                after = set(store.tree.files.names(f"{ROOT}/quarantine"))
                self.assertEqual(
                    {
                        n
                        for n in after - before
                        if not n.startswith("000000000000") or "-x-1" not in n
                    },
                    set(),
                )

    def test_never_needs_no_hand(self) -> None:
        """With C{fsync: never} a power loss may cost records, never the next start."""
        for call in range(1, 250, 5):
            inner, _, clock, _ = life_until(call, "never")
            for survives in (lambda path: False, some(1), some(2)):
                store = memory_store(clock, inner.power_loss(survives))
                for stream in store.streams().names:
                    store.records.read(stream)
                store.records.append("runs/j", {"k": 99}, keep=2)
                self.assertEqual(store.records.latest("runs/j"), {"k": 99})

    def test_never_keeps_fences(self) -> None:
        """Leases are forced to the medium all the same: a fence never goes back."""
        for call in range(1, 250):
            inner, said, clock, _ = life_until(call, "never")
            for survives in (lambda path: False, some(1), some(2)):
                store = memory_store(clock, inner.power_loss(survives))
                clock.advance(1_000_000)
                held = store.leases.acquire("slots/j", "c", 10.0)
                self.assertGreater(getattr(held, "fence", 0), said.get("fence", 0))


class ProcessDeathTests(SynchronousTestCase):
    """Real processes that are killed at every named point, on a real disk."""

    def test_killed_at_every_point(self) -> None:
        """Whatever was acknowledged is there, and the next process goes on without a hand."""
        base = os.path.abspath(self.mktemp())
        os.mkdir(base)
        done = subprocess.run(
            [sys.executable, "-m", "tests.state.scenario", base],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        seen = {}
        for line in done.stdout.splitlines():
            point, status, said = line.split(" ", 2)
            seen[point] = int(status)
            facts = [fact.split(" ") for fact in said.split("|") if fact]
            clock = StandingClock()
            clock.advance(20_000)
            store = disk_store(os.path.join(base, point), clock)
            last = {what: int(value) if value.isdigit() else value for what, value in facts}
            self.assertEqual(complaints(store, last, clock), [], point)
        self.assertEqual(seen, dict.fromkeys(POINTS, -9))
