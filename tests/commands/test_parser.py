"""Tests of how argv is read."""

from __future__ import annotations

from cronstable.commands.parser import LazyParser, parse, root_parser
from tests.commands.support import CommandTestCase


class ParseTests(CommandTestCase):
    """The grammar of the command line."""

    def assert_usage_error(self, *argv: str) -> str:
        """Fail unless C{argv} exits 2 with the usage on stderr and nothing on stdout."""
        outcome = self.cronstable(*argv)
        self.assertEqual((outcome.status, outcome.out), (2, ""), argv)
        self.assertTrue(outcome.err.startswith("usage: cronstable"), outcome.err)
        return outcome.err

    def test_usage_errors(self) -> None:
        """What cannot be read is answered with the usage on stderr and exit status 2."""
        for argv in (
            ["--bogus"],
            ["bogus"],
            [""],
            ["-v", "bogus"],
            ["-c"],
            ["--version=1"],
            ["init", "a", "b"],
            ["init", "-x"],
            ["init", "--version"],
        ):
            self.assert_usage_error(*argv)

    def test_unknown_level(self) -> None:
        """A log level that is none, or a number, is a usage error that names the choices."""
        for level in ("bogus", "10", "", " info ", "notset"):
            text = self.assert_usage_error("-l", level, "--version")
            self.assertIn("DEBUG, INFO, WARNING, ERROR or CRITICAL", text)

    def test_levels(self) -> None:
        """Levels may be written in any case, and the aliases of logging are levels too."""
        for level in ("DEBUG", "info", "Warning", "ERROR", "critical", "WARN", "fatal"):
            self.assertEqual(self.cronstable("-l", level, "--version").status, 0, level)

    def test_prefixes(self) -> None:
        """A long option may be cut to a prefix that only it has."""
        for flag in ("--ver", "--versio"):
            self.assertEqual(self.cronstable(flag).status, 0, flag)
        self.assertTrue(parse(root_parser(), ["--val"]).validate_config)
        self.assert_usage_error("--")

    def test_help(self) -> None:
        """Help at every level is printed on stdout with exit status 0."""
        for argv in (["-h"], ["--help"], ["init", "-h"], ["-l", "bogus", "--help"]):
            outcome = self.cronstable(*argv)
            self.assertEqual((outcome.status, outcome.err), (0, ""), argv)
            self.assertTrue(outcome.out.startswith("usage: cronstable"), outcome.out)

    def test_dashes_belong_to_lock_run(self) -> None:
        """A bare -- is refused where no command takes the words after it."""
        for argv in (
            ["--", "x"],
            ["-v", "--"],
            ["--version", "--", "x"],
            ["init", "--", "d"],
        ):
            self.assertIn(
                "`--` is only valid before a `lock run` command", self.assert_usage_error(*argv)
            )
        self.assertEqual(self.cronstable("--help", "--", "x").status, 0)

    def test_words_after_dashes(self) -> None:
        """A command that takes them gets the words after the first bare -- untouched."""
        parser = LazyParser(prog="cronstable")
        parser.add_argument("-v", action="store_true")
        parser.set_defaults(after_dashes=())
        options = parse(parser, ["--", "echo", "-v", "--", "x"])
        self.assertEqual(options.after_dashes, ("echo", "-v", "--", "x"))
        self.assertFalse(options.v)
