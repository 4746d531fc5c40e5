"""What kind of mount a path is on."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state.topology import mount_of

TABLE = r"""
/dev/vda / ext4 rw,relatime 0 0
proc /proc proc rw 0 0
files:/a /mnt/a nfs4 rw,vers=4.1,local_lock=none 0 0
files:/b /mnt/a/with\040blank nfs rw,nolock 0 0
files:/c /mnt/c nfs rw,local_lock=flock 0 0
files:/d /mnt/d nfs rw,local_lock=all 0 0
files:/p /mnt/p nfs rw,local_lock=posix 0 0
//host/x /mnt/smb cifs rw 0 0
tmpfs /mnt/over tmpfs rw 0 0
me@host: /mnt/over fuse.sshfs rw 0 0
x /mnt/lustre lustre rw 0 0
x /mnt/ceph ceph rw 0 0
ceph-fuse /mnt/ceph/user fuse.ceph-fuse rw 0 0
x /mnt/gluster fuse.glusterfs rw 0 0
"""


class MountTests(SynchronousTestCase):
    """Reading the mount table."""

    def test_kinds(self) -> None:
        """Network file systems are shared, others are this host's."""
        for path, topology in {
            "/var/lib/x": "single-node",
            "/mnt/a/deep/er": "shared",
            "/mnt/ab": "single-node",
            "/mnt/smb": "shared",
            "/mnt/over/x": "shared",
            "/mnt/lustre": "shared",
            "/mnt/ceph": "shared",
            "/mnt/ceph/user/x": "shared",
            "/mnt/gluster": "shared",
        }.items():
            mount = mount_of(path, TABLE)
            self.assertEqual(mount and mount.topology, topology, path)

    def test_locks(self) -> None:
        """Options that keep locks on the host are found, wherever the blanks are."""
        for path, option in {
            "/mnt/a": None,
            "/mnt/a/with blank/x": "nolock",
            "/mnt/c": "local_lock=flock",
            "/mnt/d": "local_lock=all",
            "/mnt/p": None,
            "/": None,
        }.items():
            mount = mount_of(path, TABLE)
            self.assertEqual(mount and mount.fictitious_locks, option, path)

    def test_no_table(self) -> None:
        """Where there is no table there is no mount."""
        self.assertIs(mount_of("/x", ""), None)

    def test_links_are_followed(self) -> None:
        """A link into a mount is on that mount."""
        base = os.path.realpath(self.mktemp())
        os.makedirs(f"{base}/mnt")
        os.symlink(f"{base}/mnt", f"{base}/link")
        table = f"x / ext4 rw 0 0\nfiles:/a {base}/mnt nfs rw 0 0\n"
        mount = mount_of(f"{base}/link/state", table)
        self.assertEqual(mount and mount.kind, "nfs")
