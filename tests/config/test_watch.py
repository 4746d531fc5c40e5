"""When a configuration is read again, and what is never opened."""

from __future__ import annotations

import os
import threading

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sources import Cache, Reader, Source, taken_names
from cronstable.config.watch import (
    Attempt,
    Decision,
    SourceWatch,
    changed_since_parse,
    is_read_once,
    relisted,
    take,
)

PARSE, KEEP, WARN = Decision.PARSE, Decision.KEEP, Decision.WARN


class Files(SynchronousTestCase):
    """A directory of files whose modification times move with every edit."""

    def setUp(self) -> None:
        """Make the directory."""
        self.directory = os.path.abspath(self.mktemp())
        os.makedirs(self.directory)
        self._moment = 1_700_000_000_000_000_000

    def path(self, name: str) -> str:
        """Return the path of a file in the directory."""
        return os.path.join(self.directory, name)

    def touch(self, name: str) -> None:
        """Give a file or directory a modification time of its own."""
        self._moment += 1_000_000_000
        os.utime(self.path(name), ns=(self._moment, self._moment))

    def write(self, name: str, text: str) -> str:
        """Write a file, as an editor would some time after the last edit."""
        with open(self.path(name), "w") as file:
            file.write(text)
        self.touch(name)
        return self.path(name)

    def fifo(self, name: str) -> str:
        """Make a FIFO and return its path."""
        os.mkfifo(self.path(name))
        return self.path(name)


class SignatureTests(Files):
    """Tests for L{take}."""

    def test_files(self) -> None:
        """A signature changes with a file's modification time and size, and with nothing else."""
        path, other = self.write("a", "text"), self.write("b", "")
        before = take([path, other])
        self.assertEqual(take([other, path, other]), before)
        os.chmod(path, 0o600)
        self.assertEqual(take([path, other]), before)
        self.touch("a")
        self.assertNotEqual(take([path, other]), before)

    def test_size_alone(self) -> None:
        """A file of another size with the old modification time has changed."""
        path = self.write("a", "text")
        before, found = take([path]), os.stat(path)
        self.write("a", "longer text")
        os.utime(path, ns=(found.st_mtime_ns, found.st_mtime_ns))
        self.assertNotEqual(take([path]), before)

    def test_directory(self) -> None:
        """A directory contributes its modification time."""
        before = take([self.directory])
        self.touch("")
        self.assertNotEqual(take([self.directory]), before)

    def test_fifo(self) -> None:
        """A FIFO contributes its path alone, and differs from a file, or none, in its place."""
        path = self.fifo("f")
        before = take([path])
        self.touch("f")
        self.assertEqual(take([path]), before)
        os.unlink(path)
        self.assertNotEqual(take([path]), before)
        self.write("f", "")
        self.assertNotEqual(take([path]), before)

    def test_link_target(self) -> None:
        """What counts is the file that a link leads to, however many links there are."""
        for name in ("one", "two"):
            os.mkdir(self.path(name))
            self.write(f"{name}/c.yaml", "same")
        os.symlink("one", self.path("data"))
        os.symlink("data/c.yaml", self.path("c.yaml"))
        before = take([self.path("c.yaml")])
        os.symlink("two", self.path("next"))
        os.rename(self.path("next"), self.path("data"))
        self.assertNotEqual(take([self.path("c.yaml")]), before)


class ComparisonTests(Files):
    """Tests for reading sources a second time."""

    def test_same(self) -> None:
        """Files with the bytes that were parsed have not changed, whatever their times."""
        reader = Reader()
        reader.read(self.write("a", "text"))
        self.touch("a")
        self.assertEqual(changed_since_parse(reader.sources), [])

    def test_changed(self) -> None:
        """A file with other bytes has changed, also one that is gone or a file no more."""
        reader = Reader()
        paths = [self.write(name, "text") for name in "abcd"]
        for path in paths:
            reader.read(path)
        found = os.stat(paths[0])
        self.write("a", "next")
        os.utime(paths[0], ns=(found.st_mtime_ns, found.st_mtime_ns))
        os.unlink(paths[1])
        os.unlink(paths[2])
        self.fifo("c")
        self.assertEqual(changed_since_parse(reader.sources), paths[:3])

    def test_read_once(self) -> None:
        """What reads once is not read again."""
        reader = Reader()
        reader.read("/dev/null")
        self.assertTrue(is_read_once("/dev/null"))
        self.assertEqual(changed_since_parse(reader.sources), [])

    def test_listings(self) -> None:
        """A file that a load would take joining or leaving changes a listing; others do not."""
        self.write("a.yaml", "")
        reader = Reader()
        reader.listed(self.directory, taken_names(self.directory))
        self.write("notes.txt", "")
        self.assertEqual(relisted(reader.listings), [])
        self.write("b.yaml", "")
        self.assertEqual(relisted(reader.listings), [self.directory])


