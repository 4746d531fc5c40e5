"""What one load reads, and how long what a file said is kept."""

from __future__ import annotations

import os
import threading

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sources import (
    ROOM,
    Cache,
    Reader,
    is_descriptor,
    is_read_once,
    open_regular,
    taken_names,
)


class SourcesTestCase(SynchronousTestCase):
    """A test case with a directory of files."""

    def setUp(self) -> None:
        """Make the directory."""
        self.directory = os.path.abspath(self.mktemp())
        os.makedirs(self.directory)

    def path(self, name: str) -> str:
        """Return the path of a file in the directory."""
        return os.path.join(self.directory, name)

    def write(self, name: str, text: str) -> str:
        """Write a file and return its path."""
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def fifo(self, name: str) -> str:
        """Make a FIFO and return its path."""
        os.mkfifo(self.path(name))
        return self.path(name)

    def feed(self, path: str, text: str) -> None:
        """Write a text to a FIFO once someone reads it."""

        def write() -> None:
            with open(path, "w") as file:
                file.write(text)

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        self.addCleanup(writer.join, 5)

    def piped(self, data: bytes) -> str:
        """Return the C{/dev/fd} path of a pipe that holds C{data} and has no writer left."""
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        os.write(writing, data)
        os.close(writing)
        return f"/dev/fd/{reading}"


class ReaderTests(SourcesTestCase):
    """Tests for L{Reader}."""

    def test_regular_file(self) -> None:
        """A regular file's source tells its stat and a digest of its bytes."""
        path = self.write("a", "text")
        reader = Reader()
        self.assertEqual(reader.read(path), b"text")
        (source,) = reader.sources
        found = os.stat(path)
        self.assertEqual(
            (source.path, source.read_once, source.mtime_ns, source.size, source.length),
            (path, False, found.st_mtime_ns, 4, 4),
        )
        self.write("a", "")
        reader = Reader()
        reader.read(path)
        self.assertFalse(reader.sources[0].spent)

    def test_one_state_in_a_load(self) -> None:
        """A load sees a file in one state, however often it reads it; the next one reads again."""
        path = self.write("a", "one")
        reader = Reader()
        reader.read(path)
        self.write("a", "three")
        self.assertEqual(reader.read(path), b"one")
        self.assertEqual(len(reader.sources), 1)
        self.assertEqual(Reader().read(path), b"three")

    def test_relative_path(self) -> None:
        """A source's path is absolute however it was named."""
        path = self.write("a", "x")
        reader = Reader()
        reader.read(os.path.relpath(path))
        reader.read(path)
        self.assertEqual([source.path for source in reader.sources], [path])

    def test_missing(self) -> None:
        """A file that is not there, or is a directory, raises OSError and is no source."""
        reader = Reader()
        self.assertRaises(FileNotFoundError, reader.read, self.path("a"))
        self.assertRaises(IsADirectoryError, reader.read, self.directory)
        self.assertEqual(reader.sources, ())

    def test_fifo(self) -> None:
        """A FIFO is read once in a load, when its writer comes, and has no stat to compare."""
        path = self.fifo("f")
        self.feed(path, "from the pipe")
        reader = Reader()
        self.assertEqual(reader.read(path), b"from the pipe")
        self.assertEqual(reader.read(path), b"from the pipe")
        (source,) = reader.sources
        self.assertEqual((source.read_once, source.mtime_ns, source.size), (True, None, None))

    def test_descriptor(self) -> None:
        """A path of a descriptor reads once whatever is behind it, a regular file included."""
        reader = Reader()
        pipe = self.piped(b"bytes")
        self.assertEqual(reader.read(pipe), b"bytes")
        with open(self.write("a", "text"), "rb") as file:
            regular = f"/dev/fd/{file.fileno()}"
            self.assertEqual(reader.read(regular), b"text")
        sources = {source.path: source for source in reader.sources}
        self.assertTrue(sources[pipe].read_once and sources[regular].read_once)
        self.assertEqual((sources[pipe].size, sources[regular].size), (None, 4))

    def test_device(self) -> None:
        """A device such as C{/dev/null} reads once, and may be empty."""
        reader = Reader()
        self.assertEqual(reader.read("/dev/null"), b"")
        self.assertTrue(reader.sources[0].read_once and reader.sources[0].spent)

    def test_spent(self) -> None:
        """A drained pipe gives nothing, and the rest of a file counts as spent as well."""
        pipe = self.piped(b"bytes")
        first, second = Reader(), Reader()
        first.read(pipe)
        second.read(pipe)
        self.assertEqual([r.sources[0].spent for r in (first, second)], [False, True])
        whole = attrs.evolve(second.sources[0], size=5, length=5)
        self.assertFalse(whole.spent)
        self.assertTrue(attrs.evolve(whole, length=2).spent)

    def test_scopes(self) -> None:
        """What is read in a scope counts for the scopes around it, and for no others."""
        a, b, c = (self.write(name, name) for name in "abc")
        reader = Reader()
        with reader.scope(a) as outer:
            reader.read(a)
            with reader.scope(b) as inner:
                reader.read(b)
        with reader.scope(c) as other:
            reader.read(c)
            reader.read(a)
        paths = [[source.path for source in scope.sources] for scope in (outer, inner, other)]
        self.assertEqual(paths, [[a, b], [b], [c, a]])
        self.assertEqual([source.path for source in reader.sources], [a, b, c])

    def test_scope_that_fails(self) -> None:
        """A scope ends with its block even if the parse in it fails."""
        a, b = self.write("a", "a"), self.write("b", "b")
        reader = Reader()
        with self.assertRaises(ValueError), reader.scope(a) as scope:
            raise ValueError
        reader.read(b)
        self.assertEqual(scope.sources, ())

    def test_listings(self) -> None:
        """The names that a load took from a directory are remembered."""
        reader = Reader()
        reader.listed(os.path.relpath(self.directory), ["a.yaml", "b.yaml"])
        (listing,) = reader.listings
        self.assertEqual(listing.directory, self.directory)
        self.assertEqual(listing.names, ("a.yaml", "b.yaml"))


