"""The slot book itself."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.runs import slotbook
from cronstable.runs.slotbook import SlotBook, SlotTicket


class Owner:
    """Owns every slot until told otherwise."""

    owning = True

    def owns(self, ticket: SlotTicket) -> bool:
        return self.owning


class SlotBookTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.book = SlotBook()
        self.owner = Owner()

    def test_each_result(self) -> None:
        """A slot ends in exactly one way, which is kept and counted."""
        for number, close in enumerate(
            (
                lambda ticket: ticket.ran(61.5),
                lambda ticket: ticket.skipped("paused"),
                lambda ticket: ticket.missed("error"),
                lambda ticket: ticket.merged(240),
            )
        ):
            close(self.book.open("a", 0, 60 * number, self.owner))
        self.assertEqual(
            [(entry.result, entry.reason, entry.into) for entry in self.book.entries("a")],
            [
                ("ran", None, None),
                ("skipped", "paused", None),
                ("missed", "error", None),
                ("merged", None, 240),
            ],
        )
        self.assertEqual(
            dict(self.book.totals["a"]), dict.fromkeys(("ran", "skipped", "missed", "merged"), 1)
        )
        self.assertEqual(self.book.unaccounted(), 0)

    def test_no_owner(self) -> None:
        """An open slot whose owner does not own it is unaccounted."""
        self.book.open("a", 0, 60, self.owner)
        self.assertEqual(self.book.unaccounted(), 0)
        self.owner.owning = False
        self.assertEqual(self.book.unaccounted(), 1)

    def test_closed_twice(self) -> None:
        """A second close is a fault and does not change the first."""
        ticket = self.book.open("a", 0, 60, self.owner)
        ticket.ran(60.0)
        with self.assertLogs("cronstable", "ERROR"):
            ticket.skipped("paused")
        self.assertEqual(self.book.unaccounted(), 1)
        self.assertEqual([entry.result for entry in self.book.entries("a")], ["ran"])

    def test_opened_twice(self) -> None:
        """Opening an open slot is a fault and gives the ticket that is open."""
        ticket = self.book.open("a", 0, 60, self.owner)
        with self.assertLogs("cronstable", "ERROR"):
            self.assertIs(self.book.open("a", 0, 60, self.owner), ticket)
        self.assertEqual(self.book.unaccounted(), 1)

    def test_gap(self) -> None:
        """A long gap is one entry that counts for all its slots."""
        self.book.gap("a", 0, 60, 600, 10, "delayed")
        self.book.gap("a", 0, 660, 700, 0, "delayed")
        (entry,) = self.book.entries("a")
        self.assertEqual((entry.slot, entry.until, entry.count), (60, 600, 10))
        self.assertEqual(self.book.totals["a"]["missed"], 10)
        self.assertEqual(self.book.opened("a"), 10)

    def test_bounded(self) -> None:
        """What is kept of closed slots is bounded; open ones are never dropped."""
        self.book.size_for(slotbook.KEPT_IN_ALL)
        waiting = self.book.open("a", 0, 0, self.owner)
        for slot in range(1, 100):
            self.book.open("a", 0, slot, self.owner).ran(float(slot))
        self.assertEqual(len(self.book.entries("a")), slotbook.KEPT_PER_JOB[0])
        self.assertEqual(list(self.book.open_slots()), [waiting])
        self.assertEqual(self.book.totals["a"]["ran"], 99)

    def test_forget(self) -> None:
        """Nothing is kept of a job that is forgotten."""
        self.book.open("a", 0, 60, self.owner).ran(60.0)
        self.book.forget("a")
        self.assertEqual((self.book.jobs(), self.book.totals, self.book.opened("a")), ((), {}, 0))
