"""Tests for credentials: every route with every kind of them."""

from __future__ import annotations

import re

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sections_values import Badges, MetricsPage, ScopedToken
from cronstable.config.values import Secret
from cronstable.web.auth import TokensUnavailable, load_tokens
from cronstable.web.routing import routes
from tests.answers import Answer
from tests.fakes import job
from tests.web.api import ALL, APPROVE, CONTROL, VIEW, Api, locked, section

UNAUTHORIZED = b'{"error":"401: Unauthorized"}'
PUBLIC = frozenset({"/", "/healthz", "/readyz"})

WRONG = {
    "wrong": "Bearer wrong",
    "empty": "Bearer ",
    "scheme alone": "Bearer",
    "basic": f"Basic {ALL}",
    "no scheme": ALL,
    "longer": f"Bearer {ALL}x",
    "shorter": f"Bearer {ALL[:-1]}",
    "two": f"Bearer {ALL} {ALL}",
    "latin": "Bearer \xe9",
    "bytes": "Bearer \xff\xfe",
    "glued": f"Bearer{ALL}",
    "nothing": "",
}


def everything(api: Api) -> list[tuple[str, str]]:
    """Return (method, path) of every route of C{api} with names filled in, and of some others."""
    known = [
        (method, re.sub(r"\{[^}]*\}", "a", path)) for method, path in routes(api.running.front.app)
    ]
    unknown = [
        ("GET", "/nope"), ("GET", "//jobs"), ("GET", "/jobs/"), ("GET", "/jobs/%2e%2e/x"),
        ("GET", "/..%2f..%2fetc/passwd"), ("GET", "/mcp"), ("POST", "/mcp"), ("POST", "/nope"),
        ("PUT", "/jobs/a"), ("PATCH", "/jobs/a"), ("DELETE", "/jobs/a"), ("POST", "/"),
        ("OPTIONS", "/jobs"), ("OPTIONS", "/jobs/a/start"), ("POST", "/healthz"),
    ]  # fmt: skip
    heads = [("HEAD", path) for method, path in known if method == "GET"]
    return [*known, *heads, *unknown]


class EveryDoorTests(SynchronousTestCase):
    """No route is open that is not meant to be, whatever is shown to it."""

    def setUp(self) -> None:
        self.api = Api(job("a"), web=locked())
        self.doors = [
            (method, path)
            for method, path in everything(self.api)
            if path not in PUBLIC or method not in ("GET", "HEAD")
        ]
        self.assertGreater(len(self.doors), 60)

    def refused(self, answer: Answer, method: str) -> None:
        """Check that an answer is the one refusal."""
        self.assertEqual(answer.status, 401)
        self.assertEqual(answer.headers["www-authenticate"], 'Bearer realm="cronstable"')
        self.assertIn("cronstable-instance", answer.headers)
        if method != "HEAD":
            self.assertEqual(answer.body, UNAUTHORIZED)

    def test_no_credential(self) -> None:
        """Every route answers the same 401, unknown paths and methods too."""
        for method, path in self.doors:
            with self.subTest(door=f"{method} {path}"):
                self.refused(self.api.ask(method, path), method)

    def test_wrong_credentials(self) -> None:
        """So it does for every kind of wrong credential."""
        for kind, header in WRONG.items():
            for method, path in self.doors:
                with self.subTest(kind=kind, door=f"{method} {path}"):
                    self.refused(self.api.ask(method, path, Authorization=header), method)

    def test_two_headers(self) -> None:
        """Two Authorization headers are no credential, whichever is right."""
        right, wrong = f"Authorization: Bearer {ALL}", "Authorization: Bearer wrong"
        for headers in ((right, wrong), (wrong, right), (right, right)):
            lines = ["GET /jobs HTTP/1.1", "Host: x", *headers, "", ""]
            self.refused(self.api.raw("\r\n".join(lines).encode()), "GET")

    def test_token_in_query(self) -> None:
        """A token in the query opens nothing but calendars."""
        for method, path in self.doors:
            if path.endswith("/calendar.ics"):
                continue
            with self.subTest(door=f"{method} {path}"):
                self.refused(self.api.ask(method, f"{path}?token={ALL}"), method)

    def test_right_token(self) -> None:
        """With the token every route answers something else, and nothing fails inside."""
        for method, path in self.doors:
            with self.subTest(door=f"{method} {path}"):
                answer = self.api.ask(method, path, Authorization=f"Bearer {ALL}")
                self.assertNotIn(answer.status, (401, 403))
                self.assertLess(answer.status, 500)

    def test_nothing_was_done(self) -> None:
        """None of the refused requests started, paused or stopped anything."""
        stopped: list[bool] = []
        self.api.house.shutdown = lambda: stopped.append(True)
        for method, path in self.doors:
            self.api.ask(method, path, Authorization="Bearer wrong")
        self.api.turns()
        self.assertEqual((self.api.executor.launches, stopped), ([], []))
        self.assertIsNone(self.api.runs.pause_of("a"))