class CacheTests(SourcesTestCase):
    """Tests for L{Cache}."""

    def setUp(self) -> None:
        """Start with nothing kept."""
        super().setUp()
        self.cache = Cache()

    def parse(self, path: str, *others: str) -> object:
        """Read a file and others that it names, and keep a new object as what it said."""
        reader = Reader(self.cache)
        value = object()
        with reader.scope(path) as scope:
            for each in (path, *others):
                reader.read(each)
        self.cache.put(path, scope, value)
        return value

    def kept(self, path: str) -> object | None:
        """Return what the next load finds for a file."""
        return self.cache.get(path, Reader(self.cache))

    def test_unknown(self) -> None:
        """There is nothing for a file that was never kept."""
        self.assertIsNone(self.kept(self.path("a")))

    def test_unchanged(self) -> None:
        """An entry holds while the file's bytes are the same, whatever its times say."""
        path = self.write("a", "text")
        value = self.parse(path)
        os.utime(path, ns=(1, 1))
        self.assertIs(self.kept(path), value)

    def test_changed_bytes(self) -> None:
        """An edit ends the entry even if the size and the modification time are the same."""
        path = self.write("a", "text")
        self.parse(path)
        found = os.stat(path)
        self.write("a", "next")
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
        self.assertIsNone(self.kept(path))

    def test_included_file(self) -> None:
        """An edit to any file that the parse read ends the entry; so does its removal."""
        path, env = self.write("a", "text"), self.write("env", "A=1")
        self.parse(path, env)
        self.assertIsNotNone(self.kept(path))
        self.write("env", "A=2")
        self.assertIsNone(self.kept(path))
        self.parse(path, env)
        os.unlink(env)
        self.assertIsNone(self.kept(path))

    def test_changed_back(self) -> None:
        """A file that is as it was when it was parsed gives what it said then."""
        path = self.write("a", "text")
        value = self.parse(path)
        self.write("a", "other")
        self.assertIsNone(self.kept(path))
        self.write("a", "text")
        self.assertIs(self.kept(path), value)

    def test_two_states(self) -> None:
        """An entry whose parse read one file in two states, by two names, is never used."""
        path, target = self.write("a", "text"), self.write("b", "one")
        os.symlink(target, self.path("link"))
        reader = Reader(self.cache)
        with reader.scope(path) as scope:
            reader.read(path)
            reader.read(target)
            self.write("b", "two")
            reader.read(self.path("link"))
        self.cache.put(path, scope, "value")
        self.assertIsNone(self.kept(path))
        self.write("b", "one")
        self.assertIsNone(self.kept(path))

    def test_sources_count_as_read(self) -> None:
        """What an entry's parse had read counts for the load that uses it, and its open scopes."""
        path, env = self.write("a", "text"), self.write("env", "A=1")
        self.parse(path, env)
        reader = Reader(self.cache)
        with reader.scope("parent") as scope:
            self.cache.get(path, reader)
        self.assertEqual([source.path for source in reader.sources], [path, env])
        self.assertEqual(scope.sources, reader.sources)

    def test_check_and_parse_agree(self) -> None:
        """A load that finds a file changed parses the very bytes that it compared."""
        path = self.write("a", "one")
        self.parse(path)
        self.write("a", "two")
        reader = Reader(self.cache)
        self.assertIsNone(self.cache.get(path, reader))
        self.write("a", "three")
        self.assertEqual(reader.read(path), b"two")

    def test_fifo_is_not_opened(self) -> None:
        """An entry with a FIFO holds while the rest is unchanged; nobody opens the FIFO."""
        path, fifo = self.write("a", "text"), self.fifo("env")
        self.feed(fifo, "A=1")
        value = self.parse(path, fifo)
        reader = Reader(self.cache)
        self.assertIs(self.cache.get(path, reader), value)
        self.assertEqual([source.read_once for source in reader.sources], [False, True])
        self.write("a", "next")
        self.assertIsNone(self.kept(path))

    def test_included_fifo(self) -> None:
        """A file that is itself a FIFO keeps its entry."""
        fifo = self.fifo("f")
        self.feed(fifo, "jobs")
        value = self.parse(fifo)
        self.assertIs(self.kept(fifo), value)

    def test_fifo_replaced_or_deleted(self) -> None:
        """A FIFO that became a regular file, or went away, ends the entry."""
        path, fifo = self.write("a", "text"), self.fifo("env")
        self.feed(fifo, "A=1")
        self.parse(path, fifo)
        os.unlink(fifo)
        self.assertIsNone(self.kept(path))
        self.write("env", "A=1")
        self.assertIsNone(self.kept(path))

    def test_file_replaced_by_fifo(self) -> None:
        """A regular file that became a FIFO ends the entry, and its one read is the parse's."""
        path, env = self.write("a", "text"), self.write("env", "A=1")
        self.parse(path, env)
        os.unlink(env)
        self.fifo("env")
        reader = Reader(self.cache)
        self.assertIsNone(self.cache.get(path, reader))
        self.feed(env, "A=2")
        self.assertEqual(reader.read(env), b"A=2")

    def test_looked_at_before_opened(self) -> None:
        """No source is opened when one of them is no longer what it was."""
        path, env = self.write("a", "text"), self.write("env", "A=1")
        self.parse(path, env)
        os.unlink(env)
        reader = Reader(self.cache)
        self.assertIsNone(self.cache.get(path, reader))
        self.write("a", "next")
        self.assertEqual(reader.read(path), b"next")

    def test_descriptor(self) -> None:
        """A descriptor counts as unchanged, closed or edited behind."""
        path = self.write("a", "text")
        with open(self.write("env", "A=1"), "rb") as file:
            value = self.parse(path, f"/dev/fd/{file.fileno()}")
            self.write("env", "A=22")
            self.assertIs(self.kept(path), value)
        self.assertIs(self.kept(path), value)

    def test_room(self) -> None:
        """There is room for at least 1,024 files, and the ones used longest ago go first."""
        path = self.write("a", "text")
        reader = Reader(self.cache)
        with reader.scope(path) as scope:
            reader.read(path)
        for number in range(ROOM + 10):
            self.cache.put(str(number), scope, number)
        Reader(self.cache)
        for _ in range(9):
            self.kept("5")
        self.assertEqual(len(self.cache), ROOM)
        self.assertEqual(self.kept("5"), 5)
        self.assertIsNone(self.kept("0"))
        self.assertEqual(self.kept(str(ROOM)), ROOM)

    def test_room_for_a_large_load(self) -> None:
        """Every file of a large load is kept for the next one, whatever joins meanwhile."""
        path = self.write("a", "text")
        reader = Reader(self.cache)
        with reader.scope(path) as scope:
            reader.read(path)
        for number in range(3 * ROOM):
            self.cache.put(str(number), scope, number)
        reader = Reader(self.cache)
        for number in range(-ROOM, 0):
            self.cache.put(str(number), scope, number)
        for number in range(3 * ROOM):
            self.assertEqual(self.cache.get(str(number), reader), number)


