"""The API over real sockets: plain, TLS with and without client certificates, unix."""

from __future__ import annotations

import json
import os
import socket
import ssl
from pathlib import Path
from typing import Any

import attrs
import treq
from twisted.internet import reactor
from twisted.internet.endpoints import UNIXClientEndpoint
from twisted.internet.error import ConnectionRefusedError
from twisted.internet.ssl import Certificate, PrivateCertificate, optionsForClientTLS
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase
from twisted.web.client import Agent, HTTPConnectionPool, ResponseNeverReceived
from twisted.web.iweb import IAgentEndpointFactory, IPolicyForHTTPS
from zope.interface import implementer

from cronstable.clock import SystemClock
from cronstable.config.sections_values import Config, NodeHistory, TlsFiles, WebConfig
from cronstable.config.values import Secret
from cronstable.events import Bus
from cronstable.executors.cgroups import CapsSupport
from cronstable.facts import DaemonFacts, FleetFacts
from cronstable.metrics.registry import Registry
from cronstable.runs.boot import BootRuns
from cronstable.runs.jobset import JobSet
from cronstable.runs.output import Outputs
from cronstable.runs.scheduler import Scheduler
from cronstable.runs.service import RunService
from cronstable.runs.sla import SlaWatch
from cronstable.web.context import House
from cronstable.web.service import WebService
from tests.certs import Authority, Pair
from tests.fakes import IDENTITY, FakeExecutor, job

SECTION = WebConfig(("http://127.0.0.1:0",), node_history=NodeHistory(enabled=False))


def house(executor: FakeExecutor) -> House:
    """Return rooms on the real reactor, with fake processes."""
    clock, bus = SystemClock(reactor), Bus()
    outputs = Outputs(executor)
    runs = RunService(clock, IDENTITY, executor, bus, outputs, {})
    scheduler = Scheduler(clock, runs.book, runs.request)
    sla = SlaWatch(clock, runs, bus)
    jobs = JobSet({"a": job("a", "0 0 1 1 *", capture_stdout=True)})
    runs.install(jobs)
    facts = DaemonFacts(clock, runs, scheduler)
    return House(
        reactor=reactor, clock=clock, identity=IDENTITY, bus=bus, runs=runs, scheduler=scheduler,
        boot=BootRuns(clock, runs.book, runs.request, bus), sla=sla, outputs=outputs,
        caps=lambda: CapsSupport(False),
        registry=Registry(clock, FleetFacts(clock, runs, scheduler, sla), facts),
    )  # fmt: skip


@implementer(IAgentEndpointFactory)
class _Path:
    """Connects to a unix socket, whatever the URL says."""

    def __init__(self, path: str) -> None:
        self._path = path

    def endpointForURI(self, uri: Any) -> UNIXClientEndpoint:  # noqa: N802
        return UNIXClientEndpoint(reactor, self._path)


@implementer(IPolicyForHTTPS)
class _Policy:
    """Trusts one authority, and shows a certificate if it has one."""

    def __init__(self, authority: Authority, pair: Pair | None = None) -> None:
        self._root = Certificate.loadPEM(authority.cert.read_bytes())
        self._mine = None
        if pair is not None:
            pem = pair.key.read_bytes() + pair.cert.read_bytes()
            self._mine = PrivateCertificate.loadPEM(pem)

    def creatorForNetloc(self, hostname: bytes, port: int) -> Any:  # noqa: N802
        return optionsForClientTLS(
            hostname.decode(), trustRoot=self._root, clientCertificate=self._mine
        )


