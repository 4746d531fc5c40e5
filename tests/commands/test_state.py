"""C{cronstable state}: the administration actions as an operator runs them."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

from cronstable.state.store import Store, StoreSettings, open_store
from tests.commands.support import CommandTestCase
from tests.state.support import StandingClock

CHECKOUT = Path(__file__).resolve().parents[2]

CONFIG = """
state:
  path: {path}
jobs:
  - name: nightly
    command: "true"
    schedule: "0 3 * * *"
"""


class StateCommandTests(CommandTestCase):
    """One store, administered from its configuration."""

    def setUp(self) -> None:
        super().setUp()
        self.config = self.write("config.yaml", CONFIG.format(path=os.path.abspath("store")))

    def opened(self, path: str = "store") -> Store:
        """Return a started store at a path."""
        store = open_store(StoreSettings(os.path.abspath(path)), StandingClock())
        store.start()
        return store

    def state(self, *argv: str) -> str:
        """Run an action that succeeds and return what it printed."""
        outcome = self.cronstable("state", *argv)
        self.assertEqual(outcome.status, 0, outcome.err)
        return outcome.out

    def test_check(self) -> None:
        """The store is made where it is not, and what is in it is counted."""
        self.opened().records.append("runs/nightly", {"outcome": "success"})
        out = self.state("check", "-c", self.config)
        self.assertTrue(
            out.startswith(f"state: store at {os.path.abspath('store')}/default is writable\n")
        )
        self.assertIn("  streams: 2 (2 record(s))\n    meta: 1 record(s)\n", out)

    def test_config_before_the_command(self) -> None:
        """C{-c} may stand before C{state} or after the action; between them it is no argument."""
        self.assertEqual(self.cronstable("-c", self.config, "state", "check").status, 0)
        between = self.cronstable("state", "-c", self.config, "check")
        self.assertEqual((between.status, between.out), (2, ""))

    def test_action_is_needed(self) -> None:
        """No action, and an unknown one, are usage errors that say so."""
        bare = self.cronstable("state")
        self.assertEqual((bare.status, bare.out), (2, ""))
        self.assertTrue(bare.err.startswith("cronstable state: no action given"), bare.err)
        for argv in (("state", "bogus"), ("state", "gc", "x")):
            outcome = self.cronstable(*argv)
            self.assertEqual((outcome.status, outcome.out), (2, ""), argv)
            self.assertTrue(outcome.err.startswith("usage: cronstable"), outcome.err)

    def test_backup_and_restore(self) -> None:
        """A backup put into another store gives the same records; a full store is refused."""
        self.opened().records.append("runs/nightly", {"outcome": "success"})
        out = self.state("backup", "-o", "b.tar.gz", "-c", self.config)
        self.assertTrue(out.startswith("state: backed up 2 file(s) from "), out)
        self.assertEqual(stat.S_IMODE(os.stat("b.tar.gz").st_mode), 0o600)
        other = self.write("other.yaml", CONFIG.format(path=os.path.abspath("other")))
        out = self.state("restore", "b.tar.gz", "-c", other)
        self.assertTrue(out.startswith("state: restored 2 file(s) from b.tar.gz"), out)
        found = self.opened("other").records.read("runs/nightly")
        self.assertEqual(found, [{"outcome": "success"}])
        again = self.cronstable("state", "restore", "b.tar.gz", "-c", other)
        self.assertEqual((again.status, again.out), (1, ""))
        self.assertIn("is not empty", again.err)
        self.state("restore", "b.tar.gz", "--force", "-c", other)

    def test_migrate(self) -> None:
        """A store is copied elsewhere, private, and the advice says what to change."""
        self.opened().records.append("runs/nightly", {"outcome": "success"})
        out = self.state("migrate", "--dest", os.path.abspath("new"), "-c", self.config)
        self.assertIn("state: migrated 2 file(s) from ", out)
        self.assertIn("state.path", out)
        self.assertEqual(stat.S_IMODE(os.stat("new/default").st_mode), 0o700)
        self.assertEqual(len(self.opened("new").records.read("runs/nightly")), 1)

    def test_gc(self) -> None:
        """Collection is put off while no manifest is old enough, and says so."""
        for flags in ((), ("--dry-run",)):
            out = self.state("gc", *flags, "-c", self.config)
            self.assertTrue(out.startswith("state: gc deferred: "), out)

    def test_migrate_schema(self) -> None:
        """With one scheme there is nothing to convert, and what is current is counted."""
        self.opened()
        out = self.state("migrate-schema", "--dry-run", "-c", self.config)
        self.assertTrue(
            out.startswith("state: migrate-schema would convert 0 record(s); 1 current")
        )

    def test_no_store(self) -> None:
        """A configuration without a C{state} section is an error of the command."""
        config = self.write("bare.yaml", "jobs: []\n")
        outcome = self.cronstable("state", "check", "-c", config)
        self.assertEqual((outcome.status, outcome.out), (1, ""))
        self.assertTrue(outcome.err.startswith("cronstable state error: "), outcome.err)

    def test_as_a_program(self) -> None:
        """The installed command does it too, without ever importing Twisted."""
        code = (
            "import sys; from cronstable.commands.main import main; status = main(sys.argv[1:]);"
            "assert not any(name.startswith('twisted') for name in sys.modules);"
            "sys.exit(status)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, "state", "check", "-c", os.path.abspath(self.config)],
            cwd=CHECKOUT,
            capture_output=True,
            timeout=60,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"is writable", done.stdout)
        self.assertTrue(Path("store/default/records/meta").is_dir())
