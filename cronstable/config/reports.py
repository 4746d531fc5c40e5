"""
Report blocks: merged text to the reporters of one hook.

docs/configuration.md, "Reports", specifies the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import attrs

from cronstable.config.addresses import can_be_looked_up
from cronstable.config.layers import Tell
from cronstable.config.reading import Path
from cronstable.config.values import Report, Secret

_LOGS = ("application", "system", "security")


def secret(values: Mapping[str, Any]) -> Secret:
    """Return the sources that a secret's mapping names."""
    return Secret(values.get("value"), values.get("fromFile"), values.get("fromEnvVar"))


def command(value: Any) -> str | tuple[str, ...] | None:
    """Return a command as it is kept: text, or a tuple of arguments."""
    return tuple(value) if isinstance(value, list) else value


def _pairs(value: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(value.items())


_Fields = dict[str, tuple[str, Callable[[Any], Any]]]


def _same(*keys: str) -> _Fields:
    return {key: (key, lambda value: value) for key in keys}


def _named(**fields: str) -> _Fields:
    return {key: (field, lambda value: value) for key, field in fields.items()}


_BLOCKS: dict[str, _Fields] = {
    "mail": {
        "from": ("sender", lambda value: value),
        "password": ("password", secret),
        **_named(smtpHost="smtp_host", smtpPort="smtp_port"),
        **_same("to", "subject", "body", "username", "tls", "starttls", "validate_certs", "html"),
    },
    "sentry": {
        "dsn": ("dsn", secret),
        "fingerprint": ("fingerprint", tuple),
        "extra": ("extra", _pairs),
        **_named(maxStringLength="max_string_length"),
        **_same("level", "body", "environment"),
    },
    "shell": {"command": ("command", command), **_same("shell", "timeout")},
    "webhook": {
        "url": ("url", secret),
        "headers": ("headers", _pairs),
        **_named(contentType="content_type"),
        **_same("method", "body", "timeout"),
    },
    "push": {**_same("enabled", "priority"), **_named(includeLogTail="include_log_tail")},
    "eventlog": {**_same("enabled", "source"), **_named(includeOutput="include_output")},
}


def report(standard: Report, values: Mapping[str, Any] | None, path: Path, tell: Tell) -> Report:
    """Return C{standard} with the reporters that C{values} configures; tell what is wrong."""
    if not values:
        return standard
    blocks = {
        name: _block(getattr(standard, name), _BLOCKS[name], written)
        for name, written in values.items()
        if written
    }
    built = attrs.evolve(standard, **blocks)
    _check(built, path, tell)
    return built


def _block(standard: Any, fields: _Fields, written: Mapping[str, Any]) -> Any:
    changes = {}
    for key, value in written.items():
        field, convert = fields[key]
        changes[field] = convert(value)
    return attrs.evolve(standard, **changes)


def _check(built: Report, path: Path, tell: Tell) -> None:
    if built.mail.tls and built.mail.starttls:
        tell(
            (*path, "mail", "starttls"),
            "tls and starttls are both true; allowed: one of them (tls encrypts from the start, "
            "starttls upgrades a plain connection)",
        )
    for where, host in (
        (("mail", "smtpHost"), built.mail.smtp_host or ""),
        (("webhook", "url", "value"), _host(built.webhook.url.value or "")),
    ):
        if host and not can_be_looked_up(host):
            tell((*path, *where), "not a host name; allowed: parts of 1 to 63 letters between dots")
    if not built.eventlog.enabled:
        return
    source = built.eventlog.source
    if not source.strip() or "/" in source or "\\" in source or source.lower() in _LOGS:
        tell(
            (*path, "eventlog", "source"),
            f"not a source name, got {source!r}; allowed: text without / and \\ that is not the "
            "name of a log (Application, System, Security)",
        )


def _host(url: str) -> str:
    """Return the host of C{url}, empty where none can be told."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def active(built: Report) -> bool:
    """Return whether any reporter of a hook is configured, be it in part."""
    mail = built.mail
    return bool(
        mail.to
        or mail.sender
        or built.sentry.dsn.configured
        or built.shell.command
        or built.webhook.url.configured
        or built.push.enabled
        or built.eventlog.enabled
    )
