"""
A small SMTP client that is bounded at every step.

One connection, one message: greeting, EHLO, STARTTLS, AUTH, MAIL, RCPT, DATA, QUIT.  TLS that was
asked for is never given up, and the connection is closed whatever happens.

docs/reporting.md, "Mail", tells users what is asked of a server.
"""

from __future__ import annotations

import base64
import re
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import wrapClientTLS
from twisted.internet.protocol import Factory

from cronstable.clock import Clock
from cronstable.config.addresses import can_be_looked_up
from cronstable.reports.attempts import attempts
from cronstable.reports.dialogue import Reply, SmtpProtocol
from cronstable.reports.lookup import endpoint_of
from cronstable.reports.message import Mail
from cronstable.reports.tls import client_tls
from cronstable.reports.trouble import ReportFailed, network_trouble, one_line

_SHOWN = 200


@attrs.frozen
class Refusal:
    """A recipient that the server did not take; C{transient} when it may later."""

    recipient: str
    reply: str
    transient: bool


class SmtpClient:
    """
    Sends single messages.

    @param identity: the name that EHLO gives.
    @param step: the longest wait for a connection or a reply, in seconds.
    @param trust_root: what certificates must be signed by; None = the system's roots.
    """

    def __init__(
        self,
        reactor: Any,
        clock: Clock,
        identity: str,
        step: float = 20.0,
        trust_root: Any = None,
    ) -> None:
        self._reactor = reactor
        self._clock = clock
        self._identity = identity if re.fullmatch(r"[A-Za-z0-9.\-]+", identity) else "localhost"
        self._step = step
        self._trust_root = trust_root

    async def send(self, mail: Mail, within: float) -> tuple[Refusal, ...]:
        """
        Send C{mail} in at most C{within} seconds; return the recipients that were refused.

        @raise ReportFailed: nobody will get it.
        """
        where = f"mail server {one_line(mail.host)}"
        deadline = self._clock.seconds() + within
        protocol: SmtpProtocol | None = None
        try:
            protocol = await self._connected(mail, where, deadline)
            return await _Session(self, protocol, mail, where, deadline).run()
        except ReportFailed:
            raise
        except Exception as error:
            raise network_trouble(where, error) from None
        finally:
            if protocol is not None:
                protocol.close()

    async def deliver(self, mail: Mail, what: str, within: float) -> None:
        """
        Send C{mail} to all its recipients; again, to those that are left, after transient trouble.

        @raise ReportFailed: some of them, or all, will not get it.
        """
        lost: list[Refusal] = []
        left = mail

        async def attempt(seconds: float) -> None:
            nonlocal left
            refused = await self.send(left, seconds)
            again = tuple(each.recipient for each in refused if each.transient)
            lost.extend(each for each in refused if not each.transient)
            if again:
                left = attrs.evolve(left, recipients=again)
                reply = next(each.reply for each in refused if each.transient)
                raise ReportFailed(
                    f"mail server {one_line(mail.host)} refused {len(again)} of "
                    f"{len(mail.recipients)} recipients: {reply}",
                    transient=True,
                )

        await attempts(self._clock, what, within, attempt)
        if lost:
            raise ReportFailed(
                f"mail server {one_line(mail.host)} refused {len(lost)} of "
                f"{len(mail.recipients)} recipients: {lost[0].reply}"
            )

    def identity(self) -> str:
        """Return the name that EHLO gives."""
        return self._identity

    def tls(self, mail: Mail) -> Any:
        """Return what makes a TLS connection to the server of C{mail}."""
        return client_tls(mail.host, mail.validate, self._trust_root)

    def _within(
        self, waiting: Deferred[Any], deadline: float, all_of_it: bool = False
    ) -> Deferred[Any]:
        """Bound C{waiting} by one step, or with C{all_of_it} by all the time that is left."""
        left = max(deadline - self._clock.seconds(), 0.0)
        seconds = left if all_of_it else min(self._step, left)
        bounded: Deferred[Any] = waiting.addTimeout(seconds, self._clock)  # type: ignore[arg-type]
        return bounded

    async def _connected(self, mail: Mail, where: str, deadline: float) -> SmtpProtocol:
        # The resolver would never answer for a name that it cannot encode.
        if can_be_looked_up(mail.host):
            try:
                protocol: SmtpProtocol = await self._within(self._connect(mail), deadline)
                return protocol
            except ValueError:
                pass
        raise ReportFailed(f"{where}: the host name is not valid")

    def _connect(self, mail: Mail) -> Deferred[Any]:
        host = mail.host.encode("idna").decode("ascii") if not mail.host.isascii() else mail.host
        endpoint = endpoint_of(self._reactor, host, mail.port, self._step)
        if mail.tls:
            endpoint = wrapClientTLS(self.tls(mail), endpoint)
        factory = Factory.forProtocol(lambda: SmtpProtocol(self._clock))
        factory.noisy = False
        connected: Deferred[Any] = endpoint.connect(factory)
        return connected


