"""The routes of the store, over one that is really on the disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cronstable.config.load import load
from cronstable.config.sections_values import StateConfig
from cronstable.state import inspection, jobstate
from cronstable.state.looks import ABREAST
from tests.fakes import IDENTITY, job
from tests.web.api import CONTROL, NOW, VIEW, locked
from tests.web.served import Connection
from tests.web.stored import StoredApi
from tests.web.test_vectors import FIXTURES, Vector, VectorCase, differences, shape


def filled(api: StoredApi) -> None:
    """Put something of every kind into the store, as jobs and the daemon do."""
    store = api.store
    jobstate.kv_set(store, "state-user", "last", "42")
    jobstate.kv_set(store, "state-user", "doc", {"n": 3})
    jobstate.kv_set(store, "global", "shared", "yes")
    jobstate.cursor_advance(store, "state-user", "rows", 10)
    jobstate.claim(store, "state-user", "once-key")
    jobstate.artifact_put(store, "state-user", "rep", b"payload")
    store.records.append("runs/ok-minutely", {"outcome": "success"})
    store.records.append("runs/ok-minutely", {"outcome": "failure"})
    store.records.append("logs/chatty", {"lines": ["hunter2"]})
    store.leases.acquire("slots/slotted", IDENTITY.holder, 30.0)
    store.leases.acquire("slots/other", "node-b#000000000000", 30.0)
    store.leases.acquire("lock/state-user/m1#0", f"{IDENTITY.holder}#1", 30.0)


class StateCase(VectorCase):
    """A daemon with a store that holds something."""

    def setUp(self) -> None:
        self.api = StoredApi(self.mktemp(), job("a"), job("slotted"))
        filled(self.api)

    def get(self, path: str, status: int = 200) -> Any:
        """Ask, and return the answer as JSON."""
        answer = self.api.get(path)
        self.assertEqual(answer.status, status, answer.text)
        return answer.json()


class RecordingTests(StateCase):
    """Answers beside those of the older daemon."""

    def setUp(self) -> None:
        config = load(str(FIXTURES / "main.yaml"), environ={}, now=NOW).config
        assert config.web is not None
        self.api = StoredApi(self.mktemp(), *config.jobs.values(), web=config.web)
        self.api.running.node.stop()
        filled(self.api)

    def test_replay(self) -> None:
        """What is asked of a store is answered as recorded."""
        self.replay(
            self.api,
            "state-documents-400", "state-documents-400-missing", "state-documents-cursor",
            "state-documents-idem", "state-documents-kv", "state-documents-unknown",
            "state-records-400", "state-records-403-logs", "state-records-artifacts",
            "state-records-unknown",
        )  # fmt: skip

    def test_documents_to_the_value(self) -> None:
        """Sizes and kinds of values are told as the older daemon tells them."""
        vector = Vector.read("state-documents-kv")
        shown = vector.ask(self.api).json()
        recorded = vector.response["body"]["json"]
        for each in (*shown["documents"], *recorded["documents"]):
            each.pop("updatedAt")
        self.assertEqual(shown, recorded)

    def test_inventory(self) -> None:
        """The inventory has every recorded member; counts by prefix and operation differ."""
        for name in ("state", "state-with-retries"):
            recorded = Vector.read(name).response["body"]["json"]
            shown = self.get("/state")
            self.assertEqual(shown["enabled"], True)
            for each in (recorded, shown):
                each["stats"]["ops"] = list(each["stats"]["ops"].values())
                for kind in ("records", "documents"):
                    each[kind] = list(each[kind].values())
            self.assertEqual(differences(shape(recorded), shape(shown)), [])


class InventoryTests(StateCase):
    """GET /state."""

    def test_counts(self) -> None:
        """Streams and namespaces are counted by prefix, then by scope."""
        shown = self.get("/state")
        self.assertEqual(
            shown["records"]["runs"],
            {"count": 2, "streams": 1, "scopes": [{"scope": "ok-minutely", "count": 2}]},
        )
        self.assertEqual(
            shown["documents"]["kv"],
            {
                "count": 3,
                "streams": 2,
                "scopes": [{"scope": "global", "count": 1}, {"scope": "state-user", "count": 2}],
            },
        )
        self.assertEqual(set(shown["records"]), {"artifacts", "logs", "meta", "runs"})
        self.assertEqual((shown["quarantine"], shown["enumerable"]), (0, True))

    def test_metadata_only(self) -> None:
        """Neither values nor archived output are in it."""
        text = self.api.get("/state").text
        self.assertNotIn("hunter2", text)
        self.assertNotIn('"42"', text)

    def test_view(self) -> None:
        """It says where the store is, and for which set of jobs it is used."""
        self.assertEqual(
            self.get("/state")["view"],
            {
                "backend": "filesystem",
                "path": f"{self.api.path}/default",
                "namespace": "default",
                "topology": "single-node",
                "shared_locking": False,
                "job_set_id": self.api.runs.jobs.job_set_id,
            },
        )

    def test_leases(self) -> None:
        """Leases tell their holder and fence, and whether their time is over."""
        api = self.api
        leases = {each["name"]: each for each in self.get("/state")["leases"]}
        self.assertEqual(
            leases["slots/other"],
            {
                "name": "slots/other",
                "holder": "node-b#000000000000",
                "fence": 1,
                "expiresAt": NOW + 30.0,
                "expired": False,
            },
        )
        api.clock.advance(31)
        self.assertTrue(all(each["expired"] for each in self.get("/state")["leases"]))

    def test_slots_of_this_node(self) -> None:
        """Cluster slots that this process holds are told apart, with the runs they are for."""
        self.api.post("/jobs/slotted/start")
        node = self.get("/state")["node"]
        self.assertEqual(node["host"], "node-a")
        self.assertEqual(
            node["slots"],
            [
                {
                    "slot": "slotted",
                    "holder": "node-a#0123456789ab",
                    "fence": 1,
                    "expiresAt": NOW + 30.0,
                    "refs": 1,
                }
            ],
        )

    def test_retries_of_this_node(self) -> None:
        """Armed retries are told, with the time of the next attempt."""
        from cronstable.config.values import RetryPolicy

        policy = RetryPolicy(maximum_retries=3, initial_delay=600.0)
        self.api.install(job("a", retry=policy), job("b"))
        self.api.post("/jobs/b/start")
        self.api.advance(60)
        for launch in tuple(self.api.executor.live):
            launch.exit(1)
        self.api.turns()
        shown = self.get("/state")["node"]["retries"]
        self.assertEqual(
            shown,
            [
                {
                    "job": "a",
                    "attempt": 1,
                    "nextRetryAt": "2026-01-01T00:11:00+00:00",
                    "delaySeconds": 600.0,
                }
            ],
        )

    def test_statistics(self) -> None:
        """Operations, locks, workers and lost writes are told as they stand now."""
        stats = self.get("/state")["stats"]
        self.assertEqual(stats["ops"]["doc-mutate"]["count"], 5)
        self.assertEqual(stats["ops"]["inventory"]["errors"], 0)
        self.assertGreaterEqual(stats["lock"]["acquisitions"], 8)
        self.assertEqual(stats["throttle"], {"count": 0, "wait_seconds": 0.0})
        self.assertEqual(
            (stats["workers"]["bulk_capacity"], stats["workers"]["lease_capacity"]), (16, 8)
        )
        self.assertEqual(stats["writes"], {"pending": 0, "dropped": {}})

    def test_most_scopes(self) -> None:
        """At most 200 scopes of a prefix and 200 leases are listed; the counts are of all."""
        store = self.api.store
        for number in range(230):
            store.records.append(f"runs/job-{number:03}", {"outcome": "success"})
            store.leases.acquire(f"retry-claim/job-{number:03}", "node-b#1", 30.0)
        shown = self.get("/state")
        runs = shown["records"]["runs"]
        self.assertEqual((runs["streams"], runs["count"], len(runs["scopes"])), (231, 232, 200))
        self.assertEqual(runs["scopes"][0], {"scope": "job-000", "count": 1})
        self.assertEqual(len(shown["leases"]), 200)

    def test_quarantine(self) -> None:
        """Records that were set aside are counted."""
        directory = Path(self.api.path, "default/records/runs%2Fok-minutely")
        next(directory.glob("*.json")).write_text("{")
        self.assertEqual(len(self.get("/state/records?stream=runs/ok-minutely")["records"]), 1)
        self.assertEqual(self.get("/state")["quarantine"], 1)

    def test_kept_for_a_moment(self) -> None:
        """Looking often does not count everything anew; after a moment it does."""
        self.get("/state")
        begun = self.api.bulk.begun
        self.get("/state")
        self.assertEqual(self.api.bulk.begun, begun)
        self.api.clock.advance(2.5)
        self.get("/state")
        self.assertEqual(self.api.bulk.begun, begun + 1)

    def test_large_store_is_counted_less_often(self) -> None:
        """A count that took a second is good for ten."""
        api = self.api
        api.bulk.is_hung = True
        api.clock.callLater(1.0, api.bulk.release)
        self.get("/state")
        begun = api.bulk.begun
        api.clock.advance(9)
        self.get("/state")
        self.assertEqual(api.bulk.begun, begun)
        api.clock.advance(1.5)
        self.get("/state")
        self.assertEqual(api.bulk.begun, begun + 1)

    def test_unreadable(self) -> None:
        """A store that does not answer gives the same members, with nothing in them."""
        members = set(self.get("/state"))
        self.api.clock.advance(5)
        self.api.bulk.is_hung = True
        shown = self.get("/state")
        self.assertEqual(set(shown), members)
        for key in ("records", "documents"):
            self.assertEqual(shown[key], {})
        self.assertEqual((shown["leases"], shown["enumerable"]), ([], False))
        self.assertEqual(shown["view"]["path"], f"{self.api.path}/default")

    def test_not_up(self) -> None:
        """So does one that could not be started."""
        members = set(self.get("/state"))
        self.api.reconcile(StateConfig("/dev/null/x", deployment_id="blue", topology="shared"))
        shown = self.get("/state")
        self.assertEqual(set(shown), members)
        self.assertEqual((shown["enabled"], shown["enumerable"]), (True, False))
        view = shown["view"]
        self.assertEqual((view["path"], view["namespace"]), ("/dev/null/x/blue", "blue"))
        self.assertEqual(view["topology"], "shared")

    def test_another_store(self) -> None:
        """After a reload with another store, the new one is told at once."""
        self.get("/state")
        self.api.reconcile(StateConfig(self.api.path, deployment_id="blue"))
        shown = self.get("/state")
        self.assertEqual(shown["view"]["namespace"], "blue")
        self.assertEqual(set(shown["records"]), {"meta"})
        self.api.reconcile(None)
        self.assertEqual(self.get("/state"), {"enabled": False})


class DocumentTests(StateCase):
    """GET /state/documents."""

    def test_no_values(self) -> None:
        """Of values only kind and size are told."""
        jobstate.kv_set(self.api.store, "s", "password", "hunter2")
        for value in (None, True, 7, 1.5, [1], {"hunter2": 1}):
            jobstate.kv_set(self.api.store, "s", f"is-{type(value).__name__}", value)
        answer = self.api.get("/state/documents?ns=kv/s")
        self.assertNotIn("hunter2", answer.text)
        kinds = {each["key"]: each["valueType"] for each in answer.json()["documents"]}
        self.assertEqual(kinds.pop("password"), "str")
        self.assertEqual({key: f"is-{kind}" for key, kind in kinds.items()}, {k: k for k in kinds})

    def test_claim_with_a_limit(self) -> None:
        """A claim that ends tells when; one for ever has no such member."""
        jobstate.claim(self.api.store, "s", "short", ttl=60.0)
        jobstate.claim(self.api.store, "s", "long")
        shown = self.get("/state/documents?ns=idem/s")["documents"]
        self.assertEqual(shown[0], {"key": "long", "claimedAt": NOW})
        self.assertEqual(shown[1], {"key": "short", "claimedAt": NOW, "expiresAt": NOW + 60.0})

    def test_other_namespaces(self) -> None:
        """Only keys, cursors and claims can be looked into."""
        for namespace in ("dagrun/etl", "push/devices", "kv", "KV/x", "", "../kv/x", "x/kv/"):
            self.get(f"/state/documents?ns={namespace}", 400)
        self.get("/state/documents", 400)

    def test_names(self) -> None:
        """Any scope and any key can be shown, also those whose file names are cut."""
        store = self.api.store
        long = "k" * 300
        for key in (long, "é/ü", "%2F", "\N{BELL}"):
            jobstate.kv_set(store, "name with space/slash", key, 1)
        shown = self.get("/state/documents?ns=kv/name%20with%20space%2Fslash")
        self.assertEqual(shown["namespace"], "kv/name with space/slash")
        self.assertEqual(
            [each["key"] for each in shown["documents"]], sorted((long, "é/ü", "%2F", "\N{BELL}"))
        )

    def test_unreadable_document(self) -> None:
        """One document that is damaged does not hide the others, and the answer says so."""
        directory = Path(self.api.path, "default/docs/kv%2Fstate-user")
        (directory / "doc.doc").write_text("{")
        shown = self.get("/state/documents?ns=kv/state-user")
        self.assertEqual([each["key"] for each in shown["documents"]], ["last"])
        self.assertEqual(shown["truncated"], True)

    def test_numbers_that_are_none(self) -> None:
        """A foreign writer's NaN is shown as null."""
        path = Path(self.api.path, "default/docs/cursor%2Fstate-user/rows.doc")
        path.write_text(
            '{"schemaVersion":"v1","data":{"name":"rows","value":NaN,"updatedAt":Infinity}}'
        )
        shown = self.get("/state/documents?ns=cursor/state-user")["documents"]
        self.assertEqual(shown, [{"name": "rows", "value": None, "updatedAt": None}])

    def test_most(self) -> None:
        """A namespace with very many documents is told in part."""
        self.patch(inspection, "MOST_DOCUMENTS", 1)
        shown = self.get("/state/documents?ns=kv/state-user")
        self.assertEqual((len(shown["documents"]), shown["truncated"]), (1, True))


