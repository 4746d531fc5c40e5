"""The bus that carries events."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.events import Bus


@attrs.frozen
class Happened:
    what: str


class BusTests(SynchronousTestCase):
    def test_by_type(self) -> None:
        """Listeners hear the events of their type, until they stop listening."""
        bus = Bus()
        heard: list[object] = []
        stop = bus.subscribe(Happened, heard.append)
        bus.publish(Happened("a"))
        bus.publish("something else")
        stop()
        stop()
        bus.publish(Happened("b"))
        self.assertEqual(heard, [Happened("a")])

    def test_listener_that_raises(self) -> None:
        """A listener that raises is logged and stops no other."""
        bus = Bus()
        heard: list[object] = []

        def broken(event: Happened) -> None:
            raise RuntimeError("broken")

        bus.subscribe(Happened, broken)
        bus.subscribe(Happened, heard.append)
        with self.assertLogs("cronstable", "ERROR"):
            bus.publish(Happened("a"))
        self.assertEqual(heard, [Happened("a")])
