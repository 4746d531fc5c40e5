"""From a job to what is launched."""

from __future__ import annotations

import os
import pwd

from twisted.trial.unittest import SynchronousTestCase

from cronstable.executors.interfaces import DropTo
from cronstable.runs.spec import argv, drop_to, environment, launch_spec
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


class EnvironmentTests(SynchronousTestCase):
    """What a process finds in its environment."""

    def test_nothing_added(self) -> None:
        """Jobs that add nothing share one environment."""
        base = {"A": "1"}
        self.assertIs(environment(job(), base), base)

    def test_user(self) -> None:
        """Another user's home and name win over the daemon's, and the configuration over them."""
        base = {"HOME": "/daemon", "USER": "daemon", "A": "1"}
        home, name = pwd.getpwuid(0).pw_dir, pwd.getpwuid(0).pw_name
        root = environment(job(uid=0, gid=0), base)
        self.assertEqual(
            (root["HOME"], root["USER"], root["LOGNAME"], root["A"]), (home, name, name, "1")
        )
        own = environment(job(uid=0, gid=0, environment={"HOME": "/mine"}), base)
        self.assertEqual((own["HOME"], own["USER"]), ("/mine", name))

    def test_unknown_user(self) -> None:
        """A number that is nobody's leaves it as it is."""
        base = {"HOME": "/daemon"}
        self.assertEqual(environment(job(uid=987_654, gid=1), base), base)


class PatienceTests(SynchronousTestCase):
    """How long a launch waits for room."""

    def test_start_within(self) -> None:
        """A minute, or less where a slot may be late by less."""
        deadlines = {None: 60.0, 0: 60.0, 5: 5.0, 3600: 60.0}
        for deadline, within in deadlines.items():
            spec = launch_spec(job(starting_deadline=deadline), {})
            self.assertEqual(spec.start_within, within)


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