class RecordTests(StateCase):
    """GET /state/records."""

    def test_newest_first(self) -> None:
        """The newest records come first, C{limit} of them, within 1 and 500."""
        for number in range(600):
            self.api.store.records.append("runs/a", {"n": number})

        def shown(query: str) -> list[int]:
            found = self.get(f"/state/records?stream=runs%2Fa{query}")
            self.assertEqual(found["stream"], "runs/a")
            return [each["n"] for each in found["records"]]

        self.assertEqual(shown(""), list(range(599, 499, -1)))
        self.assertEqual(shown("&limit=2"), [599, 598])
        for text, count in (("0", 1), ("-5", 1), ("9999", 500), ("x", 100), ("", 100)):
            self.assertEqual(len(shown(f"&limit={text}")), count, text)

    def test_no_output(self) -> None:
        """Archived output is never shown, whether there is some or not."""
        for stream in ("logs/chatty", "logs%2Fnone", "logs/", "logs"):
            answer = self.api.get(f"/state/records?stream={stream}")
            self.assertEqual(answer.status, 403)
            self.assertNotIn("hunter2", answer.text)
        for stream in ("records/logs%2Fchatty", "x/../logs/chatty", "logsx"):
            self.assertEqual(self.get(f"/state/records?stream={stream}")["records"], [])

    def test_large_records(self) -> None:
        """Records that are large together are told in part, one of them always."""
        for number in range(5):
            self.api.store.records.append("runs/a", {"n": number, "text": "x" * 1000})
        self.patch(inspection, "MOST_BYTES", 2500)
        shown = self.get("/state/records?stream=runs/a")
        self.assertEqual([each["n"] for each in shown["records"]], [4, 3])
        self.assertEqual(shown["truncated"], True)
        self.patch(inspection, "MOST_BYTES", 10)
        self.assertEqual(len(self.get("/state/records?stream=runs/a")["records"]), 1)

    def test_whole_answer_says_nothing(self) -> None:
        """An answer that shows all that was asked for has no such mark."""
        self.assertNotIn("truncated", self.get("/state/records?stream=runs/ok-minutely&limit=1"))
        self.assertNotIn("truncated", self.get("/state/records?stream=nope"))

    def test_trouble(self) -> None:
        """A store that hangs is a 504, one that cannot be read or is not up a 503."""
        self.api.bulk.is_hung = True
        for path in ("/state/records?stream=runs/x", "/state/documents?ns=kv/x"):
            self.get(path, 504)
        self.api.bulk.release()

        def fail(path: str) -> list[str]:
            raise OSError(5, "Input/output error", path)

        self.patch(self.api.store.tree.files, "names", fail)
        self.api.turns()
        for path in ("/state/records?stream=runs/ok-minutely", "/state/documents?ns=kv/global"):
            said = self.get(path, 503)
            self.assertNotIn(self.api.path, json.dumps(said))
        self.api.reconcile(StateConfig("/dev/null/x"))
        self.get("/state/records?stream=runs/a", 503)

    def test_hung_store_is_not_flooded(self) -> None:
        """However often pages ask a store that hangs, few of its workers are taken."""
        self.api.bulk.is_hung = True
        clients = [Connection(self.api) for _ in range(20)]
        for number, each in enumerate(clients):
            each.send("GET", f"/state/records?stream=runs/{number}")
        for each in clients:
            self.assertEqual(self.api.answered(each).status, 504)
        self.assertEqual(len(self.api.bulk.held), ABREAST)
        self.api.bulk.release()
        self.api.turns()
        self.get("/state/records?stream=runs/1")