class PathTests(SourcesTestCase):
    """Tests for what a path alone tells."""

    def test_descriptors(self) -> None:
        """C{/dev/stdin} and C{/dev/fd/N}, in all their spellings, are descriptors."""
        for path in ("/dev/stdin", "/dev/fd/0", "/dev/fd/63", "/proc/self/fd/3", "/dev/./fd/3"):
            self.assertTrue(is_descriptor(path), path)
        for path in ("/dev/null", "/dev/fd", "/tmp/dev/fd/3", "/dev/fd/x", "stdin"):
            self.assertFalse(is_descriptor(path), path)

    def test_read_once(self) -> None:
        """FIFOs, devices and descriptors read once; files, directories, missing ones do not."""
        self.assertTrue(is_read_once(self.fifo("f")))
        self.assertTrue(is_read_once("/dev/null"))
        self.assertTrue(is_read_once("/dev/fd/999"))
        for path in (self.write("a", ""), self.directory, self.path("missing")):
            self.assertFalse(is_read_once(path), path)

    def test_taken_names(self) -> None:
        """YAML by extension and crontabs by name, sorted, without names that hide."""
        for name in ("b.yaml", "a.YML", "crontab", "x.cron", "_a.yml", ".b.yml", "notes", "c.yml~"):
            self.write(name, "")
        self.assertEqual(taken_names(self.directory), ("a.YML", "b.yaml", "crontab", "x.cron"))
        self.assertRaises(OSError, taken_names, self.path("missing"))

    def test_open_regular(self) -> None:
        """Only a regular file is opened, and a FIFO without a writer is not waited for."""
        with open_regular(self.write("a", "x")) as descriptor:
            self.assertEqual(os.read(descriptor, 9), b"x")
        with self.assertRaises(OSError), open_regular(self.fifo("f")):
            self.fail("a FIFO was opened")
