"""Tests for the web room: what a configuration, a reload and a changed file do to the API."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sections_values import (
    Bonjour,
    Config,
    McpConfig,
    ScopedToken,
    TlsFiles,
    WebConfig,
)
from cronstable.config.values import Secret
from cronstable.web import service
from cronstable.web.service import WebService
from tests.answers import Answer
from tests.certs import Authority
from tests.fakes import job
from tests.web.api import Api, section
from tests.web.served import Connection
from tests.web.test_listeners import _Reactor


class _Room(Api):
    """A daemon whose API is put in force by its service."""

    def __init__(self) -> None:
        super().__init__(job("a", "0 0 1 1 *", capture_stdout=True))
        self.adopting = _Reactor()
        for name in ("adoptStreamPort", "addReader", "removeReader", "removeWriter"):
            setattr(self.reactor, name, getattr(self.adopting, name))
        self.service = WebService(self.house, {"TOKEN": "from-env"})


class ServiceCase(SynchronousTestCase):
    """A service, and requests to whatever it serves."""

    def setUp(self) -> None:
        self.room = _Room()
        self.service = self.room.service
        self.patch(service, "in_thread", lambda reactor, name, call, *given: succeed(call(*given)))
        self.addCleanup(self.close)

    def close(self) -> None:
        for port in self.room.adopting.ports:
            port.copy.close()

    def configure(self, web: WebConfig | None, **sections: Any) -> None:
        """Put a configuration in force."""
        config = Config(jobs=self.room.runs.jobs.jobs, web=web, **sections)
        done = Deferred.fromCoroutine(self.service.reconcile(config))
        self.room.turns()
        self.successResultOf(done)

    def minute(self) -> None:
        """Let the chores of a minute be done."""
        self.service.each_minute()
        self.room.turns()

    @property
    def served(self) -> list[str]:
        """The addresses that are served."""
        running = self.service.running
        return [] if running is None else running._listeners.urls

    def get(self, path: str = "/version", **headers: str) -> Answer:
        """Ask what is served now, over a new connection."""
        assert self.service.running is not None
        self.room.running = self.service.running
        return self.room.get(path, **headers)

    def client(self) -> Connection:
        """Return a connection that stays open, to the site that the ports serve."""
        connection = Connection.__new__(Connection)
        assert self.service.running is not None
        site = self.service.running._site
        assert site is not None
        from twisted.internet.testing import StringTransport

        connection._served = self.room
        connection.transport = StringTransport()
        connection.channel = site.buildProtocol(None)
        connection.channel.makeConnection(connection.transport)
        return connection


class StartTests(ServiceCase):
    """What is served for which section."""

    def test_no_section(self) -> None:
        """Without a section nothing is served, and nothing heavy is made."""
        self.configure(None)
        self.assertIsNone(self.service.running)
        self.minute()
        self.assertIsNone(self.service.running)

    def test_nothing_to_listen_on(self) -> None:
        """So it is without an address."""
        self.configure(WebConfig(()))
        self.assertIsNone(self.service.running)

    def test_served(self) -> None:
        """A section is served on its addresses."""
        self.configure(section())
        self.assertEqual(self.served, ["http://127.0.0.1:0"])
        self.assertEqual(self.get().status, 200)

    def test_tokens(self) -> None:
        """Tokens come from values, files and variables; how many there are is told."""
        path = Path(self.mktemp())
        path.write_bytes(b"\xef\xbb\xbf  from-file \n")
        web = section(
            auth_token=Secret("from-value"),
            auth_tokens=(
                ScopedToken(Secret(from_file=str(path)), ("view",)),
                ScopedToken(Secret(from_env_var="TOKEN"), ("view",)),
            ),
        )
        with self.assertLogs("cronstable", "INFO") as logs:
            self.configure(web)
        self.assertTrue(
            any("bearer-token authentication (3 tokens)" in line for line in logs.output)
        )
        for token in ("from-value", "from-file", "from-env"):
            self.assertEqual(self.get(Authorization=f"Bearer {token}").status, 200)
        self.assertEqual(self.get().status, 401)
        self.assertNotIn("from-", "".join(logs.output))

    def test_not_announced(self) -> None:
        """A section that asks to be announced is told that it is not."""
        with self.assertLogs("cronstable", "WARNING") as logs:
            self.configure(section(bonjour=Bonjour(True)))
        self.assertIn("web.bonjour", logs.output[0])

    def test_open_to_strangers(self) -> None:
        """A routable address without a token is served, with one warning."""
        web = attrs.evolve(section(), listen=("http://0.0.0.0:0",))
        with self.assertLogs("cronstable", "WARNING") as logs:
            self.configure(web)
            self.configure(attrs.evolve(web, ui=False))
            self.minute()
        self.assertEqual(len(logs.output), 1)
        self.assertIn("asks for no token", logs.output[0])
        self.assertEqual(self.get().status, 200)

    def test_not_open(self) -> None:
        """With a token, or on this host only, there is nothing to warn of."""
        with self.assertNoLogs("cronstable", "WARNING"):
            self.configure(section())
            self.configure(
                attrs.evolve(section(auth_token=Secret("x")), listen=("http://0.0.0.0:0",))
            )


class TroubleTests(ServiceCase):
    """Sections that cannot be served."""

    def broken(self) -> WebConfig:
        """Return a section whose token cannot be had."""
        self.file = Path(self.mktemp())
        return section(auth_token=Secret(from_file=str(self.file)))

    def test_start(self) -> None:
        """The API stays down with one error, and comes up once its file can be read."""
        with self.assertLogs("cronstable", "ERROR") as logs:
            self.configure(self.broken())
            self.minute()
        self.assertEqual(len(logs.output), 1)
        self.assertIn(
            "Error in the web configuration, so not starting the web API: web.authToken",
            logs.output[0],
        )
        self.assertEqual(self.served, [])
        self.file.write_text("secret")
        self.minute()
        self.assertEqual(self.served, ["http://127.0.0.1:0"])
        self.assertEqual(self.get(Authorization="Bearer secret").status, 200)

    def test_reasons(self) -> None:
        """Every source that gives nothing, and two tokens alike, keep the API down."""
        empty = Path(self.mktemp())
        empty.write_text("\n")
        for web in (
            section(auth_token=Secret()),
            section(auth_token=Secret(from_env_var="UNSET")),
            section(auth_token=Secret(from_file=str(empty))),
            section(auth_token=Secret("one"), auth_tokens=(ScopedToken(Secret("one"), ("view",)),)),
        ):
            with self.assertLogs("cronstable", "ERROR") as logs:
                self.configure(web)
            self.assertIn("so not starting the web API", logs.output[0])
            self.assertNotIn("one'", logs.output[0])
            self.assertEqual(self.served, [])

    def test_changed_section(self) -> None:
        """A changed section that cannot start takes the API down, connections too."""
        self.configure(section())
        client = self.client()
        with self.assertLogs("cronstable", "ERROR"):
            self.configure(self.broken())
        self.assertEqual(self.served, [])
        self.assertTrue(client.transport.disconnecting)

    def test_unreadable_for_the_moment(self) -> None:
        """An unchanged section goes on with what it has, with a warning."""
        web = self.broken()
        self.file.write_text("one")
        self.configure(web)
        self.file.unlink()
        with self.assertLogs("cronstable", "WARNING") as logs:
            self.minute()
            self.minute()
        self.assertEqual(len(logs.output), 1)
        self.assertIn("the listeners stay as they are", logs.output[0])
        self.assertEqual(self.get(Authorization="Bearer one").status, 200)
        self.file.write_text("another")
        self.minute()
        self.assertEqual(self.get(Authorization="Bearer another").status, 200)
        self.assertEqual(self.get(Authorization="Bearer one").status, 401)

    def test_no_address(self) -> None:
        """If nothing can be bound that is an error, and tried again each minute."""
        path = Path(f"/tmp/{os.getpid()}-nothing/x.sock")
        web = attrs.evolve(section(), listen=(f"unix://{path}",))
        with self.assertLogs("cronstable", "WARNING") as logs:
            self.configure(web)
            self.minute()
        levels = [line.split(":")[0] for line in logs.output]
        self.assertEqual(levels, ["WARNING", "ERROR"])
        path.parent.mkdir()
        self.addCleanup(path.parent.rmdir)
        self.minute()
        self.assertEqual(self.served, [f"unix://{path}"])
        self.configure(None)


class ReloadTests(ServiceCase):
    """Another configuration."""

    def test_same(self) -> None:
        """One that changes nothing of the section leaves connections and streams alone."""
        self.configure(section())
        client = self.client()
        front = self.service.running.front  # type: ignore[union-attr]
        self.configure(section())
        self.assertIs(self.service.running.front, front)  # type: ignore[union-attr]
        self.assertFalse(client.transport.disconnecting)

    def test_plain_port_stays(self) -> None:
        """A changed section is served on the port that it had; it was never closed."""
        self.configure(section())
        port = self.room.adopting.ports[0]
        self.configure(section(ui=False))
        self.assertEqual(len(self.room.adopting.ports), 1)
        self.assertGreaterEqual(port.copy.fileno(), 0)
        self.assertEqual(self.get("/").status, 404)

    def test_mcp_counts(self) -> None:
        """The MCP section belongs to what is served."""
        self.configure(section())
        front = self.service.running.front  # type: ignore[union-attr]
        self.configure(section(), mcp=McpConfig(enabled=True))
        self.assertIsNot(self.service.running.front, front)  # type: ignore[union-attr]

    def test_streams_end(self) -> None:
        """Streams of the old application are ended, and their connections with them."""
        self.configure(section())
        self.room.post("/jobs/a/start")
        client = self.client()
        client.send("GET", "/jobs/a/logs")
        self.room.turns()
        self.configure(section(ui=False))
        self.assertIn(b"event: end", client.received)
        self.assertTrue(client.transport.disconnecting)

    def test_kept_connections_end(self) -> None:
        """A connection that was kept alive is not served by rules that are no more."""
        self.configure(section())
        idle = self.client()
        busy = self.client()
        busy.send("POST", "/jobs/a/pause", Content_Length="2")
        self.configure(section(auth_token=Secret("x")))
        self.assertTrue(idle.transport.disconnecting)
        self.assertFalse(busy.transport.disconnecting)
        busy.channel.dataReceived(b"{}")
        self.assertIn(b"HTTP/1.1 401", busy.received)
        self.assertTrue(busy.transport.disconnecting)

    def test_removed(self) -> None:
        """Without the section nothing is served any more; with it again, it is."""
        self.configure(section())
        self.configure(None)
        self.assertEqual(self.served, [])
        self.configure(section())
        self.assertEqual(self.get().status, 200)

    def test_jobs_show_at_once(self) -> None:
        """A reload of jobs alone shows in the list."""
        self.configure(section())
        tag = self.get("/jobs").headers["etag"]
        self.room.install(job("new"))
        self.configure(section())
        answer = self.get("/jobs", If_None_Match=tag)
        self.assertEqual([each["name"] for each in answer.json()], ["new"])

    def test_one_at_a_time(self) -> None:
        """Two configurations in a hurry end with the last one in force."""
        jobs = self.room.runs.jobs.jobs
        for ui in (True, False):
            Deferred.fromCoroutine(self.service.reconcile(Config(jobs=jobs, web=section(ui=ui))))
        self.room.turns()
        self.assertEqual(self.get("/").status, 404)


class StopTests(ServiceCase):
    """The end."""

    def stop(self) -> None:
        """Stop the service."""
        stopped = Deferred.fromCoroutine(self.service.stop())
        for _ in range(300):
            self.room.clock.advance(0.01)
        self.successResultOf(stopped)

    def test_stop(self) -> None:
        """Streams end, connections close, ports are given up, and that is told."""
        self.configure(section())
        self.room.post("/jobs/a/start")
        client, idle = self.client(), self.client()
        client.send("GET", "/jobs/a/logs")
        self.room.turns()
        with self.assertLogs("cronstable", "INFO") as logs:
            self.stop()
        self.assertIn("Stopping http server", logs.output[0])
        self.assertIn(b"event: end", client.received)
        self.assertTrue(client.transport.disconnecting and idle.transport.disconnecting)
        self.assertEqual(self.room.adopting.ports[0].copy.fileno(), -1)

    def test_after_the_stop(self) -> None:
        """Nothing starts it again."""
        self.configure(section())
        self.stop()
        self.configure(section(ui=False))
        self.minute()
        self.assertEqual(self.served, [])
        self.stop()

    def test_nothing_to_stop(self) -> None:
        """A daemon without an API stops without a word."""
        with self.assertNoLogs("cronstable"):
            self.stop()


class TlsTests(ServiceCase):
    """Certificates."""

    def setUp(self) -> None:
        super().setUp()
        self.authority = Authority(Path(self.mktemp()))
        self.pair = self.authority.issue("node-a")

    def section(self, **files: str) -> WebConfig:
        """Return a section with an https address."""
        tls = TlsFiles(str(self.pair.cert), str(self.pair.key))
        return attrs.evolve(
            section(), listen=("https://127.0.0.1:0",), tls=attrs.evolve(tls, **files)
        )

    def test_served(self) -> None:
        """The address is served behind TLS."""
        self.configure(self.section())
        self.assertEqual(self.served, ["https://127.0.0.1:0"])
        factory = self.room.adopting.ports[0].factory
        self.assertEqual(type(factory).__name__, "TLSMemoryBIOFactory")

    def test_broken(self) -> None:
        """Material that cannot be used keeps the API down, naming the file and the reason."""
        other = self.authority.issue("node-b")
        nothing = Path(self.mktemp())
        nothing.write_text("nothing")
        for files, reason in (
            ({"cert": "/nonexistent.pem"}, "/nonexistent.pem: No such file"),
            ({"cert": str(nothing)}, "holds no PEM certificate"),
            ({"key": str(nothing)}, "not a PEM key"),
            ({"key": str(other.key)}, "cannot be served with this key"),
            ({"ca": str(nothing)}, "holds no PEM certificate"),
            ({"ca": "/nonexistent.pem"}, "/nonexistent.pem: No such file"),
        ):
            with self.assertLogs("cronstable", "ERROR") as logs:
                self.configure(self.section(**files))
            self.assertIn(reason, logs.output[0])
            self.assertEqual(self.served, [])

    def test_locked_key(self) -> None:
        """A key with a passphrase is an error, not a question."""
        from cryptography.hazmat.primitives import serialization

        key = serialization.load_pem_private_key(self.pair.key.read_bytes(), None)
        locked = Path(self.mktemp())
        locked.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.BestAvailableEncryption(b"secret"),
            )
        )
        with self.assertLogs("cronstable", "ERROR") as logs:
            self.configure(self.section(key=str(locked)))
        self.assertIn("not a PEM key that can be read", logs.output[0])

    def test_rewritten(self) -> None:
        """Files that were rewritten are taken within a minute, on the port that is bound."""
        self.configure(self.section())
        creator = self.service.running._creator  # type: ignore[union-attr]
        before = creator.options
        self.minute()
        self.assertIs(creator.options, before)
        again = Authority(Path(self.mktemp())).issue("node-a")
        self.pair.cert.write_bytes(again.cert.read_bytes())
        with self.assertLogs("cronstable", "WARNING") as logs:
            self.minute()
        self.assertIn("the listeners stay as they are", logs.output[0])
        self.assertIs(creator.options, before)
        self.pair.key.write_bytes(again.key.read_bytes())
        self.minute()
        self.assertIsNot(creator.options, before)
        self.assertEqual(len(self.room.adopting.ports), 1)

    def test_client_authority_is_not_open(self) -> None:
        """An address that asks for client certificates is not open to strangers."""
        web = attrs.evolve(self.section(ca=str(self.authority.cert)), listen=("https://0.0.0.0:0",))
        with self.assertNoLogs("cronstable", "WARNING"):
            self.configure(web)
