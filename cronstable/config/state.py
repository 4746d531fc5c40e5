"""
The C{state} section: its shape and its checks.

docs/configuration.md, "state", specifies the keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from cronstable.config import ranges
from cronstable.config.addresses import (
    HostPort,
    host_port,
    is_loopback,
    is_wildcard,
    without_userinfo,
)
from cronstable.config.keys import BOOL, FLOAT, INT, NULL_TEXT, TEXT
from cronstable.config.layers import Tell
from cronstable.config.notices import Notice, warning
from cronstable.config.schema import Enum, Record
from cronstable.config.sections_values import JobApiConfig, StateConfig, TlsFiles
from cronstable.config.world import World

Say = Callable[[Notice], None]

TOPOLOGY = Enum("auto", "single-node", "shared")
_DAY = 86400
_FORMS = "http://host:port, https://host:port, host:port"

STATE = Record(
    {
        "path": TEXT,
        "topology": TOPOLOGY,
        "deploymentId": NULL_TEXT,
        "maxRunsPerJob": INT,
        "onStoreUnavailable": Enum("degrade", "fail-closed"),
        "gcGraceSeconds": INT,
        "maxOpsPerSecond": FLOAT,
        "slotTtlSeconds": FLOAT,
        "fsync": Enum("always", "rename", "never"),
        "boot": Enum("host", "container"),
        "jobApi": Record(
            {
                "enabled": BOOL,
                "listen": NULL_TEXT,
                "maxValueBytes": INT,
                "maxArtifactBytes": INT,
                "lockTtlSeconds": FLOAT,
                "allowNonLoopbackBind": BOOL,
                "tls": Record({"cert": NULL_TEXT, "key": NULL_TEXT, "ca": NULL_TEXT}),
            }
        ),
    },
    required=("path",),
)

_FIELDS = {
    "topology": "topology",
    "deploymentId": "deployment_id",
    "maxRunsPerJob": "max_runs_per_job",
    "onStoreUnavailable": "on_store_unavailable",
    "gcGraceSeconds": "gc_grace",
    "maxOpsPerSecond": "max_ops_per_second",
    "slotTtlSeconds": "slot_ttl",
    "fsync": "fsync",
    "boot": "boot",
}
_CHECKS = {
    "maxOpsPerSecond": ranges.finite_at_least(0),
    "slotTtlSeconds": ranges.finite_at_least(5),
}
_JOB_API_FIELDS = {
    "enabled": "enabled",
    "listen": "listen",
    "maxValueBytes": "max_value_bytes",
    "maxArtifactBytes": "max_artifact_bytes",
    "lockTtlSeconds": "lock_ttl",
    "allowNonLoopbackBind": "allow_non_loopback_bind",
}
_JOB_API_CHECKS = {
    "maxValueBytes": ranges.at_least(0),
    "maxArtifactBytes": ranges.at_least(0),
    "lockTtlSeconds": ranges.finite_at_least(5),
}


def state(values: Any, tell: Tell, say: Say, world: World) -> StateConfig:
    """Return the C{state} section, telling what is wrong with it."""
    path = values["path"]
    if not path.strip():
        tell(("path",), f"must name a directory, got {path!r}")
    else:
        path = world.absolute(path)
    for key, check in _CHECKS.items():
        wrong = check(values[key]) if key in values else None
        if wrong:
            tell((key,), wrong)
    grace = values.get("gcGraceSeconds", _DAY)
    if 0 < grace < _DAY:
        tell(
            ("gcGraceSeconds",),
            f"out of range, got {grace}; at least {_DAY}, or 0 and less to collect nothing",
        )
    fields = {field: values[key] for key, field in _FIELDS.items() if key in values}
    return StateConfig(path, job_api=_job_api(values.get("jobApi", {}), tell, say), **fields)


def _job_api(values: Any, tell: Tell, say: Say) -> JobApiConfig:
    for key, check in _JOB_API_CHECKS.items():
        wrong = check(values[key]) if key in values else None
        if wrong:
            tell(("jobApi", key), wrong)
    tls = values.get("tls", {})
    files = TlsFiles(tls.get("cert"), tls.get("key"), tls.get("ca"))
    fields = {field: values[key] for key, field in _JOB_API_FIELDS.items() if key in values}
    built = JobApiConfig(tls=files, **fields)
    secure = False
    if built.listen is not None:
        try:
            secure, address = job_api_address(built.listen)
        except ValueError as error:
            tell(("jobApi", "listen"), str(error))
            return built
        _check_reach(built, secure, address, tell, say)
    _check_tls(files, secure, tell)
    return built


def job_api_address(listen: str) -> tuple[bool, HostPort]:
    """Return whether C{jobApi.listen} is https, and its host and port; raises ValueError."""
    scheme, separator, rest = listen.partition("://")
    if not separator:
        return False, host_port(listen, lowest=0, port_optional=True)
    if scheme.lower() not in ("http", "https"):
        raise ValueError(f"got {without_userinfo(listen)!r}; allowed: {_FORMS}")
    try:
        netloc = urlsplit(listen).netloc.rpartition("@")[2]
    except ValueError:
        raise ValueError(
            f"not a URL, got {without_userinfo(listen)!r}; allowed: {_FORMS}"
        ) from None
    return scheme.lower() == "https", host_port(netloc, lowest=0, port_optional=True)


def _check_reach(
    built: JobApiConfig, secure: bool, address: HostPort, tell: Tell, say: Say
) -> None:
    written = without_userinfo(built.listen or "")
    if secure and is_wildcard(address.host):
        tell(
            ("jobApi", "listen"),
            f"no certificate covers every address of a host, got {written!r}; name one of them",
        )
    if is_loopback(address.host):
        return
    if not built.allow_non_loopback_bind:
        tell(
            ("jobApi", "listen"),
            f"reaches beyond this host and carries the secrets of jobs, got {written!r}; "
            "allowed: 127.0.0.1, ::1, localhost, or any with allowNonLoopbackBind: true",
        )
    elif not secure:
        say(
            warning(
                f"state.jobApi.listen: {written} is reached over the network without TLS, so that "
                "tokens and secrets of jobs cross it in clear"
            )
        )


def _check_tls(files: TlsFiles, secure: bool, tell: Tell) -> None:
    if bool(files.cert) != bool(files.key):
        missing = "key" if files.cert else "cert"
        tell(("jobApi", "tls", missing), "required, since a certificate and its key go together")
    elif secure and not files.cert:
        tell(("jobApi", "tls"), "required, with cert and key, for an https:// listen address")
    elif not secure and (files.cert or files.ca):
        tell(
            ("jobApi", "tls"),
            "would protect nothing: listen does not begin with https://; change it or remove tls",
        )
