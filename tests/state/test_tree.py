"""How files get into a store."""

from __future__ import annotations

import errno
import os
import stat

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state.errors import StoreMissing
from cronstable.state.faults import FaultyFiles
from cronstable.state.files import OsFiles
from cronstable.state.memory import MemoryFiles
from cronstable.state.tree import AREAS, Notices, Sync, Tree, sync_of
from tests.state.support import StandingClock


def tree(files: FaultyFiles | None = None, **more: object) -> Tree:
    """Return a created tree in memory whose calls are recorded."""
    clock = StandingClock()
    made = Tree("/state/ns", clock, files or FaultyFiles(MemoryFiles(clock.now)), **more)  # type: ignore[arg-type]
    made.create()
    return made


def recorded(made: Tree) -> FaultyFiles:
    """Return the recording files of a tree."""
    assert isinstance(made.files, FaultyFiles)
    return made.files


class CreateTests(SynchronousTestCase):
    """Making a store."""

    def test_directories_and_modes(self) -> None:
        """Everything from the missing part of the path down is created 0700."""
        base = os.path.abspath(self.mktemp())
        made = Tree(f"{base}/state/ns", StandingClock(), OsFiles())
        made.create()
        made.create()
        made.probe()
        self.assertEqual(sorted(os.listdir(made.root)), sorted(AREAS))
        for path in (base, f"{base}/state", made.root, *(made.path(area) for area in AREAS)):
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o700, path)
        self.assertEqual(os.listdir(made.path("tmp")), [])

    def test_durable(self) -> None:
        """A created store survives a power loss."""
        clock = StandingClock()
        files = MemoryFiles(clock.now)
        Tree("/a/b/ns", clock, files).create()
        self.assertEqual(sorted(files.power_loss().names("/a/b/ns")), sorted(AREAS))

    def test_not_a_directory(self) -> None:
        """A file in the way is an error, not something to overwrite."""
        path = self.mktemp()
        with open(path, "w"):
            pass
        made = Tree(f"{os.path.abspath(path)}/ns", StandingClock(), OsFiles())
        self.assertRaises(NotADirectoryError, made.create)

    def test_area_that_is_none(self) -> None:
        """A file, or a link to a mount that is not there, in the place of an area is an error."""
        for area in AREAS:
            made = Tree(os.path.abspath(self.mktemp()), StandingClock(), OsFiles())
            os.mkdir(made.root)
            os.symlink("not/there", made.path(area))
            self.assertRaises(FileNotFoundError, made.create)
            os.unlink(made.path(area))
            made.files.create(made.path(area), b"", True)
            self.assertRaises(NotADirectoryError, made.create)

    def test_probe_fails(self) -> None:
        """A store that cannot be written is noticed, and the probe leaves nothing."""
        made = tree()
        recorded(made).fail("create", error=errno.ENOSPC, torn=True)
        self.assertRaises(OSError, made.probe)
        self.assertEqual(made.files.names(made.path("tmp")), [])


