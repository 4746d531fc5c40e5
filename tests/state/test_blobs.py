"""Payloads by digest."""

from __future__ import annotations

import hashlib

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state.errors import BadDigest, Unreadable
from cronstable.state.faults import FaultyFiles
from cronstable.state.memory import MemoryFiles
from tests.state.support import StandingClock, memory_store


class BlobTests(SynchronousTestCase):
    """Keeping payloads."""

    def test_put_and_get(self) -> None:
        """A payload is kept under its SHA-256, once, empty ones too."""
        store = memory_store()
        for data in (b"", b"payload", bytes(range(256)) * 1000):
            digest = store.blobs.put(data)
            self.assertEqual(digest, hashlib.sha256(data).hexdigest())
            path = f"/state/default/blobs/{digest[:2]}/{digest}.blob"
            self.assertEqual(store.tree.files.read(path), data)
            self.assertEqual(store.blobs.get(digest), data)
            self.assertEqual(store.blobs.stat(digest).size, len(data))  # type: ignore[union-attr]
        self.assertIs(store.blobs.get("0" * 64), None)
        self.assertIs(store.blobs.stat("0" * 64), None)

    def test_putting_again_makes_it_young(self) -> None:
        """A payload that is there is not written again, only young again."""
        clock = StandingClock()
        store = memory_store(clock)
        digest = store.blobs.put(b"payload")
        clock.advance(1000.0)
        store.blobs.put(b"payload")
        self.assertEqual(store.blobs.stat(digest).modified, clock.wall)  # type: ignore[union-attr]

    def test_no_digest(self) -> None:
        """What is no digest never becomes a path."""
        store = memory_store()
        for text in ("", "../../meta", "A" * 64, "0" * 63, "0" * 65, "0" * 64 + "\n"):
            self.assertRaises(BadDigest, store.blobs.get, text)
            self.assertRaises(BadDigest, store.blobs.stat, text)

    def test_damaged(self) -> None:
        """Bytes that are not what their name says are not handed out; a cut one is replaced."""
        store = memory_store()
        digest = store.blobs.put(b"payload")
        path = f"/state/default/blobs/{digest[:2]}/{digest}.blob"
        store.tree.files.unlink(path)
        store.tree.files.create(path, b"payl", True)
        self.assertRaises(Unreadable, store.blobs.get, digest)
        store.blobs.put(b"payload")
        self.assertEqual(store.blobs.get(digest), b"payload")

    def test_survives_power_loss(self) -> None:
        """A payload that was put is there after a power loss."""
        files = MemoryFiles(StandingClock().now)
        digest = memory_store(files=files).blobs.put(b"payload")
        self.assertEqual(memory_store(files=files.power_loss()).blobs.get(digest), b"payload")


class IncomingTests(SynchronousTestCase):
    """Payloads that come in pieces."""

    def temporaries(self, files: MemoryFiles) -> list[str]:
        return [path for path in files.paths() if "/tmp/" in path]

    def test_pieces(self) -> None:
        """The pieces are one payload under the digest of all of them; none at all are empty."""
        files = MemoryFiles(StandingClock().now)
        store = memory_store(files=files)
        for pieces in ((b"pay", b"load"), (b"one",), ()):
            incoming = store.blobs.incoming()
            for piece in pieces:
                incoming.add(piece)
            data = b"".join(pieces)
            self.assertEqual(incoming.place(), hashlib.sha256(data).hexdigest())
            incoming.confirm()
            self.assertEqual(incoming.size, len(data))
            self.assertEqual(store.blobs.get(incoming.digest), data)
        self.assertEqual(self.temporaries(files), [])

    def test_parts(self) -> None:
        """A payload is read in parts, up to its end."""
        store = memory_store()
        digest = store.blobs.put(b"payload")
        self.assertEqual(store.blobs.get_part(digest, 3, 2), b"lo")
        self.assertEqual(store.blobs.get_part(digest, 5, 10), b"ad")
        self.assertRaises(FileNotFoundError, store.blobs.get_part, "0" * 64, 0, 1)
        self.assertRaises(BadDigest, store.blobs.get_part, "../x", 0, 1)

    def test_swept_before_its_record(self) -> None:
        """What a sweep takes between payload and record is put again."""
        files = MemoryFiles(StandingClock().now)
        store = memory_store(files=files)
        digest = store.blobs.put(b"payload")
        incoming = store.blobs.incoming()
        incoming.add(b"payload")
        incoming.place()
        files.unlink(store.blobs.path(digest))
        incoming.confirm()
        self.assertEqual(store.blobs.get(digest), b"payload")
        self.assertEqual(self.temporaries(files), [])

    def test_given_up(self) -> None:
        """Nothing is left of a payload that is given up, or that a full disk ends."""
        files = MemoryFiles(StandingClock().now)
        faulty = FaultyFiles(files)
        store = memory_store(files=faulty)
        incoming = store.blobs.incoming()
        incoming.add(b"pay")
        faulty.fail("append", torn=True)
        self.assertRaises(OSError, incoming.add, b"load")
        incoming.discard()
        incoming.discard()
        self.assertEqual(self.temporaries(files), [])
        self.assertIs(store.blobs.stat(hashlib.sha256(b"payload").hexdigest()), None)

    def test_survives_power_loss(self) -> None:
        """A payload that was placed is there after a power loss, with all its pieces."""
        files = MemoryFiles(StandingClock().now)
        incoming = memory_store(files=files).blobs.incoming()
        incoming.add(b"pay")
        incoming.add(b"load")
        digest = incoming.place()
        self.assertEqual(memory_store(files=files.power_loss()).blobs.get(digest), b"payload")
