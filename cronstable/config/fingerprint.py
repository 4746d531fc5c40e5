"""
The identity of a job and of a set of jobs, equal on every node whose jobs are equal.

A job's canonical text is JSON of what decides how it runs: keys in code point order, no blanks,
pure ASCII, whole numbers without a fraction, secrets redacted.  Its SHA-256 is the job's digest,
and the digests together give the job-set ID that nodes compare.  The bytes are shared with other
implementations, so that nothing here may change.  docs/fingerprint.md specifies the scheme.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from json.encoder import encode_basestring_ascii as _text

from cronstable.config.values import (
    EventlogReport,
    FailsWhen,
    JobConfig,
    MailReport,
    PoolMembership,
    PushReport,
    Report,
    ResourceLimits,
    RetryPolicy,
    Secret,
    SentryReport,
    ShellReport,
    Statsd,
    Verify,
    WebhookReport,
)

SCHEME_VERSION = "v1"
"""The scheme's name: the prefix of an ID, and what a node tells its peers."""

REDACTED = "<redacted>"
"""What stands for a secret: whether one is set is identity, which one is not."""

_SHELL_TIMEOUT = 60.0
_PUSH = PushReport()
_EVENTLOG = EventlogReport()

_encode: Callable[[object], str] = partial(json.dumps, sort_keys=True, separators=(",", ":"))


def canonical_text(job: JobConfig) -> str:
    """Return the text whose SHA-256 is the job's digest; it holds no secret."""
    fields = [
        f'"captureStderr":{_boolean(job.capture_stderr)}',
        f'"captureStdout":{_boolean(job.capture_stdout)}',
        f'"clusterPolicy":{_text(job.cluster_policy)}',
        f'"command":{_command(job.command)}',
        f'"concurrencyPolicy":{_text(job.concurrency_policy)}',
        f'"enabled":{_boolean(job.enabled)}',
        f'"environment":{_names(job.environment)}',
        f'"executionTimeout":{_number(job.execution_timeout)}',
        f'"failsWhen":{_fails_when(job.fails_when)}',
        f'"group":{_account(job.group)}',
        f'"killTimeout":{_number(job.kill_timeout)}',
        f'"maxLineLength":{job.max_line_length}',
        f'"name":{_text(job.name)}',
        f'"onFailure":{{"report":{_report(job.on_failure)},"retry":{_retry(job.retry)}}}',
        f'"onPermanentFailure":{{"report":{_report(job.on_permanent_failure)}}}',
        f'"onSuccess":{{"report":{_report(job.on_success)}}}',
        f'"onlyIfLastSucceeded":{_boolean(job.only_if_last_succeeded)}',
        f'"saveLimit":{job.save_limit}',
        f'"schedule":{_text(job.schedule_text)}',
        f'"shell":{_text(job.shell)}',
        f'"statsd":{_statsd(job.statsd)}',
        f'"streamPrefix":{_text(job.stream_prefix)}',
        f'"timezone":{_timezone(job)}',
        f'"user":{_account(job.user)}',
    ]
    fields += _added(job)
    # Quotes end every key and sort before anything a key may hold: the fields sort as the keys do.
    fields.sort()
    return "{" + ",".join(fields) + "}"


def job_digest(job: JobConfig) -> str:
    """Return the SHA-256 of a job's canonical text, in 64 lower-case hexadecimal digits."""
    return hashlib.sha256(canonical_text(job).encode("ascii")).hexdigest()


def fold(digests: Iterable[str]) -> str:
    """Return the ID of the set of jobs with these digests, in whatever order they come."""
    joined = SCHEME_VERSION + "\n" + "\n".join(sorted(digests))
    return f"{SCHEME_VERSION}:{hashlib.sha256(joined.encode('ascii')).hexdigest()}"


def job_set_id(jobs: Iterable[JobConfig]) -> str:
    """Return the ID of a set of jobs, disabled ones included: C{v1:} and 64 digits."""
    return fold(map(job_digest, jobs))


def _added(job: JobConfig) -> list[str]:
    """Return the fields that are left out while they say nothing."""
    added = []
    if job.concurrency_scope != "node":
        added.append(f'"concurrencyScope":{_text(job.concurrency_scope)}')
    if job.priority != "normal":
        added.append(f'"priority":{_text(job.priority)}')
    if job.verify is not None:
        added.append(f'"verify":{_verify(job.verify)}')
    if job.pool is not None:
        added.append(f'"pool":{_pool(job.pool)}')
    if job.limits.any:
        added.append(f'"resourceLimits":{_limits(job.limits)}')
    if job.output_grace is not None:
        added.append(f'"outputGraceSeconds":{_number(job.output_grace)}')
    if job.umask is not None:
        added.append(f'"umask":{job.umask}')
    return added


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _number(value: float | None) -> str:
    whole = _whole(value)
    return str(whole) if whole.__class__ is int else _encode(whole)


