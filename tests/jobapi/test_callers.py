"""Who may ask, and what scopes a run may name."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.answers import Answer
from tests.fakes import job
from tests.jobapi.support import World


class TokenTests(SynchronousTestCase):
    """The token of a run."""

    def setUp(self) -> None:
        self.world = World()

    def ask(self, path: str = "/v1/run", **headers: str) -> Answer:
        connection = self.world.connect()
        connection.send("GET", path, b"", **headers)
        answer = connection.answer()
        assert answer is not None
        return answer

    def test_let_in(self) -> None:
        """The scheme is taken in any case, and nothing else is taken for the token."""
        token = self.world.caller.token
        for header in (f"Bearer {token}", f"bEARER {token}", f"  bearer {token} "):
            self.assertEqual(self.ask(authorization=header).status, 200, header)
        for header in (
            token,
            f"Basic {token}",
            f"Bearer {token}x",
            f"Bearer  {token}",
            "Bearer ",
            "",
        ):
            self.assertEqual(self.ask(authorization=header).status, 401, header)
        self.assertEqual(self.ask().status, 401)
        self.assertEqual(self.ask(f"/v1/run?token={token}").status, 401)

    def test_refused(self) -> None:
        """The refusal says no more than that, and asks for no credential."""
        answer = self.ask()
        self.assertEqual(answer.json(), {"error": "401: Unauthorized"})
        self.assertNotIn("www-authenticate", answer.headers)

    def test_route_first(self) -> None:
        """What is not there, or not so, is told without a token; what is wrong is not."""
        world = self.world
        connection = world.connect()
        connection.send("POST", "/v1/run")
        answer = connection.answer()
        assert answer is not None
        self.assertEqual((answer.status, answer.headers["allow"]), (405, "GET,HEAD"))
        for path in ("/", "/v1", "/v1/run/", "//v1/run", "/v1/nope", "/v1/r%75n", "*"):
            self.assertEqual(self.ask(path).status, 404, path)
        self.assertEqual(self.ask("/v1/kv/get").status, 401)

    def test_odd_methods(self) -> None:
        """A method that is none is told as what is not there."""
        for method in ("get", "G-T", "X" * 30):
            connection = self.world.connect()
            connection.send(method, "/v1/run")
            answer = connection.answer()
            assert answer is not None
            self.assertEqual(answer.status, 404)

    def test_over(self) -> None:
        """The token of a run that is over is worth nothing, whoever has it."""
        world = self.world
        other = world.let_in(job("other"), 2)
        world.end(world.caller)
        self.assertEqual(world.get("/v1/run").status, 401)
        self.assertEqual(world.get("/v1/run", other).status, 200)
        self.assertIs(world.desk.callers.remove("wire-1"), None)

    def test_not_shown(self) -> None:
        """Neither token nor secrets are in the text of a caller."""
        caller = self.world.let_in(job("shy"), 3, secrets={"A": "sekret"})
        self.assertNotIn(caller.token, repr(caller))
        self.assertNotIn("sekret", repr(caller))


class ScopeTests(SynchronousTestCase):
    """Where a request acts."""

    def setUp(self) -> None:
        self.world = World()

    def scope(self, **said: object) -> tuple[int, str | None]:
        answer = self.world.post("/v1/kv/set", {"key": "k", "value": 1, **said})
        return answer.status, answer.json().get("error")

    def test_own(self) -> None:
        """A request that names none, an empty one or null acts in the run's own."""
        for said in ({}, {"scope": None}, {"scope": ""}, {"scope": "wire"}):
            self.assertEqual(self.scope(**said)[0], 200, said)
        self.assertEqual(self.world.get("/v1/kv/get?key=k&scope=").json()["value"], 1)
        self.assertEqual(self.world.get("/v1/kv/list").json()["scope"], "wire")

    def test_others(self) -> None:
        """The common one and those that the job allows may be named, and no other."""
        for name in ("global", "allowed-scope"):
            self.assertEqual(self.scope(scope=name)[0], 200, name)
        odds: tuple[object, ...] = ("other", "Wire", "wire ", " wire", "GLOBAL", 5, ["wire"], {})
        for odd in odds:
            status, error = self.scope(scope=odd)
            self.assertEqual(status, 403, odd)
            assert error is not None
            for part in (repr(odd), "'wire'", "stateAllowedScopes"):
                self.assertIn(part, error)

    def test_padded(self) -> None:
        """One with blanks at an end is never trimmed, even if it is allowed by that name."""
        self.assertEqual(self.scope(scope=" padded ")[0], 400)
        caller = self.world.let_in(job("odd "), 4)
        self.assertEqual(self.world.get("/v1/kv/get?key=k", caller).status, 400)

    def test_of_a_task(self) -> None:
        """A workflow task's own scope is its run's, not its name."""
        caller = self.world.let_in(job("flow.task"), 5, cause="task", scope="dagxcom/flow/1")
        self.assertEqual(self.world.get("/v1/run", caller).json()["defaultScope"], "dagxcom/flow/1")
        self.assertEqual(
            self.world.get("/v1/artifact/list?scope=dagxcom%2Fflow%2F1", caller).status, 200
        )
        self.assertEqual(self.world.get("/v1/kv/list?scope=flow.task", caller).status, 403)

    def test_every_endpoint(self) -> None:
        """No endpoint that has a scope lets a foreign one by."""
        for path in ("kv/get?key=k", "kv/list?", "cursor/get?name=n", "artifact/get?name=n"):
            self.assertEqual(self.world.get(f"/v1/{path}&scope=other").status, 403, path)
        for path in (
            "kv/set",
            "kv/delete",
            "cursor/advance",
            "idempotency/claim",
            "idempotency/release",
            "lock/acquire",
        ):
            said = {"scope": "other", "key": "k", "name": "n", "value": 1}
            self.assertEqual(self.world.post(f"/v1/{path}", said).status, 403, path)
        put = self.world.ask("POST", "/v1/artifact/put?name=n&scope=other", b"x")
        self.assertEqual(put.status, 403)


class RunTests(SynchronousTestCase):
    """What a run learns of itself."""

    def test_run(self) -> None:
        """It learns who it is; a slot only where it stands for one."""
        world = World()
        scheduled = world.let_in(job("tick"), 2, cause="retry", slot=1_767_225_600, attempt=3)
        self.assertEqual(
            world.get("/v1/run", scheduled).json(),
            {
                "runId": f"{2:032x}",
                "job": "tick",
                "attempt": 3,
                "scheduledAt": "2026-01-01T00:00:00+00:00",
                "host": "node-a",
                "defaultScope": "tick",
            },
        )
        for cause in ("manual", "boot", "task"):
            caller = world.let_in(job(cause), 3, cause=cause, slot=1_767_225_600)
            self.assertIs(world.get("/v1/run", caller).json()["scheduledAt"], None)

    def test_secrets(self) -> None:
        """It gets its own secrets, by name, and never another run's."""
        world = World()
        rich = world.let_in(job("rich"), 2, secrets={"B": "b", "A": ""})
        self.assertEqual(world.get("/v1/secret/list", rich).json(), {"names": ["A", "B"]})
        self.assertEqual(world.get("/v1/secret/get?name=B", rich).json(), {"value": "b"})
        self.assertEqual(world.get("/v1/secret/get?name=A", rich).json(), {"value": ""})
        self.assertEqual(world.get("/v1/secret/get?name=C", rich).status, 404)
        self.assertEqual(world.get("/v1/secret/get", rich).status, 400)
        self.assertEqual(world.get("/v1/secret/get?name=B").status, 404)
        self.assertEqual(world.get("/v1/secret/list").json(), {"names": []})
