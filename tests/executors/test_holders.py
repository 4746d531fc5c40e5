"""Finding out who holds a pipe."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from cronstable.executors.holders import find_holders


class HoldersTests(SynchronousTestCase):
    """Who has a pipe open."""

    def setUp(self) -> None:
        self.read, write = os.pipe()
        self.addCleanup(os.close, self.read)
        self.inodes = frozenset((os.fstat(self.read).st_ino,))
        self.member = subprocess.Popen(["sleep", "30"], stdout=write, start_new_session=True)
        self.stranger = subprocess.Popen(["sleep", "30"], stdout=write, start_new_session=True)
        os.close(write)
        for process in (self.member, self.stranger):
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)

    def test_session_first(self) -> None:
        """A member of the session is named, and strangers are not looked for."""
        found = find_holders(self.member.pid, self.inodes)
        self.assertEqual([(left.pid, left.command) for left in found], [(self.member.pid, "sleep")])

    def test_strangers(self) -> None:
        """Who left the session is found as well, lowest pid first; we ourselves are not named."""
        found = find_holders(1, self.inodes)
        pids = sorted((self.member.pid, self.stranger.pid))
        self.assertEqual([left.pid for left in found], pids)

    def test_nobody(self) -> None:
        """A pipe that nobody has, or a system that does not tell, names nobody."""
        self.assertEqual(find_holders(self.member.pid, frozenset((1,))), ())
        self.assertEqual(find_holders(1, self.inodes, Path("/no/such/proc")), ())