class BearerTests(SynchronousTestCase):
    """How a right token may be written."""

    def setUp(self) -> None:
        self.api = Api(web=locked())

    def test_scheme_in_any_case(self) -> None:
        """The scheme is not case sensitive, blanks after it do not count."""
        for header in (f"bearer {ALL}", f"BEARER {ALL}", f"Bearer   {ALL} ", f"Bearer\t{ALL}"):
            self.assertEqual(self.api.get("/version", Authorization=header).status, 200, header)

    def test_calendar(self) -> None:
        """On a path that ends in /calendar.ics the query may carry the token."""
        path = "/calendar.ics"
        self.assertNotEqual(self.api.get(f"{path}?token={ALL}").status, 401)
        self.assertNotEqual(self.api.get(f"/jobs/x{path}?token={ALL}").status, 401)
        self.assertEqual(self.api.get(f"{path}?token=wrong").status, 401)
        self.assertEqual(self.api.get(f"{path}?token=").status, 401)
        self.assertEqual(self.api.get(f"{path}?token={ALL}&token=wrong").status, 401)

    def test_header_goes_before_query(self) -> None:
        """A wrong header is not mended by a right query."""
        answer = self.api.get(f"/calendar.ics?token={ALL}", Authorization="Bearer wrong")
        self.assertEqual(answer.status, 401)

    def test_not_ascii(self) -> None:
        """A token of any text is compared as its bytes in UTF-8."""
        api = Api(web=section(auth_token=Secret("s\u00e9cret")))
        header = "s\u00e9cret".encode().decode("latin-1")
        self.assertEqual(api.get("/version", Authorization=f"Bearer {header}").status, 200)
        self.assertEqual(api.get("/version", Authorization="Bearer s\xe9cret").status, 401)


class ScopeTests(SynchronousTestCase):
    """What each scope opens."""

    def setUp(self) -> None:
        self.api = Api(job("a"), web=locked())

    def status(self, method: str, path: str, token: str) -> int:
        """Return how a request with C{token} is answered."""
        return self.api.ask(method, path, Authorization=f"Bearer {token}").status

    def test_view(self) -> None:
        """A view token reads everything and changes nothing."""
        for method, path in everything(self.api):
            status = self.status(method, path, VIEW)
            if method in ("GET", "HEAD", "OPTIONS") or path == "/mcp":
                self.assertNotIn(status, (401, 403), f"{method} {path}")
            else:
                self.assertEqual(status, 403, f"{method} {path}")

    def test_control(self) -> None:
        """A control token does everything but approve."""
        decision = "/dags/x/runs/y/tasks/z/decision"
        self.assertEqual(self.status("POST", decision, CONTROL), 403)
        for method, path in everything(self.api):
            if not path.endswith("/decision") or method != "POST":
                self.assertNotIn(self.status(method, path, CONTROL), (401, 403), path)

    def test_approve(self) -> None:
        """An approve token reads and decides, and does nothing else."""
        self.assertEqual(self.status("POST", "/dags/x/runs/y/tasks/z/decision", APPROVE), 400)
        self.assertEqual(self.status("GET", "/jobs", APPROVE), 200)
        self.assertEqual(self.status("POST", "/jobs/a/start", APPROVE), 403)

    def test_new_routes_need_control(self) -> None:
        """A changing method on a path that nobody thought of needs control."""
        for method in ("POST", "PUT", "PATCH", "DELETE", "BREW"):
            self.assertEqual(self.status(method, "/some/new/route", VIEW), 403)
            self.assertEqual(self.status(method, "/some/new/route", CONTROL), 404)

    def test_reason(self) -> None:
        """A refusal names the token's label and what it lacks."""
        answer = self.api.post("/jobs/a/start", Authorization=f"Bearer {VIEW}")
        self.assertEqual(
            answer.json()["error"],
            "token 'wall' does not grant the 'control' permission required for this action",
        )

    def test_whoami(self) -> None:
        """Everybody is told what they may do."""
        for token, label, scopes in (
            (ALL, "authToken", ["approve", "control", "view"]),
            (VIEW, "wall", ["view"]),
            (CONTROL, "ci", ["control", "view"]),
            (APPROVE, "boss", ["approve", "view"]),
        ):
            shown = self.api.get("/whoami", Authorization=f"Bearer {token}").json()
            self.assertEqual((shown["authenticated"], shown["label"]), (True, label))
            self.assertEqual(shown["scopes"], scopes)
            self.assertEqual(shown["allScopes"], token == ALL)


