"""Commands for jobs: what they load, and what they say outside a job."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.commands.support import CommandTestCase

CHECKOUT = Path(__file__).resolve().parents[2]

COMMANDS = (
    ("state", "get", "k"),
    ("state", "set", "k", "v"),
    ("state", "delete", "k"),
    ("state", "keys"),
    ("cursor", "get", "c"),
    ("cursor", "advance", "c", "1"),
    ("idempotent", "i"),
    ("idempotent", "i", "--release"),
    ("lock", "acquire", "l"),
    ("lock", "release", "t"),
    ("lock", "run", "l", "--", "true"),
    ("artifact", "put", "a", os.devnull),
    ("artifact", "get", "a"),
    ("artifact", "list"),
    ("secret", "get", "s"),
    ("secret", "list"),
)

CODE = """
import sys
from cronstable.commands.main import main
status = main(sys.argv[1:])
heavy = {"twisted", "zope", "yaml", "attr", "attrs", "klein", "http", "urllib", "ssl", "asyncio",
         "logging", "subprocess", "socket"} & set(sys.modules)
assert not heavy, heavy
assert not [name for name in sys.modules if name.startswith("cronstable.config")]
sys.exit(status)
"""


class OutsideTests(CommandTestCase):
    """Where there is no job."""

    def setUp(self) -> None:
        super().setUp()
        here = {k: v for k, v in os.environ.items() if not k.startswith("CRONSTABLE_STATE_")}
        self.patch(os, "environ", here)

    def test_missing_variable(self) -> None:
        """Each says which variable is missing and where it would work, with status 1."""
        for argv in COMMANDS:
            outcome = self.cronstable(*argv)
            self.assertEqual((outcome.status, outcome.out), (1, ""), argv)
            start = f"cronstable {argv[0]}: CRONSTABLE_STATE_URL is not set; "
            self.assertTrue(outcome.err.startswith(start), outcome.err)
            self.assertIn("inside a job", outcome.err)

    def test_no_configuration(self) -> None:
        """C{-c} before them is read by nobody."""
        outcome = self.cronstable("-c", "/nowhere", "state", "get", "k")
        self.assertIn("CRONSTABLE_STATE_URL", outcome.err)

    def test_groups(self) -> None:
        """A group without an action is one line, and status 2."""
        for group in ("state", "cursor", "lock", "artifact", "secret"):
            outcome = self.cronstable(group)
            self.assertEqual(
                (outcome.status, outcome.out, outcome.err),
                (2, "", f"cronstable {group}: no action given (see --help)\n"),
            )

    def test_help(self) -> None:
        """Help is there at every level."""
        for argv in (("lock",), ("lock", "run"), ("state", "set"), ("idempotent",)):
            outcome = self.cronstable(*argv, "--help")
            self.assertEqual((outcome.status, outcome.err), (0, ""))
            self.assertTrue(outcome.out.startswith(f"usage: cronstable {' '.join(argv)}"))

    def test_dashes(self) -> None:
        """Dashes belong to C{lock run}, which needs a command after them."""
        for argv in (("lock", "acquire", "l", "--", "x"), ("state", "get", "k", "--")):
            outcome = self.cronstable(*argv)
            self.assertEqual(outcome.status, 2)
            self.assertIn("`--` is only valid before a `lock run` command", outcome.err)
        for argv in (("lock", "run", "l"), ("lock", "run", "l", "--")):
            outcome = self.cronstable(*argv)
            self.assertEqual(outcome.status, 1)
            self.assertIn("needs a command", outcome.err)

    def test_light(self) -> None:
        """Nothing is loaded that they could do without."""
        environ = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
        for argv in COMMANDS:
            done = subprocess.run(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    "-c",
                    f"import sys; sys.path[:0]=[{str(CHECKOUT)!r}]\n{CODE}",
                    *argv,
                ],
                env=environ,
                capture_output=True,
                timeout=60,
            )
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertNotIn(b"Assertion", done.stderr)
            self.assertIn(b"CRONSTABLE_STATE_URL", done.stderr)
