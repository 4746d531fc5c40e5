"""
The job-set ID beside another implementation's, on random configurations.

It runs the program that C{CRONSTABLE_REFERENCE} names, and is skipped without one.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from cronstable.config.load import load
from tests.config.random_configs import RandomConfig

CONFIGURATIONS = int(os.environ.get("CRONSTABLE_REFERENCE_CONFIGURATIONS", "12"))
FIRST_SEED = int(os.environ.get("CRONSTABLE_REFERENCE_SEED", "1"))


class ReferenceTests(SynchronousTestCase):
    """Tests that both programs give the same ID."""

    def setUp(self) -> None:
        """Find the other program."""
        self.program = os.environ.get("CRONSTABLE_REFERENCE", "")
        if not self.program:
            raise SkipTest("CRONSTABLE_REFERENCE does not name a program to compare with")

    def theirs(self, directory: str, environ: dict[str, str]) -> str:
        """Return the other program's answer: an ID, or what is wrong."""
        ran = subprocess.run(
            [self.program, "-c", "main.yaml", "--job-set-id"],
            cwd=directory,
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
            timeout=60,
        )
        return ran.stdout.strip() or ran.stderr

    def test_same_ids(self) -> None:
        """Both give the same ID for everything that both accept."""
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0
        for seed in range(FIRST_SEED, FIRST_SEED + CONFIGURATIONS):
            made = RandomConfig(seed, is_root)
            directory = os.path.abspath(self.mktemp())
            os.makedirs(directory)
            for name, text in made.files.items():
                Path(directory, name).write_text(text, newline="", encoding="utf-8")
            ours = load(
                os.path.join(directory, "main.yaml"),
                environ={**os.environ, **made.environ},
                now=1_767_225_600.0,
                cwd=directory,
            )
            self.assertEqual(
                self.theirs(directory, made.environ), ours.job_set_id, f"seed {seed}: {directory}"
            )
