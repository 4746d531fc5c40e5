"""Every file system the store runs on does the same things."""

from __future__ import annotations

import errno
import os
import stat
import threading
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state.encoding import LARGEST
from cronstable.state.faults import FaultyFiles
from cronstable.state.files import Files, OsFiles
from cronstable.state.memory import MemoryFiles


class FilesContract:
    """What every implementation must do; C{make} gives one and an empty directory of it."""

    def make(self) -> tuple[Files, str]:
        raise NotImplementedError

    def setUp(self: Any) -> None:
        self.files, self.base = self.make()

    def test_create_and_read(self: Any) -> None:
        """A file is read as it was written, also empty and large ones; it is created only once."""
        for data in (b"", b"abc", b"x" * 3_000_000):
            path = f"{self.base}/f{len(data)}"
            self.files.create(path, data, sync=True)
            self.assertEqual(self.files.read(path), data)
            self.assertEqual(self.files.status(path).size, len(data))
            self.assertRaises(FileExistsError, self.files.create, path, b"", False)

    def test_pieces(self: Any) -> None:
        """A file grows at its end, and is read in parts, up to its end and no further."""
        path = f"{self.base}/f"
        self.files.create(path, b"abc", sync=False)
        self.files.append(path, b"")
        self.files.append(path, b"x" * 3_000_000)
        self.files.sync(path)
        self.assertEqual(self.files.status(path).size, 3_000_003)
        self.assertEqual(self.files.read_part(path, 1, 4), b"bcxx")
        self.assertEqual(self.files.read_part(path, 0, 2_500_000), b"abc" + b"x" * 2_499_997)
        self.assertEqual(self.files.read_part(path, 3_000_001, 10), b"xx")
        self.assertEqual(self.files.read_part(path, 3_000_003, 10), b"")

    def test_missing(self: Any) -> None:
        """What is not there is FileNotFoundError, whatever is asked."""
        gone = f"{self.base}/gone"
        for call in (
            lambda: self.files.read(gone),
            lambda: self.files.read_part(gone, 0, 1),
            lambda: self.files.append(gone, b""),
            lambda: self.files.sync(gone),
            lambda: self.files.names(gone),
            lambda: self.files.directories(gone),
            lambda: self.files.status(gone),
            lambda: self.files.unlink(gone),
            lambda: self.files.remove_directory(gone),
            lambda: self.files.touch(gone, 1.0),
            lambda: self.files.sync_directory(gone),
            lambda: self.files.rename(gone, f"{self.base}/other"),
            lambda: self.files.create(f"{gone}/file", b"", True),
            lambda: self.files.make_directory(f"{gone}/below"),
            lambda: self.files.lock(f"{gone}/lock", True),
        ):
            self.assertRaises(FileNotFoundError, call)

    def test_wrong_kind(self: Any) -> None:
        """A directory is not read as a file, nor a file listed."""
        self.files.make_directory(f"{self.base}/d")
        self.files.create(f"{self.base}/f", b"", False)
        self.assertRaises(IsADirectoryError, self.files.read, f"{self.base}/d")
        self.assertRaises(NotADirectoryError, self.files.names, f"{self.base}/f")
        self.assertRaises(NotADirectoryError, self.files.make_directory, f"{self.base}/f/x")
        self.assertRaises(FileExistsError, self.files.make_directory, f"{self.base}/f")
        self.assertRaises(FileExistsError, self.files.make_directory, f"{self.base}/d")

    def test_listing(self: Any) -> None:
        """Listings give names, directories among them on their own."""
        self.files.make_directory(f"{self.base}/d")
        self.files.create(f"{self.base}/d/below", b"", False)
        self.files.create(f"{self.base}/f", b"", False)
        self.assertEqual(sorted(self.files.names(self.base)), ["d", "f"])
        self.assertEqual(self.files.directories(self.base), ["d"])
        self.assertTrue(self.files.status(f"{self.base}/d").is_directory)

    def test_rename(self: Any) -> None:
        """A rename moves a file, over another if there is one, and directories with all in them."""
        self.files.make_directory(f"{self.base}/d")
        self.files.create(f"{self.base}/f", b"new", True)
        self.files.create(f"{self.base}/d/f", b"old", True)
        self.files.rename(f"{self.base}/f", f"{self.base}/d/f")
        self.assertEqual(self.files.read(f"{self.base}/d/f"), b"new")
        self.files.rename(f"{self.base}/d", f"{self.base}/e")
        self.assertEqual(self.files.read(f"{self.base}/e/f"), b"new")
        self.assertEqual(self.files.names(self.base), ["e"])

    def test_remove(self: Any) -> None:
        """Files go one by one, directories only once they are empty."""
        self.files.make_directory(f"{self.base}/d")
        self.files.create(f"{self.base}/d/f", b"", True)
        self.assertRaises(OSError, self.files.remove_directory, f"{self.base}/d")
        self.files.unlink(f"{self.base}/d/f")
        self.files.remove_directory(f"{self.base}/d")
        self.files.sync_directory(self.base)
        self.assertEqual(self.files.names(self.base), [])

    def test_touch(self: Any) -> None:
        """A file's time is what it was set to."""
        self.files.create(f"{self.base}/f", b"", True)
        self.files.touch(f"{self.base}/f", 1234.5)
        self.assertEqual(self.files.status(f"{self.base}/f").modified, 1234.5)

    def test_lock_excludes(self: Any) -> None:
        """Who has a lock keeps others out until it is released; the file has one byte."""
        path = f"{self.base}/l"
        lock = self.files.lock(path, wait=True)
        self.assertIs(self.files.lock(path, wait=False), None)
        lock.release()
        lock.release()
        again = self.files.lock(path, wait=False)
        self.assertIsNot(again, None)
        again.release()
        self.assertEqual(self.files.read(path), b"\0")

    def test_lock_waits(self: Any) -> None:
        """Who waits for a lock gets it when it is released."""
        path = f"{self.base}/l"
        lock = self.files.lock(path, wait=True)
        got = threading.Event()

        def wait() -> None:
            self.files.lock(path, wait=True).release()
            got.set()

        waiter = threading.Thread(target=wait)
        waiter.start()
        self.assertFalse(got.wait(0.05))
        lock.release()
        self.assertTrue(got.wait(10))
        waiter.join()

    def test_lock_swept_away(self: Any) -> None:
        """A lock on a file that lost its name meanwhile is none: the waiter locks the new file."""
        path = f"{self.base}/l"
        lock = self.files.lock(path, wait=True)
        held: list[Any] = []
        waiter = threading.Thread(target=lambda: held.append(self.files.lock(path, wait=True)))
        waiter.start()
        self.files.unlink(path)
        lock.release()
        waiter.join(10)
        self.assertIs(self.files.lock(path, wait=False), None)
        held[0].release()