class WatchTestCase(Files):
    """A watched configuration, loaded as the reload service would."""

    def watch(self, main: str) -> None:
        """Start watching a configuration; one load after another shares a cache."""
        self.watched = SourceWatch(main)
        self.cache = Cache()

    def reader(self, *paths: str, directory: str | None = None) -> Reader:
        """Read what a load would read."""
        reader = Reader(self.cache)
        if directory is not None:
            names = taken_names(directory)
            reader.listed(directory, names)
            paths = (*(os.path.join(directory, name) for name in names), *paths)
        for path in paths:
            reader.read(path)
        return reader

    def finish(self, attempt: Attempt, reader: Reader, startup: bool = False) -> None:
        """Tell the watch that a load succeeded."""
        self.watched.loaded(attempt, reader.sources, reader.listings, startup)

    def start(self, *paths: str, directory: str | None = None) -> None:
        """Load for the first time, undisturbed."""
        attempt = self.watched.begin(True)
        self.finish(attempt, self.reader(*paths, directory=directory), startup=True)

    def reload(self, *paths: str, requested: bool = False, directory: str | None = None) -> None:
        """Load again, undisturbed."""
        self.assertIs(self.watched.should_parse(requested), PARSE)
        attempt = self.watched.begin(requested)
        self.finish(attempt, self.reader(*paths, directory=directory))

    def decides(self, *decisions: Decision) -> None:
        """Check what the next checks come to, without requests."""
        self.assertEqual([self.watched.should_parse(False) for _ in decisions], list(decisions))


