"""Loading again: what is parsed, what is kept, and what is never opened."""

from __future__ import annotations

import os
import threading

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.errors import ConfigError
from cronstable.config.load import Loaded, load
from cronstable.config.sources import Cache
from cronstable.config.values import JobConfig
from cronstable.config.watch import Decision, SourceWatch

JOB = '- name: {name}\n  command: "true"\n  schedule: "@daily"\n'


def jobs(*names: str, env_file: str = "", include: str = "") -> str:
    """Return a configuration of jobs, all with one env_file, that includes one more file."""
    items = "".join(JOB.format(name=name) for name in names)
    if env_file:
        items = items.replace('"@daily"\n', f'"@daily"\n  env_file: {env_file}\n')
    text = f"jobs:\n{items}" if names else ""
    return f"include:\n- {include}\n{text}" if include else text


class CachedLoadTests(SynchronousTestCase):
    """Tests for L{load} with a cache that is kept between loads."""

    def setUp(self) -> None:
        """Make a directory of files and a cache."""
        self.directory = os.path.abspath(self.mktemp())
        os.makedirs(self.directory)
        self.cache = Cache()

    def path(self, name: str) -> str:
        """Return the path of a file in the directory."""
        return os.path.join(self.directory, name)

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        with open(self.path(name), "w") as file:
            file.write(text)

    def feed(self, name: str, text: str) -> None:
        """Write a text to a FIFO once someone reads it."""
        writer = threading.Thread(target=self.write, args=(name, text), daemon=True)
        writer.start()
        self.addCleanup(writer.join, 5)

    def load(self, name: str = "") -> Loaded:
        """Load a file, or the directory."""
        return load(
            self.path(name).rstrip("/"),
            environ={},
            now=1_767_225_600.0,
            cwd=self.directory,
            cache=self.cache,
        )

    def loaded(self, name: str = "") -> dict[str, JobConfig]:
        """Return the jobs that a load gives."""
        return dict(self.load(name).config.jobs)

    def test_unchanged_files_keep_their_jobs(self) -> None:
        """Jobs of a file that has not changed are the very same values after a reload."""
        self.write("a.yaml", jobs("a"))
        self.write("b.yaml", jobs("b"))
        before = self.loaded()
        self.write("b.yaml", jobs("c"))
        after = self.loaded()
        self.assertEqual(list(after), ["a", "c"])
        self.assertIs(after["a"], before["a"])

    def test_include(self) -> None:
        """An edit of an included file reaches the file that includes it."""
        self.write("main.yaml", jobs(include="one.inc.yaml"))
        self.write("one.inc.yaml", jobs(include="two.inc.yaml"))
        self.write("two.inc.yaml", jobs("a"))
        self.assertEqual(list(self.loaded("main.yaml")), ["a"])
        self.write("two.inc.yaml", jobs("b"))
        self.assertEqual(list(self.loaded("main.yaml")), ["b"])

    def test_env_file_of_several_files(self) -> None:
        """An edit of an env_file reaches every file that names it."""
        for name in "ab":
            self.write(f"{name}.yaml", jobs(name, env_file="vars"))
        self.write("vars", "X=1")
        self.loaded()
        self.write("vars", "X=2")
        found = self.loaded()
        self.assertEqual([found[name].environment for name in "ab"], [(("X", "2"),)] * 2)

    def test_sources(self) -> None:
        """A load tells every file that it read or would have read, and what it listed."""
        self.write("a.yaml", jobs("a", env_file="vars", include="more"))
        self.write("more", jobs("b"))
        self.write("vars", "X=1")
        for _ in range(2):
            found = self.load()
            paths = {source.path for source in found.sources}
            self.assertEqual(paths, set(map(self.path, ("a.yaml", "more", "vars"))))
            self.assertEqual([each.names for each in found.listings], [("a.yaml",)])

    def test_refused_file_is_parsed_again(self) -> None:
        """Nothing is kept of a file that was refused."""
        self.write("a.yaml", jobs("a", env_file="vars"))
        for _ in range(2):
            self.assertRaises(ConfigError, self.loaded)
        self.write("vars", "X=1")
        self.assertEqual(list(self.loaded()), ["a"])

    def test_piped_env_file(self) -> None:
        """A FIFO that a directory's file names is read once, until that file is edited."""
        os.mkfifo(self.path("vars"))
        self.write("a.yaml", jobs("a", env_file="vars"))
        self.write("b.yaml", jobs("b"))
        self.feed("vars", "X=1")
        self.assertEqual(self.loaded()["a"].environment, (("X", "1"),))
        self.write("b.yaml", jobs("c"))
        self.assertEqual(self.loaded()["a"].environment, (("X", "1"),))
        self.write("a.yaml", jobs("a", "z", env_file="vars"))
        self.feed("vars", "X=2")
        found = self.loaded()
        self.assertEqual([found[name].environment for name in "az"], [(("X", "2"),)] * 2)

    def test_included_fifo(self) -> None:
        """An included FIFO keeps its jobs though the file that includes it is edited."""
        os.mkfifo(self.path("pipe"))
        self.write("main.yaml", jobs("a", include="pipe"))
        self.feed("pipe", jobs("p"))
        self.assertEqual(list(self.loaded("main.yaml")), ["p", "a"])
        self.write("main.yaml", jobs("b", include="pipe"))
        self.assertEqual(list(self.loaded("main.yaml")), ["p", "b"])

    def test_file_replaced_by_fifo(self) -> None:
        """A FIFO in the place of a file is read once, by the parse of the file that names it."""
        self.write("a.yaml", jobs("a", env_file="vars"))
        self.write("vars", "X=1")
        self.loaded()
        os.unlink(self.path("vars"))
        os.mkfifo(self.path("vars"))
        self.feed("vars", "X=2")
        self.assertEqual(self.loaded()["a"].environment, (("X", "2"),))
        self.assertEqual(self.loaded()["a"].environment, (("X", "2"),))

    def test_watched(self) -> None:
        """What a load tells is what a watch needs to keep quiet, and to notice an edit."""
        self.write("a.yaml", jobs("a", env_file="vars"))
        self.write("vars", "X=1")
        watch = SourceWatch(self.directory)
        attempt = watch.begin(True)
        found = self.load()
        watch.loaded(attempt, found.sources, found.listings, startup=True)
        self.assertIs(watch.should_parse(False), Decision.KEEP)
        self.write("vars", "X=1\nY=2")
        self.assertIs(watch.should_parse(False), Decision.PARSE)

    def test_error_tells_its_sources(self) -> None:
        """A refused load tells what it had read."""
        self.write("a.yaml", jobs("a", env_file="missing"))
        error = self.assertRaises(ConfigError, self.load)
        self.assertEqual([each.path for each in error.sources], [self.path("a.yaml")])