class RealCase(TestCase):
    """A service on real sockets."""

    def setUp(self) -> None:
        self.executor = FakeExecutor()
        self.house = house(self.executor)
        self.service = WebService(self.house, {})
        self.pool = HTTPConnectionPool(reactor, persistent=False)
        self.addCleanup(self.close)

    async def close(self) -> None:
        await self.pool.closeCachedConnections()
        await self.service.stop()
        self.house.scheduler.stopService()
        self.house.runs.stopService()
        # Twisted closes the sockets of stopped ports in a turn of their own.
        await deferLater(reactor, 0.01)
        self.house.registry.lag.stop()
        # What was shared for a second would be forgotten after it.
        for call in reactor.getDelayedCalls():
            if "_drop" in str(call):
                call.cancel()

    async def serve(self, web: WebConfig) -> list[str]:
        """Put a section in force; return its addresses with their real ports."""
        await self.service.reconcile(Config(jobs=self.house.runs.jobs.jobs, web=web))
        running = self.service.running
        assert running is not None
        numbers = [running.number(url) for url in web.listen]
        return [
            url.replace(":0", f":{number}") if number else url
            for url, number in zip(web.listen, numbers, strict=True)
        ]

    async def get(self, url: str, agent: Any = None, **headers: str) -> tuple[int, bytes]:
        """Return status and body of an answer."""
        client = treq.client.HTTPClient(agent or Agent(reactor, pool=self.pool))
        response = await client.get(url, headers=headers)
        return response.code, await response.content()


class PlainTests(RealCase):
    """http://"""

    async def test_served(self) -> None:
        """The API answers on its port, and on none after the stop."""
        (url,) = await self.serve(SECTION)
        self.assertEqual((await self.get(f"{url}/healthz"))[0], 200)
        self.assertEqual(json.loads((await self.get(f"{url}/jobs"))[1])[0]["name"], "a")
        await self.service.stop()
        with self.assertRaises(ConnectionRefusedError):
            await self.get(f"{url}/healthz")

    async def test_reload_keeps_the_port(self) -> None:
        """A connection made before a reload is answered after it."""
        (url,) = await self.serve(SECTION)
        port = int(url.rsplit(":", 1)[1])
        waiting = socket.create_connection(("127.0.0.1", port))
        self.addCleanup(waiting.close)
        await self.serve(attrs.evolve(SECTION, auth_token=Secret("x")))
        self.assertEqual((await self.get(f"{url}/jobs"))[0], 401)
        self.assertEqual((await self.get(f"{url}/jobs", Authorization="Bearer x"))[0], 200)

    async def test_stream(self) -> None:
        """Live output arrives line by line, and its end ends the answer."""
        (url,) = await self.serve(SECTION)
        self.house.runs.start_now("a")
        launch = self.executor.launches[0]
        client = treq.client.HTTPClient(Agent(reactor, pool=self.pool))
        response = await client.get(f"{url}/jobs/a/logs", unbuffered=True)
        pieces: list[bytes] = []
        over = treq.collect(response, pieces.append)
        launch.observer.output("stdout", b"one\n")
        while not pieces:
            await deferLater(reactor, 0.005)
        self.assertIn(b'"line":"one"', pieces[0])
        launch.exit()
        await over
        self.assertIn(b"event: end", pieces[-1])

    async def test_large_answer(self) -> None:
        """A list of megabytes arrives whole, compressed on the way."""
        jobs = {name: job(name, "0 0 1 1 *") for name in (f"job-{n}" for n in range(5000))}
        self.house.runs.install(JobSet(jobs))
        (url,) = await self.serve(SECTION)
        for _ in range(2):
            status, body = await self.get(f"{url}/jobs", **{"Accept-Encoding": "gzip"})
            self.assertEqual(status, 200)
            self.assertEqual(len(json.loads(body)), 5000)

    async def test_broken_requests(self) -> None:
        """Bytes that are no request, and endless headers, are refused and cost nothing else."""
        (url,) = await self.serve(SECTION)
        port = int(url.rsplit(":", 1)[1])
        noise = (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"GET\r\n\r\n", b"G" * 100_000 + b"\r\n",
                 b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000 + b"\r\n\r\n")  # fmt: skip
        for each in noise:
            answer = await deferToThread(_exchange, port, each)
            self.assertTrue(answer.startswith(b"HTTP/1.1 400") or not answer, answer[:40])
        self.assertEqual((await self.get(f"{url}/healthz"))[0], 200)


class UnixTests(RealCase):
    """unix://"""

    async def test_served(self) -> None:
        """The same API answers on a unix socket, whose file has the chosen mode."""
        path = f"/tmp/cronstable-test-{os.getpid()}.sock"
        web = attrs.evolve(SECTION, listen=(f"unix://{path}", *SECTION.listen), socket_mode="0600")
        await self.serve(web)
        agent = Agent.usingEndpointFactory(reactor, _Path(path), pool=self.pool)
        self.assertEqual((await self.get("http://localhost/version", agent))[0], 200)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        await self.service.stop()
        self.assertFalse(os.path.exists(path))


