"""What the tests of the configuration share: files in a directory, loaded as a daemon would."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.errors import ConfigError, ConfigProblem
from cronstable.config.load import Loaded, load
from cronstable.config.sections_values import Config
from cronstable.config.values import JobConfig

NOW = 1_767_225_600.0
"""2026-01-01T00:00:00Z."""

HEAD = 'jobs:\n  - name: a\n    command: echo\n    schedule: "* * * * *"\n'
STATE = "state:\n  path: store\n"


def job(*lines: str) -> str:
    """Return a configuration of one job, C{a}, with C{lines} in its block."""
    return HEAD + "".join(f"    {line}\n" for text in lines for line in text.split("\n"))


def task(*lines: str) -> str:
    """Return a configuration of one workflow, C{d}, whose one task C{t} has C{lines}."""
    head = f"{STATE}dags:\n  - name: d\n    tasks:\n      - id: t\n        command: x\n"
    return head + "".join(f"        {line}\n" for text in lines for line in text.split("\n"))


def section(name: str, *lines: str) -> str:
    """Return a section with C{lines} in it."""
    return f"{name}:\n" + "".join(f"  {line}\n" for text in lines for line in text.split("\n"))


class ConfigCase(SynchronousTestCase):
    """A test case with a directory to write configurations to."""

    environ: Mapping[str, str] = {}
    is_root = False

    def setUp(self) -> None:
        """Make the directory."""
        self.directory = os.path.abspath(self.mktemp())
        os.makedirs(self.directory)

    def path(self, name: str) -> str:
        """Return the path of a file in the directory."""
        return os.path.join(self.directory, name)

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file."""
        data = content.encode() if isinstance(content, str) else content
        with open(self.path(name), "wb") as file:
            file.write(data)

    def make_directory(self, name: str) -> None:
        """Make a directory inside the directory."""
        os.makedirs(self.path(name))

    def load_path(self, name: str, **options: Any) -> Loaded:
        """Load a file of the directory, or C{.} for all of it, from the directory."""
        asked: dict[str, Any] = {
            "environ": self.environ,
            "now": NOW,
            "cwd": self.directory,
            "is_root": self.is_root,
            **options,
        }
        return load(name, **asked)

    def load(self, content: str | bytes, **options: Any) -> Loaded:
        """Load C{content} as C{c.yaml}."""
        self.write("c.yaml", content)
        return self.load_path("c.yaml", **options)

    def config(self, content: str | bytes, **options: Any) -> Config:
        """Return the configuration that C{content} is."""
        return self.load(content, **options).config

    def job(self, *lines: str, **options: Any) -> JobConfig:
        """Return the job C{a} with C{lines} in its block."""
        return self.config(job(*lines), **options).jobs["a"]

    def problems(self, content: str | bytes, **options: Any) -> tuple[ConfigProblem, ...]:
        """Return what is wrong with C{content} as C{c.yaml}."""
        error: ConfigError = self.assertRaises(ConfigError, self.load, content, **options)
        return error.problems

    def problem(self, content: str | bytes, **options: Any) -> ConfigProblem:
        """Return the one thing that is wrong with C{content}."""
        problems = self.problems(content, **options)
        self.assertEqual(len(problems), 1, [str(each) for each in problems])
        return problems[0]

    def assert_refused(self, content: str | bytes, *parts: str, **options: Any) -> None:
        """Assert that C{content} has one problem, whose text has each of C{parts}."""
        said = str(self.problem(content, **options))
        for part in parts:
            self.assertIn(part, said)

    def assert_notices(self, content: str, *texts: str, **options: Any) -> None:
        """Assert that the notices about C{content} are as many as C{texts} and hold them."""
        notices = self.load(content, **options).notices
        self.assertEqual(len(notices), len(texts), [each.text for each in notices])
        for notice, text in zip(notices, texts, strict=True):
            self.assertIn(text, notice.text)