class _Session:
    """One dialogue on one connection."""

    def __init__(
        self, client: SmtpClient, protocol: SmtpProtocol, mail: Mail, where: str, deadline: float
    ) -> None:
        self._client = client
        self._protocol = protocol
        self._mail = mail
        self._where = where
        self._deadline = deadline
        self._offers: dict[str, str] = {}

    async def run(self) -> tuple[Refusal, ...]:
        """Greet, secure, log in, hand over; return the recipients that were refused."""
        mail = self._mail
        await self._expect("the connection", 220)
        await self._hello()
        if mail.starttls:
            await self._secure()
        if mail.username and mail.password:
            await self._log_in(mail.username, mail.password)
        if mail.international and "SMTPUTF8" not in self._offers:
            raise self._failed("it cannot carry addresses that are not ASCII")
        refused = await self._hand_over()
        self._protocol.sendLine(b"QUIT")
        return refused

    async def _hello(self) -> None:
        identity = self._client.identity()
        code, lines = await self._ask(f"EHLO {identity}")
        if code == 250:
            offers = (line.strip().partition(" ") for line in lines[1:])
            self._offers = {name.upper(): arguments.strip() for name, _, arguments in offers}
        elif code >= 500 and not (self._mail.starttls or self._mail.username):
            await self._expect("HELO", 250, f"HELO {identity}")
        else:
            raise self._refused("EHLO", code, lines)

    async def _secure(self) -> None:
        """Start TLS, or fail: a server that does not offer it gets nothing."""
        if "STARTTLS" not in self._offers:
            raise self._failed("it does not offer STARTTLS")
        await self._expect("STARTTLS", 220, "STARTTLS")
        if not self._protocol.pristine():
            raise self._failed("it sent text between STARTTLS and the handshake")
        await self._bounded(self._protocol.encrypt(self._client.tls(self._mail)))
        self._offers = {}
        await self._hello()

    async def _log_in(self, username: str, password: str) -> None:
        methods = self._offers.get("AUTH", "").upper().split()
        if "PLAIN" in methods:
            answer = _encoded(f"\0{username}\0{password}")
            await self._expect("AUTH", 235, f"AUTH PLAIN {answer}")
        elif "LOGIN" in methods:
            await self._expect("AUTH", 334, "AUTH LOGIN")
            await self._expect("AUTH", 334, _encoded(username))
            await self._expect("AUTH", 235, _encoded(password))
        else:
            raise self._failed("it offers no login by PLAIN or LOGIN")

    async def _hand_over(self) -> tuple[Refusal, ...]:
        mail = self._mail
        parameters = " BODY=8BITMIME SMTPUTF8" if mail.international else ""
        await self._expect("MAIL", 250, f"MAIL FROM:<{mail.sender}>{parameters}")
        refused = []
        for recipient in mail.recipients:
            code, lines = await self._ask(f"RCPT TO:<{recipient}>")
            if code not in (250, 251, 252):
                refused.append(Refusal(recipient, _shown(code, lines), code < 500))
        if len(refused) == len(mail.recipients):
            raise ReportFailed(
                f"{self._where} refused every recipient: {refused[0].reply}",
                transient=any(each.transient for each in refused),
            )
        await self._expect("DATA", 354, "DATA")
        self._protocol.transport.write(_stuffed(mail.data))  # type: ignore[union-attr]
        code, lines = await self._bounded(self._protocol.reply(), all_of_it=True)
        if code != 250:
            raise self._refused("DATA", code, lines)
        return tuple(refused)

    async def _ask(self, line: str) -> Reply:
        waiting = self._protocol.reply()
        self._protocol.sendLine(line.encode("utf-8"))
        reply: Reply = await self._bounded(waiting)
        return reply

    async def _expect(self, step: str, wanted: int, line: str | None = None) -> None:
        if line is None:
            code, lines = await self._bounded(self._protocol.reply())
        else:
            code, lines = await self._ask(line)
        if code != wanted:
            raise self._refused(step, code, lines)

    def _bounded(self, waiting: Deferred[Any], all_of_it: bool = False) -> Any:
        return self._client._within(waiting, self._deadline, all_of_it)

    def _refused(self, step: str, code: int, lines: list[str]) -> ReportFailed:
        return ReportFailed(
            f"{self._where} answered {step} with {_shown(code, lines)}", transient=code < 500
        )

    def _failed(self, what: str) -> ReportFailed:
        return ReportFailed(f"{self._where}: {what}")


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode("utf-8")).decode("ascii")


def _shown(code: int, lines: list[str]) -> str:
    return f"{code} {one_line(' '.join(lines))[:_SHOWN]}".strip()


def _stuffed(data: bytes) -> bytes:
    """Return C{data} (with CRLF line ends) as DATA wants it, and the final dot."""
    if data.startswith(b"."):
        data = b"." + data
    data = data.replace(b"\r\n.", b"\r\n..")
    return data + (b".\r\n" if data.endswith(b"\r\n") else b"\r\n.\r\n")
