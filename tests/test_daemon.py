"""What the daemon itself does, the rooms apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from cronstable import reload
from cronstable.clock import ManualClock
from cronstable.daemon import Daemon
from cronstable.sources import Sources

CONFIG = """\
jobs:
  - {name: a, command: "true", schedule: "* * * * *"}
"""


class MinuteTests(SynchronousTestCase):
    def test_slots_are_recounted(self) -> None:
        """Each minute's look at the sources does not keep the slot book from being audited."""
        path = Path(self.mktemp())
        path.write_text(CONFIG)
        clock: Any = ManualClock()
        unused: Any = None
        daemon = Daemon(unused, clock, Sources(str(path), {}, clock), {})
        audited: list[bool] = []
        self.patch(daemon.rooms, "each_minute", lambda audit: audited.append(audit))
        looks: list[Any] = []

        def in_thread(*look: Any) -> Deferred[Any]:
            looks.append(look)
            return Deferred()

        self.patch(reload, "in_thread", in_thread)
        daemon.reload.startService()
        daemon.chores.startService()
        clock.advance(60)
        self.assertEqual((audited, len(looks)), ([True], 1))
