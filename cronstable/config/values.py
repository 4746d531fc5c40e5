"""
What a loaded configuration says: frozen values, complete, compared with C{==}.

Every value here is final: defaults are merged, text is interpolated and typed, times are
seconds, sizes are bytes.  docs/configuration.md specifies each key.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal

import attrs

from cronstable.config import templates
from cronstable.schedule import Schedule

ConcurrencyPolicy = Literal["Allow", "Forbid", "Replace"]
ClusterPolicy = Literal["Leader", "PreferLeader", "EveryNode"]

DEFAULT_SHELL = "" if os.name == "nt" else "/bin/sh"
"""The shell of commands that are text; empty = the platform's own."""

SHORTEST_MASKED = 4
"""Secrets of fewer characters are not masked in output: they would be found everywhere."""


def _names(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the names of C{pairs} for a repr, since their values may be secret."""
    return repr(tuple(name for name, _ in pairs))


@attrs.frozen
class Origin:
    """Where a job or task was written: the file, and its 1-based first line (0 = unknown)."""

    file: str
    line: int = 0


@attrs.frozen
class Secret:
    """A secret's three possible sources; the first non-empty one is used (never its value here)."""

    value: str | None = attrs.field(default=None, repr=False)
    from_file: str | None = None
    from_env_var: str | None = None

    @property
    def configured(self) -> bool:
        """Whether any source is non-empty."""
        return bool(self.value or self.from_file or self.from_env_var)


@attrs.frozen
class NamedSecret:
    """One entry of a job's C{secrets}."""

    name: str
    secret: Secret


@attrs.frozen
class Statsd:
    """Where a job's statsd datagrams go."""

    prefix: str
    host: str
    port: int


@attrs.frozen
class FailsWhen:
    """What makes a finished run a failure."""

    produces_stdout: bool = False
    produces_stderr: bool = True
    nonzero_return: bool = True
    always: bool = False


@attrs.frozen
class RetryPolicy:
    """How a failed run is tried again; delays in seconds, C{maximum_retries} -1 = for ever."""

    maximum_retries: int = 0
    initial_delay: float = 1.0
    maximum_delay: float = 300.0
    backoff_multiplier: float = 2.0
    jitter: float = 0.0

    @property
    def last_attempt(self) -> int | None:
        """The number of the last attempt, None if there is always another one."""
        return None if self.maximum_retries == -1 else self.maximum_retries


@attrs.frozen
class MailReport:
    """The C{mail} reporter of one hook."""

    sender: str | None = None
    to: str | None = None
    smtp_host: str | None = None
    smtp_port: int = 25
    subject: str = templates.SUBJECT
    body: str = templates.BODY
    username: str | None = None
    password: Secret = Secret()
    tls: bool = False
    starttls: bool = False
    validate_certs: bool = True
    html: bool = False


@attrs.frozen
class SentryReport:
    """The C{sentry} reporter of one hook; C{level}, C{extra} are None when not written."""

    dsn: Secret = Secret()
    body: str = templates.SENTRY_BODY
    fingerprint: tuple[str, ...] = templates.FINGERPRINT
    level: str | None = None
    extra: tuple[tuple[str, str], ...] | None = None
    environment: str | None = None
    max_string_length: int = 8192


@attrs.frozen
class ShellReport:
    """The C{shell} reporter of one hook; C{shell} empty = the platform's, as for a job."""

    shell: str = DEFAULT_SHELL
    command: str | tuple[str, ...] | None = None
    timeout: float = 60.0

    @property
    def seconds(self) -> float:
        """How long the command may take: C{timeout}, or the default where that is not above 0."""
        return self.timeout if self.timeout > 0 else 60.0


@attrs.frozen
class WebhookReport:
    """The C{webhook} reporter of one hook."""

    url: Secret = Secret()
    method: str = "POST"
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = attrs.field(default=(), repr=_names)
    body: str = templates.WEBHOOK_BODY
    timeout: float = 10.0

    @property
    def seconds(self) -> float:
        """How long a request may take: C{timeout}, or the default where that is not above 0."""
        return self.timeout if self.timeout > 0 else 10.0


@attrs.frozen
class PushReport:
    """The C{push} reporter of one hook."""

    enabled: bool = False
    priority: str = "time-sensitive"
    include_log_tail: bool = True


@attrs.frozen
class EventlogReport:
    """The C{eventlog} reporter of one hook (Windows only)."""

    enabled: bool = False
    source: str = "cronstable"
    include_output: bool = False


@attrs.frozen
class Report:
    """All reporters of one hook; the defaults are those of a job's failure or success."""

    mail: MailReport = MailReport()
    sentry: SentryReport = SentryReport()
    shell: ShellReport = ShellReport()
    webhook: WebhookReport = WebhookReport()
    push: PushReport = PushReport()
    eventlog: EventlogReport = EventlogReport()


STANDARD_REPORT = Report()
"""What the hooks of a job report unless the configuration says more."""

LATE_REPORT = Report(
    mail=MailReport(subject=templates.LATE_SUBJECT, body=templates.LATE_BODY),
    sentry=SentryReport(body=templates.LATE_SENTRY_BODY, fingerprint=templates.LATE_FINGERPRINT),
    webhook=WebhookReport(body=templates.LATE_WEBHOOK_BODY),
)
"""What C{onLate} reports unless the configuration says more."""

NOTIFY_REPORT = Report(
    mail=MailReport(subject=templates.NOTIFY_SUBJECT, body=templates.NOTIFY_BODY),
    sentry=SentryReport(
        body=templates.NOTIFY_SENTRY_BODY, fingerprint=templates.NOTIFY_FINGERPRINT
    ),
    webhook=WebhookReport(body=templates.NOTIFY_WEBHOOK_BODY),
)
"""What C{notify} reports unless the configuration says more."""


@attrs.frozen
class Verify:
    """A check that runs after the command passed; C{timeout} in seconds."""

    command: str | tuple[str, ...]
    timeout: float = 60.0


@attrs.frozen
class Sla:
    """Lateness thresholds of a job, in seconds; None = not watched."""

    max_time_since_success: int | None = None
    late_after: int | None = None
    max_runtime: int | None = None

    @property
    def any(self) -> bool:
        """Whether anything is watched."""
        return any((self.max_time_since_success, self.late_after, self.max_runtime))


@attrs.frozen
class Monitor:
    """Resource sampling of a job's process tree; C{interval} in seconds, C{history} points."""

    enabled: bool = False
    interval: float = 1.0
    history: int = 240


@attrs.frozen
class ResourceLimits:
    """Caps of a job's process tree: CPUs, bytes, processes; None = uncapped."""

    cpu: float | None = None
    memory: int | None = None
    processes: int | None = None
    required: bool = False

    @property
    def any(self) -> bool:
        """Whether any cap is set."""
        return not (self.cpu is None and self.memory is None and self.processes is None)


@attrs.frozen
class PoolMembership:
    """A job's place in a pool; C{timeout} in seconds."""

    name: str
    slots: int = 1
    priority: int = 0
    timeout: float = 3600.0


@attrs.frozen
class JobConfig:
    """
    One job (or a workflow task's template), complete.

    C{schedule} is None for C{@reboot}; C{schedule_text} is what the configuration says, blanks
    collapsed.  C{shell} empty means the platform's.  C{environment} is the merged list (env_file
    first, later wins).  C{uid}, C{gid} and C{login} are what C{user} and C{group} came to at load;
    C{login} None means no supplementary groups.  C{working_directory} is absolute or None.
    C{output_grace} bounds the wait for captured streams after the exit (None = unbounded).
    """

    name: str
    command: str | tuple[str, ...]
    schedule_text: str
    schedule: Schedule | None
    timezone: str | None = "UTC"
    utc: bool = True
    shell: str = DEFAULT_SHELL
    enabled: bool = True
    environment: tuple[tuple[str, str], ...] = attrs.field(default=(), repr=_names)
    env_file: str | None = None
    working_directory: str | None = None
    user: str | int | None = None
    group: str | int | None = None
    uid: int | None = None
    gid: int | None = None
    login: str | None = None
    umask: int | None = None
    priority: str = "normal"
    statsd: Statsd | None = None
    capture_stdout: bool = False
    capture_stderr: bool = True
    stream_prefix: str = "[{job_name} {stream_name}] "
    save_limit: int = 4096
    max_line_length: int = 16777216
    output_grace: float | None = None
    fails_when: FailsWhen = FailsWhen()
    retry: RetryPolicy = RetryPolicy()
    on_failure: Report = STANDARD_REPORT
    on_permanent_failure: Report = STANDARD_REPORT
    on_success: Report = STANDARD_REPORT
    on_late: Report = LATE_REPORT
    concurrency_policy: ConcurrencyPolicy = "Allow"
    concurrency_scope: Literal["node", "cluster"] = "node"
    cluster_policy: ClusterPolicy = "Leader"
    execution_timeout: float | None = None
    kill_timeout: float = 30.0
    on_missed: Literal["skip", "run-once", "run-all"] = "skip"
    starting_deadline: int | None = None
    catchup_jitter: int = 0
    catchup_limit: int = 100
    only_if_last_succeeded: bool = False
    archive_output: bool = False
    redact_archived_secrets: bool = True
    secrets: tuple[NamedSecret, ...] = ()
    allowed_scopes: tuple[str, ...] = ()
    sla: Sla = Sla()
    monitor: Monitor = Monitor()
    verify: Verify | None = None
    pool: PoolMembership | None = None
    limits: ResourceLimits = ResourceLimits()
    origin: Origin = attrs.field(default=Origin(""), eq=False, repr=False)

    @property
    def reboot(self) -> bool:
        """Whether the job runs once per boot instead of on a timetable."""
        return self.schedule is None

    @property
    def command_text(self) -> str:
        """The command as one line of text, list items joined with blanks."""
        return self.command if isinstance(self.command, str) else " ".join(self.command)
