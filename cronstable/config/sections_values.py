"""
What the sections beside C{jobs} say: frozen values, complete, compared with C{==}.

Times are seconds, sizes bytes.  docs/configuration.md specifies each key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from cronstable.config.values import (
    NOTIFY_REPORT,
    ClusterPolicy,
    JobConfig,
    Origin,
    Report,
    Secret,
)
from cronstable.schedule import Schedule

Backend = Literal["gossip", "kubernetes", "etcd", "filesystem"]
Topology = Literal["auto", "single-node", "shared"]
OnMissed = Literal["skip", "run-once", "run-all"]
TaskType = Literal["task", "sensor", "approval"]

NOTIFY_EVENTS = ("dag_failure", "approval_waiting", "leader_change", "quorum_loss")


@attrs.frozen
class TlsFiles:
    """Paths of PEM files: a certificate with its key, and the CA that peers are checked against."""

    cert: str | None = None
    key: str | None = None
    ca: str | None = None


@attrs.frozen
class ScopedToken:
    """One entry of C{web.authTokens}; C{scopes} as written, C{label} for logs."""

    secret: Secret
    scopes: tuple[str, ...]
    label: str | None = None


@attrs.frozen
class MetricsPage:
    """C{web.metrics}; empty C{buckets} means the built-in ones."""

    enabled: bool = True
    public: bool = False
    buckets: tuple[float, ...] = ()


@attrs.frozen
class NodeHistory:
    """C{web.nodeHistory}: C{interval} seconds between C{points} kept."""

    enabled: bool = True
    interval: float = 5.0
    points: int = 720


@attrs.frozen
class Badges:
    """C{web.badges}."""

    enabled: bool = True
    public: bool = False


@attrs.frozen
class Bonjour:
    """C{web.bonjour}: whether the listeners are announced, and under which name."""

    enabled: bool = False
    name: str | None = None


@attrs.frozen
class WebConfig:
    """
    The C{web} section.

    C{auth_token} is None when the key is absent; a present block counts as configured even if all
    its sources are blank.  C{socket_mode} is the text as written.
    """

    listen: tuple[str, ...]
    headers: tuple[tuple[str, str], ...] = attrs.field(default=(), repr=False)
    allowed_origins: tuple[str, ...] = ()
    auth_token: Secret | None = None
    auth_tokens: tuple[ScopedToken, ...] = ()
    anonymous_scopes: tuple[str, ...] = ()
    socket_mode: str | None = None
    tls: TlsFiles = TlsFiles()
    """C{tls.ca} is C{clientCa}: every https client must present a certificate from it."""
    ui: bool = True
    metrics: MetricsPage = MetricsPage()
    node_history: NodeHistory = NodeHistory()
    badges: Badges = Badges()
    bonjour: Bonjour = Bonjour()

    @property
    def authenticated(self) -> bool:
        """Whether any token is configured."""
        return self.auth_token is not None or bool(self.auth_tokens)


@attrs.frozen
class McpConfig:
    """The C{mcp} section."""

    enabled: bool = False
    read_only: bool = True
    toolsets: tuple[str, ...] = ("observe",)
    allowed_origins: tuple[str, ...] = ()
    allow_unauthenticated: bool = False
    resources: bool = True
    prompts: bool = True
    instructions: str | None = None
    max_rows: int = 200
    max_body_bytes: int = 1048576


@attrs.frozen
class MeshConfig:
    """
    The gossip mesh, for election or for sharing node statistics only.

    C{peers} are the other nodes' C{host:port}, without duplicates and without this node.
    """

    listen: str
    tls: TlsFiles
    peers: tuple[str, ...]
    node_name: str | None = None
    interval: int = 30
    drift_after: int = 3
    connect_timeout: int = 10


@attrs.frozen
class KubernetesConfig:
    """C{cluster.kubernetes}: where the Lease object is and how often it is renewed."""

    lease_name: str = "cronstable-leader"
    lease_namespace: str | None = None
    lease_duration: int = 15
    renew_deadline: int = 10
    retry_period: int = 2
    identity: str | None = None
    kubeconfig: str | None = None
    api_server: str | None = None
    client_library: Literal["auto", "http", "library"] = "auto"


@attrs.frozen
class EtcdConfig:
    """C{cluster.etcd}; C{password} is resolved at load and never shown."""

    endpoints: tuple[str, ...] = ("http://127.0.0.1:2379",)
    election_name: str = "cronstable/leader"
    ttl: int = 15
    username: str | None = None
    password: str | None = attrs.field(default=None, repr=False)
    tls: TlsFiles = TlsFiles()


@attrs.frozen
class FilesystemConfig:
    """C{cluster.filesystem}: a lease on a shared directory."""

    path: str
    election_name: str = "cluster/leader"
    ttl: float = 15.0
    deployment_id: str = "default"
    topology: Topology = "auto"


@attrs.frozen
class ClusterConfig:
    """
    The C{cluster} section.

    Exactly the block of C{backend} is set among C{mesh} (for gossip), C{kubernetes}, C{etcd} and
    C{filesystem}.  C{elects} is true for every lease backend.  C{share_node_stats} and
    C{observability} come from C{cluster.observability}: the latter is the mesh that a lease
    backend runs beside itself and that never elects.
    """

    backend: Backend = "gossip"
    elects: bool = False
    distribution: Literal["single-leader", "spread"] = "single-leader"
    node_name: str | None = None
    connect_timeout: int = 10
    mesh: MeshConfig | None = None
    kubernetes: KubernetesConfig | None = None
    etcd: EtcdConfig | None = None
    filesystem: FilesystemConfig | None = None
    share_node_stats: bool = True
    observability: MeshConfig | None = None


@attrs.frozen
class JobApiConfig:
    """C{state.jobApi}; C{listen} None means a free port on 127.0.0.1."""

    enabled: bool = True
    listen: str | None = None
    max_value_bytes: int = 1048576
    max_artifact_bytes: int = 67108864
    lock_ttl: float = 30.0
    allow_non_loopback_bind: bool = False
    tls: TlsFiles = TlsFiles()


@attrs.frozen
class StateConfig:
    """
    The C{state} section; C{path} is absolute, C{max_runs_per_job} <= 0 means unbounded.

    C{fsync} (ours): C{always} forces each file and its directory entry to the disk, C{rename} only
    the file before it takes its name (and the entry where somebody acts on the record), C{never}
    leaves both to the system.  C{boot} (ours) says of what an C{@reboot} job runs once: a boot of
    the host, or a start of the container that the daemon is in.
    """

    path: str
    topology: Topology = "auto"
    deployment_id: str | None = None
    max_runs_per_job: int = 1000
    on_store_unavailable: Literal["degrade", "fail-closed"] = "degrade"
    gc_grace: int = 604800
    max_ops_per_second: float = 0.0
    slot_ttl: float = 30.0
    fsync: Literal["always", "rename", "never"] = "always"
    boot: Literal["host", "container"] = "host"
    job_api: JobApiConfig = JobApiConfig()


@attrs.frozen
class PoolConfig:
    """One named pool: how many slots it has and how many runs may wait for them."""

    name: str
    slots: int
    max_queued: int = 1000


@attrs.frozen
class NotifyConfig:
    """The C{notify} section: which events are told, and to whom."""

    events: tuple[str, ...] = NOTIFY_EVENTS
    report: Report = NOTIFY_REPORT


@attrs.frozen
class PushConfig:
    """The C{push} section; the relay's URL is a secret in logs."""

    relay_url: str = attrs.field(repr=False)
    relay_timeout: float = 10.0
    devices_file: str | None = None
    allow_unauthenticated: bool = False


