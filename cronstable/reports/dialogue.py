"""The line protocol of a mail server: whole replies, each of them bounded."""

from __future__ import annotations

import re
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IHandshakeListener
from twisted.internet.protocol import connectionDone
from twisted.protocols.basic import LineReceiver
from twisted.python.failure import Failure
from zope.interface import implementer

from cronstable.clock import Clock
from cronstable.reports.trouble import ReportFailed

_LONGEST_REPLY = 100
_LINGER = 5.0
"""Seconds that a server gets to close the connection before it is cut."""

Reply = tuple[int, list[str]]


@implementer(IHandshakeListener)
class SmtpProtocol(LineReceiver):
    """Sends lines and collects whole replies; one question is open at a time."""

    MAX_LENGTH = 4096

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: Deferred[Any] | None = None
        self._replies: list[Reply] = []
        self._lines: list[str] = []
        self._lost: Failure | None = None
        self._linger: Any = None
        self._encrypted: Deferred[None] | None = None

    def reply(self) -> Deferred[Reply]:
        """Fire with the next reply; fail when the connection is lost first."""
        waiting: Deferred[Any] = Deferred()
        if self._replies:
            waiting.callback(self._replies.pop(0))
        elif self._lost is not None:
            waiting.errback(self._lost)
        else:
            self._waiting = waiting
        return waiting

    def encrypt(self, options: Any) -> Deferred[None]:
        """Start TLS; fire once the handshake has succeeded and the certificate was accepted."""
        self._encrypted = Deferred()
        self.transport.startTLS(options)  # type: ignore[union-attr]
        return self._encrypted

    def pristine(self) -> bool:
        """Whether the server has sent nothing that was not asked for yet."""
        return not (self._replies or self._lines or self.clearLineBuffer())

    def close(self) -> None:
        """Close the connection; by force where the other side does not let go of it."""
        if self._lost is None and self.transport is not None:
            self.transport.loseConnection()
            self._linger = self._clock.callLater(_LINGER, self.abort)

    def abort(self) -> None:
        """Drop the connection now."""
        self._stop_lingering()
        if self._lost is None and self.transport is not None:
            self.transport.abortConnection()  # type: ignore[attr-defined]

    def lineReceived(self, line: bytes) -> None:  # noqa: N802 - LineReceiver's name
        """Add one line to the reply in progress."""
        text = line.decode("utf-8", "replace")
        self._lines.append(text[4:])
        if len(self._lines) > _LONGEST_REPLY or not re.match(r"[2-5]\d\d([ -]|$)", text):
            self._fail(Failure(ReportFailed("the server does not speak SMTP")))
            self.abort()
        elif text[3:4] != "-":
            reply = int(text[:3]), self._lines
            self._lines = []
            if self._waiting is not None:
                waiting, self._waiting = self._waiting, None
                waiting.callback(reply)
            elif len(self._replies) < _LONGEST_REPLY:
                self._replies.append(reply)

    def lineLengthExceeded(self, line: bytes) -> None:  # noqa: N802 - LineReceiver's name
        """Give up on a server that sends endless lines."""
        self._fail(Failure(ReportFailed("the server does not speak SMTP")))
        self.abort()

    def handshakeCompleted(self) -> None:  # noqa: N802 - IHandshakeListener's name
        """TLS is in place."""
        if self._encrypted is not None:
            encrypted, self._encrypted = self._encrypted, None
            encrypted.callback(None)

    def connectionLost(self, reason: Failure = connectionDone) -> None:  # noqa: N802
        """Fail whoever still waits."""
        self._lost = reason
        self._stop_lingering()
        self._fail(reason)

    def _stop_lingering(self) -> None:
        if self._linger is not None and self._linger.active():
            self._linger.cancel()
        self._linger = None

    def _fail(self, reason: Failure) -> None:
        for waiting in (self._waiting, self._encrypted):
            if waiting is not None and not waiting.called:
                waiting.errback(reason)
        self._waiting = self._encrypted = None
