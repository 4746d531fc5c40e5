"""A served daemon whose runs keep their real output, and clients that look at each byte."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure

from cronstable.config.sections_values import NodeHistory, ScopedToken, WebConfig
from cronstable.config.values import JobConfig, Secret
from cronstable.runs.output import Outputs
from cronstable.web.auth import load_tokens
from tests.answers import Answer
from tests.fakes import FakeLaunch
from tests.web.served import Connection, Served

NOW = 1_767_225_600.0
"""The first second of 2026."""

ALL = "all-scopes-token"
VIEW, CONTROL, APPROVE = "view-token", "control-token", "approve-token"


def section(**fields: Any) -> WebConfig:
    """Return a C{web} section that samples nothing unless told to."""
    fields.setdefault("node_history", NodeHistory(enabled=False))
    return WebConfig(("http://127.0.0.1:0",), **fields)


def locked(**fields: Any) -> WebConfig:
    """Return a C{web} section with a token for each scope and one for all."""
    scoped = ((VIEW, "view", "wall"), (CONTROL, "control", "ci"), (APPROVE, "approve", "boss"))
    return section(
        auth_token=Secret(ALL),
        auth_tokens=tuple(
            ScopedToken(Secret(secret), (scope,), label) for secret, scope, label in scoped
        ),
        **fields,
    )


class Api(Served):
    """A daemon, its API, and whoever asks."""

    def __init__(self, *jobs: JobConfig, web: WebConfig | None = None, **sections: Any) -> None:
        web = section() if web is None else web
        tokens = load_tokens(web, lambda secret, key: secret.value or "")
        super().__init__(NOW, *jobs, web=web, tokens=tokens, **sections)
        self.house.outputs = self.outputs

    def make_captures(self) -> Outputs:
        """Return what keeps the output of runs, for followers too."""
        self.outputs = Outputs(self.executor)
        return self.outputs

    def post(self, path: str, value: Any = None, **headers: str) -> Answer:
        """POST a JSON document, or nothing."""
        body = b"" if value is None else json.dumps(value).encode("utf-8")
        return self.ask("POST", path, body, **headers)

    def answered(self, connection: Connection, head: bool = False) -> Answer:
        """Let turns pass until a request is answered, then time as well."""
        for turn in range(100_000):
            answer = connection.answer(head)
            if answer is not None:
                return answer
            self.reactor.hear()
            self.clock.advance(0 if turn < 100 else 0.001)
        raise AssertionError(f"no answer; received {connection.received!r}")

    def raw(self, request: bytes) -> Answer:
        """Send bytes as they are and return the answer to them."""
        connection = Connection(self)
        connection.channel.dataReceived(request)
        return self.answered(connection)

    def launched(self, number: int = -1) -> FakeLaunch:
        """Return a launch."""
        return self.executor.launches[number]

    def turns(self, count: int = 50) -> None:
        """Let the reactor turn without letting time pass."""
        for _ in range(count):
            self.reactor.hear()
            self.clock.advance(0)

    def follow(self, path: str, **headers: str) -> Follower:
        """Open a stream."""
        follower = Follower(self)
        follower.send("GET", path, **headers)
        self.turns()
        return follower


class Follower(Connection):
    """A client of a stream; C{read} gives each event once."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self._api = api
        self._seen = 0

    def read(self) -> list[tuple[str, Any]]:
        """Return the events that came since the last look: their kind, their data."""
        self._api.turns()
        found = events(self.text)
        new, self._seen = found[self._seen :], len(found)
        return new

    def lines(self) -> list[str]:
        """Return the text of each line that came since the last look."""
        return [data["line"] for kind, data in self.read() if kind == "line"]

    @property
    def text(self) -> str:
        """The body so far."""
        body = self.received.partition(b"\r\n\r\n")[2]
        return b"".join(_chunks(body)).decode("utf-8")

    @property
    def over(self) -> bool:
        """Whether the answer has ended."""
        return self.received.endswith(b"0\r\n\r\n")

    def stop_reading(self) -> None:
        """Let the client's buffers be full."""
        self.channel.pauseProducing()

    def read_on(self) -> None:
        """Let the client take what it is sent again."""
        self.channel.resumeProducing()

    def vanish(self) -> None:
        """Cut the connection."""
        self.channel.connectionLost(Failure(ConnectionDone()))


def events(text: str) -> list[tuple[str, Any]]:
    """Return the events of a stream as a browser reads them; comments have the kind ':'."""
    found: list[tuple[str, Any]] = []
    kind, data = "message", ""
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if line.startswith(":"):
            found.append((":", line[1:].strip()))
        elif line.startswith("event:"):
            kind = line[6:].strip()
        elif line.startswith("data:"):
            data += line[5:].strip()
        elif not line and data:
            found.append((kind, json.loads(data)))
            kind, data = "message", ""
    return found


def _chunks(body: bytes) -> list[bytes]:
    found = []
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        if not length or len(rest) < length:
            break
        found.append(rest[:length])
        body = rest[length + 2 :]
    return found
