"""
The store of one namespace, whole and synchronous.

It blocks for as long as its medium does: a daemon calls it from worker threads only
(L{cronstable.state.service}).
"""

from __future__ import annotations

import logging
import os

import attrs

from cronstable.config.sections_values import StateConfig
from cronstable.mounts import read_mounts
from cronstable.state import names
from cronstable.state.apart import ApartFiles
from cronstable.state.blobs import Blobs
from cronstable.state.documents import Documents, Listing
from cronstable.state.encoding import SCHEME, opened
from cronstable.state.errors import Foreign, Malformed
from cronstable.state.failpoints import Failpoint, passed
from cronstable.state.files import Files, OsFiles
from cronstable.state.leases import Leases
from cronstable.state.records import SIDECAR, Records
from cronstable.state.stats import Stats, measured
from cronstable.state.streams import META
from cronstable.state.topology import (
    Mount,
    Topology,
    locks_exclude,
    may_hold_up,
    mount_of,
)
from cronstable.state.tree import FsyncMode, StoreClock, Tree, directories_in

log = logging.getLogger("cronstable.state")

DEFAULT_DEPLOYMENT = "default"


@attrs.frozen
class StoreSettings:
    """
    Where a store is and how it is treated: the part of the C{state} section that the core needs.

    C{path} is absolute; C{deployment_id} None or empty means C{default}.
    """

    path: str
    deployment_id: str | None = None
    topology: str = "auto"
    fsync: FsyncMode = "always"

    @classmethod
    def of(cls, config: StateConfig) -> StoreSettings:
        """Return what the section says."""
        return cls(config.path, config.deployment_id, config.topology, config.fsync)

    @property
    def namespace(self) -> str:
        """The name of the namespace."""
        return self.deployment_id or DEFAULT_DEPLOYMENT

    @property
    def root(self) -> str:
        """The directory of the namespace."""
        return os.path.join(self.path, names.token(self.namespace))


@attrs.frozen
class View:
    """What can be told of a store at a glance."""

    path: str
    namespace: str
    topology: Topology
    shared_locking: bool
    """Whether locks taken here hold for other hosts too."""
    locks_refused: str | None = None
    """Why locks on this mount are no locks; nothing may be coordinated over it."""
    backend: str = "filesystem"


@attrs.define(eq=False)
class Store:
    """
    Records, documents, leases and blobs of one namespace.

    Nothing is touched before L{start}.  All methods may be called from any thread.
    """

    settings: StoreSettings
    tree: Tree
    mounts: str | None = None
    """The mount table to believe, for tests; None = the system's."""
    records: Records = attrs.field(init=False)
    documents: Documents = attrs.field(init=False)
    leases: Leases = attrs.field(init=False)
    blobs: Blobs = attrs.field(init=False)
    view: View = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.records = Records(self.tree)
        self.documents = Documents(self.tree)
        self.leases = Leases(self.tree)
        self.blobs = Blobs(self.tree)
        self.view = View(self.tree.root, self.settings.namespace, "single-node", False)

    @property
    def stats(self) -> Stats:
        """Where operations are counted."""
        return self.tree.stats

    def seconds(self) -> float:
        """Return monotonic seconds."""
        return self.tree.clock.seconds()

    @measured("start")
    def start(self) -> View:
        """
        Make the store usable, or raise OSError; harmless when repeated.

        Creates what is missing, proves that it can write, finds out what the mount is, and
        stamps a new store with its scheme.
        """
        self.tree.create()
        self.tree.probe()
        self.view = self._look()
        self._stamp()
        log.info(
            "state: filesystem backend ready at %s (namespace=%s, topology=%s, shared_locking=%s)",
            self.view.path,
            self.view.namespace,
            self.view.topology,
            self.view.shared_locking,
        )
        return self.view

    @measured("lock-probe")
    def locks_exclude(self) -> bool:
        """Return whether a second lock on one file of the store is refused; raises OSError."""
        return locks_exclude(self.tree)

    @measured("list-stream-names")
    def streams(self, prefix: str = "") -> Listing:
        """Return the streams that start with C{prefix}, sorted; incomplete if one has no name."""
        return Listing.of([self.stream_name(token) for token in self.stream_tokens(prefix)])

    def stream_tokens(self, prefix: str = "") -> list[str]:
        """Return the directory names of the streams that start with C{prefix}, sorted."""
        start = names.fragment(prefix)
        found = directories_in(self.tree.files, self.tree.path("records"))
        return sorted(token for token in found if token.startswith(start))

    def stream_name(self, token: str) -> str | None:
        """Return the name of the stream in this directory, None if it cannot be told."""
        if not names.is_cut(token):
            return names.name_of(token)
        try:
            raw = self.tree.files.read(self.tree.path("records", token, SIDECAR))
            name = raw.decode("utf-8", "surrogatepass")
        except (OSError, UnicodeDecodeError):
            return None
        return name if names.token(name) == token else None

    def _look(self) -> View:
        mounts = read_mounts() if self.mounts is None else self.mounts
        mount = mount_of(self.tree.root, mounts) or Mount("/", "unknown")
        topology = mount.topology
        if self.settings.topology == "shared" or self.settings.topology == "single-node":
            topology = _configured(self.settings.topology)
            if topology == "shared" and mount.topology != "shared":
                log.warning(
                    "state: topology is configured as 'shared', but %s is on a %s mount; taken"
                    " at its word (other hosts must really see the same files and locks)",
                    self.tree.root,
                    mount.kind,
                )
        refused = self._locks_refused(mount) if topology == "shared" else None
        shared_locking = topology == "shared" and refused is None
        return View(self.tree.root, self.settings.namespace, topology, shared_locking, refused)

    def _locks_refused(self, mount: Mount) -> str | None:
        option = mount.fictitious_locks
        if option is not None:
            return f"{mount.point} is mounted with {option}, so its locks stay on this host"
        if not self.locks_exclude():
            return "two descriptors of one file both got its exclusive lock"
        return None

    def _stamp(self) -> None:
        """Say once which scheme the store follows; warn if it is one this build does not know."""
        token = names.token(META)
        found = False
        newer: dict[str, object] = {}
        for file in self.records.files(token):
            try:
                stamp = opened(self.tree.files.read(self.tree.path("records", token, file)))
                version = stamp.get("storeVersion")
            except Foreign as error:
                version = error.version
            except (OSError, Malformed):
                continue
            found = True
            if version != SCHEME:
                newer[repr(version)] = version
        for version in newer.values():
            self._warn_newer(version)
        if not found:
            self.records.append(META, {"storeVersion": SCHEME})

    def _warn_newer(self, version: object) -> None:
        log.warning(
            "state: the store at %s is stamped with scheme %r, this release knows %r: records that"
            " it does not understand are set aside; run the newer release here, or give this one"
            " another deploymentId",
            self.tree.root,
            version,
            SCHEME,
        )


def _configured(topology: str) -> Topology:
    return "shared" if topology == "shared" else "single-node"


def open_store(
    settings: StoreSettings,
    clock: StoreClock,
    *,
    files: Files | None = None,
    at: Failpoint = passed,
) -> Store:
    """Return a store of the system's own files, not yet started."""
    files = files or ApartFiles(OsFiles(), lambda: may_hold_up(settings.path))
    tree = Tree(settings.root, clock, files, settings.fsync, at=at)
    return Store(settings, tree)