class WriteTests(SynchronousTestCase):
    """Putting a file in place."""

    def write(self, made: Tree, target: str = "/state/ns/docs/x", sync: Sync | None = None) -> None:
        made.write("document", target, b"content", sync or Sync())

    def test_order(self) -> None:
        """The temp file is forced before it takes its name, the directory after."""
        points: list[str] = []
        made = tree(at=points.append)
        recorded(made).calls.clear()
        self.write(made)
        self.assertEqual(
            recorded(made).calls,
            [
                ("create", f"/state/ns/tmp/w-{made.instance}-000000000001.tmp"),
                ("rename", "/state/ns/docs/x"),
                ("sync_directory", "/state/ns/docs"),
            ],
        )
        self.assertEqual(
            points, [f"document.{s}" for s in ("begin", "written", "renamed", "synced")]
        )

    def test_failed_write_leaves_nothing(self) -> None:
        """No step that fails leaves a temp file or touches what was there."""
        for op in ("create", "rename"):
            made = tree()
            self.write(made)
            recorded(made).fail(op, error=errno.ENOSPC, torn=True)  # type: ignore[arg-type]
            self.assertRaises(OSError, self.write, made)
            self.assertEqual(made.files.names(made.path("tmp")), [], op)
            self.assertEqual(made.files.read("/state/ns/docs/x"), b"content")

    def test_directory_is_made_again(self) -> None:
        """A directory that went meanwhile is made anew, with its parents, durably."""
        made = tree()
        self.write(made, "/state/ns/records/a/x")
        made.files.remove_directory(made.path("tmp"))
        self.write(made, "/state/ns/records/b/x")
        inner = recorded(made)._inner
        assert isinstance(inner, MemoryFiles)
        self.assertEqual(inner.power_loss().read("/state/ns/records/b/x"), b"content")

    def test_missing_store(self) -> None:
        """A store whose directory has gone is missed, never begun anew."""
        made = tree()
        for area in AREAS:
            made.files.remove_directory(made.path(area))
        made.files.remove_directory(made.root)
        self.assertRaises(StoreMissing, self.write, made)
        self.assertRaises(StoreMissing, made.make_directory, made.path("records", "a", "b"))
        self.assertEqual(made.files.names("/state"), [])

    def test_what_is_forced(self) -> None:
        """C{state.fsync} and what a write is for decide what is forced to the medium."""
        table = {
            ("always", True): (True, True),
            ("always", False): (True, True),
            ("rename", True): (True, True),
            ("rename", False): (True, False),
            ("never", True): (False, False),
            ("never", False): (False, False),
        }
        for (mode, acknowledges), (file, directory) in table.items():
            self.assertEqual(sync_of(mode, acknowledges), Sync(file, directory))  # type: ignore[arg-type]

    def test_never_forces_nothing(self) -> None:
        """With C{never} not even new directories of streams are forced."""
        made = tree(fsync="never")
        recorded(made).calls.clear()
        self.write(made, "/state/ns/records/a/x", sync_of("never", True))
        self.assertNotIn("sync_directory", [op for op, _ in recorded(made).calls])


class QuarantineTests(SynchronousTestCase):
    """Setting files aside."""

    def test_name_and_age(self) -> None:
        """A file keeps its name, gets this process's mark, and is young."""
        made = tree()
        made.files.create("/state/ns/docs/f.json", b"?", True)
        made.files.touch("/state/ns/docs/f.json", 1.0)
        self.assertTrue(made.quarantine("/state/ns/docs/f.json"))
        path = made.path("quarantine", f"f.json.{made.instance}.bad")
        self.assertEqual(made.files.status(path).modified, made.clock.now())

    def test_failure_is_no_error(self) -> None:
        """A file that cannot be moved, or has gone, is left to the next reader."""
        made = tree()
        self.assertFalse(made.quarantine("/state/ns/docs/gone"))
        made.files.create("/state/ns/docs/f", b"?", True)
        recorded(made).fail("rename", error=errno.EROFS)
        self.assertFalse(made.quarantine("/state/ns/docs/f"))
        self.assertEqual(made.files.read("/state/ns/docs/f"), b"?")


class LockedTests(SynchronousTestCase):
    """Holding a lock file."""

    def test_marked_as_used(self) -> None:
        """A lock that is taken is young; one that is tried in passing leaves no trace."""
        made = tree()
        path = "/state/ns/docs/ns/key.lock"
        with made.locked(path):
            self.assertIs(made.try_lock(path), None)
        made.files.touch(path, 1.0)
        lock = made.try_lock(path)
        assert lock is not None
        lock.release()
        self.assertEqual(made.files.status(path).modified, 1.0)
        with made.locked(path):
            pass
        self.assertEqual(made.files.status(path).modified, made.clock.now())
        self.assertEqual(made.stats.locks.acquisitions, 2)

    def test_released_after_an_error(self) -> None:
        """An error inside gives the lock back."""
        made = tree()
        with self.assertRaises(KeyError), made.locked("/state/ns/leases/x.lock"):
            raise KeyError
        self.assertIsNot(made.try_lock("/state/ns/leases/x.lock"), None)


class NoticesTests(SynchronousTestCase):
    """Saying things once."""

    def test_once(self) -> None:
        """A thing is new once, and again after it was forgotten."""
        notices = Notices()
        self.assertEqual([notices.first("a"), notices.first("a"), notices.first("b")], [1, 0, 1])
        notices.forget("a")
        self.assertTrue(notices.first("a"))

    def test_bounded(self) -> None:
        """What is remembered is bounded."""
        notices = Notices(limit=3)
        for number in range(100):
            notices.first(number)
        self.assertLessEqual(len(notices._said), 3)
