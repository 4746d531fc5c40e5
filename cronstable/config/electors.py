"""
The stores that a leader can be elected through: C{cluster.kubernetes}, C{etcd}, C{filesystem}.

docs/configuration.md, "cluster", specifies the keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from cronstable.config import ranges
from cronstable.config.addresses import without_userinfo
from cronstable.config.keys import FLOAT, INT, NULL_TEXT, SECRET, TEXT, TEXTS
from cronstable.config.layers import Tell
from cronstable.config.notices import Notice, warning
from cronstable.config.reading import Path
from cronstable.config.reports import secret
from cronstable.config.schema import Enum, Reader, Record
from cronstable.config.sections_values import (
    EtcdConfig,
    FilesystemConfig,
    KubernetesConfig,
    TlsFiles,
)
from cronstable.config.state import TOPOLOGY
from cronstable.config.text import decode
from cronstable.config.values import Secret
from cronstable.config.world import World

Say = Callable[[Notice], None]

_SAFE_TTL = 9
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")

STORES: dict[str, Reader] = {
    "kubernetes": Record(
        {
            "leaseName": TEXT,
            "leaseNamespace": NULL_TEXT,
            "leaseDurationSeconds": INT,
            "renewDeadlineSeconds": INT,
            "retryPeriodSeconds": INT,
            "identity": NULL_TEXT,
            "kubeconfig": NULL_TEXT,
            "apiServer": NULL_TEXT,
            "clientLibrary": Enum("auto", "http", "library"),
        }
    ),
    "etcd": Record(
        {
            "endpoints": TEXTS,
            "electionName": TEXT,
            "ttl": INT,
            "username": NULL_TEXT,
            "password": SECRET,
            "tls": Record({"ca": NULL_TEXT, "cert": NULL_TEXT, "key": NULL_TEXT}),
        }
    ),
    "filesystem": Record(
        {
            "path": TEXT,
            "electionName": TEXT,
            "ttl": FLOAT,
            "deploymentId": NULL_TEXT,
            "topology": TOPOLOGY,
        }
    ),
}
"""The shape of each store's block."""


def _kubernetes(values: Any, tell: Tell, say: Say, world: World) -> KubernetesConfig:
    names = {
        "leaseName": "lease_name",
        "leaseNamespace": "lease_namespace",
        "leaseDurationSeconds": "lease_duration",
        "renewDeadlineSeconds": "renew_deadline",
        "retryPeriodSeconds": "retry_period",
        "identity": "identity",
        "kubeconfig": "kubeconfig",
        "apiServer": "api_server",
        "clientLibrary": "client_library",
    }
    built = KubernetesConfig(**{names[key]: value for key, value in values.items()})
    name, namespace = built.lease_name, built.lease_namespace
    if len(name) > 253 or _SUBDOMAIN.fullmatch(name) is None:
        tell(
            ("kubernetes", "leaseName"),
            f"not an RFC 1123 name, got {name!r}; lower-case letters, digits, '-' and '.', at "
            "most 253",
        )
    if namespace is not None and _LABEL.fullmatch(namespace) is None:
        tell(
            ("kubernetes", "leaseNamespace"),
            f"not an RFC 1123 label, got {namespace!r}; lower-case letters, digits and '-', at "
            "most 63",
        )
    if built.api_server is not None and not built.api_server.lower().startswith("https://"):
        tell(
            ("kubernetes", "apiServer"),
            f"must be an https:// URL, got {without_userinfo(built.api_server)!r}",
        )
    _check_lease_times(built, tell)
    return built


def _check_lease_times(built: KubernetesConfig, tell: Tell) -> None:
    lease, renew, retry = built.lease_duration, built.renew_deadline, built.retry_period
    if retry <= 0:
        tell(("kubernetes", "retryPeriodSeconds"), f"out of range, got {retry}; more than 0")
    elif retry >= renew:
        tell(
            ("kubernetes", "retryPeriodSeconds"),
            f"got {retry}; less than renewDeadlineSeconds ({renew})",
        )
    elif renew + retry >= lease:
        tell(
            ("kubernetes", "leaseDurationSeconds"),
            f"got {lease}; more than renewDeadlineSeconds and retryPeriodSeconds together "
            f"({renew} + {retry})",
        )


