"""Runs the command in this process and keeps what it printed."""

from __future__ import annotations

import contextlib
import io
import logging
import os

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.commands import defaults, init, parser
from cronstable.commands import main as command


@attrs.frozen
class Outcome:
    """What one invocation gave."""

    status: int
    out: str
    err: str


class CommandTestCase(SynchronousTestCase):
    """A test in an empty working directory, whose logging set-up is put back afterwards."""

    def setUp(self) -> None:
        self.directory = self.mktemp()
        os.makedirs(self.directory)
        before = os.getcwd()
        os.chdir(self.directory)
        self.addCleanup(os.chdir, before)
        root = logging.getLogger()
        handlers, level = list(root.handlers), root.level
        root.handlers.clear()

        def restore() -> None:
            root.handlers[:] = handlers
            root.setLevel(level)

        self.addCleanup(restore)

    def cronstable(self, *argv: str) -> Outcome:
        """Run C{cronstable ARGV}."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = command.main(argv)
        return Outcome(status, out.getvalue(), err.getvalue())

    def write(self, name: str, text: str) -> str:
        """Put C{text} into a file of the working directory, and return its name."""
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
        return name

    def default_config_is(self, path: str) -> None:
        """Let C{path} stand for the platform's default configuration."""
        for module in (defaults, init, parser):
            self.patch(module, "default_config", lambda: path)