@attrs.frozen
class Expansion:
    """Where a mapped task's items come from: a task and the key that it publishes."""

    from_task: str
    key: str


@attrs.frozen
class TaskConfig:
    """
    One task of a workflow.

    C{job} is its launch template, named C{<dag>.<id>}, with the command C{true} for an approval.
    """

    id: str
    job: JobConfig
    type: TaskType = "task"
    depends_on: tuple[str, ...] = ()
    trigger_rule: Literal["all_success", "all_done"] = "all_success"
    retries: int = 0
    retry_delay: float = 0.0
    expand: Expansion | None = None
    poke_interval: float = 30.0
    poke_timeout: float = 3600.0
    poke_jitter: float = 0.0
    on_reject: Literal["fail", "skip"] = "fail"


@attrs.frozen
class DagConfig:
    """One workflow; C{schedule} None means that it is started by hand only."""

    name: str
    tasks: tuple[TaskConfig, ...]
    schedule_text: str | None = None
    schedule: Schedule | None = None
    timezone: str | None = "UTC"
    utc: bool = True
    on_missed: OnMissed = "skip"
    starting_deadline: int | None = None
    catchup_jitter: int = 0
    cluster_policy: ClusterPolicy = "Leader"
    enabled: bool = True
    retain_runs: int = 50
    origin: Origin = attrs.field(default=Origin(""), eq=False, repr=False)

    def task(self, task_id: str) -> TaskConfig | None:
        """Return the task called C{task_id}, or None."""
        return next((task for task in self.tasks if task.id == task_id), None)


@attrs.frozen
class Config:
    """
    A whole configuration, assembled from all its files.

    C{jobs} and C{dags} are in configuration order, keyed by name.  An absent section is None.
    C{logging} is handed to C{logging.config.dictConfig} as it is.
    """

    jobs: Mapping[str, JobConfig] = attrs.field(factory=dict)
    dags: Mapping[str, DagConfig] = attrs.field(factory=dict)
    pools: Mapping[str, PoolConfig] = attrs.field(factory=dict)
    web: WebConfig | None = None
    mcp: McpConfig | None = None
    cluster: ClusterConfig | None = None
    state: StateConfig | None = None
    logging: Mapping[str, Any] | None = None
    notify: NotifyConfig | None = None
    push: PushConfig | None = None
