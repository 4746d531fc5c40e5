"""Tests of ``cronstable init``."""

from __future__ import annotations

import os
import stat

from cronstable.commands import init
from tests.commands.support import CommandTestCase


class InitTests(CommandTestCase):
    """Writing a first configuration."""

    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(os.umask, os.umask(0o022))

    def assert_refused(self, *argv: str) -> str:
        """Fail unless C{argv} exits 1, changes nothing, and says why on stderr."""
        before = sorted(os.walk("."))
        outcome = self.cronstable(*argv)
        self.assertEqual((outcome.status, outcome.out), (1, ""))
        self.assertTrue(outcome.err.startswith("cronstable init: "), outcome.err)
        self.assertEqual(sorted(os.walk(".")), before)
        return outcome.err

    def test_writes(self) -> None:
        """Directories and file are made; stdout tells the path and the next step."""
        outcome = self.cronstable("init", "a/b")
        self.assertEqual((outcome.status, outcome.err), (0, ""))
        self.assertEqual(
            outcome.out,
            "wrote a/b/cronstable.yaml\nstart the scheduler with: cronstable -c a/b\n",
        )

    def test_modes(self) -> None:
        """The file is 0644 and its directory 0755, less the umask."""
        for mask, name in ((0o022, "a"), (0o077, "b"), (0, "c")):
            os.umask(mask)
            self.cronstable("init", name)
            modes = [
                stat.S_IMODE(os.stat(path).st_mode) for path in (name, f"{name}/cronstable.yaml")
            ]
            self.assertEqual(modes, [0o755 & ~mask, 0o644 & ~mask], name)

    def test_it_validates(self) -> None:
        """What is written is a valid configuration with one job."""
        self.cronstable("init", "d")
        self.assertEqual(self.cronstable("-v", "-c", "d").status, 0)

    def test_web_block_validates(self) -> None:
        """The commented web block, uncommented, is valid too."""
        head, mark, tail = init.STARTER.partition("# web:\n")
        text = head + "".join(
            line.removeprefix("# ") for line in (mark + tail).splitlines(keepends=True)
        )
        self.assertIn("\nweb:\n  listen:\n    - http://127.0.0.1:8080\n", text)
        self.assertIn("fromEnvVar: CRONSTABLE_TOKEN", text)
        self.patch(os, "environ", {**os.environ, "CRONSTABLE_TOKEN": "x" * 32})
        outcome = self.cronstable("-v", "-c", self.write("web.yaml", text))
        self.assertEqual(outcome.status, 0, outcome.err)

    def test_default(self) -> None:
        """Without a directory it goes to the default, which the next step need not name."""
        self.default_config_is(os.path.abspath("etc"))
        outcome = self.cronstable("init")
        self.assertEqual(outcome.status, 0, outcome.err)
        self.assertTrue(outcome.out.endswith("start the scheduler with: cronstable\n"))
        self.assertTrue(os.path.exists("etc/cronstable.yaml"))

    def test_root_option(self) -> None:
        """Without a directory it goes to what -c names before the command."""
        self.assertEqual(self.cronstable("-c", "d", "init").status, 0)
        self.assertTrue(os.path.exists("d/cronstable.yaml"))

    def test_both(self) -> None:
        """Where -c and the directory differ the directory wins, and stderr says so."""
        outcome = self.cronstable("-c", "d", "init", "e")
        self.assertEqual(outcome.status, 0)
        for name in ("d", "e"):
            self.assertIn(name, outcome.err.split())
        self.assertEqual(os.listdir("."), ["e"])
        self.assertEqual(self.cronstable("-c", "f", "init", "f").err, "")

    def test_file(self) -> None:
        """A file is not written over, whichever way it was named."""
        self.write("x.yaml", "")
        self.assertIn("x.yaml", self.assert_refused("init", "x.yaml"))
        self.assert_refused("-c", "x.yaml", "init")

    def test_taken(self) -> None:
        """A directory that holds configuration is left alone; up to five names are told."""
        for name in ("a.yml", "b.YAML", "c.crontab", "d.cron", "crontab"):
            os.mkdir(f"with-{name}")
            self.write(f"with-{name}/{name}", "")
            self.assertIn(name, self.assert_refused("init", f"with-{name}"))
        os.mkdir("many")
        for number in range(7):
            self.write(f"many/{number}.yaml", "")
        self.assertIn(
            "(0.yaml, 1.yaml, 2.yaml, 3.yaml, 4.yaml)", self.assert_refused("init", "many")
        )

    def test_other_names(self) -> None:
        """Names that would not be loaded do not count."""
        os.mkdir("d")
        for name in ("_a.yaml", ".b.yaml", "readme", "c.json", "_crontab"):
            self.write(f"d/{name}", "")
        self.assertEqual(self.cronstable("init", "d").status, 0)

    def test_again(self) -> None:
        """A second init refuses: the first one's file is configuration."""
        self.cronstable("init", "d")
        self.assertIn("cronstable.yaml", self.assert_refused("init", "d"))

    def test_cannot_write(self) -> None:
        """What the system refuses is told with its reason."""
        os.symlink("/nonexistent/x", "dangling")
        self.assertIn("File exists", self.assert_refused("init", "dangling"))
        self.write("file", "")
        self.assertIn("Not a directory", self.assert_refused("init", "file/d"))

    def test_half_written(self) -> None:
        """A file that could not be written whole is taken away."""
        os.mkdir("d")
        self.patch(init, "STARTER", "\udc80")
        self.assertRaises(UnicodeEncodeError, init.write_starter, "d")
        self.assertEqual(os.listdir("d"), [])

    def test_odd_directory(self) -> None:
        """The next step can be pasted into a shell whatever the directory is called."""
        outcome = self.cronstable("init", "a b")
        self.assertIn("cronstable -c 'a b'\n", outcome.out)