class TlsTests(RealCase):
    """https://"""

    def setUp(self) -> None:
        super().setUp()
        self.authority = Authority(Path(self.mktemp()))
        self.server = self.authority.issue("node-a")
        self.client = self.authority.issue("client")

    def section(self, client_ca: bool = False) -> WebConfig:
        """Return a section with an https and a plain address."""
        ca = str(self.authority.cert) if client_ca else None
        files = TlsFiles(str(self.server.cert), str(self.server.key), ca)
        return attrs.evolve(SECTION, listen=("https://127.0.0.1:0", *SECTION.listen), tls=files)

    def agent(self, pair: Pair | None = None, authority: Authority | None = None) -> Agent:
        """Return a client."""
        return Agent(reactor, _Policy(authority or self.authority, pair), pool=self.pool)

    async def test_served(self) -> None:
        """The API answers over TLS, and beside it without."""
        secure, plain = await self.serve(self.section())
        self.assertEqual((await self.get(f"{secure}/version", self.agent()))[0], 200)
        self.assertEqual((await self.get(f"{plain}/version"))[0], 200)

    async def test_client_certificate(self) -> None:
        """With an authority for clients only those with its certificate get an answer."""
        secure, plain = await self.serve(self.section(client_ca=True))
        self.assertEqual((await self.get(f"{secure}/version", self.agent(self.client)))[0], 200)
        strangers = Authority(Path(self.mktemp()), "other.example.org")
        for pair in (
            None,
            strangers.issue("client"),
            self.authority.issue("expired", expired=True),
        ):
            with self.assertRaises(ResponseNeverReceived):
                await self.get(f"{secure}/version", self.agent(pair))
        self.assertEqual((await self.get(f"{plain}/version"))[0], 200)

    async def test_plain_to_tls(self) -> None:
        """Plain text on a TLS port gets no answer of the API."""
        secure, _ = await self.serve(self.section())
        port = int(secure.rsplit(":", 1)[1])
        answer = await deferToThread(_exchange, port, b"GET /jobs HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertNotIn(b"HTTP/1.1 200", answer)

    async def test_old_protocols(self) -> None:
        """Nothing older than TLS 1.2 is spoken."""
        secure, _ = await self.serve(self.section())
        port = int(secure.rsplit(":", 1)[1])
        version = await deferToThread(_handshake, port, ssl.TLSVersion.TLSv1_2)
        self.assertEqual(version, "TLSv1.2")
        with self.assertRaises((ssl.SSLError, OSError, ValueError)):
            await deferToThread(_handshake, port, ssl.TLSVersion.TLSv1_1)

    async def test_rotation(self) -> None:
        """A rewritten certificate is served on the next connection, on the same port."""
        secure, _ = await self.serve(self.section())
        agent = self.agent()
        self.assertEqual((await self.get(f"{secure}/version", agent))[0], 200)
        other = Authority(Path(self.mktemp()))
        again = other.issue("node-a")
        self.server.cert.write_bytes(again.cert.read_bytes())
        self.server.key.write_bytes(again.key.read_bytes())
        await self.service._again()
        with self.assertRaises(ResponseNeverReceived):
            await self.get(f"{secure}/version", agent)
        status, _ = await self.get(f"{secure}/version", self.agent(authority=other))
        self.assertEqual(status, 200)


def _exchange(port: int, data: bytes) -> bytes:
    """Send bytes and return what comes until the other side closes."""
    with socket.create_connection(("127.0.0.1", port), 5) as client:
        received = b""
        try:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            while piece := client.recv(65536):
                received += piece
        except OSError:
            pass
        return received


def _handshake(port: int, version: ssl.TLSVersion) -> str | None:
    """Return the version that a client gets which speaks no other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    with socket.create_connection(("127.0.0.1", port), 5) as plain:
        with context.wrap_socket(plain) as secure:
            return secure.version()
