"""Copies of a store that do not fit into memory, or onto the disk."""

from __future__ import annotations

import errno
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state import admin, archive
from cronstable.state.admin import Outcome
from cronstable.state.faults import FaultyFiles
from cronstable.state.store import Store, StoreSettings, open_store
from tests.state.support import StandingClock, disk_store

LARGE = 24 << 20
"""Bytes of a payload that is large beside what a copy may hold of it."""


class LargePayloadTests(SynchronousTestCase):
    """A payload passes through a copy in pieces."""

    def setUp(self) -> None:
        self.base = os.path.abspath(self.mktemp())
        self.clock = StandingClock()
        self.store = disk_store(self.path("source"), self.clock)
        self.payload = Path(self.store.blobs.path("ab" + 62 * "0"))
        self.payload.parent.mkdir()
        with open(self.payload, "wb") as file:
            file.write(b"begin")
            file.truncate(LARGE)

    def path(self, name: str) -> str:
        return os.path.join(self.base, name)

    def frugal(self, act: Callable[[], Outcome]) -> None:
        """Do C{act} and see that it succeeds without holding the payload."""
        tracemalloc.start()
        try:
            outcome = act()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        self.assertEqual((outcome.status, outcome.err), (0, ()))
        self.assertLess(peak, LARGE // 2)

    def assert_copied(self, settings: StoreSettings) -> None:
        """The payload in another store is what it is here."""
        copy = Path(settings.root, os.path.relpath(self.payload, self.store.settings.root))
        self.assertEqual(copy.read_bytes(), self.payload.read_bytes())

    def test_there_and_back(self) -> None:
        """An archive is written and read in little memory."""
        packed = self.path("b.tar.gz")
        self.frugal(lambda: admin.backup(self.store.settings, packed))
        target = StoreSettings(self.path("restored"))
        self.frugal(lambda: admin.restore(target, packed, False, self.clock))
        self.assert_copied(target)

    def test_copy(self) -> None:
        """A store is copied in little memory."""
        target = StoreSettings(self.path("moved"))
        self.frugal(
            lambda: admin.migrate(self.store.settings, target.path, None, False, self.clock)
        )
        self.assert_copied(target)

    def test_no_room(self) -> None:
        """A copy that ends in the middle of a file leaves nothing of it."""
        files = FaultyFiles(open_store(self.store.settings, self.clock).tree.files)
        target = self.target(files)
        files.fail("append", error=errno.ENOSPC)
        stored = archive.stored_files(self.store.settings.root)
        self.assertRaises(OSError, archive.put_files, target.tree, stored, False)
        self.assertEqual(os.listdir(target.tree.path("blobs", "ab")), [])
        self.assertEqual(os.listdir(target.tree.path("tmp")), [])

    def target(self, files: FaultyFiles) -> Store:
        return open_store(StoreSettings(self.path("target"), None), self.clock, files=files)
