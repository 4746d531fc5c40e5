"""
A mail as RFC 5322 text, from a reporter's configuration and a report's variables.

Nothing that comes from a job or a template can add a header or a recipient.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timezone
from email import policy
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime, getaddresses
from typing import Any

import attrs

from cronstable.config.values import MailReport
from cronstable.reports.templates import Templates
from cronstable.reports.trouble import ReportFailed, one_line

_LONGEST_SUBJECT = 1000
_LARGE = 65536
_LONGEST_LINE = 990


@attrs.frozen
class Mail:
    """A message ready to be sent, with CRLF line ends, and what its transport must know."""

    host: str
    port: int
    sender: str
    recipients: tuple[str, ...]
    data: bytes = attrs.field(repr=False)
    username: str | None = None
    password: str | None = attrs.field(default=None, repr=False)
    tls: bool = False
    starttls: bool = False
    validate: bool = True

    @property
    def international(self) -> bool:
        """Whether an address has a local part that only SMTPUTF8 can carry."""
        return not all(each.isascii() for each in (self.sender, *self.recipients))


def compose(
    report: MailReport,
    variables: Mapping[str, Any],
    templates: Templates,
    *,
    password: str | None,
    now: float,
    message_id: str,
    skip_blank: bool,
) -> Mail | None:
    """
    Return the mail that C{report} asks for; None when its body is blank and C{skip_blank}.

    @raise ReportFailed: a template fails, or an address is none.
    """
    body = _clean(templates.render("mail.body", report.body, variables))
    if skip_blank and not body.strip():
        return None
    subject = one_line(templates.render("mail.subject", report.subject, variables))
    senders = _addresses("mail.from", report.sender or "")[:1]
    recipients = _addresses("mail.to", report.to or "")
    plain = all(each.username.isascii() for each in (*senders, *recipients))
    style = policy.SMTP.clone(cte_type="7bit") if plain else policy.SMTPUTF8
    message = EmailMessage(style)
    message["From"] = senders[0]
    message["To"] = recipients
    message["Subject"] = _clean(subject[:_LONGEST_SUBJECT])
    message["Date"] = format_datetime(datetime.fromtimestamp(now, timezone.utc))
    message["Message-ID"] = f"<{message_id}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(
        body,
        subtype="html" if report.html else "plain",
        cte=_encoding(body),
    )
    login = report.username and password
    return Mail(
        host=report.smtp_host or "localhost",
        port=report.smtp_port,
        sender=senders[0].addr_spec,
        recipients=tuple(dict.fromkeys(each.addr_spec for each in recipients)),
        data=_with_crlf(message.as_bytes()),
        username=report.username if login else None,
        password=password if login else None,
        tls=report.tls,
        starttls=report.starttls,
        validate=report.validate_certs,
    )


def _encoding(body: str) -> str | None:
    """Return how to carry C{body}: readable if it can be; a large one as what is quick to make."""
    if body.isascii() and max(map(len, body.split("\n"))) <= _LONGEST_LINE:
        return "7bit"
    return "base64" if len(body) > _LARGE else None


def _addresses(key: str, text: str) -> list[Address]:
    """Return the addresses in a comma list, their domains in ASCII."""
    found = [_address(key, name, spec) for name, spec in getaddresses([one_line(text)]) if spec]
    if not found:
        raise ReportFailed(f"{key}: no address in it")
    return found


def _address(key: str, name: str, spec: str) -> Address:
    local, at, domain = spec.rpartition("@")
    if not at:
        local, domain = spec, ""
    if not local or re.search(r"[\s<>]", spec):
        raise ReportFailed(f"{key}: not an address")
    try:
        domain = domain.encode("idna").decode("ascii") if not domain.isascii() else domain
        return Address(_clean(one_line(name)), local, domain)
    except (UnicodeError, ValueError):
        raise ReportFailed(f"{key}: not an address") from None


def _clean(text: str) -> str:
    """Return C{text} without NUL and lone surrogates, which no mail can carry."""
    return (
        text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\N{REPLACEMENT CHARACTER}")
    )


def _with_crlf(data: bytes) -> bytes:
    return re.sub(rb"\r\n|\r|\n", b"\r\n", data)
