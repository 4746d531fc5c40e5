"""Whether this loader and another implementation accept the same configurations."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

from cronstable.config import keys, sections
from cronstable.config.errors import ConfigError
from cronstable.config.schema import Record
from tests.config.helpers import ConfigCase
from tests.config.random_configs import yaml

Steps = tuple[str, ...]

ODD = ("", "x", "-1", "0", "1", "2", "1.5", "nan", "inf", "yes", "'  '", "1e3", "Allow", "007")
OURS = {"umask", "outputGraceSeconds", "catchupLimit", "jitter", "fsync"}
NEIGHBOURS: dict[str, dict[str, Any]] = {
    "mail": {"from": "a", "to": "b"},
    "shell": {"command": "x"},
    "retry": {
        "maximumRetries": "1",
        "initialDelay": "1",
        "maximumDelay": "1",
        "backoffMultiplier": "1",
    },
    "failsWhen": {"producesStdout": "no"},
    "statsd": {"prefix": "p", "host": "h", "port": "1"},
    "verify": {"command": "x"},
    "web": {"listen": ["http://127.0.0.1:1"]},
    "state": {"path": "x"},
    "cluster": {
        "listen": "a:1",
        "tls": {"ca": "a", "cert": "b", "key": "c"},
        "peers": [{"host": "b:1"}],
    },
}
"""What a block needs besides the key that is tried."""

STRICTER = {
    ("user", "-1"),
    ("user", "1"),
    ("user", "2"),
    ("user", "007"),
    ("group", "-1"),
    ("interval", "nan"),
    ("command", ""),
    ("command", "'  '"),
    ("electionName", ""),
    ("electionName", "'  '"),
}
"""Impossible and unlisted accounts, NaN, blank commands where one is run, blank elections."""

COUNT = int(os.environ.get("CRONSTABLE_REFERENCE_CASES", "40"))


def leaves(fields: Mapping[str, Any], path: Steps = ()) -> Iterator[Steps]:
    """Yield the path of every key, blocks included."""
    for name, reader in fields.items():
        if name not in OURS:
            yield (*path, name)
            inner = getattr(getattr(reader, "_record", reader), "fields", {})
            yield from leaves(inner, (*path, name))


def with_value(path: Steps, value: str) -> dict[str, Any]:
    """Return a tree with C{value} at C{path} and what its blocks need beside it."""
    tree: dict[str, Any] = {}
    block = tree
    for step in path[:-1]:
        block[step] = deepcopy(NEIGHBOURS.get(step, {}))
        block = block[step]
    block[path[-1]] = value
    return tree


def odd_configs(random: Random) -> Iterator[str]:
    """Yield configurations with one odd value each, for ever."""
    of_jobs = list(leaves(keys.DEFAULTS.fields))
    named = ("web", "mcp", "cluster", "state", "notify")
    fields = {name: sections.SECTIONS[name].record.fields for name in named}  # type: ignore[attr-defined]
    of_sections = list(leaves({name: Record(each) for name, each in fields.items()}))
    while True:
        value = random.choice(ODD)
        if random.random() < 0.5:
            head = {"name": "a", "command": "x", "schedule": "'* * * * *'"}
            yield yaml({"jobs": [{**head, **with_value(random.choice(of_jobs), value)}]})
        else:
            yield yaml(with_value(random.choice(of_sections), value))


class ReferenceVerdictTests(ConfigCase):
    """Tests against the program that CRONSTABLE_REFERENCE names."""

    if not os.environ.get("CRONSTABLE_REFERENCE"):
        skip = "CRONSTABLE_REFERENCE does not name a program to compare with"

    def test_odd_values(self) -> None:
        """One odd value is accepted by both or refused by both."""
        configs = odd_configs(Random(20260101))
        different = []
        for _ in range(COUNT):
            text = next(configs)
            if self.accepted(text) != self.accepted_there() and not self.is_known(text):
                different.append(text)
        self.assertEqual(different, [])

    def accepted(self, text: str) -> bool:
        """Return whether this loader accepts C{text}."""
        try:
            self.load(text, environ=os.environ, is_root=None)
        except ConfigError:
            return False
        return True

    def accepted_there(self) -> bool:
        """Return whether the other program accepts what was loaded last."""
        found = subprocess.run(
            [os.environ["CRONSTABLE_REFERENCE"], "-v", "-c", "c.yaml"],
            cwd=Path(self.directory),
            capture_output=True,
            timeout=60,
        )
        return found.returncode == 0

    def is_known(self, text: str) -> bool:
        """Return whether C{text} shows a difference that is wanted: the loader is the stricter."""
        pairs = [line.strip(" -").partition(":")[::2] for line in text.split("\n")]
        return any((key, value.strip()) in STRICTER for key, value in pairs)
