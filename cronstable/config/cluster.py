"""
The C{cluster} section: its shape and its checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import attrs

from cronstable.config import ranges
from cronstable.config.addresses import host_port, same_node, without_userinfo
from cronstable.config.keys import BOOL, FLOAT, INT, NULL_TEXT, SECRET, TEXT, TEXTS
from cronstable.config.layers import Tell
from cronstable.config.notices import Notice, warning
from cronstable.config.reading import Path
from cronstable.config.reports import secret
from cronstable.config.schema import Enum, ListOf, Reader, Record
from cronstable.config.sections_values import (
    ClusterConfig,
    EtcdConfig,
    FilesystemConfig,
    KubernetesConfig,
    MeshConfig,
    TlsFiles,
)
from cronstable.config.state import TOPOLOGY
from cronstable.config.text import decode
from cronstable.config.values import Secret
from cronstable.config.world import World

Say = Callable[[Notice], None]

_STORES = ("kubernetes", "etcd", "filesystem")
_GOSSIP_ONLY = ("listen", "tls", "peers", "interval", "driftAfter")
_SAFE_TTL = 9
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")

_MESH: dict[str, Reader] = {
    "listen": TEXT,
    "tls": Record({"ca": TEXT, "cert": TEXT, "key": TEXT}, required=("ca", "cert", "key")),
    "peers": ListOf(Record({"host": TEXT}, required=("host",)), least=1),
    "nodeName": NULL_TEXT,
    "interval": INT,
    "driftAfter": INT,
    "connectTimeout": INT,
}

CLUSTER = Record(
    {
        "backend": Enum("gossip", *_STORES),
        **_MESH,
        "electLeader": BOOL,
        "distribution": Enum("single-leader", "spread"),
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
        "observability": Record({"shareNodeStats": BOOL, **_MESH}),
    }
)


def cluster(values: Any, tell: Tell, say: Say, world: World) -> ClusterConfig:
    """Return the C{cluster} section, telling what is wrong with it."""
    backend = values.get("backend", "gossip")
    for name in _STORES:
        if name in values and name != backend:
            tell((name,), f"belongs to backend {name}, but backend is {backend}; remove it")
    connect = values.get("connectTimeout", 10)
    _check(ranges.above(0), connect, ("connectTimeout",), tell)
    built = ClusterConfig(
        backend,
        elects=backend != "gossip" or values.get("electLeader", False),
        distribution=values.get("distribution", "single-leader"),
        node_name=values.get("nodeName"),
        connect_timeout=connect,
    )
    built = _observed(built, values.get("observability", {}), tell, say)
    if backend == "gossip":
        return _gossip(built, values, tell, say)
    _unused_under_a_lease(built, values, tell, say)
    store = _STORE_BUILDERS[backend](values.get(backend, {}), tell, say, world)
    return attrs.evolve(built, **{backend: store})


def _check(check: ranges.Check, value: Any, path: Path, tell: Tell) -> None:
    wrong = check(value)
    if wrong:
        tell(path, wrong)


def _gossip(
    built: ClusterConfig, values: Mapping[str, Any], tell: Tell, say: Say
) -> ClusterConfig:
    mesh = _mesh(values, (), tell, say)
    if mesh is None:
        return built
    nodes = len(mesh.peers) + 1
    if not built.elects and built.distribution == "spread":
        say(warning("cluster.distribution: spread has no effect without electLeader"))
    if built.elects and nodes == 2:
        tell(
            ("electLeader",),
            "two nodes cannot elect safely, since neither runs without the other; use three or "
            "more, or one",
        )
    elif built.elects and nodes % 2 == 0:
        say(
            warning(
                f"cluster.electLeader: {nodes} nodes outlive no more failures than {nodes - 1}; "
                "use an odd number"
            )
        )
    return attrs.evolve(built, mesh=mesh)


def _mesh(
    values: Mapping[str, Any], path: Path, tell: Tell, say: Say
) -> MeshConfig | None:
    """Return the mesh that C{values} describe, None when it lacks too much."""
    missing = [key for key in ("listen", "tls", "peers") if key not in values]
    for key in missing:
        tell((*path, key), "required, but missing")
    for key, check in (
        ("interval", ranges.above(0)),
        ("driftAfter", ranges.at_least(1)),
        ("connectTimeout", ranges.above(0)),
    ):
        if key in values:
            _check(check, values[key], (*path, key), tell)
    if missing:
        return None
    tls = values["tls"]
    for key in ("ca", "cert", "key"):
        if not tls[key].strip():
            tell((*path, "tls", key), "must name a file, got nothing")
    peers = _peers(values, path, tell, say)
    return MeshConfig(
        values["listen"],
        TlsFiles(tls["cert"], tls["key"], tls["ca"]),
        peers,
        values.get("nodeName"),
        values.get("interval", 30),
        values.get("driftAfter", 3),
        values.get("connectTimeout", 10),
    )


def _peers(values: Mapping[str, Any], path: Path, tell: Tell, say: Say) -> tuple[str, ...]:
    listen = values["listen"]
    sound = _is_address(listen, (*path, "listen"), tell)
    peers: dict[str, None] = {}
    for number, peer in enumerate(values["peers"]):
        host = peer["host"]
        if not _is_address(host, (*path, "peers", number, "host"), tell):
            continue
        if sound and same_node(host, listen):
            say(
                warning(
                    f"{'.'.join(('cluster', *map(str, path)))}.peers: {host} is this node itself; "
                    "it is left out"
                )
            )
        else:
            peers[host] = None
    return tuple(peers)


def _is_address(written: str, path: Path, tell: Tell) -> bool:
    try:
        host_port(written)
    except ValueError as error:
        tell(path, str(error))
        return False
    return True


def _observed(
    built: ClusterConfig, values: Mapping[str, Any], tell: Tell, say: Say
) -> ClusterConfig:
    if not values:
        return built
    share = values.get("shareNodeStats", True)
    if built.backend != "gossip":
        mesh = _mesh(values, ("observability",), tell, say)
        return attrs.evolve(built, share_node_stats=share, observability=mesh)
    for key in _MESH:
        if key in values:
            tell(
                ("observability", key),
                f"belongs to the mesh beside a lease backend; under gossip set cluster.{key}",
            )
    return attrs.evolve(built, share_node_stats=share)


def _unused_under_a_lease(
    built: ClusterConfig, values: Mapping[str, Any], tell: Tell, say: Say
) -> None:
    if built.distribution == "spread":
        tell(
            ("distribution",),
            f"spread needs the gossip backend, since backend {built.backend} has one holder; "
            "allowed: single-leader",
        )
    unused = [key for key in _GOSSIP_ONLY if key in values]
    if unused:
        say(
            warning(
                f"cluster: {', '.join(unused)} belong to the gossip backend and have no effect "
                f"with backend {built.backend}"
            )
        )
    if values.get("electLeader") is False:
        say(
            warning(
                f"cluster.electLeader: false has no effect, since backend {built.backend} "
                "always elects"
            )
        )


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


_STORE_BUILDERS: dict[str, Callable[[Any, Tell, Say, World], Any]] = {
    "kubernetes": _kubernetes,
    "etcd": _etcd,
    "filesystem": _filesystem,
}
