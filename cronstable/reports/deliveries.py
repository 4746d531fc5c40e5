"""How each kind of report is made and sent; nothing here decides whether or when."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Literal

import attrs
from twisted.internet.defer import Deferred, DeferredSemaphore

from cronstable.clock import Clock
from cronstable.config.secret_values import SecretUnavailable
from cronstable.config.values import Report, Secret
from cronstable.executors.interfaces import IExecutor
from cronstable.reports import shell
from cronstable.reports.attempts import attempts
from cronstable.reports.templates import Templates
from cronstable.reports.trouble import ReportFailed
from cronstable.reports.variables import Variables, masked, shell_variables
from cronstable.runs.redact import Masker

Kind = Literal["mail", "sentry", "shell", "webhook", "push"]

TOTAL = 60.0
"""Seconds that a mail or a request may take in all, from its turn to its last attempt."""

_SPARE = 2.0
"""Seconds of a bound that are for reading secrets and making the text, not for the network."""

_SHELL_END = 5.0
"""Seconds that a shell reporter's process gets to end beyond its own time."""

_MAKING_AT_ONCE = 2
_READING_AT_ONCE = 64


def active(report: Report) -> tuple[Kind, ...]:
    """Return the kinds that C{report} configures; the event log is one of Windows only."""
    mail = report.mail
    kinds: tuple[tuple[Kind, object], ...] = (
        ("mail", mail.sender and mail.to),
        ("sentry", report.sentry.dsn.configured),
        ("shell", _command(report.shell.command)),
        ("webhook", report.webhook.url.configured),
        ("push", report.push.enabled),
    )
    return tuple(kind for kind, wanted in kinds if wanted)


def _command(command: str | tuple[str, ...] | None) -> object:
    """Return C{command} if there is one; blank text is none."""
    return command.strip() if isinstance(command, str) else command


def bound(kind: Kind, report: Report) -> float:
    """Return the seconds within which a delivery of C{kind} is over, once it has begun."""
    if kind == "shell":
        return report.shell.seconds + _SHELL_END
    if kind == "webhook":
        return max(TOTAL, report.webhook.seconds + _SPARE)
    return TOTAL


def destination(kind: Kind, report: Report) -> Hashable:
    """Return what deliveries of C{kind} share when one that hangs should not take all places."""
    if kind == "mail":
        return kind, report.mail.smtp_host, report.mail.smtp_port
    if kind == "webhook":
        return kind, report.webhook.url
    if kind == "sentry":
        return kind, report.sentry.dsn
    return kind


@attrs.frozen
class Notice:
    """
    Something to report, as seen by every reporter of its hook.

    C{variables} is called off the reactor thread.  C{secrets} are those of the job, whose values
    are masked; C{staged} those values as the run was given them, where they are known.
    """

    hook: str
    name: str
    report: Report
    variables: Callable[[], Variables]
    size: int = 0
    secrets: tuple[Secret, ...] = ()
    staged: tuple[str, ...] = attrs.field(default=(), repr=False)


