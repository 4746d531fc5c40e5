"""
Whether a directory is this host's alone or on a mount that others share, and whether file locks
there mean anything.
"""

from __future__ import annotations

import contextlib
import os
from typing import Literal

import attrs

from cronstable.mounts import entries, inside, read_mounts
from cronstable.state.tree import Tree

Topology = Literal["single-node", "shared"]

_SHARED = frozenset(
    (
        "afs beegfs ceph cifs fuse.ceph fuse.ceph-fuse fuse.glusterfs fuse.sshfs gfs2 glusterfs"
        " gpfs lustre nfs nfs4 ocfs2 orangefs smb3 smbfs sshfs"
    ).split()
)
_LOCAL = frozenset(
    (
        "bcachefs btrfs ext2 ext3 ext4 f2fs jfs nilfs2 overlay ramfs reiserfs rootfs tmpfs xfs zfs"
    ).split()
)


@attrs.frozen
class Mount:
    """One line of the mount table."""

    point: str
    kind: str
    options: frozenset[str] = frozenset()

    @property
    def topology(self) -> Topology:
        """What C{state.topology: auto} makes of it."""
        return "shared" if self.kind in _SHARED else "single-node"

    @property
    def answers_itself(self) -> bool:
        """Whether closing a file on it waits for nobody: no server, no process that serves it."""
        return self.kind in _LOCAL

    @property
    def fictitious_locks(self) -> str | None:
        """The mount option by which locks never leave this host, None if there is none."""
        if not self.kind.startswith("nfs"):
            return None
        for option in ("nolock", "local_lock=flock", "local_lock=all"):
            if option in self.options:
                return option
        return None


def mount_of(path: str, mounts: str) -> Mount | None:
    """Return the mount that C{path}, which need not exist, is on; None if the table is silent."""
    real = os.path.realpath(path)
    best: Mount | None = None
    for each in entries(mounts):
        # A later line with the same point is mounted over the earlier one.
        if inside(real, each.point) and (best is None or len(each.point) >= len(best.point)):
            best = Mount(each.point, each.kind, frozenset(each.options.split(",")))
    return best


def may_hold_up(path: str, mounts: str | None = None) -> bool:
    """
    Return whether closing a file below C{path} may wait for a server.

    C{mounts} is a mount table; None for the system's.
    """
    mount = mount_of(path, read_mounts() if mounts is None else mounts)
    return mount is not None and not mount.answers_itself


def locks_exclude(tree: Tree) -> bool:
    """Return whether a second lock on a locked file of the store is refused; raises OSError."""
    path = tree.path("tmp", f"locks-{tree.instance}.probe")
    first = tree.files.lock(path, wait=False)
    try:
        second = tree.files.lock(path, wait=False)
        if second is not None:
            second.release()
        return first is not None and second is None
    finally:
        if first is not None:
            first.release()
        with contextlib.suppress(OSError):
            tree.files.unlink(path)
