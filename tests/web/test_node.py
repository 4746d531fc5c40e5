"""Tests for the routes of the node and for the samples that they show."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import fail, succeed
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sections_values import NodeHistory
from cronstable.executors.cgroups import CapsSupport
from cronstable.executors.host import HostUse
from cronstable.web import node
from tests.web.api import NOW, Api, section

USE = HostUse(12.5, 4, 50.0, 2048, 4096, 1024, 3.0)


class _Reader:
    """Reads what the test says."""

    readings = 0
    broken = False

    def __init__(self, clock: Any) -> None:
        pass

    def read(self) -> HostUse:
        if _Reader.broken:
            raise OSError("nothing to read")
        _Reader.readings += 1
        return USE


class NodeCase(SynchronousTestCase):
    """A node whose host is made up."""

    def setUp(self) -> None:
        def at_once(reactor: Any, name: str, call: Any, *given: Any) -> Any:
            try:
                return succeed(call(*given))
            except Exception:
                return fail()

        self.patch(node, "in_thread", at_once)
        self.patch(node, "HostReader", _Reader)
        _Reader.readings, _Reader.broken = 0, False

    def history(self, api: Api) -> dict[str, Any]:
        """Return what the history shows."""
        shown: dict[str, Any] = api.get("/node/history").json()
        self.assertEqual(shown.pop("node_name"), "node-a")
        return shown


class NodeTests(NodeCase):
    """GET /node."""

    def test_shown(self) -> None:
        """What is in use and what could be capped is shown."""
        api = Api()
        support = CapsSupport(False, "cgroup v2", (), "no hierarchy", "mount one")
        api.house.caps = lambda: support
        self.assertEqual(
            api.get("/node").json(),
            {
                "node_name": "node-a",
                "resources": {
                    "cpu_percent": 12.5, "cpu_count": 4, "mem_percent": 50.0,
                    "mem_used_bytes": 2048, "mem_total_bytes": 4096, "proc_rss_bytes": 1024,
                    "proc_cpu_percent": 3.0,
                },
                "limits": {
                    "available": False, "mechanism": "cgroup v2", "resources": [],
                    "reason": "no hierarchy", "hint": "mount one",
                },
            },
        )  # fmt: skip

    def test_read_once_a_second(self) -> None:
        """Many who ask within a second cost one reading."""
        api = Api()
        for _ in range(5):
            api.get("/node")
        self.assertEqual(_Reader.readings, 1)
        api.clock.advance(1)
        api.get("/node")
        self.assertEqual(_Reader.readings, 2)

    def test_nothing_to_read(self) -> None:
        """A host that tells nothing is no error."""
        _Reader.broken = True
        answer = Api().get("/node")
        self.assertEqual((answer.status, answer.json()["resources"]), (200, None))


class HistoryTests(NodeCase):
    """GET /node/history."""

    def api(self, **fields: Any) -> Api:
        """Return a daemon that samples as C{fields} say."""
        return Api(web=section(node_history=NodeHistory(**fields)))

    def test_off(self) -> None:
        """Switched off there is nothing, and nothing is read."""
        api = self.api(enabled=False)
        api.running.each_minute()
        api.advance(600)
        self.assertEqual(self.history(api), {"enabled": False, "interval": None, "points": []})
        self.assertEqual(_Reader.readings, 0)

    def test_chosen_interval(self) -> None:
        """An interval that was chosen is kept, watched or not; so is the number of points."""
        api = self.api(interval=2.0, points=10)
        api.advance(60.5, step=0.5)
        shown = self.history(api)
        self.assertEqual((shown["enabled"], shown["interval"]), (True, 2.0))
        self.assertEqual(len(shown["points"]), 10)
        distances = {
            round(later[0] - one[0], 1)
            for one, later in zip(shown["points"], shown["points"][1:], strict=False)
        }
        self.assertEqual(distances, {2.0})
        self.assertEqual(shown["points"][-1][1:], [12.5, 50.0])
        self.assertLessEqual(shown["points"][-1][0], NOW + 60.5)

    def test_endless_interval(self) -> None:
        """An interval without end is null: JSON has no number for it."""
        self.assertIs(self.history(self.api(interval=float("inf")))["interval"], None)

    def test_unwatched(self) -> None:
        """At the default one, who is not watched takes a sample a minute."""
        api = self.api()
        self.patch(node, "in_thread", lambda *given: self.fail("a thread was woken"))
        for _ in range(6):
            api.advance(60, step=1)
            api.running.each_minute()
        self.assertEqual(len(api.running.node.points), 5)
        self.assertEqual(_Reader.readings, 5)

    def test_unwatched_and_unreadable(self) -> None:
        """A host that tells nothing leaves no samples, and no error."""
        api = self.api()
        _Reader.broken = True
        for _ in range(3):
            api.running.each_minute()
        self.assertEqual(self.history(api)["points"], [])

    def test_watched(self) -> None:
        """Once somebody looks, samples come at full pace, for a quarter of an hour."""
        api = self.api()
        self.assertEqual(self.history(api)["interval"], 5.0)
        api.advance(60.5, step=0.5)
        self.assertEqual(len(self.history(api)["points"]), 12)
        api.advance(2000, step=1)
        read = _Reader.readings
        api.advance(300, step=1)
        self.assertEqual(_Reader.readings, read)

    def test_changed(self) -> None:
        """Another number of points keeps the newest; the same section changes nothing."""
        api = self.api(interval=2.0, points=30)
        api.advance(60.5, step=0.5)
        api.running.node.want(NodeHistory(interval=2.0, points=30))
        self.assertEqual(len(api.running.node.points), 30)
        newest = api.running.node.points[-1]
        api.running.node.want(NodeHistory(interval=2.0, points=10))
        self.assertEqual(len(api.running.node.points), 10)
        self.assertEqual(api.running.node.points[-1], newest)

    def test_stop(self) -> None:
        """After the stop nothing is read."""
        api = self.api(interval=2.0)
        api.running.node.stop()
        api.advance(60, step=1)
        self.assertEqual(_Reader.readings, 0)
