"""Tests for the SMTP client: against a real server, and against toys that misbehave."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import attrs
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase

from cronstable.clock import SystemClock
from cronstable.reports.message import Mail
from cronstable.reports.smtp import Refusal, SmtpClient
from cronstable.reports.trouble import ReportFailed
from tests.certs import Authority
from tests.reports.toys import Names, RealMailServer, Servers, ToySmtpFactory

DATA = b"Subject: x\r\n\r\nhello\r\n.\r\n..two\r\n"


class SmtpTestCase(TestCase):
    """A client with an authority that it trusts, and mails to send."""

    def setUp(self) -> None:
        self.clock = SystemClock(reactor)
        self.servers = Servers(self, reactor)

    def mail(self, port: int, **fields: Any) -> Mail:
        """Return a mail for the server at C{port}."""
        given = {
            "host": "127.0.0.1",
            "sender": "a@example.org",
            "recipients": ("b@example.org",),
            "data": DATA,
        }
        return Mail(port=port, **{**given, **fields})

    def client(self, step: float = 5.0, trust_root: Any = None) -> SmtpClient:
        """Return a client."""
        return SmtpClient(reactor, self.clock, "node-a", step=step, trust_root=trust_root)

    async def failure(
        self, mail: Mail, step: float = 5.0, within: float = 5.0, **more: Any
    ) -> ReportFailed:
        """Send what cannot be sent; return why."""
        try:
            await self.client(step, **more).send(mail, within)
        except ReportFailed as failed:
            return failed
        self.fail("it was sent")

    async def closed(self, factory: ToySmtpFactory) -> None:
        """Wait until C{factory} has no open connection; trial's own limit ends it."""
        while factory.open:
            await deferLater(reactor, 0.01)  # type: ignore[arg-type]


class RealServerTests(SmtpTestCase):
    """Mails through aiosmtpd."""

    def serve(self, **options: Any) -> RealMailServer:
        """Start a server with a certificate of our authority."""
        self.authority = Authority(Path(self.mktemp()))
        pair = self.authority.issue("mail", ("localhost", "127.0.0.1"))
        server = RealMailServer(cert=str(pair.cert), key=str(pair.key), **options)
        self.addCleanup(server.stop)
        return server

    async def send(self, server: RealMailServer, **fields: Any) -> dict[str, Any]:
        """Send a mail that the server takes; return what it took."""
        client = self.client(trust_root=self.authority.trust_root())
        self.assertEqual(await client.send(self.mail(server.port, **fields), 10.0), ())
        return server.taken()

    async def test_plain(self) -> None:
        """A mail arrives byte for byte, lines that begin with a dot too."""
        took = await self.send(self.serve(), recipients=("b@example.org", "c@example.org"))
        self.assertEqual(took["data"].encode(), DATA)
        self.assertEqual(took["from"], "a@example.org")
        self.assertEqual(took["to"], ["b@example.org", "c@example.org"])
        self.assertFalse(took["tls"])

    async def test_starttls_and_login(self) -> None:
        """With STARTTLS the mail and the login go encrypted, by PLAIN where it is offered."""
        server = self.serve(starttls=True, auth=True, auth_tls=True)
        took = await self.send(server, starttls=True, username="usér", password="päss w0rd")
        self.assertTrue(took["tls"])
        self.assertEqual(took["login"].encode(), "usér".encode())

    async def test_login_by_login(self) -> None:
        """Where PLAIN is not offered LOGIN serves."""
        server = self.serve(auth=True, without=["PLAIN"])
        took = await self.send(server, username="usér", password="päss w0rd")
        self.assertEqual(took["login"], "usér")

    async def test_wrong_password(self) -> None:
        """A refused login is told with the server's code, without the password."""
        server = self.serve(auth=True)
        failed = await self.failure(self.mail(server.port, username="usér", password="wr0ng-one"))
        self.assertIn("answered AUTH with 535", str(failed))
        self.assertFalse(failed.transient)
        self.assertNotIn("wr0ng-one", str(failed))

    async def test_implicit_tls(self) -> None:
        """C{tls} encrypts from the first byte."""
        took = await self.send(self.serve(implicit=True), tls=True)
        self.assertEqual(took["data"].encode(), DATA)

    async def test_unknown_authority(self) -> None:
        """A certificate of another authority is refused unless told otherwise."""
        other = Authority(Path(self.mktemp())).trust_root()
        for options, fields in (({"implicit": True}, {"tls": True}), ({}, {"starttls": True})):
            server = self.serve(**options)
            mail = self.mail(server.port, **fields)
            failed = await self.failure(mail, trust_root=other)
            self.assertIn("TLS: ", str(failed))
            self.assertFalse(failed.transient)
            took = await self.send(server, validate=False, **fields)
            self.assertEqual(took["data"].encode(), DATA)

    async def test_international(self) -> None:
        """A local part that is not ASCII goes by SMTPUTF8, or not at all."""
        took = await self.send(self.serve(utf8=True), recipients=("jürgen@example.org",))
        self.assertEqual(took["to"], ["jürgen@example.org"])
        failed = await self.failure(
            self.mail(self.serve().port, recipients=("jürgen@example.org",))
        )
        self.assertIn("not ASCII", str(failed))


