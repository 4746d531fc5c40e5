"""
The C{cluster} section: its shape and its checks.

docs/configuration.md, "cluster", specifies the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from cronstable.config import ranges
from cronstable.config.addresses import host_port, same_node
from cronstable.config.electors import BUILDERS, STORES
from cronstable.config.keys import BOOL, INT, NULL_TEXT, TEXT
from cronstable.config.layers import Tell
from cronstable.config.notices import Notice, warning
from cronstable.config.reading import Path
from cronstable.config.schema import Enum, ListOf, Reader, Record
from cronstable.config.sections_values import (
    ClusterConfig,
    MeshConfig,
    TlsFiles,
)
from cronstable.config.world import World

Say = Callable[[Notice], None]

_GOSSIP_ONLY = ("listen", "tls", "peers", "interval", "driftAfter")

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
        "backend": Enum("gossip", *STORES),
        **_MESH,
        "electLeader": BOOL,
        "distribution": Enum("single-leader", "spread"),
        **STORES,
        "observability": Record({"shareNodeStats": BOOL, **_MESH}),
    }
)


def cluster(values: Any, tell: Tell, say: Say, world: World) -> ClusterConfig:
    """Return the C{cluster} section, telling what is wrong with it."""
    backend = values.get("backend", "gossip")
    for name in STORES:
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
    store = BUILDERS[backend](values.get(backend, {}), tell, say, world)
    return attrs.evolve(built, **{backend: store})


def _check(check: ranges.Check, value: Any, path: Path, tell: Tell) -> None:
    wrong = check(value)
    if wrong:
        tell(path, wrong)


def _gossip(built: ClusterConfig, values: Mapping[str, Any], tell: Tell, say: Say) -> ClusterConfig:
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


def _mesh(values: Mapping[str, Any], path: Path, tell: Tell, say: Say) -> MeshConfig | None:
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