class WorkflowTests(StateCase):
    """GET /dags/{name}/runs."""

    def test_unknown_workflow(self) -> None:
        """With a store it is the workflow that is not there, not the store."""
        for path in ("/dags/x/runs", "/dags/x/runs/y", "/dags/x/runs/y/xcom"):
            self.assertEqual(self.get(path, 404), {"error": "workflow 'x' not found"})


class AccessTests(VectorCase):
    """Who may look."""

    def test_scopes(self) -> None:
        """Reading needs a token with C{view}; there is nothing to post."""
        api = StoredApi(self.mktemp(), job("a"), web=locked())
        for path in ("/state", "/state/documents?ns=kv/x", "/state/records?stream=runs/a"):
            self.assertEqual(api.get(path).status, 401)
            for token in (VIEW, CONTROL):
                self.assertEqual(api.get(path, Authorization=f"Bearer {token}").status, 200)
            answer = api.post(path, Authorization=f"Bearer {CONTROL}")
            self.assertEqual(answer.status, 405)

    def test_head(self) -> None:
        """HEAD has the headers of GET."""
        api = StoredApi(self.mktemp(), job("a"))
        answer = api.ask("HEAD", "/state/records?stream=runs/a")
        self.assertEqual((answer.status, answer.body), (200, b""))
        self.assertEqual(answer.headers["content-type"], "application/json")

    def test_client_that_leaves(self) -> None:
        """A client that goes away while the store works leaves its place to others."""
        api = StoredApi(self.mktemp(), job("a"))
        api.bulk.is_hung = True
        for number in range(ABREAST + 2):
            client = Connection(api)
            client.send("GET", f"/state/records?stream=runs/{number}")
            api.turns(2)
            client.lose()
        api.turns()
        api.bulk.release()
        api.turns()
        self.assertEqual(api.get("/state/records?stream=runs/a").status, 200)