def _whole(value: float | None) -> float | None:
    """Return a number without its fraction, if that is zero."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _account(value: str | int | None) -> str:
    return "null" if value is None else _encode(value)


def _command(command: str | tuple[str, ...]) -> str:
    if isinstance(command, str):
        return f'{{"shell_command":{_text(command)}}}'
    return f'{{"argv":{_encode(command)}}}'


def _names(environment: tuple[tuple[str, str], ...]) -> str:
    return _encode(sorted({name for name, _ in environment})) if environment else "[]"


def _timezone(job: JobConfig) -> str:
    if job.timezone is not None:
        return _text(job.timezone)
    return '"UTC"' if job.utc else "null"


@lru_cache(maxsize=64)
def _fails_when(rules: FailsWhen) -> str:
    return _encode(
        {
            "producesStdout": rules.produces_stdout,
            "producesStderr": rules.produces_stderr,
            "nonzeroReturn": rules.nonzero_return,
            "always": rules.always,
        }
    )


@lru_cache(maxsize=256)
def _retry(policy: RetryPolicy) -> str:
    fields: dict[str, float | None] = {
        "maximumRetries": policy.maximum_retries,
        "initialDelay": _whole(policy.initial_delay),
        "maximumDelay": _whole(policy.maximum_delay),
        "backoffMultiplier": _whole(policy.backoff_multiplier),
    }
    if policy.jitter:
        fields["jitter"] = _whole(policy.jitter)
    return _encode(fields)


def _statsd(statsd: Statsd | None) -> str:
    if statsd is None:
        return "null"
    return _encode({"prefix": statsd.prefix, "host": statsd.host, "port": statsd.port})


def _verify(verify: Verify) -> str:
    return _encode({"command": verify.command, "timeout": _whole(verify.timeout)})


def _pool(pool: PoolMembership) -> str:
    return _encode(
        {
            "name": pool.name,
            "slots": pool.slots,
            "priority": pool.priority,
            "timeout": _whole(pool.timeout),
        }
    )


def _limits(limits: ResourceLimits) -> str:
    return _encode(
        {
            "cpu": _whole(limits.cpu),
            "memory": limits.memory,
            "processes": limits.processes,
            "required": limits.required,
        }
    )


@lru_cache(maxsize=512)
def _report(report: Report) -> str:
    """Return one hook's reporters; jobs mostly share them, and they are nearly all of the text."""
    blocks: dict[str, object] = {
        "sentry": _sentry(report.sentry),
        "mail": _mail(report.mail),
        "shell": _shell(report.shell),
        "webhook": _webhook(report.webhook),
    }
    if report.push != _PUSH:
        blocks["push"] = _push(report.push)
    if report.eventlog != _EVENTLOG:
        blocks["eventlog"] = _eventlog(report.eventlog)
    return _encode(blocks)


def _secret(secret: Secret) -> dict[str, str | None]:
    return {
        "value": None if secret.value is None else REDACTED,
        "fromFile": secret.from_file,
        "fromEnvVar": secret.from_env_var,
    }


def _sentry(sentry: SentryReport) -> dict[str, object]:
    block: dict[str, object] = {
        "dsn": _secret(sentry.dsn),
        "body": sentry.body,
        "fingerprint": sentry.fingerprint,
        "environment": sentry.environment,
        "maxStringLength": sentry.max_string_length,
    }
    if sentry.level is not None:
        block["level"] = sentry.level
    if sentry.extra is not None:
        block["extra"] = dict(sentry.extra)
    return block


def _mail(mail: MailReport) -> dict[str, object]:
    return {
        "from": mail.sender,
        "to": mail.to,
        "smtpHost": mail.smtp_host,
        "smtpPort": mail.smtp_port,
        "subject": mail.subject,
        "body": mail.body,
        "username": mail.username,
        "password": _secret(mail.password),
        "tls": mail.tls,
        "starttls": mail.starttls,
        "validate_certs": mail.validate_certs,
        "html": mail.html,
    }


def _shell(shell: ShellReport) -> dict[str, object]:
    block: dict[str, object] = {"shell": shell.shell, "command": shell.command}
    if shell.timeout != _SHELL_TIMEOUT:
        block["timeout"] = _whole(shell.timeout)
    return block


def _webhook(webhook: WebhookReport) -> dict[str, object]:
    return {
        "url": _secret(webhook.url),
        "method": webhook.method,
        "contentType": webhook.content_type,
        "headers": {name: REDACTED for name, _ in webhook.headers},
        "body": webhook.body,
        "timeout": _whole(webhook.timeout),
    }


def _push(push: PushReport) -> dict[str, object]:
    return {
        "enabled": push.enabled,
        "priority": push.priority,
        "includeLogTail": push.include_log_tail,
    }


def _eventlog(eventlog: EventlogReport) -> dict[str, object]:
    return {
        "enabled": eventlog.enabled,
        "source": eventlog.source,
        "includeOutput": eventlog.include_output,
    }
