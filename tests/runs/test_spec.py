"""From a job to what is launched."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from cronstable.executors.interfaces import DropTo
from cronstable.runs.spec import argv, drop_to
from tests.fakes import job


class DropToTests(SynchronousTestCase):
    """Who a process becomes."""

    def test_nobody_named(self) -> None:
        """A job with neither user nor group stays who the daemon is."""
        self.assertIsNone(drop_to(job()))

    def test_user(self) -> None:
        """A user comes with its group and the groups of its login."""
        self.assertEqual(drop_to(job(uid=5, gid=6, login="app")), DropTo(5, 6, "app"))

    def test_group_only(self) -> None:
        """A group alone leaves the user as it is, and no other group."""
        self.assertEqual(drop_to(job(gid=6)), DropTo(os.geteuid(), 6, None))


class ArgvTests(SynchronousTestCase):
    """What is executed."""

    def test_list(self) -> None:
        """A list is executed as it is, whatever the shell."""
        self.assertEqual(argv(("a", "b c"), "/bin/sh"), ("a", "b c"))

    def test_text(self) -> None:
        """Text goes to the job's shell, a blank one meaning the platform's."""
        self.assertEqual(argv("a b", "/bin/bash"), ("/bin/bash", "-c", "a b"))
        for blank in ("", " "):
            self.assertEqual(argv("a b", blank), ("/bin/sh", "-c", "a b"))
