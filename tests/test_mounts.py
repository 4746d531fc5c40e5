"""The mount table of the host."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from cronstable.mounts import Entry, entries, inside, read_mounts


class MountsTests(SynchronousTestCase):
    def test_entries(self) -> None:
        """Lines come in order, with what is octal in their names; short ones are passed over."""
        table = Path(self.mktemp())
        table.write_text(
            "srv:/x /srv/with\\040blank nfs4 rw,nolock 0 0\n\nhalf /a line\n/d / ext4 ro 0 0\n"
        )
        self.assertEqual(
            list(entries(read_mounts(str(table)))),
            [Entry("/srv/with blank", "nfs4", "rw,nolock"), Entry("/", "ext4", "ro")],
        )

    def test_no_table(self) -> None:
        """A system without one has no mounts."""
        self.assertEqual(read_mounts(self.mktemp()), "")

    def test_inside(self) -> None:
        """A path is in a mount point by whole names."""
        for path, point, expected in (
            ("/a", "/a", True),
            ("/a/b", "/a", True),
            ("/ab", "/a", False),
            ("/", "/a", False),
            ("/ab", "/", True),
        ):
            self.assertIs(inside(path, point), expected, (path, point))
