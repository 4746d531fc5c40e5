"""
The families of the store, the cluster and the reports, from what these rooms tell.

docs/metrics.md lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from cronstable.metrics.exposition import Family, Sample, gauge, labelled
from cronstable.metrics.interfaces import ClusterBook, ReportBook, StateBook, StateStats

Collector = Callable[[], Iterable[Family]]

CONFLICTS = ("nodename", "size", "policy")
PEERS = (
    "unknown",
    "self",
    "agreed",
    "syncing",
    "drifted",
    "unreachable",
    "untrusted",
    "conflict",
)


def report_families(reports: ReportBook | None) -> Iterator[Family]:
    """Yield what became of reports."""
    yield Family(
        "cronstable_notify_failures_total",
        "counter",
        "Reports and notifications that nobody got.",
        (Sample(0 if reports is None else reports.lost),),
    )
    counts: Mapping[tuple[str, str], int] = {} if reports is None else reports.counts
    yield Family(
        "cronstable_reports_total",
        "counter",
        "Deliveries by reporter and result.",
        tuple(
            Sample(number, (("reporter", kind), ("result", result)))
            for (kind, result), number in sorted(counts.items())
        ),
    )


def state_families(state: StateBook | None) -> tuple[Collector, ...]:
    """Return what collects the store's families: its statistics, and what was lost apart."""
    if state is None:
        return ()
    return (
        lambda: _statistics(state.stats()),
        lambda: (
            labelled(
                "cronstable_state_dropped_writes_total",
                "counter",
                "Records that could not be kept.",
                "kind",
                sorted((kind, lost) for kind, lost in state.dropped_writes().items() if lost),
            ),
        ),
    )


def cluster_families(cluster: ClusterBook | None) -> tuple[Collector, ...]:
    """Return what collects the cluster's families; whether there is one is always told."""
    if cluster is None:
        return (lambda: (_enabled(False),),)
    return (
        lambda: (_enabled(cluster.enabled), *_transitions(cluster.transitions())),
        lambda: _view(cluster),
    )


def _statistics(stats: StateStats | None) -> Iterator[Family]:
    if stats is None:
        return
    yield Family(
        "cronstable_state_info",
        "info",
        "The store in use.",
        (Sample(1, (("backend", stats.backend), ("topology", stats.topology))),),
    )
    operations = sorted(stats.operations.items())
    for name, help_text, field in (
        ("ops_total", "Store operations.", "count"),
        ("op_errors_total", "Store operations that failed.", "errors"),
        ("op_seconds_total", "Time spent in store operations.", "seconds"),
    ):
        values = [(op, getattr(cost, field)) for op, cost in operations]
        yield labelled(f"cronstable_state_{name}", "counter", help_text, "op", values)
    if stats.lock_acquisitions:
        yield _count("lock_acquisitions_total", "Locks taken.", stats.lock_acquisitions)
        yield _count("lock_wait_seconds_total", "Time waited for locks.", stats.lock_wait)
    if stats.throttled:
        yield _count("throttled_ops_total", "Operations held back by the limit.", stats.throttled)
        yield _count(
            "throttle_wait_seconds_total", "Time operations were held back.", stats.throttle_wait
        )
    for name, help_text in (
        ("inflight", "Busy worker threads of the store."),
        ("capacity", "Worker threads that the store may have."),
        ("peak", "The most worker threads that were busy at once."),
    ):
        lanes = [(lane, getattr(threads, name)) for lane, threads in sorted(stats.lanes.items())]
        yield labelled(f"cronstable_state_workers_{name}", "gauge", help_text, "lane", lanes)


def _count(name: str, help_text: str, value: float) -> Family:
    return Family(f"cronstable_state_{name}", "counter", help_text, (Sample(value),))


def _enabled(enabled: bool) -> Family:
    return gauge("cronstable_cluster_enabled", "Whether a cluster backend runs.", int(enabled))


def _transitions(transitions: tuple[int, int] | None) -> Iterator[Family]:
    if transitions is None:
        return
    for what, number in zip(("leader", "quorum"), transitions, strict=True):
        yield Family(
            f"cronstable_cluster_{what}_transitions_total",
            "counter",
            f"How often this node's {what} state changed.",
            (Sample(number),),
        )


def _view(cluster: ClusterBook) -> Iterator[Family]:
    view = cluster.view()
    if view is None:
        return
    yield Family(
        "cronstable_cluster_info",
        "info",
        "The cluster backend.",
        (
            Sample(
                1,
                (
                    ("backend", view.backend),
                    ("node_name", view.node_name),
                    ("distribution", view.distribution),
                ),
            ),
        ),
    )
    yield gauge("cronstable_cluster_size", "Nodes of the cluster.", view.size)
    yield gauge("cronstable_cluster_quorum", "Nodes that make a quorum.", view.quorum)
    yield gauge("cronstable_cluster_quorate", "Whether a quorum is there.", int(view.quorate))
    yield gauge("cronstable_cluster_is_leader", "Whether this node leads.", int(view.is_leader))
    leaders = [] if view.leader is None else [(view.leader, 1.0)]
    yield labelled("cronstable_cluster_leader_info", "info", "Who leads.", "leader", leaders)
    yield labelled(
        "cronstable_cluster_conflict",
        "gauge",
        "Whether nodes contradict each other.",
        "kind",
        [(kind, int(view.conflicts.get(kind, False))) for kind in CONFLICTS],
    )
    peers = view.peers
    if peers is not None:
        yield labelled(
            "cronstable_cluster_peers",
            "gauge",
            "Peers by how this node sees them.",
            "status",
            [(status, peers.get(status, 0)) for status in PEERS],
        )
