"""The job API over a store in memory: requests in bytes, answers in bytes, time in one's hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, fail
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from cronstable.clock import ManualClock
from cronstable.config.sections_values import JobApiConfig
from cronstable.config.values import JobConfig
from cronstable.jobapi.callers import Caller
from cronstable.jobapi.desk import Desk
from cronstable.jobapi.holds import Holds
from cronstable.jobapi.requests import JobSite
from cronstable.jobapi.routes import Routes
from cronstable.runs.environment import RunFacts
from cronstable.state.faults import FaultyFiles
from cronstable.state.memory import MemoryFiles
from cronstable.state.store import Store, StoreSettings, View, open_store
from tests.answers import Answer
from tests.fakes import IDENTITY, job

NOW = 1_767_225_600.0
VECTORS = Path(__file__).parent.parent / "vectors" / "http"


class DirectStore:
    """A store service that answers at once, or when the test lets it."""

    def __init__(self, store: Store, view: View | None = None) -> None:
        self.store = store
        self.view = view
        self.held: list[tuple[Deferred[Any], Callable[[], Any]]] | None = None
        self.leases = self.hunts = 0
        self.hunting: list[tuple[Deferred[Any], Callable[[], Any]]] | None = None
        """Where hunts wait while their workers are busy."""
        self.asked = 0

    def ask(self, question: Callable[[Store], Any], bound: float = 10.0) -> Deferred[Any]:
        self.asked += 1
        return self._do(lambda: question(self.store))

    def lease(self, operation: Callable[[Store], Any], of: Store | None = None) -> Deferred[Any]:
        self.leases += 1
        return self._do(lambda: operation(of or self.store))

    def hunt(self, search: Callable[[Store], Any]) -> Deferred[Any]:
        self.hunts += 1
        if self.hunting is not None:
            answer: Deferred[Any] = Deferred()
            self.hunting.append((answer, lambda: search(self.store)))
            return answer
        # What is held has been found already: only its answer is late.
        found: Deferred[Any] = Deferred()
        _fire(found, lambda: search(self.store))
        if self.held is None:
            return found
        answer = Deferred()
        self.held.append((answer, lambda: _result(found)))
        return answer

    def hold(self) -> None:
        """Let what is asked from now on wait."""
        self.held = []

    def step(self) -> None:
        """Do the oldest that waits."""
        assert self.held is not None
        _fire(*self.held.pop(0))

    def go_on(self) -> None:
        """Do what waits, and everything else at once."""
        waiting = [*(self.held or []), *(self.hunting or [])]
        self.held = self.hunting = None
        for answer, work in waiting:
            _fire(answer, work)

    def _do(self, work: Callable[[], Any]) -> Deferred[Any]:
        answer: Deferred[Any] = Deferred()
        if self.held is not None:
            self.held.append((answer, work))
        else:
            _fire(answer, work)
        return answer


def _result(found: Deferred[Any]) -> Any:
    results: list[Any] = []
    found.addBoth(results.append)
    if isinstance(results[0], Failure):
        results[0].raiseException()
    return results[0]


def _fire(answer: Deferred[Any], work: Callable[[], Any]) -> None:
    try:
        result = work()
    except BaseException:
        answer.errback(Failure())
    else:
        answer.callback(result)


class Transport(StringTransport):
    """A transport that knows whether it is held up, and whether it was given up."""

    held = False

    def pauseProducing(self) -> None:  # noqa: N802 - the name is Twisted's
        self.held = True

    def resumeProducing(self) -> None:  # noqa: N802 - the name is Twisted's
        self.held = False


class Connection:
    """One client's connection."""

    def __init__(self, site: JobSite) -> None:
        self.transport = Transport()
        self.channel: Any = site.buildProtocol(None)
        self.channel.makeConnection(self.transport)

    def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> None:
        """Send a request with its body."""
        self.begin(method, path, len(body), **headers)
        if body:
            self.more(body)

    def begin(self, method: str, path: str, length: int | None = 0, **headers: str) -> None:
        """Send the head of a request; C{length} None announces chunks."""
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        if length is None:
            lines.append("Transfer-Encoding: chunked")
        elif length:
            lines.append(f"Content-Length: {length}")
        self.more("\r\n".join([*lines, "", ""]).encode("latin-1"))

    def more(self, data: bytes) -> None:
        """Send bytes."""
        self.channel.dataReceived(data)

    def lose(self) -> None:
        """The client goes away."""
        self.channel.connectionLost(Failure(ConnectionDone()))

    @property
    def aborted(self) -> bool:
        """Whether the client was given up."""
        return bool(self.transport.disconnected)

    def answer(self, head: bool = False) -> Answer | None:
        """Return the answer if it is complete."""
        front, found, body = self.transport.value().partition(b"\r\n\r\n")
        if not found:
            return None
        status, *lines = front.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        if not head and len(body) < int(headers.get("content-length", "0")):
            return None
        return Answer(int(status.split()[1]), headers, body)


