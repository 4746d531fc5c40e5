"""Toy servers that misbehave on purpose, and a real mail server in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.defer import maybeDeferred
from twisted.internet.endpoints import serverFromString
from twisted.internet.interfaces import IHostnameResolver
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.protocols.basic import LineReceiver
from twisted.python.failure import Failure
from zope.interface import implementer

Script = Callable[[bytes], "bytes | None"]


class ToySmtp(LineReceiver):
    """
    Answers each command with what its factory's C{replies} say, 250 by default.

    A reply of None drops the connection, an empty one is silence.
    """

    factory: ToySmtpFactory
    _in_data = False

    def connectionMade(self) -> None:  # noqa: N802
        self.factory.connections += 1
        self._answer(self.factory.reply(b"", b"220 toy"))

    def lineReceived(self, line: bytes) -> None:  # noqa: N802
        self.factory.lines.append(line)
        if self._in_data:
            if line == b".":
                self._in_data = False
                self._answer(self.factory.reply(b".", b"250 taken"))
            return
        verb = line.split(b" ")[0].split(b":")[0].upper()
        answer = self.factory.reply(verb, b"354 go" if verb == b"DATA" else b"250 fine")
        self._in_data = verb == b"DATA" and answer is not None and answer.startswith(b"354")
        self._answer(answer)

    def _answer(self, answer: bytes | None) -> None:
        if answer is None:
            self.transport.loseConnection()  # type: ignore[union-attr]
        elif answer:
            self.transport.write(answer + b"\r\n")  # type: ignore[union-attr]

    def connectionLost(self, reason: Failure = connectionDone) -> None:  # noqa: N802
        self.factory.open -= 1


class ToySmtpFactory(Factory):
    """Makes toy servers; a list of replies to a verb is used up, its last one stays."""

    protocol = ToySmtp
    noisy = False

    def __init__(self, **replies: Any) -> None:
        self._replies = {name.encode(): value for name, value in replies.items()}
        self.lines: list[bytes] = []
        self.connections = 0
        self.open = 0

    def buildProtocol(self, address: Any) -> Any:  # noqa: N802
        self.open += 1
        return super().buildProtocol(address)

    def reply(self, verb: bytes, default: bytes) -> bytes | None:
        """Return the next reply to C{verb}: C{greeting}, C{dot} or a command."""
        key = {b"": b"greeting", b".": b"dot"}.get(verb, verb)
        given = self._replies.get(key, default)
        if isinstance(given, list):
            given = given.pop(0) if len(given) > 1 else given[0]
        return given

    def verbs(self) -> list[str]:
        """Return the verbs that came, without what is inside messages."""
        return [line.decode("utf-8", "replace").split(" ")[0].split(":")[0] for line in self.lines]


class ToyHttp(Protocol):
    """Answers a whole request with the next of its factory's answers, as it is."""

    factory: ToyHttpFactory
    _received = b""

    def connectionMade(self) -> None:  # noqa: N802
        self.factory.open += 1

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end:
            return
        length = 0
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if len(body) >= length:
            self._received = b""
            self.factory.requests.append((head, body))
            self.factory.answer(self.transport)

    def connectionLost(self, reason: Failure = connectionDone) -> None:  # noqa: N802
        self.factory.open -= 1


class ToyHttpFactory(Factory):
    """Makes toy servers; C{answers} are bytes or callables of the transport, the last one stays."""

    protocol = ToyHttp
    noisy = False

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.requests: list[tuple[bytes, bytes]] = []
        self.open = 0

    def answer(self, transport: Any) -> None:
        """Answer the request that just came."""
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if callable(answer):
            answer(transport)
        else:
            transport.write(answer)


def http(status: str, body: bytes = b"", *headers: str) -> bytes:
    """Return an HTTP answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Servers:
    """Servers on loopback for one test, all closed at its end."""

    def __init__(self, test: Any, reactor: Any) -> None:
        self._test = test
        self._reactor = reactor

    async def listen(self, factory: Factory, pair: Any = None) -> int:
        """Serve C{factory}, with TLS if a certificate is given; return the port."""
        where = "tcp:0:interface=127.0.0.1"
        if pair is not None:
            where = f"ssl:0:interface=127.0.0.1:privateKey={pair.key}:certKey={pair.cert}"
        port = await serverFromString(self._reactor, where).listen(factory)
        self._test.addCleanup(lambda: maybeDeferred(port.stopListening))
        number: int = port.getHost().port
        return number


@implementer(IHostnameResolver)
class Names:
    """What names stand for while one test runs; others do not resolve."""

    def __init__(self, test: Any, reactor: Any, **known: str) -> None:
        self._known = known
        test.addCleanup(reactor.installNameResolver, reactor.installNameResolver(self))

    def resolveHostName(  # noqa: N802 - the interface's name
        self,
        receiver: Any,
        name: str,
        portNumber: int = 0,  # noqa: N803
        addressTypes: Any = None,  # noqa: N803
        transportSemantics: str = "TCP",  # noqa: N803
    ) -> Any:
        """Tell the address of C{name}, if it is known."""
        receiver.resolutionBegan(self)
        if name in self._known:
            receiver.addressResolved(IPv4Address("TCP", self._known[name], portNumber))
        receiver.resolutionComplete()
        return self


_AIOSMTPD = """
import asyncio, json, ssl, sys
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult

options = json.loads(sys.argv[1])

class Keep:
    async def handle_DATA(self, server, session, envelope):
        print(json.dumps({"from": envelope.mail_from, "to": envelope.rcpt_tos,
                          "data": envelope.content.decode("latin-1"),
                          "login": session.auth_data and session.auth_data.login.decode(),
                          "tls": session.ssl is not None}), flush=True)
        return "250 kept"

def authenticate(server, session, envelope, mechanism, auth_data):
    good = (auth_data.login, auth_data.password) == (b"us\\xc3\\xa9r", b"p\\xc3\\xa4ss w0rd")
    return AuthResult(success=good, auth_data=auth_data if good else None, handled=False)

context = None
if options.get("cert"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options["cert"], options["key"])

def make():
    return SMTP(Keep(), enable_SMTPUTF8=options.get("utf8", False), hostname="toy.example.org",
                tls_context=None if options.get("implicit") else context,
                require_starttls=options.get("starttls", False),
                authenticator=authenticate, auth_required=options.get("auth", False),
                auth_require_tls=options.get("auth_tls", False),
                auth_exclude_mechanism=options.get("without"))

async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(make, "127.0.0.1", 0,
                                      ssl=context if options.get("implicit") else None)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


class RealMailServer:
    """aiosmtpd in a process of its own; what it took can be read line by line."""

    def __init__(self, **options: Any) -> None:
        import json

        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _AIOSMTPD, json.dumps(options)],
            stdout=subprocess.PIPE,
            env=dict(os.environ),
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        self._out = self._process.stdout
        self.port = int(self._out.readline())

    def taken(self) -> dict[str, Any]:
        """Return the next message that it took."""
        import json

        message: dict[str, Any] = json.loads(self._out.readline())
        return message

    def stop(self) -> None:
        """End the process."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._out.close()
