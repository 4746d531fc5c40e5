"""What a launch leaves in memory: nothing, without the garbage collector."""

from __future__ import annotations

import gc

from twisted.internet import reactor, task

from cronstable.executors.child import Child
from cronstable.executors.launch import Launch
from tests.executors.support import LaunchCase, program, shell


class ReleaseTests(LaunchCase):
    """Ends of all kinds, with the garbage collector switched off."""

    def setUp(self) -> None:
        super().setUp()
        gc.collect()
        self.before = self.all()
        gc.disable()
        self.addCleanup(gc.enable)

    def all(self) -> list[object]:
        """Return the launches and children that something refers to."""
        return [each for each in gc.get_objects() if isinstance(each, Launch | Child)]

    def left(self) -> list[object]:
        """Return those of this test that something still refers to."""
        return [each for each in self.all() if not any(each is old for old in self.before)]

    async def test_ends(self) -> None:
        """A run that ends, is killed, or never starts is gone with its end."""
        await self.run_to_end(program("/bin/true", capture_stdout=True))
        await self.run_to_end(shell("exec sleep 60", execution_timeout=0.05, kill_timeout=1))
        await self.run_to_end(program("/no/such/program"))
        # The ends were told from within what is to be gone.
        await task.deferLater(reactor, 0)
        self.assertEqual(self.left(), [])