class OsFilesTests(FilesContract, SynchronousTestCase):
    """The file system of the host."""

    def make(self) -> tuple[Files, str]:
        base = os.path.abspath(self.mktemp())
        os.mkdir(base)
        return OsFiles(), base

    def test_modes(self) -> None:
        """Directories are 0700, files and locks 0600."""
        files, base = OsFiles(), self.base
        files.make_directory(f"{base}/d")
        files.create(f"{base}/f", b"", True)
        lock = files.lock(f"{base}/l", True)
        assert lock is not None
        lock.release()
        modes = {n: stat.S_IMODE(os.stat(f"{base}/{n}").st_mode) for n in ("d", "f", "l")}
        self.assertEqual(modes, {"d": 0o700, "f": 0o600, "l": 0o600})

    def test_replaced_on_a_network_mount(self) -> None:
        """A file that was replaced while it was opened is read once more, not for ever."""
        OsFiles().create(f"{self.base}/f", b"abc", True)
        real, stale = os.open, [True]

        def once(path: str, *rest: Any) -> int:
            if stale and path.endswith("/f"):
                stale.pop()
                raise OSError(errno.ESTALE, "stale")
            return real(path, *rest)

        self.patch(os, "open", once)
        self.assertEqual(OsFiles().read(f"{self.base}/f"), b"abc")
        stale.extend([True, True])
        self.assertRaises(OSError, OsFiles().read, f"{self.base}/f")

    def test_too_large(self) -> None:
        """A file larger than any that a store writes takes no memory."""
        path = f"{self.base}/f"
        OsFiles().create(path, b"", False)
        os.truncate(path, LARGEST + 1)
        error = self.assertRaises(OSError, OsFiles().read, path)
        self.assertEqual((error.errno, error.filename), (errno.EFBIG, path))
        self.assertEqual(OsFiles().read_part(path, LARGEST, 9), b"\0")

    def test_no_access_time(self) -> None:
        """Reading leaves no trace, which would be a write for each record that is read."""
        path = f"{self.base}/f"
        OsFiles().create(path, b"abc", False)
        os.utime(path, (1_000_000_000, 1_100_000_000))
        self.assertEqual(OsFiles().read(path), b"abc")
        self.assertEqual(OsFiles().read_part(path, 1, 1), b"b")
        self.assertEqual(os.stat(path).st_atime, 1_000_000_000)

    def test_of_another_user(self) -> None:
        """A file that may be read, but not without a trace, is read."""
        path = f"{self.base}/f"
        OsFiles().create(path, b"abc", False)
        real, quiet = os.open, getattr(os, "O_NOATIME", 0)

        def not_ours(path: str, flags: int, *rest: Any) -> int:
            if flags & quiet:
                raise PermissionError(errno.EPERM, "Operation not permitted", path)
            return real(path, flags, *rest)

        self.patch(os, "open", not_ours)
        self.assertEqual(OsFiles().read(path), b"abc")

    def test_pipe_does_not_hang(self) -> None:
        """A named pipe where a file should be reads as empty instead of waiting for a writer."""
        os.mkfifo(f"{self.base}/p")
        self.assertEqual(OsFiles().read(f"{self.base}/p"), b"")

    def test_without_an_end(self) -> None:
        """A link to a device is not read until memory is full; it is larger than anything."""
        os.symlink("/dev/zero", f"{self.base}/z")
        error = self.assertRaises(OSError, OsFiles().read, f"{self.base}/z")
        self.assertEqual(error.errno, errno.EFBIG)

    def test_touch_of_a_link(self) -> None:
        """What a link leads to, which may be anybody's, keeps its time."""
        path = f"{self.base}/f"
        OsFiles().create(path, b"", False)
        os.utime(path, (5.0, 5.0))
        os.symlink(path, f"{self.base}/l")
        OsFiles().touch(f"{self.base}/l", 9.0)
        self.assertEqual((os.stat(path).st_mtime, os.lstat(f"{self.base}/l").st_mtime), (5.0, 9.0))

    def test_large_file_in_one_piece(self) -> None:
        """What a large file takes is one piece of memory: many would stay with their thread."""
        path = f"{self.base}/f"
        OsFiles().create(path, b"x" * 5_000_000, False)
        real, sizes = os.read, []

        def counted(descriptor: int, size: int) -> bytes:
            data = real(descriptor, size)
            sizes.append(len(data))
            return data

        self.patch(os, "read", counted)
        self.assertEqual(OsFiles().read(path), b"x" * 5_000_000)
        self.assertEqual([size for size in sizes if size > 65536], [5_000_000])

    def test_short_reads(self) -> None:
        """A system that gives a few bytes at a time gives all of them."""
        path = f"{self.base}/f"
        OsFiles().create(path, bytes(range(250)) * 1000, False)
        real = os.read
        self.patch(os, "read", lambda descriptor, size: real(descriptor, min(size, 100_000)))
        self.assertEqual(OsFiles().read(path), bytes(range(250)) * 1000)

    def test_trouble_names_the_file(self) -> None:
        """An error that comes after a file was opened says which file that was."""
        os.mkdir(f"{self.base}/d")
        OsFiles().create(f"{self.base}/g", b"", False)
        self.patch(os, "write", raise_full)
        for path, act in (
            (f"{self.base}/d", lambda: OsFiles().read(f"{self.base}/d")),
            (f"{self.base}/f", lambda: OsFiles().create(f"{self.base}/f", b"x", True)),
            (f"{self.base}/g", lambda: OsFiles().append(f"{self.base}/g", b"x")),
        ):
            with self.assertRaises(OSError) as raised:
                act()
            self.assertEqual(raised.exception.filename, path)


