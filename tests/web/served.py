"""The API over a made-up daemon: requests in bytes, answers in bytes, time in the test's hand."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.testing import StringTransport

from cronstable.clock import ManualClock
from cronstable.config.sections_values import Config, NodeHistory, WebConfig
from cronstable.config.values import JobConfig
from cronstable.executors.cgroups import CapsSupport
from cronstable.facts import DaemonFacts, FleetFacts
from cronstable.metrics.registry import Registry
from cronstable.runs.output import Outputs
from cronstable.runs.sla import SlaWatch
from cronstable.web.auth import Token
from cronstable.web.context import House
from cronstable.web.requests import ApiSite
from cronstable.web.running import Material, Running
from tests.answers import Answer, unchunked
from tests.fakes import IDENTITY
from tests.runs.world import World

WEB = WebConfig(("http://127.0.0.1:0",), node_history=NodeHistory(enabled=False))


class FakeReactor:
    """A reactor whose threads report at the next look, for code that leaves the reactor thread."""

    def __init__(self, clock: ManualClock) -> None:
        self.callLater = clock.callLater
        self.seconds = clock.seconds
        self.from_threads: list[tuple[Callable[..., object], tuple[Any, ...]]] = []

    def callFromThread(self, call: Callable[..., object], *arguments: Any) -> None:  # noqa: N802
        self.from_threads.append((call, arguments))

    def hear(self) -> None:
        """Run what threads have handed over; let those that work get on with it."""
        if not self.from_threads and threading.active_count() > 1:
            time.sleep(0.001)
        while self.from_threads:
            call, arguments = self.from_threads.pop(0)
            call(*arguments)


class Connection:
    """One client's connection."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.transport = StringTransport(peerAddress=IPv4Address("TCP", "192.0.2.7", 4321))
        self.channel = ApiSite(served.running.front, served.reactor).buildProtocol(None)
        self.channel.makeConnection(self.transport)

    def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> None:
        """Send a request."""
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        self.channel.dataReceived("\r\n".join([*lines, "", ""]).encode("latin-1") + body)

    def lose(self) -> None:
        """The client goes away."""
        from twisted.internet.error import ConnectionDone
        from twisted.python.failure import Failure

        self.channel.connectionLost(Failure(ConnectionDone()))

    @property
    def received(self) -> bytes:
        """Everything that the client was sent."""
        return self.transport.value()

    def answer(self, head: bool = False) -> Answer | None:
        """Return the answer if it is complete."""
        raw = self.received
        front, found, body = raw.partition(b"\r\n\r\n")
        if not found:
            return None
        status, *lines = front.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        if headers.get("transfer-encoding") == "chunked" and not head:
            if not body.endswith(b"0\r\n\r\n"):
                return None
            body = unchunked(body)
        elif not head and len(body) < int(headers.get("content-length", "0")):
            return None
        return Answer(int(status.split()[1]), headers, body)


class Served(World):
    """A daemon's runs, its API, and what asks it."""

    def __init__(
        self,
        now: float,
        *jobs: JobConfig,
        web: WebConfig = WEB,
        tokens: tuple[Token, ...] = (),
        **sections: Any,
    ) -> None:
        super().__init__(now, *jobs)
        self.sla = SlaWatch(self.clock, self.runs, self.bus)
        self.facts = DaemonFacts(self.clock, self.runs, self.scheduler)
        fleet = FleetFacts(self.clock, self.runs, self.scheduler, self.sla)
        self.registry = Registry(self.clock, fleet, self.facts)
        self.registry.listen(self.bus)
        self.reactor = FakeReactor(self.clock)
        self.house = House(
            reactor=self.reactor,
            clock=self.clock,
            identity=IDENTITY,
            bus=self.bus,
            runs=self.runs,
            scheduler=self.scheduler,
            boot=self.boot,
            sla=self.sla,
            outputs=Outputs(self.executor),
            caps=lambda: CapsSupport(False),
            registry=self.registry,
        )
        self.house.config = Config(jobs=self.runs.jobs.jobs, web=web, **sections)
        self.running = Running(self.house)
        self.running.serve(web, Material(tokens))

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Make a request and let time pass until it is answered."""
        connection = Connection(self)
        connection.send(method, path, body, **headers)
        return self.answered(connection, method == "HEAD")

    def get(self, path: str, **headers: str) -> Answer:
        """GET C{path}."""
        return self.ask("GET", path, **headers)

    def answered(self, connection: Connection, head: bool = False) -> Answer:
        """Let time pass until a request is answered."""
        for _ in range(100_000):
            answer = connection.answer(head)
            if answer is not None:
                return answer
            self.reactor.hear()
            self.clock.advance(0)
        raise AssertionError(f"no answer; received {connection.received!r}")
