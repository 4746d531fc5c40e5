"""Tests for the bounded starting of deliveries."""

from __future__ import annotations

from collections.abc import Hashable

from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from cronstable.reports.lanes import Lanes


class Parcel:
    """A delivery that ends when the test says so."""

    def __init__(self, started: list[Parcel], lane: Hashable = "a", size: int = 1) -> None:
        self.lane = lane
        self.size = size
        self._started = started
        self.done: Deferred[None] = Deferred()

    def start(self) -> Deferred[None]:
        """Record the start."""
        self._started.append(self)
        return self.done


class AtOnce(Parcel):
    """A delivery that is over as soon as it starts."""

    def start(self) -> Deferred[None]:
        """Record the start."""
        self._started.append(self)
        return succeed(None)


class LanesTests(SynchronousTestCase):
    """Deliveries in bounded numbers."""

    def setUp(self) -> None:
        self.started: list[Parcel] = []

    def test_at_once(self) -> None:
        """Only so many run; the next starts when one is over, in order."""
        lanes = Lanes(at_once=2, per_lane=2)
        parcels = [Parcel(self.started) for _ in range(4)]
        self.assertTrue(all(lanes.submit(each) for each in parcels))
        self.assertEqual(self.started, parcels[:2])
        parcels[1].done.callback(None)
        self.assertEqual(self.started, parcels[:3])
        for each in parcels:
            if not each.done.called:
                each.done.callback(None)
        self.assertEqual(self.started, parcels)
        self.assertEqual((lanes.running, lanes.waiting), (0, 0))

    def test_one_lane_leaves_room(self) -> None:
        """A destination that hangs takes its own places only."""
        lanes = Lanes(at_once=4, per_lane=2)
        for _ in range(10):
            lanes.submit(Parcel(self.started, "dead"))
        lanes.submit(Parcel(self.started, "alive"))
        self.assertEqual([each.lane for each in self.started], ["dead", "dead", "alive"])

    def test_lanes_take_turns(self) -> None:
        """Free places go to the lanes in turn, however much waits in one of them."""
        lanes = Lanes(at_once=1, per_lane=1)
        for lane in "aaabbc":
            lanes.submit(Parcel(self.started, lane))
        while lanes.running:
            self.started[-1].done.callback(None)
        self.assertEqual("".join(str(each.lane) for each in self.started), "aabcab")

    def test_no_room(self) -> None:
        """Only so many may wait, and they may hold only so much."""
        lanes = Lanes(at_once=1, most_waiting=2, most_held=100)
        self.assertTrue(lanes.submit(Parcel(self.started)))
        self.assertTrue(lanes.submit(Parcel(self.started, size=90)))
        self.assertFalse(lanes.submit(Parcel(self.started, size=20)))
        self.assertTrue(lanes.submit(Parcel(self.started, size=5)))
        self.assertFalse(lanes.submit(Parcel(self.started, size=0)))

    def test_large_one_alone(self) -> None:
        """One that alone holds more than all may hold can still wait."""
        lanes = Lanes(at_once=1, most_held=10)
        lanes.submit(Parcel(self.started))
        self.assertTrue(lanes.submit(Parcel(self.started, size=50)))

    def test_many_at_once(self) -> None:
        """Thousands that end as they start need no deep stack."""
        lanes = Lanes(at_once=1, most_waiting=5000)
        first = Parcel(self.started)
        lanes.submit(first)
        for _ in range(5000):
            self.assertTrue(lanes.submit(AtOnce(self.started)))
        first.done.callback(None)
        self.assertEqual(len(self.started), 5001)

    def test_drop(self) -> None:
        """What waits can be dropped; what runs goes on."""
        lanes = Lanes(at_once=1)
        parcels = [Parcel(self.started) for _ in range(3)]
        for each in parcels:
            lanes.submit(each)
        self.assertEqual(lanes.drop_waiting(), parcels[1:])
        parcels[0].done.callback(None)
        self.assertEqual(self.started, parcels[:1])
        self.assertTrue(lanes.submit(Parcel(self.started)))
        self.assertEqual(lanes.running, 1)
