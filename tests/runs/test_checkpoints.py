"""Checkpoints of catch-up, and what a store says is owed."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.runs import checkpoints
from cronstable.runs.checkpoints import Saved
from cronstable.runs.missed import Stretch
from cronstable.state.errors import TROUBLE
from cronstable.state.faults import FaultyFiles
from cronstable.state.instants import to_text
from tests.runs.test_scheduler import at
from tests.state.support import StandingClock, memory_store

NOON = at("2026-06-01 12:00:00")


def row(minute: float, **fields: Any) -> dict[str, Any]:
    return {"outcome": "success", "finished_at": to_text(NOON + 60 * minute), **fields}


class ReadTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = StandingClock(NOON + 3600)
        self.store = memory_store(self.clock)

    def read(self) -> Saved:
        return checkpoints.read(self.store, "job", self.clock.now())

    def owed(self) -> list[tuple[float, float]]:
        found = self.read().owed(NOON + 3600)
        return [((each.after - NOON) / 60, (each.until - NOON) / 60) for each in found]

    def add(self, stream: str, *records: dict[str, Any]) -> None:
        for record in records:
            self.store.records.append(stream, record)

    def test_no_record(self) -> None:
        """A job without any record owes nothing: there is no instant to count from."""
        self.assertEqual(self.read(), Saved())
        self.assertEqual(self.owed(), [])

    def test_watermark(self) -> None:
        """Slots are owed from the latest finish on, wherever it stands in the stream."""
        self.add("runs/job", row(5), row(30), row(20))
        self.assertEqual(self.owed(), [(30, 60)])

    def test_any_outcome(self) -> None:
        """A failed, cancelled or skipped run accounts for its slot as well."""
        for outcome in ("failure", "cancelled", "skipped"):
            self.add("runs/job", row(10, outcome=outcome))
        self.assertEqual(self.owed(), [(10, 60)])

    def test_interrupted(self) -> None:
        """A run that was cut and is owed moves nothing."""
        self.add("runs/job", row(10), {"outcome": "unknown", "interruptedAt": to_text(NOON + 1800)})
        self.assertEqual(self.owed(), [(10, 60)])

    def test_ahead_of_the_clock(self) -> None:
        """Rows hours ahead of the clock do not count and are told; nearer ones count."""
        self.add("runs/job", row(10), row(60 + 181))
        self.assertEqual(self.owed(), [(10, 60)])
        self.assertEqual(self.read().ahead, 1)
        self.assertEqual(self.read().newest, NOON + 60 * 241)
        self.add("runs/job", row(60 + 179))
        self.assertEqual(self.owed(), [])

    def test_open_checkpoint(self) -> None:
        """An open checkpoint names the stretches; what lies behind them counts from the ledger."""
        stretches = [Stretch(NOON + 300, NOON + 600), Stretch(NOON + 900, NOON + 1200)]
        self.add("catchup/job", checkpoints.opened(stretches, NOON + 1260))
        self.add("runs/job", row(25))
        self.assertEqual(self.owed(), [(5, 10), (15, 20), (25, 60)])

    def test_open_and_no_later_run(self) -> None:
        """A life that wrote no row owes everything since its own start."""
        self.add("runs/job", row(5))
        self.add("catchup/job", checkpoints.opened([Stretch(NOON + 300, NOON + 600)], NOON + 600))
        self.assertEqual(self.owed(), [(5, 60)])

    def test_open_beyond_now(self) -> None:
        """What a clock that was ahead has noted is owed up to now, or counts from the ledger."""
        found = Saved(open=checkpoints.opened([Stretch(NOON, NOON + 86400)], NOON + 86400))
        hour = Stretch(NOON, NOON + 3600)
        self.assertEqual(found.owed(NOON + 3600, NOON + 3600), [hour])
        later = checkpoints.opened([Stretch(NOON + 80000, NOON + 86400)], NOON + 86400)
        self.assertEqual(Saved(open=later).owed(NOON + 3600, NOON + 3600), [])
        self.assertEqual(Saved(NOON, open=later).owed(NOON + 3600, NOON + 3600), [hour])

    def test_open_without_stretches(self) -> None:
        """A checkpoint of another implementation is recounted from its mark, if that is older."""
        self.add("runs/job", row(25))
        opened = {"kind": "open", "watermark": to_text(NOON + 300), "at": to_text(NOON)}
        self.add("catchup/job", opened)
        self.assertEqual(self.owed(), [(5, 60)])
        self.add("catchup/job", {**opened, "watermark": to_text(NOON + 1800)})
        self.assertEqual(self.owed(), [(25, 60)])
        self.add("catchup/job", {**opened, "watermark": ""})
        self.assertEqual(self.owed(), [(25, 60)])

    def test_open_alone(self) -> None:
        """An open checkpoint is enough to count from, without any run."""
        self.add("catchup/job", {"kind": "open", "watermark": to_text(NOON + 300), "at": ""})
        self.assertEqual(self.owed(), [(5, 60)])

    def test_closed(self) -> None:
        """A closed checkpoint says nothing: the ledger does."""
        self.add("runs/job", row(25))
        self.add("catchup/job", checkpoints.opened([Stretch(NOON, NOON + 60)], NOON))
        self.add("catchup/job", checkpoints.closed(NOON))
        self.assertEqual(self.owed(), [(25, 60)])
        self.assertIsNone(self.read().open)

    def test_odd_stretches(self) -> None:
        """Stretches that cannot be understood are as good as none."""
        self.add("runs/job", row(25))
        for odd in (5, [], [[1, 2]], [["x", "y"]], [[to_text(NOON)]], {"a": 1}):
            opened = {"kind": "open", "watermark": to_text(NOON + 300), "at": "", "windows": odd}
            self.add("catchup/job", opened)
            self.assertEqual(self.owed(), [(5, 60)], odd)

    def test_unreadable(self) -> None:
        """A ledger of which a record cannot be read gives no answer."""
        self.add("runs/job", row(5))
        files = FaultyFiles(self.store.tree.files)
        files.fail("read", match="runs%2F")
        self.store = memory_store(self.clock, files)
        self.assertRaises(TROUBLE, self.read)

    def test_portable(self) -> None:
        """Readers that know no stretches find the oldest mark where they look for it."""
        record = checkpoints.opened([Stretch(NOON, NOON + 60), Stretch(NOON + 90, NOON + 99)], NOON)
        self.assertEqual(record["kind"], "open")
        self.assertEqual(record["watermark"], to_text(NOON))
        self.assertEqual(checkpoints.closed(NOON)["watermark"], "")


class PausesTests(SynchronousTestCase):
    def pause(self, at: float, until: float) -> dict[str, Any]:
        return {
            "kind": "paused",
            "since": to_text(NOON + at),
            "until": to_text(NOON + until),
            "at": to_text(NOON + at),
        }

    def found(self, *records: dict[str, Any]) -> list[tuple[float, float]]:
        return [(e.after - NOON, e.until - NOON) for e in checkpoints.pauses_of(records)]

    def test_pause(self) -> None:
        """A pause covers the time from its beginning to its end."""
        self.assertEqual(self.found(self.pause(10, 100)), [(10, 100)])

    def test_resumed(self) -> None:
        """One that was lifted covers the time until then."""
        resumed = {"kind": "resumed", "at": to_text(NOON + 50)}
        self.assertEqual(self.found(self.pause(10, 100), resumed), [(10, 50)])
        self.assertEqual(self.found(self.pause(10, 40), resumed), [(10, 40)])

    def test_replaced(self) -> None:
        """One that was replaced covers the time until the next begins."""
        self.assertEqual(self.found(self.pause(10, 100), self.pause(30, 60)), [(10, 30), (30, 60)])

    def test_odd(self) -> None:
        """Records without instants cover nothing."""
        self.assertEqual(self.found({"kind": "paused"}, {}, {"kind": "paused", "since": "x"}), [])