class Deliveries:
    """
    Makes and sends single reports.

    @param resolve: reads a secret, raising an error that names the key; it may block.
    @param in_thread: calls a function off the reactor thread.
    @param trust_root: what mail servers' certificates must be signed by; None = the system's.
    @param https: an C{IPolicyForHTTPS}; None = verified against the system's roots.
    """

    def __init__(
        self,
        reactor: Any,
        clock: Clock,
        *,
        host: str,
        environ: Mapping[str, str],
        executor: IExecutor,
        resolve: Callable[[Secret, str], str],
        in_thread: Callable[..., Deferred[Any]],
        token: Callable[[], str],
        trust_root: Any = None,
        https: Any = None,
    ) -> None:
        self._reactor = reactor
        self._clock = clock
        self._host = host
        self._environ = environ
        self._executor = executor
        self._resolve = resolve
        self._in_thread = in_thread
        self._token = token
        self._trust_root = trust_root
        self._https = https
        self._templates = Templates()
        self._making = DeferredSemaphore(_MAKING_AT_ONCE)
        self._reading = 0
        self._masker = functools.lru_cache(maxsize=64)(lambda values: Masker(values))
        self._sentries: Any = None
        self._http_client: Any = None
        self._senders: Mapping[Kind, Callable[..., Any]] = {
            "mail": self._mail,
            "sentry": self._sentry,
            "shell": self._shell,
            "webhook": self._webhook,
            "push": self._push,
        }

    async def deliver(self, kind: Kind, notice: Notice) -> None:
        """
        Make and send the report of C{kind}.

        @raise ReportFailed: it was not delivered; the message holds no secret.
        """
        values = await self._values(kind, notice)
        masker: Masker = self._masker(tuple(sorted({*values.others, *notice.staged})))
        try:
            await self._senders[kind](notice, values, masker)
        except ReportFailed as failed:
            raise ReportFailed(masker.mask(str(failed))) from None

    # secrets

    async def _values(self, kind: Kind, notice: Notice) -> _Values:
        """Read the secrets in play; only a file takes a thread, which may hang."""
        report = notice.report
        wanted = {
            "mail.password": report.mail.password if report.mail.username else Secret(),
            "sentry.dsn": report.sentry.dsn,
            "webhook.url": report.webhook.url,
        }
        own = {"mail": "mail.password", "sentry": "sentry.dsn", "webhook": "webhook.url"}.get(kind)
        read = functools.partial(self._read, wanted, own, notice.secrets)
        if not any(each.from_file for each in (*wanted.values(), *notice.secrets)):
            return read()
        if self._reading >= _READING_AT_ONCE:
            raise ReportFailed("too many reports are stuck reading the file of a secret")
        self._reading += 1
        reading = self._in_thread(read)
        waiting: Deferred[Any] = Deferred()

        def over(result: Any) -> None:
            self._reading -= 1
            if not waiting.called:
                waiting.callback(result)

        reading.addBoth(over)
        values: _Values = await waiting
        return values

    def _read(
        self, wanted: Mapping[str, Secret], own: str | None, others: Iterable[Secret]
    ) -> _Values:
        known = []
        mine = None
        for key, secret in wanted.items():
            if secret.configured:
                try:
                    value = self._resolve(secret, key)
                except Exception as error:
                    if key == own:
                        raise _unreadable(key, error) from None
                else:
                    known.append(value)
                    mine = value if key == own else mine
        for secret in others:
            try:
                known.append(self._resolve(secret, "secrets"))
            except Exception:  # the run went without it; there is nothing to mask
                continue
        return _Values(mine, tuple(known))

    # making, off the reactor thread

    def _make(self, compose: Callable[[Variables], Any], notice: Notice, masker: Masker) -> Any:
        """Call C{compose} in a thread; few at once, since they keep the reactor from running."""

        def make() -> Any:
            variables = notice.variables()
            return compose(masked(variables, masker.mask) if masker else variables)

        return self._making.run(self._in_thread, make)

    # the kinds

    async def _mail(self, notice: Notice, values: _Values, masker: Masker) -> None:
        from cronstable.reports import message
        from cronstable.reports.smtp import SmtpClient

        report = notice.report.mail

        def compose(variables: Variables) -> message.Mail | None:
            return message.compose(
                report,
                variables,
                self._templates,
                password=values.mine,
                now=self._clock.now(),
                message_id=f"{self._token()}@{_domain(self._host)}",
                skip_blank=notice.hook == "onSuccess",
            )

        mail = await self._make(compose, notice, masker)
        if mail is not None:
            client = SmtpClient(self._reactor, self._clock, self._host, trust_root=self._trust_root)
            await client.deliver(mail, f"Job {notice.name}: mail report", TOTAL - _SPARE)

    async def _webhook(self, notice: Notice, values: _Values, masker: Masker) -> None:
        from cronstable.reports import webhook

        report, url = notice.report.webhook, values.mine or ""
        request = await self._make(
            lambda variables: webhook.compose(report, url, variables, self._templates),
            notice,
            masker,
        )
        await self._post(
            request, f"Job {notice.name}: webhook report", bound("webhook", notice.report) - _SPARE
        )

    async def _sentry(self, notice: Notice, values: _Values, masker: Masker) -> None:
        from cronstable.reports.sentry import SentryClients

        if self._sentries is None:
            self._sentries = SentryClients(self._host)
        report, dsn = notice.report.sentry, values.mine or ""
        request = await self._make(
            lambda variables: self._sentries.compose(report, dsn, variables, self._templates),
            notice,
            masker,
        )
        await self._post(request, f"Job {notice.name}: sentry report", TOTAL - _SPARE)

    async def _shell(self, notice: Notice, values: _Values, masker: Masker) -> None:
        spec = await self._make(
            lambda variables: shell.compose(
                notice.report.shell, self._environ, shell_variables(variables)
            ),
            notice,
            masker,
        )
        await shell.run(self._executor, spec)

    async def _push(self, notice: Notice, values: _Values, masker: Masker) -> None:
        raise ReportFailed("push is not served by this release")

    async def _post(self, request: Any, what: str, within: float) -> None:
        from cronstable.reports.http import HttpClient
        from cronstable.reports.webhook import post

        if self._http_client is None:
            self._http_client = HttpClient(self._reactor, self._clock, self._https)
        await attempts(
            self._clock, what, within, lambda left: post(self._http_client, request, left)
        )


@attrs.frozen
class _Values:
    """The secret of the reporter itself, and every value that must not be shown."""

    mine: str | None = attrs.field(repr=False)
    others: tuple[str, ...] = attrs.field(repr=False)


def _unreadable(key: str, error: Exception) -> ReportFailed:
    if isinstance(error, SecretUnavailable):
        return ReportFailed(str(error))
    return ReportFailed(f"{key}: cannot be read ({type(error).__name__})")


def _domain(host: str) -> str:
    """Return C{host} as the right side of a Message-ID may be written."""
    kept = "".join(each for each in host if each.isascii() and (each.isalnum() or each in ".-"))
    return kept.strip(".-") or "localhost"
