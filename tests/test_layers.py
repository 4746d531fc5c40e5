"""Tests of the check that holds the rooms apart, and of the package by that check."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from twisted.trial.unittest import SynchronousTestCase

ROOT = Path(__file__).resolve().parents[1]


def load_script(name: str) -> ModuleType:
    """Import a script of contrib/lint by its path."""
    path = ROOT / "contrib" / "lint" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"contrib_lint_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


layers = load_script("layers")


class PackageTests(SynchronousTestCase):
    """The package as it is."""

    def test_plan_is_kept(self) -> None:
        """Every module of cronstable keeps to the plan of the house."""
        self.assertEqual(list(layers.check(layers.House.read(ROOT))), [])

    def test_everything_is_read(self) -> None:
        """The check sees the modules of the package, the nested ones too."""
        modules = layers.House.read(ROOT).modules
        for name in ("", "clock", "commands.main", "config.values"):
            self.assertIn(name, modules)


class CheckTests(SynchronousTestCase):
    """The check on made-up packages, each with one thing wrong."""

    def setUp(self) -> None:
        self.root = Path(self.mktemp())
        self.write("__init__", "")

    def write(self, name: str, text: str) -> None:
        """Add a module."""
        path = self.root / "cronstable" / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def wrong(self) -> list[str]:
        """What the check says, without the directories."""
        return [
            line.replace("cronstable/", "") for line in layers.check(layers.House.read(self.root))
        ]

    def test_downwards(self) -> None:
        """A room may import what is below it, itself, and the bottom."""
        self.write("clock", "")
        self.write("schedule.search", "import cronstable.clock\n")
        self.write("config.values", "from cronstable.schedule import search\n")
        self.write("runs.run", "from cronstable.config.values import x\nimport cronstable.clock\n")
        self.write("daemon", "import cronstable.runs.run\n")
        self.assertEqual(self.wrong(), [])

    def test_upwards(self) -> None:
        """An import against an arrow is named with its place, lazy ones and relative ones too."""
        self.write("runs.run", "")
        self.write("state.store", "def f():\n    from cronstable.runs import run\n")
        self.write("cluster.view", "\nfrom ..runs.run import x\n")
        self.assertEqual(
            self.wrong(),
            [
                "cluster/view.py:2: cluster may not import runs.run",
                "state/store.py:2: state may not import runs.run",
            ],
        )

    def test_types_only(self) -> None:
        """An import for the type checker only is free."""
        self.write("runs.run", "")
        self.write("state.store", "if TYPE_CHECKING:\n    import cronstable.runs.run\n")
        self.assertEqual(self.wrong(), [])

    def test_unknown_room(self) -> None:
        """A room that the plan does not have is an error, so that somebody gives it a place."""
        self.write("attic.trunk", "")
        self.assertEqual(self.wrong(), ["attic/trunk.py:1: the plan has no room 'attic'"])

    def test_circle(self) -> None:
        """Modules that import each other in a ring are named together."""
        self.write("runs.a", "from cronstable.runs.b import x\n")
        self.write("runs.b", "def f():\n    import cronstable.runs.c\n")
        self.write("runs.c", "from cronstable.runs import a\n")
        self.assertEqual(self.wrong(), ["runs/a.py:1: import circle: runs.a runs.b runs.c"])

    def test_length(self) -> None:
        """A module of 501 lines is too long, one of 500 is not."""
        self.write("runs.a", "x = 1\n" * 500)
        self.write("runs.b", "x = 1\n" * 501)
        self.assertEqual(self.wrong(), ["runs/b.py:501: longer than 500 lines"])

    def test_reactor(self) -> None:
        """The reactor may be imported inside a function only."""
        self.write("runs.a", "def f():\n    from twisted.internet import reactor\n")
        self.write("runs.b", "from twisted.internet import defer, reactor\n")
        self.write("runs.c", "class A:\n    import twisted.internet.reactor\n")
        self.assertEqual(
            self.wrong(),
            [f"runs/{name}:1: imports the reactor at the top" for name in ("b.py",)]
            + ["runs/c.py:2: imports the reactor at the top"],
        )

    def test_no_twisted(self) -> None:
        """config and schedule load without Twisted, also by way of others."""
        self.write("clock", "import twisted.internet.task\n")
        self.write("schedule.search", "import cronstable.clock\n")
        self.write("config.text", "from zope.interface import Interface\n")
        self.assertEqual(
            self.wrong(),
            [
                "config/text.py:1: loading it loads zope.interface",
                "schedule/search.py:1: loading it loads twisted.internet.task",
            ],
        )

    def test_heavy(self) -> None:
        """A heavy package belongs to its rooms, even inside a function."""
        self.write("reports.webhook", "import treq\n")
        self.write("runs.run", "def f():\n    import treq\n")
        self.assertEqual(self.wrong(), ["runs/run.py:2: treq belongs to cluster, reports"])

    def test_lazy(self) -> None:
        """Loading the daemon loads no heavy package."""
        self.write("web.service", "import klein\n")
        self.write("daemon", "from cronstable.web import service\n")
        self.assertEqual(self.wrong(), ["daemon.py:1: loading it loads klein"])
        self.write("daemon", "def f():\n    from cronstable.web import service\n")
        self.assertEqual(self.wrong(), [])

    def test_thin(self) -> None:
        """The command line loads neither Twisted nor the daemon."""
        self.write("daemon", "import attrs\n")
        self.write("commands.main", "from cronstable import daemon\n")
        self.write("jobapi.client", "import twisted.web.client\n")
        self.assertEqual(
            self.wrong(),
            [
                "commands/main.py:1: loading it loads daemon",
                "jobapi/client.py:1: loading it loads twisted.web.client",
            ],
        )
        self.write("commands.main", "def f():\n    from cronstable import daemon\n")
        self.assertEqual(len(self.wrong()), 1)

    def test_clock(self) -> None:
        """Only clock and platform ask the operating system for the time."""
        text = "import time\nfrom datetime import datetime\nx = time.time\ndatetime.now()\n"
        for name in ("clock", "platform", "runs.a"):
            self.write(name, text)
        self.write("runs.b", "from time import sleep\n")
        self.assertEqual(
            self.wrong(),
            [
                "runs/a.py:3: time.time: ask the injected clock",
                "runs/a.py:4: datetime.now: ask the injected clock",
                "runs/b.py:1: time.sleep: ask the injected clock",
            ],
        )