def raise_full(*ignored: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class MemoryFilesTests(FilesContract, SynchronousTestCase):
    """The file system in memory."""

    def make(self) -> tuple[Files, str]:
        files = MemoryFiles(lambda: 5.0)
        files.make_directory("/base")
        return files, "/base"

    def test_process_death(self) -> None:
        """The death of a process loses nothing that was written, and its locks."""
        files, base = MemoryFiles(lambda: 5.0), "/base"
        files.make_directory(base)
        files.create(f"{base}/f", b"abc", sync=False)
        files.lock(f"{base}/l", True)
        left = files.process_death()
        self.assertEqual(left.read(f"{base}/f"), b"abc")
        self.assertIsNot(left.lock(f"{base}/l", wait=False), None)

    def test_power_loss_takes_names(self) -> None:
        """A name whose directory was not forced to the medium is gone, or the old one is back."""
        files = MemoryFiles(lambda: 5.0)
        files.make_directory("/d")
        files.sync_directory("/")
        files.create("/d/old", b"1", sync=True)
        files.sync_directory("/d")
        files.create("/d/new", b"2", sync=True)
        files.rename("/d/new", "/d/old")
        files.create("/d/other", b"3", sync=True)
        left = files.power_loss()
        self.assertEqual((left.paths(), left.read("/d/old")), (["/d/old"], b"1"))
        self.assertEqual(files.power_loss(lambda path: True).paths(), ["/d/old", "/d/other"])
        files.sync_directory("/d")
        self.assertEqual(files.power_loss().read("/d/old"), b"2")

    def test_power_loss_takes_contents(self) -> None:
        """A file that was not forced to the medium may be there and empty."""
        files = MemoryFiles(lambda: 5.0)
        files.create("/f", b"abc", sync=False)
        files.sync_directory("/")
        self.assertEqual(files.power_loss().read("/f"), b"")

    def test_power_loss_takes_directories(self) -> None:
        """What is in a directory whose own name was not forced goes with it."""
        files = MemoryFiles(lambda: 5.0)
        files.make_directory("/d")
        files.create("/d/f", b"abc", sync=True)
        files.sync_directory("/d")
        self.assertEqual(files.power_loss().paths(), [])

    def test_power_loss_undoes_removal(self) -> None:
        """A removal that was not forced may not have happened."""
        files = MemoryFiles(lambda: 5.0)
        files.create("/f", b"abc", sync=True)
        files.sync_directory("/")
        files.unlink("/f")
        self.assertEqual(files.power_loss().read("/f"), b"abc")
        files.sync_directory("/")
        self.assertEqual(files.power_loss().paths(), [])


class FaultyFilesTests(FilesContract, SynchronousTestCase):
    """A faulty file system without a fault."""

    def make(self) -> tuple[Files, str]:
        inner = MemoryFiles(lambda: 5.0)
        inner.make_directory("/base")
        return FaultyFiles(inner), "/base"

    def test_strikes_where_told(self) -> None:
        """A fault hits its operations on its paths, as often as told, until all is healed."""
        files = FaultyFiles(MemoryFiles(lambda: 5.0))
        fault = files.fail("create", error=28, match="/a", times=2)
        for _ in range(2):
            self.assertRaises(OSError, files.create, "/a", b"", False)
        files.create("/a", b"", False)
        files.create("/b", b"", False)
        self.assertEqual(fault.hits, 2)
        files.fail("read", error=5)
        self.assertRaises(OSError, files.read, "/a")
        files.heal()
        self.assertEqual(files.read("/a"), b"")

    def test_torn_write(self) -> None:
        """A torn create leaves half of its bytes."""
        files = FaultyFiles(MemoryFiles(lambda: 5.0))
        files.fail("create", error=28, torn=True)
        self.assertRaises(OSError, files.create, "/a", b"abcdef", True)
        self.assertEqual(files.read("/a"), b"abc")

    def test_hangs_until_let_go(self) -> None:
        """A hanging call goes on when it is let go."""
        files = FaultyFiles(MemoryFiles(lambda: 5.0))
        files.create("/a", b"x", True)
        go_on = files.hang("read")
        read: list[bytes] = []
        reader = threading.Thread(target=lambda: read.append(files.read("/a")))
        reader.start()
        reader.join(0.05)
        self.assertEqual(read, [])
        go_on.set()
        reader.join(10)
        self.assertEqual(read, [b"x"])