class RegularTests(WatchTestCase):
    """Tests for a configuration in regular files."""

    def setUp(self) -> None:
        """Load a configuration with one more source."""
        super().setUp()
        self.main, self.other = self.write("main.yaml", "jobs"), self.write("env", "A=1")
        self.watch(self.main)

    def test_unchanged(self) -> None:
        """After a start nothing is parsed again while nothing changes."""
        self.start(self.main, self.other)
        self.decides(KEEP, KEEP)
        self.assertTrue(self.watched.successful)

    def test_edit(self) -> None:
        """An edit of any source is parsed at the next check, once."""
        self.start(self.main, self.other)
        self.write("env", "A=2")
        self.reload(self.main, self.other)
        self.decides(KEEP, KEEP)

    def test_replaced_by_rename(self) -> None:
        """A file that another one is renamed over has changed."""
        self.start(self.main, self.other)
        os.rename(self.write("new", "jobs"), self.main)
        self.decides(PARSE)

    def test_request(self) -> None:
        """A request parses though nothing seems to have changed."""
        self.start(self.main, self.other)
        self.reload(self.main, self.other, requested=True)
        self.decides(KEEP)

    def test_edit_during_start(self) -> None:
        """A file that changes while the daemon starts is parsed again in the first pass."""
        attempt = self.watched.begin(True)
        reader = self.reader(self.main, self.other)
        self.write("env", "A=2")
        self.finish(attempt, reader, startup=True)
        self.decides(PARSE)

    def test_same_stat_during_start(self) -> None:
        """At start the bytes are compared, so that an edit which keeps size and time is seen."""
        attempt = self.watched.begin(True)
        reader = self.reader(self.main, self.other)
        found = os.stat(self.other)
        self.write("env", "A=2")
        os.utime(self.other, ns=(found.st_mtime_ns, found.st_mtime_ns))
        self.finish(attempt, reader, startup=True)
        self.decides(PARSE)

    def test_edit_during_parse(self) -> None:
        """An edit while a parse runs, before or after the file is read, is parsed again."""
        self.start(self.main, self.other)
        attempt = self.watched.begin(True)
        reader = self.reader(self.main, self.other)
        self.write("env", "A=2")
        self.finish(attempt, reader)
        self.decides(PARSE)
        attempt = self.watched.begin(False)
        self.write("env", "A=3")
        self.finish(attempt, self.reader(self.main, self.other))
        self.decides(PARSE)

    def test_edit_undone_around_the_read(self) -> None:
        """A file that was read in a state between two equal looks is parsed again."""
        self.start(self.main, self.other)
        before = os.stat(self.other).st_mtime_ns
        attempt = self.watched.begin(True)
        self.write("env", "A=2")
        reader = self.reader(self.main, self.other)
        self.write("env", "A=1")
        os.utime(self.other, ns=(before, before))
        self.finish(attempt, reader)
        self.decides(PARSE)

    def test_other_set_of_sources(self) -> None:
        """After a parse that read another set of files the next check parses once more."""
        self.start(self.main)
        self.reload(self.main, self.other, requested=True)
        self.reload(self.main, self.other)
        self.decides(KEEP)
        self.write("env", "A=2")
        self.decides(PARSE)

    def test_refused(self) -> None:
        """A refused parse is tried at every check until one succeeds; the loaded set stays."""
        self.start(self.main, self.other)
        self.write("main.yaml", "jobs: [")
        for _ in range(3):
            self.assertIs(self.watched.should_parse(False), PARSE)
            self.watched.refused(self.watched.begin(False), "bad")
            self.assertFalse(self.watched.successful)
        self.write("main.yaml", "jobs")
        self.reload(self.main, self.other)
        self.assertTrue(self.watched.successful)
        self.decides(KEEP)

    def test_refusals_are_told_once(self) -> None:
        """An error is told in full once for each text, each request, and after a success."""
        self.start(self.main)
        attempt = self.watched.begin(False)
        texts = ("bad", "bad", "worse", "bad", "worse")
        told = [self.watched.refused(attempt, text) for text in texts]
        self.assertEqual(told, [True, False, True, False, False])
        self.assertTrue(self.watched.refused(self.watched.begin(True), "bad"))
        self.assertFalse(self.watched.refused(attempt, "bad"))
        self.reload(self.main)
        self.assertTrue(self.watched.refused(attempt, "bad"))

    def test_refused_after_a_pipe_was_read(self) -> None:
        """A parse that read a pipe and failed is not tried again until something changes."""
        self.start(self.main)
        self.write("main.yaml", "jobs: [")
        attempt = self.watched.begin(False)
        self.watched.refused(attempt, "bad", self.reader(self.main, "/dev/null").sources)
        self.decides(KEEP)
        self.assertIs(self.watched.should_parse(True), PARSE)
        self.write("main.yaml", "jobs")
        self.decides(PARSE)

    def test_refused_with_a_new_source(self) -> None:
        """A file that only the refused parse read is a reason to try again as well."""
        self.start(self.main)
        self.write("main.yaml", "jobs: [")
        attempt = self.watched.begin(False)
        sources = self.reader(self.main, self.other, "/dev/null").sources
        self.watched.refused(attempt, "bad", sources)
        self.decides(KEEP)
        self.write("env", "A=2")
        self.decides(PARSE)

    def test_removed(self) -> None:
        """A source that is gone is a change, and stays one until a parse succeeds."""
        self.start(self.main, self.other)
        os.unlink(self.main)
        self.assertIs(self.watched.should_parse(False), PARSE)
        self.watched.refused(self.watched.begin(False), "gone")
        self.decides(PARSE)

    def test_empty_file(self) -> None:
        """An empty regular file is a configuration like any other."""
        self.start(self.main)
        self.write("main.yaml", "")
        self.assertFalse(self.watched.gave_nothing(self.reader(self.main).sources))

    def test_fifo_beside_it(self) -> None:
        """A FIFO that the configuration names is never a reason to parse."""
        attempt, reader = self.watched.begin(True), self.reader(self.main)
        reader.adopt([Source(self.fifo("pipe"), True, None, None, b"", 3)])
        self.finish(attempt, reader, startup=True)
        self.touch("pipe")
        self.decides(KEEP)

    def test_source_replaced_by_fifo(self) -> None:
        """A regular source that became a FIFO is a change: the file that names it is parsed."""
        self.start(self.main, self.other)
        os.unlink(self.other)
        self.fifo("env")
        self.decides(PARSE)