def _etcd(values: Any, tell: Tell, say: Say, world: World) -> EtcdConfig:
    endpoints = tuple(values.get("endpoints", EtcdConfig().endpoints))
    if not endpoints:
        tell(("etcd", "endpoints"), "must hold at least 1 endpoint")
    for number, endpoint in enumerate(endpoints):
        _check_endpoint(endpoint, ("etcd", "endpoints", number), tell)
    ttl, name = values.get("ttl", 15), values.get("electionName", "cronstable/leader")
    if not name:
        tell(("etcd", "electionName"), "must not be blank")
    _check_ttl("etcd", ttl, tell, say)
    username, sources = values.get("username"), secret(values.get("password", {}))
    plain = [each for each in endpoints if not each.lower().startswith("https://")]
    if username and not sources.configured:
        tell(("etcd", "password"), "required, since username is set")
    elif (username or sources.configured) and plain:
        shown = ", ".join(map(without_userinfo, plain))
        tell(
            ("etcd", "endpoints"),
            f"username and password would go in clear to {shown}; allowed: https:// endpoints",
        )
    files = values.get("tls", {})
    tls = TlsFiles(files.get("cert"), files.get("key"), files.get("ca"))
    _check_etcd_tls(tls, len(plain) < len(endpoints), tell)
    return EtcdConfig(endpoints, name, ttl, username, _password(sources, tell, world), tls)


def _check_endpoint(endpoint: str, path: Path, tell: Tell) -> None:
    if without_userinfo(endpoint) != endpoint:
        tell(
            path,
            f"must not hold a user or password, got {without_userinfo(endpoint)!r}; set username "
            "and password",
        )
        return
    try:
        parts = urlsplit(endpoint)
        sound = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        sound = False
    if not sound or parts.scheme not in ("http", "https"):
        tell(path, f"got {endpoint!r}; allowed: http://host:port or https://host:port")


def _check_ttl(backend: str, ttl: float, tell: Tell, say: Say) -> None:
    wrong = ranges.finite_at_least(3)(ttl)
    if wrong:
        tell((backend, "ttl"), wrong)
    elif ttl < _SAFE_TTL and backend == "etcd":
        say(
            warning(
                f"cluster.{backend}.ttl: {ttl:g} seconds leave little room for a slow store; "
                f"{_SAFE_TTL} or more are advised"
            )
        )


def _check_etcd_tls(files: TlsFiles, secure: bool, tell: Tell) -> None:
    if bool(files.cert) != bool(files.key):
        missing = "key" if files.cert else "cert"
        tell(("etcd", "tls", missing), "required, since a certificate and its key go together")
    elif (files.cert or files.ca) and not secure:
        tell(
            ("etcd", "tls"),
            "would protect nothing: no endpoint begins with https://; change one or remove tls",
        )


def _password(sources: Secret, tell: Tell, world: World) -> str | None:
    """Return etcd's password from its source; a file counts as a source of the configuration."""
    if not sources.configured:
        return None
    if sources.value:
        return sources.value
    if sources.from_file:
        key, found = "fromFile", _from_file(sources.from_file, tell, world)
    else:
        key, found = "fromEnvVar", world.environ.get(sources.from_env_var or "", "")
    if found == "":
        tell(("etcd", "password", key), "gives nothing; it must lead to a password")
    return found or None


def _from_file(path: str, tell: Tell, world: World) -> str | None:
    reason: str
    try:
        content = decode(world.reader.read(world.from_cwd(path)))
        if isinstance(content, str):
            return content.strip()
        reason = content.message
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    tell(("etcd", "password", "fromFile"), f"{path!r} cannot be read: {reason}")
    return None


def _filesystem(values: Any, tell: Tell, say: Say, world: World) -> FilesystemConfig:
    path, name = values.get("path", ""), values.get("electionName", "cluster/leader")
    if not path.strip():
        tell(("filesystem", "path"), "required: the directory that holds the lease")
    else:
        path = world.absolute(path)
    if not name.strip():
        tell(("filesystem", "electionName"), "must not be blank")
    ttl = values.get("ttl", 15.0)
    _check_ttl("filesystem", ttl, tell, say)
    return FilesystemConfig(
        path, name, ttl, values.get("deploymentId") or "default", values.get("topology", "auto")
    )


BUILDERS: dict[str, Callable[[Any, Tell, Say, World], Any]] = {
    "kubernetes": _kubernetes,
    "etcd": _etcd,
    "filesystem": _filesystem,
}
"""What makes a value of each store's block, telling what is wrong with it."""
