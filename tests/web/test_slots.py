"""Tests for the route of the slot book."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.fakes import job
from tests.web.api import NOW, Api


class SlotsTests(SynchronousTestCase):
    """GET /slots."""

    def setUp(self) -> None:
        self.api = Api(job("a"), job("b", "*/2 * * * *", concurrency_policy="Forbid"))

    def slots(self, query: str = "") -> list[dict[str, Any]]:
        """Return what is shown; nothing is ever unaccounted."""
        shown = self.api.get(f"/slots{query}").json()
        self.assertEqual(shown["unaccounted"], 0)
        return list(shown["slots"])

    def test_newest_first(self) -> None:
        """Every slot that came due is there, the newest first."""
        self.api.advance(180.5, step=10)
        shown = self.slots()
        self.assertEqual(
            [(each["job"], each["slot"][14:16], each["result"]) for each in shown],
            [("a", "03", "ran"), ("a", "02", "ran"), ("b", "02", "ran"), ("a", "01", "ran")],
        )
        self.assertEqual(
            shown[-1],
            {
                "job": "a", "slot": "2026-01-01T00:01:00+00:00", "result": "ran", "reason": None,
                "started_at": "2026-01-01T00:01:00+00:00", "into": None,
            },
        )  # fmt: skip

    def test_reasons(self) -> None:
        """A slot that did not run says why."""
        self.api.advance(240.5, step=10)
        self.assertEqual(
            [(each["result"], each["reason"]) for each in self.slots("?job=b")],
            [("skipped", "overlap"), ("ran", None)],
        )

    def test_range(self) -> None:
        """Slots that passed while the host slept are one entry with an end and a count."""
        self.api.clock.suspend(7200)
        self.api.advance(60.5, step=10)
        gap = next(each for each in self.slots("?job=a") if "count" in each)
        self.assertEqual((gap["result"], gap["reason"], gap["count"]), ("missed", "delayed", 119))
        self.assertEqual(gap["until"], "2026-01-01T01:59:59+00:00")

    def test_open(self) -> None:
        """A slot that nothing is known of yet is open."""
        self.api.runs.book.open("a", 0, int(NOW), self.api.scheduler)
        shown = self.api.get("/slots").json()
        self.assertEqual(shown["unaccounted"], 1)
        self.assertEqual((shown["slots"][0]["result"], shown["slots"][0]["reason"]), ("open", None))

    def test_bounds(self) -> None:
        """Bounds of time are inclusive, and may have their plus unescaped."""
        self.api.advance(600.5, step=10)
        for query, count in (
            ("since=2026-01-01T00:09:00Z", 2),
            ("until=2026-01-01T00:02:00%2B00:00", 2),
            ("until=2026-01-01T00:02:00+00:00", 2),
            ("since=2026-01-01T00:03:00&until=2026-01-01T00:05:00", 3),
            ("limit=4", 4),
            ("limit=0", 1),
            ("limit=x", 10),
            ("since=&until=", 10),
        ):
            self.assertEqual(len(self.slots(f"?job=a&{query}")), count, query)
        self.assertEqual(self.slots("?limit=1")[0]["slot"], "2026-01-01T00:10:00+00:00")

    def test_refused(self) -> None:
        """An instant that is none is 400, an unknown job 404."""
        for query in ("since=soon", "until=yesterday"):
            self.assertEqual(self.api.get(f"/slots?{query}").status, 400)
        self.assertEqual(self.api.get("/slots?job=nope").status, 404)

    def test_most(self) -> None:
        """The newest of very many are found."""
        for number in range(3000):
            self.api.runs.book.open("b", 0, number, self.api.scheduler).skipped("x")
        shown = self.slots("?limit=5")
        self.assertEqual(
            [each["slot"][14:19] for each in shown], ["49:59", "49:58", "49:57", "49:56", "49:55"]
        )