class DirectoryTests(WatchTestCase):
    """Tests for a configuration directory."""

    def setUp(self) -> None:
        """Watch a directory with one file."""
        super().setUp()
        self.write("a.yaml", "jobs")
        self.touch("")
        self.watch(self.directory)

    def test_joined_or_left(self) -> None:
        """A file that joins or leaves is loaded at the next check, and then all is quiet."""
        self.start(directory=self.directory)
        self.decides(KEEP)
        self.write("b.yaml", "jobs")
        self.touch("")
        self.reload(directory=self.directory)
        self.reload(directory=self.directory)
        self.decides(KEEP)
        os.unlink(self.path("b.yaml"))
        self.touch("")
        self.decides(PARSE)

    def test_joined_during_parse(self) -> None:
        """A file that joins while a parse runs is seen though the directory's time is the same."""
        self.start(directory=self.directory)
        before = os.stat(self.directory).st_mtime_ns
        for startup in (True, False):
            attempt = self.watched.begin(True)
            reader = self.reader(directory=self.directory)
            self.write(f"joined-{startup}.yaml", "jobs")
            os.utime(self.directory, ns=(before, before))
            self.finish(attempt, reader, startup)
            self.decides(PARSE)


class PipeTestCase(WatchTestCase):
    """Tests for a configuration that gives its bytes once."""

    def setUp(self) -> None:
        """Watch a FIFO, which names one more source."""
        super().setUp()
        self.main, self.other = self.fifo("main"), self.write("env", "A=1")
        self.watch(self.main)

    def reader(self, *paths: str, directory: str | None = None, text: str = "jobs") -> Reader:
        """Read what a load would read, while someone writes C{text} to the FIFO."""
        if self.main not in paths:
            return super().reader(*paths, directory=directory)

        def write() -> None:
            with open(self.main, "w") as file:
                file.write(text)

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        self.addCleanup(writer.join, 5)
        return super().reader(*paths, directory=directory)


class FifoTests(PipeTestCase):
    """Tests for a FIFO named by its own path."""

    def test_never_without_a_request(self) -> None:
        """The check leaves the FIFO alone whatever its times say; a request reads it."""
        self.start(self.main, self.other)
        self.touch("main")
        self.decides(KEEP, KEEP)
        self.reload(self.main, self.other, requested=True)
        self.decides(KEEP)

    def test_changed_source(self) -> None:
        """A change of another source is told once for each change, and the gauge falls."""
        self.start(self.main, self.other)
        self.write("env", "A=2")
        self.decides(WARN, KEEP, KEEP)
        self.assertFalse(self.watched.successful)
        self.write("env", "A=3")
        self.decides(WARN, KEEP)

    def test_request_after_a_change(self) -> None:
        """A request takes in the changed source, and the gauge rises."""
        self.start(self.main, self.other)
        self.write("env", "A=2")
        self.decides(WARN)
        self.reload(self.main, self.other, requested=True)
        self.assertTrue(self.watched.successful)
        self.decides(KEEP)

    def test_difference_at_start(self) -> None:
        """A source that changed while the daemon started is told in the first pass."""
        attempt = self.watched.begin(True)
        reader = self.reader(self.main, self.other)
        self.write("env", "A=2")
        self.finish(attempt, reader, startup=True)
        self.decides(WARN, KEEP)

    def test_difference_after_a_reload(self) -> None:
        """So is one that changed while a requested reload ran, by its bytes."""
        self.start(self.main, self.other)
        for text, same_stat, decision in (("A=2", False, WARN), ("A=3", True, WARN)):
            attempt = self.watched.begin(True)
            reader = self.reader(self.main, self.other)
            found = os.stat(self.other)
            self.write("env", text)
            if same_stat:
                os.utime(self.other, ns=(found.st_mtime_ns, found.st_mtime_ns))
            self.finish(attempt, reader)
            self.decides(decision, KEEP)

    def test_other_set_of_sources(self) -> None:
        """A reload that read another set of files is not followed by another parse."""
        self.start(self.main)
        self.reload(self.main, self.other, requested=True)
        self.decides(KEEP)
        self.write("env", "A=2")
        self.decides(WARN)

    def test_refused(self) -> None:
        """A refused reload is tried again on the next request only; later changes are told."""
        self.start(self.main, self.other)
        self.write("env", "A=2")
        self.assertTrue(self.watched.refused(self.watched.begin(True), "bad"))
        self.decides(KEEP, KEEP)
        self.assertFalse(self.watched.successful)
        self.write("env", "A=3")
        self.decides(WARN, KEEP)
        self.assertTrue(self.watched.refused(self.watched.begin(True), "bad"))

    def test_nothing_written(self) -> None:
        """A writer that wrote nothing changes nothing, and the request is answered once."""
        self.start(self.main, self.other)
        self.assertIs(self.watched.should_parse(True), PARSE)
        attempt = self.watched.begin(True)
        reader = self.reader(self.main, self.other, text="")
        self.assertTrue(self.watched.gave_nothing(reader.sources))
        self.watched.empty_read(attempt)
        self.assertFalse(self.watched.successful)
        self.decides(KEEP)
        self.write("env", "A=2")
        self.decides(WARN)

    def test_something_written(self) -> None:
        """A FIFO that gave bytes is no empty read."""
        self.assertFalse(self.watched.gave_nothing(self.reader(self.main).sources))

    def test_removed_after_use(self) -> None:
        """A FIFO that is removed once it was read is no change."""
        self.start(self.main, self.other)
        os.unlink(self.main)
        self.decides(KEEP)
        self.fifo("main")
        self.decides(KEEP)

    def test_replaced_by_a_file(self) -> None:
        """A regular file in the FIFO's place is a configuration that can be watched again."""
        self.start(self.main, self.other)
        os.unlink(self.main)
        self.write("main", "jobs")
        self.decides(PARSE)

    def test_in_a_file_s_place(self) -> None:
        """A FIFO in the place of a regular configuration is told of, not read."""
        os.unlink(self.main)
        self.write("main", "jobs")
        self.watched.loaded(self.watched.begin(True), Reader().sources, startup=True)
        os.unlink(self.main)
        self.fifo("main")
        self.decides(WARN, KEEP)

    def test_messages(self) -> None:
        """What is logged names the configuration as it was given."""
        watched = SourceWatch("conf/pipe")
        self.assertEqual(
            watched.changed_message,
            "A configuration source changed. conf/pipe is not a regular file, so only a reload "
            "request reads it again; keeping the loaded configuration.",
        )
        self.assertEqual(
            watched.empty_message,
            "Reload read no configuration from conf/pipe, which gives its bytes once; keeping the "
            "loaded configuration",
        )