class World:
    """A job API, its store, and the runs that may ask."""

    def __init__(self, **limits: Any) -> None:
        self.clock = ManualClock(NOW)
        self.memory = MemoryFiles(self.clock.now)
        self.files = FaultyFiles(self.memory)
        opened = open_store(StoreSettings("/state"), self.clock, files=self.files)
        opened.mounts = ""
        opened.start()
        self.store = DirectStore(opened)
        self.desk = Desk(self.clock, self.store)  # type: ignore[arg-type]
        self.desk.config = JobApiConfig(**limits)
        self.holds = Holds(self.clock, self.store)  # type: ignore[arg-type]
        self.routes = Routes(self.desk, IDENTITY, self.holds)
        self.site = JobSite(self.routes, self.clock, self.routes.body_for)
        self.caller = self.let_in(job("wire", allowed_scopes=("allowed-scope", " padded ")))

    def let_in(self, one: JobConfig, number: int = 1, **facts: Any) -> Caller:
        """Let a run of a job in, and return it."""
        run = RunFacts(
            f"{one.name}-{number}",
            one,
            facts.pop("cause", "manual"),
            facts.pop("slot", None),
            facts.pop("attempt", 0),
            facts.pop("scope", one.name),
        )
        caller = Caller(run, f"{number:032x}", f"{number:064x}"[:56] + f"{id(run):08x}"[-8:])
        caller.secrets = facts.pop("secrets", {})
        self.desk.callers.add(caller)
        return caller

    def end(self, caller: Caller) -> None:
        """The run of C{caller} ends."""
        self.desk.callers.remove(caller.run.ref)
        for hunt in tuple(caller.hunts):
            hunt.give_up()
        self.holds.release_all(caller)

    def connect(self) -> Connection:
        """Return a new connection."""
        return Connection(self.site)

    def send(
        self, method: str, path: str, body: Any = None, caller: Caller | None = None
    ) -> Connection:
        """Send a request, with C{body} as JSON unless it is bytes; return its connection."""
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body)
        token = (caller or self.caller).token
        connection = self.connect()
        connection.send(
            method,
            path,
            raw if isinstance(raw, bytes) else raw.encode(),
            authorization=f"Bearer {token}",
        )
        return connection

    def ask(self, method: str, path: str, body: Any = None, caller: Caller | None = None) -> Answer:
        """Make a request that is answered at once."""
        answer = self.send(method, path, body, caller).answer(method == "HEAD")
        assert answer is not None, f"{method} {path} was not answered"
        return answer

    def get(self, path: str, caller: Caller | None = None) -> Answer:
        """GET C{path}."""
        return self.ask("GET", path, None, caller)

    def post(self, path: str, body: Any = None, caller: Caller | None = None) -> Answer:
        """POST a JSON object to C{path}."""
        return self.ask("POST", path, {} if body is None else body, caller)

    def leases(self) -> dict[str, tuple[str, int, bool]]:
        """Return the holder and fence of each lease, and whether it is held now."""
        found, _ = self.store.store.leases.all()
        return {each.name: (each.holder, each.fence, each.held(self.clock.now())) for each in found}

    def advance(self, seconds: float, step: float = 0.25) -> None:
        """Let time pass, in steps as a host's would."""
        end = self.clock.seconds() + seconds
        while self.clock.seconds() < end - 1e-9:
            self.clock.advance(min(step, end - self.clock.seconds()))


def off(question: object) -> Deferred[Any]:
    """Answer as a store that is not there."""
    return fail(OSError("no store"))