class ExemptTests(SynchronousTestCase):
    """What needs no token although there is one."""

    def test_page_and_probes(self) -> None:
        """The page and the probes are open, to read."""
        api = Api(web=locked())
        for path in PUBLIC:
            self.assertEqual(api.get(path).status, 200, path)
            self.assertEqual(api.ask("HEAD", path).status, 200, path)

    def test_preflight(self) -> None:
        """A preflight is answered by the route table, without a token."""
        api = Api(web=locked())
        answer = api.ask("OPTIONS", "/jobs", Access_Control_Request_Method="POST")
        self.assertEqual((answer.status, answer.headers["allow"]), (405, "GET,HEAD"))
        self.assertEqual(api.ask("OPTIONS", "/jobs").status, 401)

    def test_public_metrics_and_badges(self) -> None:
        """Metrics and badges are open where the configuration says so, and only there."""
        paths = ("/metrics", "/badge.svg", "/jobs/a/badge.svg")
        closed = Api(job("a"), web=locked())
        opened = Api(
            job("a"),
            web=locked(metrics=MetricsPage(public=True), badges=Badges(public=True)),
        )
        for path in paths:
            self.assertEqual(closed.get(path).status, 401, path)
            self.assertNotEqual(opened.get(path).status, 401, path)
            self.assertEqual(opened.post(path).status, 401, path)
        self.assertEqual(opened.get("/jobs/a/b/badge.svg").status, 401)

    def test_switched_off_is_not_public(self) -> None:
        """A public page that is switched off is as closed as an unknown one."""
        web = locked(metrics=MetricsPage(False, public=True), badges=Badges(False, public=True))
        for path in ("/metrics", "/badge.svg"):
            self.assertEqual(Api(web=web).get(path).status, 401)


class AnonymousTests(SynchronousTestCase):
    """Readers without a credential, where they are let in."""

    def setUp(self) -> None:
        self.api = Api(job("a"), web=locked(anonymous_scopes=("view",)))

    def test_reads(self) -> None:
        """Every route that reads is open but for devices and MCP."""
        for method, path in everything(self.api):
            if method not in ("GET", "HEAD"):
                continue
            status = self.api.ask(method, path).status
            if path.startswith(("/push", "/mcp")):
                self.assertEqual(status, 403, path)
            else:
                self.assertNotIn(status, (401, 403), path)

    def test_changes_nothing(self) -> None:
        """Everything else is 403 and says what is missing."""
        for method, path in everything(self.api):
            if method in ("POST", "PUT", "PATCH", "DELETE"):
                self.assertEqual(self.api.ask(method, path).status, 403, f"{method} {path}")
        reason = self.api.post("/jobs/a/start").json()["error"]
        self.assertIn("anonymous access grants only 'view' permission", reason)

    def test_wrong_credentials(self) -> None:
        """A wrong credential is not turned into none."""
        for header in WRONG.values():
            self.assertEqual(self.api.get("/jobs", Authorization=header).status, 401)
        self.assertEqual(self.api.get("/jobs?token=nope").status, 401)
        self.assertEqual(self.api.get("/jobs?token=").status, 401)

    def test_whoami(self) -> None:
        """They are told that they are anonymous, and not where the API listens."""
        shown = self.api.get("/whoami").json()
        self.assertEqual((shown["authenticated"], shown["label"]), (False, "anonymous"))
        self.assertEqual((shown["scopes"], shown["allScopes"]), (["view"], False))
        self.assertNotIn("listeners", shown)


class OpenTests(SynchronousTestCase):
    """A daemon without tokens."""

    def test_open(self) -> None:
        """Everything is open but the shutdown."""
        api = Api(job("a"))
        for method, path in everything(api):
            status = api.ask(method, path).status
            self.assertEqual(status == 403, path == "/shutdown", f"{method} {path}")
            self.assertNotEqual(status, 401)

    def test_credentials_do_not_matter(self) -> None:
        """A client that sends a token is served all the same."""
        self.assertEqual(Api().get("/version", Authorization="Bearer \xff").status, 200)


class LoadTests(SynchronousTestCase):
    """The tokens of a section."""

    def test_same_secret(self) -> None:
        """Two tokens with one secret are refused by their names, the secret is not told."""
        web = section(
            auth_token=Secret("one"), auth_tokens=(ScopedToken(Secret("one"), ("view",)),)
        )
        with self.assertRaises(TokensUnavailable) as caught:
            load_tokens(web, lambda secret, key: secret.value or "")
        self.assertEqual(
            str(caught.exception),
            "the tokens 'authToken' and 'authTokens[0]' have the same secret",
        )

    def test_keys(self) -> None:
        """Each secret is asked for with the key that it stands under."""
        keys: list[str] = []

        def resolve(secret: Secret, key: str) -> str:
            keys.append(key)
            return key

        load_tokens(locked(), resolve)
        self.assertEqual(
            keys, ["web.authToken", *(f"web.authTokens[{number}]" for number in range(3))]
        )

    def test_not_shown(self) -> None:
        """What is kept of a token does not show it."""
        for token in load_tokens(locked(), lambda secret, key: secret.value or ""):
            self.assertNotIn("token", repr(token).replace("Token", "").replace("authToken", ""))
            self.assertNotIn(b"token", token.digest)