class DescriptorTests(WatchTestCase):
    """Tests for C{/dev/fd/N} and devices."""

    def test_pipe(self) -> None:
        """A drained pipe gives a request nothing; closing it is no change."""
        reading, writing = os.pipe()
        os.write(writing, b"jobs")
        os.close(writing)
        path = f"/dev/fd/{reading}"
        self.watch(path)
        self.start(path)
        self.decides(KEEP)
        self.assertTrue(self.watched.gave_nothing(self.reader(path).sources))
        self.watched.empty_read(self.watched.begin(True))
        os.close(reading)
        self.decides(KEEP)

    def test_regular_file(self) -> None:
        """A regular file behind a descriptor is watched and read again like any other."""
        with open(self.write("a", "jobs"), "rb") as file:
            path = f"/dev/fd/{file.fileno()}"
            self.watch(path)
            self.start(path)
            self.decides(KEEP)
            self.write("a", "more jobs")
            self.assertIs(self.watched.should_parse(False), PARSE)
            attempt = self.watched.begin(False)
            reader = self.reader(path)
            self.assertFalse(self.watched.gave_nothing(reader.sources))
            self.finish(attempt, reader)
            self.decides(KEEP)

    def test_place_shared_with_the_descriptor(self) -> None:
        """Where a second read gives nothing or a tail, it is refused once for each change."""
        with open(self.write("a", "jobs"), "rb") as file:
            path = f"/dev/fd/{file.fileno()}"
            self.watch(path)
            self.start(path)
            for text, length in (("jobs and more", 9), ("jobs", 0)):
                self.write("a", text)
                self.assertIs(self.watched.should_parse(False), PARSE)
                attempt = self.watched.begin(False)
                (source,) = self.reader(path).sources
                tail = attrs.evolve(source, length=length)
                self.assertTrue(self.watched.gave_nothing([tail]))
                self.watched.empty_read(attempt)
                self.decides(KEEP)
                self.assertFalse(self.watched.successful)

    def test_tail_that_does_not_parse(self) -> None:
        """A tail that is refused is read once more, and then found empty."""
        with open(self.write("a", "jobs"), "rb") as file:
            path = f"/dev/fd/{file.fileno()}"
            self.watch(path)
            self.start(path)
            self.write("a", "jobs and more")
            self.watched.refused(self.watched.begin(False), "bad")
            self.decides(PARSE)
            self.watched.empty_read(self.watched.begin(False))
            self.decides(KEEP)

    def test_null_device(self) -> None:
        """C{/dev/null} starts an empty daemon, and gives a request nothing."""
        self.watch("/dev/null")
        self.start("/dev/null")
        self.decides(KEEP)
        self.assertTrue(self.watched.gave_nothing(self.reader("/dev/null").sources))
