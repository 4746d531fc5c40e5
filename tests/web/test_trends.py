"""Trends over a ledger that is really on the disk."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sections_values import StateConfig
from cronstable.executors.interfaces import Usage
from cronstable.runs.record import RunRecord
from cronstable.runs.rows import interrupted, row_of
from cronstable.state.streams import runs
from tests.fakes import job
from tests.web.api import NOW
from tests.web.stored import StoredApi
from tests.web.test_vectors import Vector, differences, shape

HOUR = 3600.0
DAY = 86400.0


def ran(ago: float, outcome: Any = "success", name: str = "a", **fields: Any) -> RunRecord:
    """Return a run that finished C{ago} seconds before the tests begin."""
    at = NOW - ago
    fields.setdefault("started_at", at - 2.0)
    fields.setdefault("duration", 2.0)
    return RunRecord(name, outcome, at, **fields)


class TrendTests(SynchronousTestCase):
    """GET /jobs/{name}/trends."""

    def setUp(self) -> None:
        self.api = StoredApi(self.mktemp(), job("a"), job("b"))

    def save(self, *records: RunRecord) -> None:
        """Append rows, as any node would."""
        for each in records:
            self.api.store.records.append(runs(each.job), row_of(each))

    def trends(self, name: str = "a") -> Any:
        """Ask for the trends of a job."""
        answer = self.api.get(f"/jobs/{name}/trends")
        self.assertEqual(answer.status, 200, answer.text)
        return answer.json()

    def of_all(self, key: str, windows: Iterable[str] = ("1h", "24h", "7d", "30d", "all")) -> Any:
        """Return one number of each window."""
        found = self.trends()["windows"]
        return [found[window][key] for window in windows]

    def test_windows(self) -> None:
        """Each window counts the runs that finished within it, those of every node."""
        ages = (60, 2 * HOUR, 2 * DAY, 10 * DAY, 100 * DAY)
        self.save(*(ran(age) for age in ages))
        shown = self.trends()
        self.assertEqual((shown["name"], shown["source"]), ("a", "durable"))
        self.assertEqual(shown["generated_at"], "2026-01-01T00:00:00+00:00")
        self.assertEqual(self.of_all("total"), [1, 2, 3, 4, 5])

    def test_edge(self) -> None:
        """A run that finished exactly a window ago is out of it."""
        self.save(ran(HOUR), ran(HOUR - 1))
        self.assertEqual(self.of_all("total", ("1h", "24h")), [1, 2])

    def test_verdicts(self) -> None:
        """Cancelled, unknown and skipped runs are no verdict; skipped ones count in total only."""
        self.save(
            ran(50),
            ran(40, "failure"),
            ran(30, "success"),
            ran(20, "cancelled"),
            ran(10, "skipped", started_at=None, duration=None, skip_reason="paused"),
        )
        self.api.store.records.append(runs("a"), interrupted(NOW - 60, "node-b", False))
        shown = self.trends()["windows"]["all"]
        self.assertEqual(shown["total"], 6)
        for outcome, count in (("success", 2), ("failure", 1), ("cancelled", 1), ("unknown", 1)):
            self.assertEqual(shown[outcome], count, outcome)
        self.assertEqual(shown["success_rate"], 2 / 3)
        self.assertEqual(shown["last_duration"], None)

    def test_last_by_finish(self) -> None:
        """What was last is what finished last, wherever it stands in the stream."""
        usage = Usage(0.25, 0.5, 4096, 3)
        self.save(
            ran(10, duration=7.0, usage=usage),
            ran(20, duration=5.0, usage=Usage(1.0, 1.0, 1024, 1)),
            ran(3 * HOUR, duration=1.0),
        )
        shown = self.trends()["windows"]["24h"]
        self.assertEqual(shown["last_duration"], 7.0)
        self.assertEqual((shown["last_cpu_seconds"], shown["last_rss_bytes"]), (0.75, 4096))
        self.assertEqual((shown["max_cpu_seconds"], shown["avg_rss_bytes"]), (2.0, 2560.0))
        self.assertEqual((shown["min_duration"], shown["max_duration"]), (1.0, 7.0))

    def test_interrupted_and_owed(self) -> None:
        """An interrupted run that is still owed counts as unknown, at its start."""
        self.api.store.records.append(runs("a"), interrupted(NOW - 2 * HOUR, "node-b", True))
        self.assertEqual(self.of_all("unknown", ("1h", "24h", "all")), [0, 1, 1])

    def test_foreign_rows(self) -> None:
        """Rows without sense take nothing from the others; only numbers are counted with."""
        self.save(ran(5))
        append = self.api.store.records.append
        append(runs("a"), {"outcome": "success"})
        append(runs("a"), {"outcome": 7, "finished_at": "2025-12-31T23:59:00+00:00"})
        append(
            runs("a"),
            {
                "outcome": "success",
                "finished_at": "2025-12-31T23:59:00+00:00",
                "duration": "long",
                "resources": [],
            },
        )
        shown = self.trends()["windows"]["1h"]
        self.assertEqual((shown["total"], shown["avg_duration"]), (2, 2.0))
        self.assertEqual(shown["max_cpu_seconds"], None)

    def test_most_rows(self) -> None:
        """At most the newest 5000 rows are read."""
        from cronstable.runs import trends

        self.patch(trends, "MOST_ROWS", 3)
        self.save(*(ran(age) for age in (50, 40, 30, 20, 10)))
        self.assertEqual(self.of_all("total", ("all",)), [3])

    def test_never_ran(self) -> None:
        """A job without rows has empty windows, from the ledger all the same."""
        shown = self.trends("b")
        self.assertEqual(shown["source"], "durable")
        self.assertEqual(shown["windows"]["all"]["total"], 0)
        self.assertEqual(shown["windows"]["all"]["success_rate"], None)

    def test_unknown_job(self) -> None:
        """A job that is not configured has no trends, whatever the store holds of it."""
        self.save(ran(5, name="gone"))
        self.assertEqual(self.api.get("/jobs/gone/trends").status, 404)

    def test_recorded_shape(self) -> None:
        """The answer has every field of the recorded one, in every window."""
        self.save(ran(5), ran(4, "failure", usage=Usage(0.1, 0.1, 100, 1)))
        recorded = Vector.read("job-trends").response["body"]["json"]
        self.assertEqual(differences(shape(recorded), shape(self.trends())), [])

    # how long an answer is good

    def test_kept_for_five_seconds(self) -> None:
        """What other nodes add is seen after five seconds; within them the ledger is left alone."""
        self.save(ran(5))
        self.assertEqual(self.of_all("total", ("all",)), [1])
        asked = self.api.bulk.begun
        self.save(ran(4))
        self.api.clock.advance(4.5)
        self.assertEqual(self.of_all("total", ("all",)), [1])
        self.assertEqual(self.api.bulk.begun, asked)
        self.api.clock.advance(1)
        self.assertEqual(self.of_all("total", ("all",)), [2])

    def test_own_run_is_seen_at_once(self) -> None:
        """When a run of the job ends here, the next answer has it; other jobs' answers stay."""
        self.save(ran(5), ran(5, name="b"))
        self.trends("b")
        self.assertEqual(self.of_all("total", ("all",)), [1])
        asked = self.api.bulk.begun
        self.save(ran(0))
        self.api.runs.history.add(ran(0))
        self.assertEqual(self.of_all("total", ("all",)), [2])
        self.trends("b")
        self.assertEqual(self.api.bulk.begun, asked + 1)

    def test_row_on_its_way_is_waited_for(self) -> None:
        """A row that is still being written is in the answer."""
        api = self.api
        api.bulk.is_hung = True
        row = row_of(ran(0))
        api.house.store.write("a", "run-record", lambda store: store.records.append(runs("a"), row))
        api.bulk.is_hung = False
        api.runs.history.add(ran(0))
        api.clock.callLater(1.0, api.bulk.release)
        shown = self.trends()
        self.assertEqual((shown["source"], shown["windows"]["all"]["total"]), ("durable", 1))

    def test_asked_at_once(self) -> None:
        """Clients that ask at the same time share one reading."""
        from tests.web.served import Connection

        self.save(ran(5))
        self.api.bulk.is_hung = True
        clients = [Connection(self.api) for _ in range(5)]
        for each in clients:
            each.send("GET", "/jobs/a/trends")
        self.api.turns()
        self.assertEqual(len(self.api.bulk.held), 1)
        self.api.bulk.release()
        for each in clients:
            self.assertEqual(self.api.answered(each).json()["source"], "durable")

    # trouble

    def test_without_a_store(self) -> None:
        """Without a store, memory answers."""
        self.api.reconcile(None)
        self.api.runs.history.add(ran(5, "failure"))
        shown = self.trends()
        self.assertEqual(shown["source"], "memory")
        self.assertEqual(shown["windows"]["1h"]["failure"], 1)

    def test_store_that_hangs(self) -> None:
        """When the ledger does not answer in time memory does, and it is not asked meanwhile."""
        self.save(ran(5))
        self.api.runs.history.add(ran(5, "failure"))
        self.api.bulk.is_hung = True
        began = self.api.clock.seconds()
        self.assertEqual(self.trends()["source"], "memory")
        self.assertLess(self.api.clock.seconds() - began, 12.0)
        self.api.clock.advance(6)
        self.assertEqual(self.trends()["source"], "memory")
        self.assertEqual(len(self.api.bulk.held), 1)
        self.api.bulk.release()
        self.api.turns()
        self.api.clock.advance(6)
        self.assertEqual(self.trends()["source"], "durable")

    def test_store_that_is_not_up(self) -> None:
        """A store that could not be started is no reason to answer with an error."""
        self.api.reconcile(StateConfig("/dev/null/x"))
        self.assertEqual(self.trends()["source"], "memory")

    def test_ledger_that_cannot_be_read(self) -> None:
        """When no row can be read, memory answers rather than nothing."""
        self.save(ran(5))
        self.api.runs.history.add(ran(5))

        def fail(path: str) -> bytes:
            raise PermissionError(13, "Permission denied", path)

        self.patch(self.api.store.tree.files, "read", fail)
        shown = self.trends()
        self.assertEqual((shown["source"], shown["windows"]["all"]["total"]), ("memory", 1))
