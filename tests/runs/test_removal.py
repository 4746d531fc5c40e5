"""Jobs that a reload removes, and how much is kept of those that stay."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.runs import slotbook
from tests.fakes import job
from tests.runs.test_scheduler import NOON
from tests.runs.world import World


class RemovalTests(SynchronousTestCase):
    """What is known of a job, before and after."""

    def setUp(self) -> None:
        self.world = World(NOON + 30, job("a"), job("b"))
        self.world.advance(30)

    def known(self) -> tuple[list[str], list[str], list[str]]:
        """Which jobs are shown, have a history, and have slots."""
        runs = self.world.runs
        names = [each.name for each in runs.shown()]
        self.assertEqual([name for name in "ab" if runs.job(name) is not None], sorted(names))
        return names, [name for name in "ab" if runs.history.runs(name)], list(runs.book.jobs())

    def end_all(self) -> None:
        for launch in tuple(self.world.executor.live):
            launch.exit(0)

    def test_idle(self) -> None:
        """One that does not run is forgotten at once."""
        self.end_all()
        self.world.install(job("b"))
        self.assertEqual(self.known(), (["b"], ["b"], ["b"]))

    def test_running(self) -> None:
        """One that runs is shown until its last run has ended, and forgotten then."""
        self.world.install(job("b"))
        self.assertEqual(self.known(), (["b", "a"], [], ["a", "b"]))
        self.end_all()
        self.assertEqual(self.known(), (["b"], ["b"], ["b"]))

    def test_comes_back(self) -> None:
        """One that comes back before that keeps all it had."""
        self.world.install(job("b"))
        self.world.install(job("a"), job("b"))
        self.end_all()
        self.assertEqual(self.known(), (["a", "b"], ["a", "b"], ["a", "b"]))

    def test_many(self) -> None:
        """The more jobs there are, the fewer slots of each are kept."""
        self.patch(slotbook, "KEPT_IN_ALL", 40)
        self.world.install(job("a"), job("b"))
        self.world.executor.behave = lambda launch: launch.exit(0)
        self.end_all()
        self.world.advance(60 * 30)
        self.assertEqual([len(self.world.book.entries(name)) for name in "ab"], [20, 20])