class ToyServerTests(SmtpTestCase):
    """Servers that do not do what they should."""

    async def toy(self, pair: Any = None, **replies: Any) -> tuple[ToySmtpFactory, Mail]:
        """Serve a toy; return it and a mail for it."""
        factory = ToySmtpFactory(**replies)
        return factory, self.mail(await self.servers.listen(factory, pair))

    async def test_silence(self) -> None:
        """A server that says nothing is given up after a step, and the connection is closed."""
        for verb in ("greeting", "EHLO", "MAIL", "RCPT", "DATA"):
            factory, mail = await self.toy(**{verb: b""})
            failed = await self.failure(mail, step=0.1)
            self.assertIn("no answer in time", str(failed))
            self.assertTrue(failed.transient)
            await self.closed(factory)

    async def test_silence_at_the_end(self) -> None:
        """A server that does not say whether it took the mail is waited for to the bound."""
        factory, mail = await self.toy(dot=b"")
        failed = await self.failure(mail, step=0.05, within=0.3)
        self.assertIn("no answer in time", str(failed))
        await self.closed(factory)

    async def test_bound(self) -> None:
        """All steps together end at the bound, however slowly the server goes on."""
        factory, mail = await self.toy(greeting=b"220-a\r\n220 b", EHLO=b"")
        begun = self.clock.seconds()
        await self.failure(mail, step=5.0, within=0.2)
        self.assertLess(self.clock.seconds() - begun, 2.0)
        await self.closed(factory)

    async def test_dropped(self) -> None:
        """A connection dropped after RCPT, or anywhere, is transient trouble."""
        for verb in ("greeting", "EHLO", "RCPT", "DATA", "dot"):
            factory, mail = await self.toy(**{verb: None})
            failed = await self.failure(mail)
            self.assertIn("closed early", str(failed))
            self.assertTrue(failed.transient)

    async def test_codes(self) -> None:
        """4yz is transient, 5yz is not, and the server's words are told in one line."""
        for verb, reply, transient in (
            ("greeting", b"421 busy\r\n", True),
            ("greeting", b"554 go away", False),
            ("EHLO", b"421 no", True),
            ("MAIL", b"552-too\r\n552 big", False),
            ("RCPT", b"450 later", True),
            ("DATA", b"554 no", False),
            ("dot", b"451 disk full", True),
        ):
            _, mail = await self.toy(**{verb: reply})
            failed = await self.failure(mail)
            self.assertEqual(failed.transient, transient, verb)
            self.assertIn(reply[:3].decode(), str(failed))
            self.assertNotIn("\n", str(failed))

    async def test_no_starttls(self) -> None:
        """Where STARTTLS is asked for and not offered, nothing is sent: TLS is never dropped."""
        factory, mail = await self.toy(EHLO=b"250-toy\r\n250 AUTH PLAIN")
        failed = await self.failure(attrs.evolve(mail, starttls=True, username="u", password="p"))
        self.assertIn("does not offer STARTTLS", str(failed))
        self.assertFalse(failed.transient)
        self.assertEqual(factory.verbs(), ["EHLO"])

    async def test_starttls_refused(self) -> None:
        """A server that offers STARTTLS and then refuses it gets nothing either."""
        factory, mail = await self.toy(EHLO=b"250-toy\r\n250 STARTTLS", STARTTLS=b"454 not now")
        failed = await self.failure(attrs.evolve(mail, starttls=True))
        self.assertIn("454", str(failed))
        self.assertEqual(factory.verbs(), ["EHLO", "STARTTLS"])

    async def test_injected_reply(self) -> None:
        """Text that comes with the answer to STARTTLS, before the handshake, ends it."""
        factory, mail = await self.toy(
            EHLO=b"250-toy\r\n250 STARTTLS", STARTTLS=b"220 go\r\n250 AUTH PLAIN\r\n235"
        )
        failed = await self.failure(attrs.evolve(mail, starttls=True))
        self.assertIn("between STARTTLS and the handshake", str(failed))
        self.assertEqual(factory.verbs(), ["EHLO", "STARTTLS"])

    async def test_no_login(self) -> None:
        """A server without a login that we know is told, and gets no password."""
        factory, mail = await self.toy(EHLO=b"250-toy\r\n250 AUTH CRAM-MD5")
        failed = await self.failure(attrs.evolve(mail, username="u", password="p"))
        self.assertIn("no login by PLAIN or LOGIN", str(failed))
        self.assertEqual(factory.verbs(), ["EHLO"])

    async def test_expired_certificate(self) -> None:
        """An expired certificate is refused."""
        authority = Authority(Path(self.mktemp()))
        _, mail = await self.toy(authority.issue("mail", expired=True))
        failed = await self.failure(attrs.evolve(mail, tls=True), trust_root=authority.trust_root())
        self.assertIn("TLS: ", str(failed))
        self.assertFalse(failed.transient)

    async def test_other_name(self) -> None:
        """A certificate for another host is refused."""
        authority = Authority(Path(self.mktemp()))
        _, mail = await self.toy(authority.issue("mail", ("other.example.org",)))
        failed = await self.failure(
            attrs.evolve(mail, tls=True, host="localhost"), trust_root=authority.trust_root()
        )
        self.assertIn("TLS: ", str(failed))

    async def test_old_server(self) -> None:
        """A server that knows no EHLO is spoken to with HELO, but not for TLS or a login."""
        factory, mail = await self.toy(EHLO=b"502 what")
        self.assertEqual(await self.client().send(mail, 5.0), ())
        self.assertEqual(factory.verbs()[:3], ["EHLO", "HELO", "MAIL"])
        failed = await self.failure(attrs.evolve(mail, username="u", password="p"))
        self.assertIn("502", str(failed))

    async def test_not_smtp(self) -> None:
        """Endless lines, endless replies and other protocols are given up at once."""
        for greeting in (b"x" * 10000, b"220-more\r\n" * 200, b"HTTP/1.1 400 Bad Request", b"99 x"):
            factory, mail = await self.toy(greeting=greeting)
            failed = await self.failure(mail)
            self.assertIn("does not speak SMTP", str(failed))
            await self.closed(factory)

    async def test_some_refused(self) -> None:
        """Who is refused is returned; the others get their mail."""
        factory, mail = await self.toy(RCPT=[b"250 ok", b"550 nobody", b"451 later"])
        three = tuple(f"{each}@example.org" for each in "abc")
        refused = await self.client().send(attrs.evolve(mail, recipients=three), 5.0)
        self.assertEqual(
            refused,
            (
                Refusal("b@example.org", "550 nobody", transient=False),
                Refusal("c@example.org", "451 later", transient=True),
            ),
        )
        await self.closed(factory)
        self.assertEqual(factory.verbs()[-1], "QUIT")

    async def test_unreachable(self) -> None:
        """A refused connection and a name that does not resolve are told as such."""
        failed = await self.failure(self.mail(1))
        self.assertIn("the connection was refused", str(failed))
        failed = await self.failure(self.mail(25, host="nosuch.invalid"))
        self.assertIn("does not resolve", str(failed))
        self.assertTrue(failed.transient)

    async def test_underscore(self) -> None:
        """A name with an underscore, as containers have them, is looked up like any other."""
        Names(self, reactor, mail_1="127.0.0.1")
        factory, mail = await self.toy()
        await self.client().send(attrs.evolve(mail, host="mail_1"), 5.0)
        await self.closed(factory)
        failed = await self.failure(self.mail(25, host="mail_2"))
        self.assertIn("mail server mail_2: the host name does not resolve", str(failed))

    async def test_impossible_host(self) -> None:
        """A host name that no resolver takes is told as such, and is not tried again."""
        for host in ("a" * 64 + ".invalid", "a..invalid", ".", "ü" * 70, "xn--ü", "\udcff.invalid"):
            for tls in (False, True):
                failed = await self.failure(self.mail(25, host=host, tls=tls))
                self.assertIn("the host name is not valid", str(failed), host)
                self.assertFalse(failed.transient, host)
        gc.collect()
        self.assertEqual(self.flushLoggedErrors(), [])

    async def test_cancelled(self) -> None:
        """A send that is cancelled closes its connection."""
        factory, mail = await self.toy(greeting=b"")
        sending = Deferred.fromCoroutine(self.client().send(mail, 5.0))
        while not factory.open:
            await deferLater(reactor, 0.01)  # type: ignore[arg-type]
        sending.cancel()
        try:
            await sending
        except ReportFailed as failed:
            self.assertIn("cut short", str(failed))
        await self.closed(factory)
        gc.collect()
        self.assertEqual(self.flushLoggedErrors(), [])


class DeliverTests(SmtpTestCase):
    """Attempts until everybody has it, or nobody more can be helped."""

    async def test_again(self) -> None:
        """After transient trouble the mail is sent again, the same one."""
        factory = ToySmtpFactory(greeting=[b"421 busy", b"220 toy"])
        mail = self.mail(await self.servers.listen(factory))
        await self.client().deliver(mail, "x", 30.0)
        self.assertEqual(factory.connections, 2)
        self.assertIn(b"hello", factory.lines)

    async def test_only_who_is_left(self) -> None:
        """Recipients that have it are not sent it again; who was refused for good is told."""
        factory = ToySmtpFactory(RCPT=[b"250 ok", b"550 nobody", b"451 later", b"250 ok"])
        mail = self.mail(
            await self.servers.listen(factory),
            recipients=tuple(f"{each}@example.org" for each in "abc"),
        )
        failed = await self.assertFailure(
            Deferred.fromCoroutine(self.client().deliver(mail, "x", 30.0)), ReportFailed
        )
        self.assertIn("refused 1 of 3 recipients: 550 nobody", str(failed))
        asked = [line for line in factory.lines if line.startswith(b"RCPT")]
        self.assertEqual(len(asked), 4)
        self.assertIn(b"c@example.org", asked[3])
