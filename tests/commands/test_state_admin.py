"""The C{state} actions as they are typed."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from cronstable.commands import state_admin

CONFIG = """
state:
  path: {path}
  gcGraceSeconds: {grace}
jobs:
  - name: job
    command: "true"
    schedule: "0 0 1 1 *"
    stateAllowedScopes:
      - shared
  - name: off
    enabled: false
    command: "true"
    schedule: "0 0 1 1 *"
dags:
  - name: flow
    tasks:
      - id: task
        command: "true"
        stateAllowedScopes:
          - inner
"""


class StateActionTests(SynchronousTestCase):
    """Parsing, acting, and telling."""

    def setUp(self) -> None:
        self.base = os.path.abspath(self.mktemp())
        os.mkdir(self.base)
        self.config = self.write("config.yaml", CONFIG.format(path=self.path("s"), grace=604800))
        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level

        def undo() -> None:
            root.handlers[:], root.level = handlers, level

        self.addCleanup(undo)

    def path(self, name: str) -> str:
        return os.path.join(self.base, name)

    def write(self, name: str, text: str) -> str:
        Path(self.path(name)).write_text(text)
        return self.path(name)

    def run_action(self, *argv: str) -> tuple[int, str, str]:
        """Return exit status, stdout and stderr of C{cronstable argv}."""
        parser = ArgumentParser(prog="cronstable")
        parser.add_argument("-c", "--config")
        commands = parser.add_subparsers(dest="command")
        actions = commands.add_parser("state").add_subparsers(dest="action")
        state_admin.add_actions(actions)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                options = parser.parse_args(argv)
                status = options.act(options)
            except SystemExit as stop:
                status = stop.code
        return status, out.getvalue(), err.getvalue()

    def test_check(self) -> None:
        """The store of the configuration is made, proven and told; the log goes to stderr."""
        status, out, err = self.run_action("state", "check", "-c", self.config)
        self.assertEqual(status, 0)
        self.assertTrue(out.startswith(f"state: store at {self.path('s')}/default is writable\n"))
        self.assertIn("INFO:cronstable.state:state: filesystem backend ready at", err)

    def test_config_before_or_after(self) -> None:
        """C{-c} may stand before the command or after the action; the later one counts."""
        for argv in (
            ("-c", self.config, "state", "check"),
            ("state", "check", "-c", self.config),
            ("-c", "/nonexistent", "state", "check", "--config", self.config),
        ):
            self.assertEqual(self.run_action(*argv)[0], 0, argv)

    def test_usage(self) -> None:
        """What is missing or unknown is a usage error."""
        for argv in (
            ("state", "backup"),
            ("state", "restore"),
            ("state", "migrate"),
            ("state", "gc", "--bogus"),
            ("state", "bogus"),
        ):
            self.assertEqual(self.run_action(*argv)[0], 2, argv)

    def test_round_trip(self) -> None:
        """A backup is restored elsewhere, and migrated on from there."""
        self.run_action("state", "check", "-c", self.config)
        archive = self.path("b.tar.gz")
        status, out, _ = self.run_action("state", "backup", "-o", archive, "-c", self.config)
        self.assertEqual((status, out[:27]), (0, "state: backed up 1 file(s) "))
        other = self.write("other.yaml", CONFIG.format(path=self.path("o"), grace=604800))
        status, out, _ = self.run_action("state", "restore", archive, "-c", other)
        self.assertEqual((status, out[:26]), (0, "state: restored 1 file(s) "))
        status, out, err = self.run_action("state", "restore", archive, "-c", other)
        self.assertEqual((status, out), (1, ""))
        self.assertIn("is not empty", err)
        argv = ("--dest", self.path("m"), "--dest-deployment-id", "X", "-c", other)
        status, out, _ = self.run_action("state", "migrate", *argv)
        self.assertEqual(status, 0)
        self.assertTrue(os.path.isdir(self.path("m/%58/records/meta")))
        self.assertEqual(self.run_action("state", "migrate", *argv)[0], 1)
        self.assertEqual(self.run_action("state", "migrate", "--force", *argv)[0], 0)
        self.assertEqual(self.run_action("state", "restore", archive, "-c", other, "--force")[0], 0)

    def test_gc_and_migrate_schema(self) -> None:
        """Both start the store and tell what they did."""
        for argv, start in (
            (("gc",), "state: gc deferred: "),
            (("gc", "--dry-run"), "state: gc deferred: "),
            (("migrate-schema",), "state: migrate-schema converted 0 record(s); 1 current"),
            (("migrate-schema", "--dry-run"), "state: migrate-schema would convert 0"),
        ):
            status, out, _ = self.run_action("state", *argv, "-c", self.config)
            self.assertEqual(status, 0)
            self.assertTrue(out.startswith(start), out)

    def test_gc_where_daemons_never_collect(self) -> None:
        """C{gcGraceSeconds} 0 means the default grace, said on stderr."""
        config = self.write("zero.yaml", CONFIG.format(path=self.path("z"), grace=0))
        status, out, err = self.run_action("state", "gc", "-c", config)
        self.assertEqual(status, 0)
        self.assertIn("default grace of 604800 s", err)

    def test_errors(self) -> None:
        """What the configuration or the system refuses is one line and exit status 1."""
        nothing = self.write("nothing.yaml", "")
        blocked = self.write("blocked.yaml", CONFIG.format(path="/dev/null/x", grace=604800))
        bad = self.write("bad.yaml", "state: [\n")
        for config, argv, word in (
            (self.path("gone.yaml"), ("check",), "gone.yaml"),
            (bad, ("check",), "bad.yaml"),
            (nothing, ("check",), "no state section"),
            (nothing, ("gc",), "no state section"),
            (nothing, ("backup", "-o", "x"), "no state section"),
            (blocked, ("check",), "Not a directory"),
            (blocked, ("migrate-schema",), "Not a directory"),
            (self.config, ("restore", self.path("gone.tar.gz")), "No such file"),
        ):
            status, out, err = self.run_action("state", *argv, "-c", config)
            self.assertEqual((status, out), (1, ""), argv)
            self.assertTrue(err.startswith("cronstable state error: "), err)
            self.assertIn(word, err)

    def test_refusals(self) -> None:
        """What an action refuses is told on stderr under its own name."""
        status, out, err = self.run_action(
            "state", "backup", "-o", self.path("b"), "-c", self.config
        )
        self.assertEqual((status, out), (1, ""))
        self.assertTrue(err.startswith("state: nothing to back up: "), err)

    def test_light(self) -> None:
        """Administering a store imports neither Twisted nor a reactor."""
        code = (
            "import sys; from cronstable.commands import state_admin as s;"
            "from argparse import ArgumentParser as A; p = A();"
            "s.add_actions(p.add_subparsers()); o = p.parse_args(sys.argv[1:]);"
            "r = o.act(o); assert 'twisted.internet' not in sys.modules; sys.exit(r)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, "check", "-c", self.config],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            timeout=60,
        )
        self.assertEqual((done.returncode, done.stderr.count(b"Traceback")), (0, 0), done.stderr)
