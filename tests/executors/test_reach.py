"""Launches whose directory or program is on a mount that may not answer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from cronstable.clock import ManualClock
from cronstable.executors.local import LocalExecutor
from cronstable.executors.program import NotStarted
from cronstable.executors.reach import Reach, served_mounts
from tests.executors.support import Recorder, program


class AskedSpawner:
    """Tells what it was asked to start."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def spawn(self, spec: Any) -> Any:
        self.asked.append(spec.argv[0])
        raise NotStarted("asked")

    def close(self) -> None:
        pass


class ReachTests(SynchronousTestCase):
    """A mount in the test's hand."""

    def setUp(self) -> None:
        self.clock = ManualClock()
        self.mounts: tuple[str, ...] = ("/far",)
        self.looks: list[tuple[str, Deferred[str]]] = []
        self.spawner = AskedSpawner()
        self.executor = LocalExecutor(
            None,
            self.clock,
            spawner=self.spawner,  # type: ignore[arg-type]
            reach=Reach(self.clock, self.in_thread, lambda: self.mounts),
        )

    def in_thread(self, look: Any, place: str) -> Deferred[str]:
        answer: Deferred[str] = Deferred()
        self.looks.append((place, answer))
        return answer

    def answer(self, real: str | Exception) -> None:
        place, answer = self.looks.pop(0)
        if isinstance(real, Exception):
            answer.errback(real)
        else:
            answer.callback(real)

    def launch(self, name: str, **fields: Any) -> Recorder:
        run = Recorder()
        self.executor.launch(name, program(name, **fields), {}, run)
        return run

    def test_only_who_needs_it_waits(self) -> None:
        """One look serves all launches that need a place; others start meanwhile."""
        waiting = [self.launch(name, cwd="/far/away") for name in "ab"]
        self.launch("c")
        self.assertEqual(self.spawner.asked, ["c"])
        self.assertEqual([place for place, _ in self.looks], ["/far/away"])
        self.clock.advance(2)
        self.assertEqual(waiting[0].notices, [("waiting", "/far/away does not answer")])
        self.answer("/far/away")
        self.assertEqual(self.spawner.asked, ["c", "a", "b"])
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_looked_at_each_time(self) -> None:
        """What answered once may not the next time; what is not on the mount needs no look."""
        for real, looks in (("/far/away", 1), ("/disk/linked", 0)):
            self.launch("a", cwd="/linked")
            self.answer(real)
            self.launch("b", cwd="/linked")
            self.assertEqual(len(self.looks), looks)
            for _ in range(looks):
                self.answer(real)

    def test_mounts_change(self) -> None:
        """A mount that comes is noticed within seconds; without any nothing is looked at."""
        self.mounts = ()
        self.launch("a", cwd="/disk")
        self.mounts = ("/disk",)
        self.clock.advance(5)
        self.launch("b", cwd="/disk")
        self.assertEqual(len(self.looks), 1)

    def test_programs(self) -> None:
        """A program that is named by its path is a place as well; the system's shell is not."""
        self.launch("/far/bin/x", cwd="/near")
        self.launch("/bin/sh")
        self.answer("/near")
        self.assertEqual([place for place, _ in self.looks], ["/far/bin/x"])
        self.answer("/far/bin/x")
        self.assertEqual(self.spawner.asked, ["/bin/sh", "/far/bin/x"])

    def test_trouble(self) -> None:
        """A place that is not there has answered: the start finds out what is wrong."""
        self.launch("a", cwd="/far/gone")
        self.answer(FileNotFoundError(2, "gone"))
        self.assertEqual(self.spawner.asked, ["a"])

    def test_gives_up(self) -> None:
        """After its time a launch is not started, and nothing happens when the place answers."""
        run = self.launch("a", cwd="/far/away", start_within=30.0)
        self.clock.advance(30)
        assert run.result is not None
        self.assertEqual(
            (run.result.cause, run.result.reason),
            ("not-started", "/far/away does not answer (waited 30 seconds)"),
        )
        self.answer("/far/away")
        self.assertEqual((self.spawner.asked, len(self.executor)), ([], 0))

    def test_cancelled(self) -> None:
        """One that is cancelled meanwhile is never started; so are all when the daemon stops."""
        run, other = self.launch("a", cwd="/far/away"), self.launch("b", cwd="/far/away")
        self.executor.cancel("a", 30)
        self.executor.stop()
        assert run.result is not None and other.result is not None
        self.assertEqual((run.result.cause, other.result.cause), ("cancelled", "withdrawn"))
        self.answer("/far/away")
        self.assertEqual(self.spawner.asked, [])
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_no_longer_wanted(self) -> None:
        """A launch that waited is asked for again before it starts."""
        run = self.launch("a", cwd="/far/away")
        run.want = False
        self.answer("/far/away")
        assert run.result is not None
        self.assertEqual((run.result.cause, self.spawner.asked), ("withdrawn", []))


class LookTests(SynchronousTestCase):
    """What is looked at, and where."""

    def test_mount_table(self) -> None:
        """Mounts that somebody serves are told from disks, with what is octal in their names."""
        table = Path(self.mktemp())
        table.write_text(
            "/dev/a / ext4 rw 0 0\nsrv:/x /srv/with\\040blank nfs4 rw 0 0\n"
            "tmpfs /tmp tmpfs rw 0 0\n"
            "p /home/u/p fuse.sshfs rw 0 0\n//w/s /mnt/s cifs rw 0 0\n\n"
        )
        self.assertEqual(served_mounts(str(table)), ("/srv/with blank", "/home/u/p", "/mnt/s"))
        self.assertEqual(served_mounts(f"{table}-gone"), ())

    def test_links(self) -> None:
        """A place counts as what its links lead to, and one that is not there is an error."""
        base = os.path.realpath(self.mktemp())
        os.makedirs(f"{base}/there")
        os.symlink(f"{base}/there", f"{base}/link")
        answers: list[Any] = []

        def at_once(look: Any, place: str) -> Deferred[str]:
            answers.append(look(place))
            done: Deferred[str] = Deferred()
            done.callback(answers[-1])
            return done

        reach = Reach(ManualClock(), at_once, lambda: ("/far",))
        spec = program("x", cwd=f"{base}/link")
        (place,) = reach.unsure(spec)
        self.successResultOf(reach.when_reached(place))
        self.assertEqual((answers, reach.unsure(spec)), ([f"{base}/there"], []))
