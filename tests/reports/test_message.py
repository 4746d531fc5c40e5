"""Tests for mails as text."""

from __future__ import annotations

import email
import email.policy
from email.message import EmailMessage
from typing import Any, cast

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import MailReport
from cronstable.reports.message import Mail, compose
from cronstable.reports.templates import Templates
from cronstable.reports.trouble import ReportFailed

NOW = 1_767_225_600.0


def content(message: EmailMessage) -> str:
    """Return the text of C{message} with plain line ends."""
    return str(message.get_content()).replace("\r\n", "\n")


class ComposeTests(SynchronousTestCase):
    """A mail from a reporter and variables."""

    def mail(self, skip_blank: bool = False, **fields: Any) -> Mail | None:
        """Compose a mail; C{fields} are of the reporter, C{variables} of the template."""
        variables = fields.pop("variables", {"name": "job", "success": True})
        fields = {"sender": "a@example.org", "to": "b@example.org", **fields}
        return compose(
            MailReport(**fields),
            variables,
            Templates(),
            password=fields.get("password_text"),
            now=NOW,
            message_id="1@node-a",
            skip_blank=skip_blank,
        )

    def read(self, **fields: Any) -> EmailMessage:
        """Compose a mail and parse it again."""
        mail = self.mail(**fields)
        assert mail is not None
        parsed = email.message_from_bytes(mail.data, policy=email.policy.default)
        return cast(EmailMessage, parsed)

    def test_headers(self) -> None:
        """A mail has the usual headers, its date in UTC."""
        message = self.read(subject="S {{ name }}", body="hello\n")
        self.assertEqual(message["From"], "a@example.org")
        self.assertEqual(message["To"], "b@example.org")
        self.assertEqual(message["Subject"], "S job")
        self.assertEqual(message["Date"], "Thu, 01 Jan 2026 00:00:00 +0000")
        self.assertEqual(message["Message-ID"], "<1@node-a>")
        self.assertEqual(message.get_content_type(), "text/plain")
        self.assertEqual(content(message), "hello\n")

    def test_no_injection(self) -> None:
        """Line ends in a name add no header and no recipient, in whatever disguise."""
        for name in (
            "x\r\nBcc: c@example.org",
            "x\nBcc: c@example.org",
            "x\rBcc: c@example.org",
            "x\x0bBcc: c@example.org",
            "x\x85Bcc: c@example.org",
            "x\u2028Bcc: c@example.org",
            "x\0\r\n\r\nbody",
        ):
            variables = {"name": name, "success": False}
            message = self.read(subject="{{ name }}", variables=variables)
            self.assertIsNone(message["Bcc"])
            self.assertEqual(
                sorted(key.lower() for key in message),
                sorted(
                    "from to subject date message-id auto-submitted content-type "
                    "content-transfer-encoding mime-version".split()
                ),
            )
            mail = self.mail(subject="{{ name }}", variables=variables)
            assert mail is not None
            self.assertEqual(mail.recipients, ("b@example.org",))

    def test_addresses(self) -> None:
        """C{to} is a comma list with names; the envelope has the bare addresses, each once."""
        mail = self.mail(
            sender="Näme <a@example.org>",
            to='"Doe, J" <b@example.org>, c@example.org, b@example.org',
        )
        assert mail is not None
        self.assertEqual(mail.sender, "a@example.org")
        self.assertEqual(mail.recipients, ("b@example.org", "c@example.org"))
        message = email.message_from_bytes(mail.data, policy=email.policy.default)
        self.assertEqual(message["From"], "Näme <a@example.org>")
        self.assertEqual(message["To"].addresses[0].display_name, "Doe, J")
        self.assertTrue(mail.data.isascii())

    def test_injected_addresses(self) -> None:
        """Line ends in configured addresses are no headers either."""
        message = self.read(to="b@example.org\r\nBcc: c@example.org")
        self.assertIsNone(message["Bcc"])

    def test_local_user(self) -> None:
        """A name without a domain is a local address."""
        mail = self.mail(sender="cron", to="root")
        assert mail is not None
        self.assertEqual((mail.sender, mail.recipients), ("cron", ("root",)))

    def test_international(self) -> None:
        """A domain that is not ASCII is encoded; such a local part asks for SMTPUTF8."""
        mail = self.mail(to="b@bücher.example")
        assert mail is not None
        self.assertEqual(mail.recipients, ("b@xn--bcher-kva.example",))
        self.assertFalse(mail.international)
        mail = self.mail(to="jürgen@example.org", subject="Ü")
        assert mail is not None
        self.assertTrue(mail.international)
        self.assertIn("To: jürgen@example.org".encode(), mail.data)

    def test_no_address(self) -> None:
        """Addresses that are none are errors that name the key."""
        for fields, key in (({"to": " , "}, "mail.to"), ({"sender": "<>"}, "mail.from")):
            failed = self.assertRaises(ReportFailed, self.mail, **fields)
            self.assertIn(key, str(failed))

    def test_text(self) -> None:
        """Any text is carried, long lines and lone surrogates too, in lines of seven bits."""
        body = "é ü\n.\nFrom here\n" + "x" * 5000 + "\n\udcff\n"
        mail = self.mail(body="{{ text }}\n", variables={"text": body, "success": True})
        assert mail is not None
        self.assertTrue(mail.data.isascii())
        self.assertLess(max(map(len, mail.data.split(b"\r\n"))), 999)
        self.assertNotIn(b"\n", mail.data.replace(b"\r\n", b""))
        shown = self.read(body="{{ text }}\n", variables={"text": body, "success": True})
        self.assertEqual(content(shown).rstrip("\n"), body.replace("\udcff", "?").rstrip("\n"))

    def test_large_text(self) -> None:
        """A large text that is not ASCII is carried as base64, which is made quickly."""
        message = self.read(body="{{ 'liné\n' * 50000 }}")
        self.assertEqual(message["Content-Transfer-Encoding"], "base64")
        self.assertEqual(content(message), "liné\n" * 50000)

    def test_readable(self) -> None:
        """ASCII text stays readable, unless a line is longer than mail allows."""
        for longest, encoding in ((900, "7bit"), (1200, "quoted-printable")):
            message = self.read(body="{{ 'x' * " + str(longest) + " }}\r\n.\rb\n")
            self.assertEqual(message["Content-Transfer-Encoding"], encoding)
            self.assertTrue(content(message).startswith("x" * longest + "\n.\nb"))

    def test_nul(self) -> None:
        """A NUL, which mail servers refuse, is replaced."""
        self.assertEqual(content(self.read(body="a\0b")), "a\ufffdb\n")

    def test_html(self) -> None:
        """C{html} makes it a page."""
        self.assertEqual(self.read(html=True, body="<b>x</b>").get_content_type(), "text/html")

    def test_blank(self) -> None:
        """A blank body means no mail where that is asked for, and a mail elsewhere."""
        self.assertIsNone(self.mail(skip_blank=True, body=" {{ nothing }}\n"))
        self.assertIsNotNone(self.mail(skip_blank=False, body=" {{ nothing }}\n"))

    def test_login(self) -> None:
        """Only a user name and a password together make a login."""
        report = {"sender": "a@example.org", "to": "b@example.org", "username": "u"}
        for password, login in ((None, (None, None)), ("p", ("u", "p"))):
            mail = compose(
                MailReport(**report),  # type: ignore[arg-type]
                {"success": True},
                Templates(),
                password=password,
                now=NOW,
                message_id="1@node-a",
                skip_blank=False,
            )
            assert mail is not None
            self.assertEqual((mail.username, mail.password), login)
            self.assertEqual(mail.host, "localhost")
            self.assertNotIn("'p'", repr(mail))
