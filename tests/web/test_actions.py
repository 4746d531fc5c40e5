"""Tests for what can be done to a job over HTTP."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import RetryPolicy
from cronstable.runs.request import Decision
from tests.fakes import job
from tests.web.api import CONTROL, NOW, Api, locked
from tests.web.served import Connection


class StartTests(SynchronousTestCase):
    """POST /jobs/{name}/start."""

    def setUp(self) -> None:
        self.api = Api(
            job("a", "0 0 1 1 *"),
            job("off", "0 0 1 1 *", enabled=False),
            job("one", "0 0 1 1 *", concurrency_policy="Forbid"),
            job("a/b", "0 0 1 1 *"),
        )

    def test_started(self) -> None:
        """A start answers once the process exists."""
        answer = self.api.post("/jobs/a/start")
        self.assertEqual((answer.status, answer.json()), (200, {"started": "a"}))
        self.assertEqual(self.api.launched().memo["cause"], "manual")

    def test_waits_for_the_decision(self) -> None:
        """While gates have not answered, neither does the request."""
        asked: Deferred[Any] = Deferred()
        self.patch(self.api.runs, "start_now", lambda name, who: _Ticket(asked))
        client = Connection(self.api)
        client.send("POST", "/jobs/a/start")
        self.api.turns()
        self.assertIsNone(client.answer())
        asked.callback(Decision("started", ref="r-1"))
        self.assertEqual(self.api.answered(client).status, 200)

    def test_client_that_leaves(self) -> None:
        """A client that does not wait for the decision breaks nothing."""
        asked: Deferred[Any] = Deferred()
        self.patch(self.api.runs, "start_now", lambda name, who: _Ticket(asked))
        client = Connection(self.api)
        client.send("POST", "/jobs/a/start")
        client.lose()
        asked.callback(Decision("started", ref="r-1"))
        self.api.turns()

    def test_name(self) -> None:
        """The answer has the name as it is configured."""
        self.assertEqual(self.api.post("/jobs/a%2Fb/start").json(), {"started": "a/b"})

    def test_unknown(self) -> None:
        """There is nothing to start under an unknown name."""
        answer = self.api.post("/jobs/nope/start")
        self.assertEqual((answer.status, answer.json()), (404, {"error": "job 'nope' not found"}))

    def test_refused(self) -> None:
        """Disabled, still running under Forbid, and shutting down are conflicts."""
        self.api.post("/jobs/one/start")
        for name, reason in (
            ("off", "job 'off' is disabled"),
            ("one", "job 'one' is still running and its concurrencyPolicy is Forbid"),
        ):
            answer = self.api.post(f"/jobs/{name}/start")
            self.assertEqual((answer.status, answer.json()), (409, {"error": reason}))
        self.api.runs.quiesce()
        answer = self.api.post("/jobs/a/start")
        self.assertEqual(answer.status, 409)
        self.assertEqual(answer.json(), {"error": "the daemon is shutting down"})
        self.assertEqual(len(self.api.executor.launches), 1)

    def test_gates_that_do_not_count(self) -> None:
        """A pause holds no start by hand back."""
        self.api.post("/jobs/a/pause")
        self.assertEqual(self.api.post("/jobs/a/start").status, 200)

    def test_other_decisions(self) -> None:
        """A queued start is 202; what nobody could decide is 503; any other reason is told."""
        for decision, status in (
            (Decision("queued", ref="q-1"), 202),
            (Decision("refused", "late", "a gate did not answer in time"), 503),
            (Decision("refused", "slot-held", "node-b holds the slot"), 409),
            (Decision("skipped", "merged"), 409),
        ):
            self.patch(self.api.runs, "start_now", lambda name, who, made=decision: _Ticket(made))
            answer = self.api.post("/jobs/a/start")
            self.assertEqual(answer.status, status)
            if status == 202:
                self.assertEqual(answer.json(), {"queued": "a", "queueId": "q-1", "pool": ""})
            elif decision.detail:
                self.assertIn(decision.detail, answer.json()["error"])

    def test_who(self) -> None:
        """The run remembers whose token asked for it."""
        seen: list[str | None] = []
        api = Api(job("a", "0 0 1 1 *"), web=locked())
        original = api.runs.start_now
        self.patch(
            api.runs, "start_now", lambda name, who: (seen.append(who), original(name, who))[1]
        )
        api.post("/jobs/a/start", Authorization=f"Bearer {CONTROL}")
        self.assertEqual(seen, ["ci"])

    def test_not_started(self) -> None:
        """A process that could not be made still was a start: the run tells how it went."""
        self.api.executor.refuse = "no such file"
        self.assertEqual(self.api.post("/jobs/a/start").status, 200)
        last = self.api.get("/jobs/a").json()["last_run"]
        self.assertEqual((last["outcome"], last["exit_code"]), ("failure", 127))


class CancelTests(SynchronousTestCase):
    """POST /jobs/{name}/cancel."""

    def setUp(self) -> None:
        self.api = Api(
            job("a", "0 0 1 1 *", kill_timeout=5.0, retry=RetryPolicy(maximum_retries=3)), job("b")
        )

    def test_all_instances(self) -> None:
        """Every live run is stopped, and recorded as cancelled."""
        for _ in range(3):
            self.api.post("/jobs/a/start")
        answer = self.api.post("/jobs/a/cancel")
        self.assertEqual((answer.status, answer.json()), (200, {"cancelled": "a", "instances": 3}))
        outcomes = {each["outcome"] for each in self.api.get("/jobs/a/runs").json()["runs"]}
        self.assertEqual(outcomes, {"cancelled"})
        self.assertNotIn("retry", self.api.get("/jobs/a").json())

    def test_waits_for_the_end(self) -> None:
        """The answer comes when the runs have ended."""
        self.api.executor.on_cancel = lambda launch: None
        self.api.post("/jobs/a/start")
        client = Connection(self.api)
        client.send("POST", "/jobs/a/cancel")
        self.api.clock.advance(4.9)
        self.assertIsNone(client.answer())
        self.api.launched().exit(-9)
        self.assertEqual(self.api.answered(client).status, 200)
        self.assertEqual(self.api.launched().cancelled, 5.0)

    def test_not_for_ever(self) -> None:
        """A run that does not end holds the answer for little more than the kill timeout."""
        self.api.executor.on_cancel = lambda launch: None
        self.api.post("/jobs/a/start")
        client = Connection(self.api)
        client.send("POST", "/jobs/a/cancel")
        self.api.clock.advance(7)
        self.assertEqual(self.api.answered(client).json(), {"cancelled": "a", "instances": 1})
        self.api.launched().exit(-9)
        self.assertEqual(self.api.get("/jobs/a").json()["last_run"]["outcome"], "cancelled")

    def test_nothing_runs(self) -> None:
        """Without a live run there is nothing to cancel."""
        answer = self.api.post("/jobs/b/cancel")
        self.assertEqual((answer.status, answer.json()), (409, {"error": "job 'b' is not running"}))
        self.assertEqual(self.api.post("/jobs/nope/cancel").status, 404)

    def test_who(self) -> None:
        """The record names whose token it was."""
        api = Api(job("a"), web=locked())
        bearer = f"Bearer {CONTROL}"
        api.post("/jobs/a/start", Authorization=bearer)
        api.post("/jobs/a/cancel", Authorization=bearer)
        last = api.get("/jobs/a/runs", Authorization=bearer).json()["runs"][-1]
        self.assertEqual((last["ended_by"], last["ended_by_whom"]), ("cancel", "ci"))


class PauseTests(SynchronousTestCase):
    """POST /jobs/{name}/pause and /resume."""

    def setUp(self) -> None:
        self.api = Api(job("a"))

    def paused(self, body: object) -> dict[str, Any]:
        """Return the pause that a body leads to."""
        answer = self.api.post("/jobs/a/pause", body)
        self.assertEqual(answer.status, 200)
        made: dict[str, Any] = answer.json()["paused"]
        self.assertEqual(self.api.get("/jobs/a").json()["paused"], made)
        return made

    def test_defaults(self) -> None:
        """Nothing said means an hour, by the API."""
        self.assertEqual(
            self.paused({}),
            {
                "since": "2026-01-01T00:00:00+00:00", "until": "2026-01-01T01:00:00+00:00",
                "note": "", "by": "api", "channel": "api",
            },
        )  # fmt: skip

    def test_duration(self) -> None:
        """A duration counts from now, up to thirty days."""
        for seconds, until in ((1, "2026-01-01T00:00:01"), (2_592_000, "2026-01-31T00:00:00")):
            made = self.paused({"durationSeconds": seconds})
            self.assertEqual(made["until"], f"{until}+00:00")

    def test_until(self) -> None:
        """An instant may be given instead, in UTC when it has no offset."""
        for text in ("2026-01-01T02:00:00", "2026-01-01T02:00:00Z", "2026-01-01T03:00:00+01:00"):
            self.assertEqual(self.paused({"until": text})["until"], "2026-01-01T02:00:00+00:00")

    def test_note(self) -> None:
        """Note and author are kept as they came, up to their length."""
        made = self.paused({"note": "\u00f1" * 500, "by": "x" * 100})
        self.assertEqual((len(made["note"]), made["by"]), (500, "x" * 100))
        made = self.paused({"durationSeconds": 9, "note": "half \ud83d", "by": "\udcff"})
        self.assertEqual((made["note"], made["by"]), ("half \\ud83d", "\\udcff"))

    def test_refused(self) -> None:
        """Everything else is refused with what is wrong, and changes nothing."""
        for body, reason in (
            ({"durationSeconds": True}, "durationSeconds must be an integer"),
            ({"durationSeconds": 1.5}, "durationSeconds must be an integer"),
            ({"durationSeconds": "60"}, "durationSeconds must be an integer"),
            ({"durationSeconds": 0}, "durationSeconds must be between 1 and 2592000"),
            ({"durationSeconds": 2_592_001}, "durationSeconds must be between 1 and 2592000"),
            ({"durationSeconds": 10**400}, "durationSeconds must be between 1 and 2592000"),
            (
                {"durationSeconds": 5, "until": "2030-01-01"},
                "give durationSeconds or until, not both",
            ),
            ({"until": "2020-01-01T00:00:00Z"}, "until is in the past"),
            ({"until": "2026-01-01T00:00:00Z"}, "until is in the past"),
            ({"until": "2026-02-01"}, "until must be at most 2592000 seconds ahead"),
            ({"until": 5}, "until must be an ISO 8601 date and time"),
            ({"until": "soon"}, "until must be an ISO 8601 date and time"),
            ({"note": "x" * 501}, "note must be at most 500 characters"),
            ({"note": 5}, "note must be a string"),
            ({"by": "x" * 101}, "by must be at most 100 characters"),
            ({"by": []}, "by must be a string"),
        ):
            answer = self.api.post("/jobs/a/pause", body)
            self.assertEqual((answer.status, answer.json()), (400, {"error": reason}), body)
        self.assertIsNone(self.api.runs.pause_of("a"))

    def test_null_is_absent(self) -> None:
        """A null stands for a key that is not there."""
        made = self.paused({"durationSeconds": 60, "until": None, "note": None, "by": None})
        self.assertEqual((made["until"], made["by"]), ("2026-01-01T00:01:00+00:00", "api"))

    def test_repeated(self) -> None:
        """A second pause replaces the first."""
        self.paused({"note": "one"})
        self.assertEqual(self.paused({"durationSeconds": 60})["note"], "")

    def test_holds_back(self) -> None:
        """A paused job's slots are skipped until it is resumed."""
        self.paused({"durationSeconds": 3600})
        self.api.advance(60.5)
        self.assertEqual(self.api.executor.launches, [])
        self.assertEqual(self.api.post("/jobs/a/resume").json(), {"paused": None})
        self.api.advance(60)
        self.assertEqual(len(self.api.executor.launches), 1)

    def test_resume(self) -> None:
        """A resume is fine without a pause; its body is checked all the same."""
        self.assertEqual(self.api.post("/jobs/a/resume", {"by": "ops"}).json(), {"paused": None})
        self.assertEqual(self.api.post("/jobs/a/resume", {"by": 5}).status, 400)
        self.assertEqual(self.api.post("/jobs/nope/resume").status, 404)
        self.assertEqual(self.api.post("/jobs/nope/pause").status, 404)

    def test_clock(self) -> None:
        """A pause is over when its time is, without anybody's doing."""
        self.paused({"durationSeconds": 60})
        self.api.clock.advance(60)
        self.assertIsNone(self.api.get("/jobs/a").json()["paused"])
        self.assertEqual(self.api.clock.now(), NOW + 60)


class _Ticket:
    """A ticket whose decision the test makes."""

    def __init__(self, decision: Decision | Deferred[Any]) -> None:
        self._decision = decision

    def when_decided(self) -> Deferred[Any]:
        """Fire with the decision."""
        if isinstance(self._decision, Deferred):
            return self._decision
        waiter: Deferred[Any] = Deferred()
        waiter.callback(self._decision)
        return waiter
