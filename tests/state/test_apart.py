"""Files that nobody else in the process has open."""

from __future__ import annotations

import errno
import os
import signal
import threading
from unittest import mock

from twisted.trial.unittest import SynchronousTestCase

from cronstable.platform import take_own_descriptors
from cronstable.state.apart import ApartFiles
from cronstable.state.files import Files, OsFiles
from cronstable.state.topology import may_hold_up
from tests.state.test_files import FilesContract


def _parts() -> bool:
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(take_own_descriptors()))
    thread.start()
    thread.join()
    return found[0]


PARTS = _parts()
NO_PARTS = "this system cannot part descriptors"


def open_here() -> set[str]:
    """Return the paths of what this process has open, and what it starts would inherit."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:
            continue
    return found


class Looking(OsFiles):
    """Notes what the process has open while a file is open."""

    seen: bool | None = None
    blocked: frozenset[int] = frozenset()

    def sync(self, path: str) -> None:
        self.blocked = frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        descriptor = os.open(path, os.O_WRONLY)
        try:
            # The table of the process is that of its main thread, not of the one that asks.
            links = f"/proc/{os.getpid()}/fd"
            self.seen = any(
                os.path.realpath(f"{links}/{number}") == path for number in os.listdir(links)
            )
        finally:
            os.close(descriptor)


class ApartFilesTests(FilesContract, SynchronousTestCase):
    """The same file system, opened by threads of its own."""

    def make(self) -> tuple[Files, str]:
        base = os.path.realpath(self.mktemp())
        os.mkdir(base)
        return ApartFiles(OsFiles(), lambda: True), base

    def looked(self, needed: bool) -> bool | None:
        inner = Looking()
        files = ApartFiles(inner, lambda: needed)
        path = f"{self.base}/looked-{needed}"
        files.create(path, b"", False)
        files.sync(path)
        return inner.seen

    def test_nobody_inherits(self) -> None:
        """An open file is not among the process's, which each program that it starts inherits."""
        self.assertEqual((self.looked(True), self.looked(False)), (False, True))

    def test_locks(self) -> None:
        """So is the file of a lock, for as long as it is held; others are taken meanwhile."""
        path = f"{self.base}/lock"
        lock = self.files.lock(path, True)
        assert lock is not None
        self.assertNotIn(path, open_here())
        self.assertIsNone(self.files.lock(path, False))
        other = self.files.lock(f"{self.base}/other", True)
        assert other is not None
        lock.release()
        lock.release()
        other.release()
        again = self.files.lock(path, False)
        assert again is not None
        again.release()

    def test_signals(self) -> None:
        """No signal is handled by a thread that could not wake the reactor."""
        inner = Looking()
        files = ApartFiles(inner, lambda: True)
        files.create(f"{self.base}/f", b"", False)
        files.sync(f"{self.base}/f")
        self.assertLessEqual({signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP}, inner.blocked)

    if not PARTS:
        test_signals.skip = NO_PARTS  # type: ignore[attr-defined]
        test_nobody_inherits.skip = NO_PARTS  # type: ignore[attr-defined]
        test_locks.skip = NO_PARTS  # type: ignore[attr-defined]

    def test_no_room(self) -> None:
        """Without room for a thread there is trouble with the store, as any other."""

        def refuse(thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        with mock.patch.object(threading.Thread, "start", refuse):
            error = self.assertRaises(OSError, self.files.create, f"{self.base}/f", b"", False)
        self.assertEqual(error.errno, errno.EAGAIN)
        self.files.create(f"{self.base}/f", b"", False)

    def test_threads_end(self) -> None:
        """Threads that have nothing to do end, and others come when they are needed."""
        before = set(threading.enumerate())
        files = ApartFiles(OsFiles(), lambda: True, idle=0.001)
        files.create(f"{self.base}/f", b"a", False)
        for thread in set(threading.enumerate()) - before:
            thread.join(30)
            self.assertFalse(thread.is_alive())
        self.assertEqual(files.read(f"{self.base}/f"), b"a")


class UnableTests(FilesContract, SynchronousTestCase):
    """A system that cannot part descriptors has files all the same."""

    def make(self) -> tuple[Files, str]:
        base = os.path.abspath(self.mktemp())
        os.mkdir(base)
        self.asked: list[str] = []
        return ApartFiles(OsFiles(), self.needed, self.cannot), base

    def needed(self) -> bool:
        self.asked.append("needed")
        return True

    def cannot(self) -> bool:
        self.asked.append("try")
        return False

    def test_asked_once(self) -> None:
        """It is tried once."""
        for name in "ab":
            self.files.create(f"{self.base}/{name}", b"", False)
        self.assertEqual(self.asked, ["needed", "try"])


class MayHoldUpTests(SynchronousTestCase):
    """Which mounts are in doubt."""

    def test_kinds(self) -> None:
        """Those that a server or a process serves are, and what is not known; a disk is not."""
        table = "/dev/a / {} rw 0 0\n"
        for kind in ("ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay"):
            self.assertFalse(may_hold_up("/srv", table.format(kind)), kind)
        for kind in ("nfs4", "cifs", "fuse", "fuse.sshfs", "autofs", "9p", "newfs"):
            self.assertTrue(may_hold_up("/srv", table.format(kind)), kind)
        self.assertFalse(may_hold_up("/srv", ""))
