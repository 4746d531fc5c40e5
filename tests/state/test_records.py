"""Streams of immutable records."""

from __future__ import annotations

import errno
import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state.errors import NotPortable, Unreadable
from cronstable.state.faults import FaultyFiles
from cronstable.state.instants import from_text
from cronstable.state.memory import MemoryFiles
from cronstable.state.store import Store
from tests.state.support import StandingClock, memory_store, reopened, vector


def stored(store: Store, stream: str = "s") -> list[Any]:
    """Return the C{k} of the records on disk, in name order, read behind the store's back."""
    directory = store.tree.path("records", stream)
    return [
        json.loads(store.tree.files.read(f"{directory}/{file}"))["data"]["k"]
        for file in sorted(store.tree.files.names(directory))
    ]


def put(store: Store, file: str, content: str, stream: str = "s") -> str:
    """Write a file into a stream behind the store's back; return its path."""
    directory = store.tree.path("records", stream)
    store.tree.make_directory(directory)
    store.tree.files.create(f"{directory}/{file}", content.encode(), True)
    return f"{directory}/{file}"


class AppendTests(SynchronousTestCase):
    """Adding records."""

    def test_bytes_and_name(self) -> None:
        """A record is one file with the agreed name and bytes."""
        clock = StandingClock(1795955474.11112)
        store = memory_store(clock)
        stem = store.records.append("runs/Backup", {"b": 1, "a": "é"})
        self.assertRegex(stem, rf"\A0001795955474\.111120-{store.tree.instance}-\d{{12}}\Z")
        raw = store.tree.files.read(f"/state/default/records/runs%2F%42ackup/{stem}.json")
        self.assertEqual(raw.decode(), '{"data":{"a":"é","b":1},"schemaVersion":"v1"}')

    def test_refused_before_anything_is_written(self) -> None:
        """A record that could not be read back leaves no trace, not even a directory."""
        store = memory_store()
        self.assertRaises(NotPortable, store.records.append, "s", {"k": float("nan")})
        self.assertEqual(store.stream_tokens("s"), [])

    def test_floor_follows_the_disk(self) -> None:
        """Stems go on from the newest on disk, whatever the clock says."""
        case = vector("record-names.json")["floor_sequence"]
        clock = StandingClock()
        store = memory_store(clock)
        put(store, case["seed_on_disk"], '{"data":{},"schemaVersion":"v1"}')
        seen = case["seed_on_disk"]
        for append in case["appends"]:
            clock.wall = append["now"]
            stem = store.records.append("s", {})
            self.assertEqual(stem[:20], append["stem"][:20])
            self.assertGreater(stem, seen)
            seen = stem

    def test_floor_rises_with_a_prune(self) -> None:
        """A peer's newer record that a prune meets is not overtaken from behind."""
        clock = StandingClock(1000.0)
        store = memory_store(clock)
        store.records.append("s", {"k": 1})
        put(store, "0000000005000.000000-bbbbbbbbbbbb-000000000001.json", '{"data":{"k":2}}')
        store.records.prune("s", 5)
        self.assertEqual(store.records.append("s", {"k": 3})[:20], "0000000005000.000001")

    def test_floor_rises_with_a_keyed_append(self) -> None:
        """Streams that keep the newest per name look at the disk each time."""
        clock = StandingClock(1000.0)
        store = memory_store(clock)
        store.records.append("s", {"k": 1, "name": "x"}, newest_per="name")
        put(store, "0000000005000.000000-bbbbbbbbbbbb-000000000001.json", '{"data":{"k":2}}')
        store.records.append("s", {"k": 3, "name": "x"}, newest_per="name")
        stem = store.records.append("s", {"k": 4, "name": "x"}, newest_per="name")
        self.assertEqual(stem[:20], "0000000005000.000001")

    def test_cut_stream_is_named_beside_its_records(self) -> None:
        """A stream whose token was cut keeps its name in a side file, repaired by any append."""
        store = memory_store()
        stream = "runs/" + "Ä" * 60
        store.records.append(stream, {"k": 1})
        (token,) = store.stream_tokens("runs/")
        path = store.tree.path("records", token, "stream-name.txt")
        self.assertEqual(store.tree.files.read(path).decode(), stream)
        self.assertEqual(store.streams().names, ("meta", stream))
        store.tree.files.unlink(path)
        self.assertEqual(store.streams().complete, False)
        store.records.append(stream, {"k": 2})
        store.tree.files.unlink(path)
        store.tree.files.create(path, b"another name", True)
        self.assertIs(store.stream_name(token), None)
        store.records.append(stream, {"k": 3})
        self.assertEqual(store.stream_name(token), stream)

    def test_stream_taken_away(self) -> None:
        """A directory that a peer's garbage collection took is made again."""
        store = memory_store()
        stem = store.records.append("s", {"k": 1})
        store.tree.files.unlink(store.tree.path("records", "s", f"{stem}.json"))
        store.tree.files.remove_directory(store.tree.path("records", "s"))
        store.records.append("s", {"k": 2})
        self.assertEqual(stored(store), [2])

    def test_remembers_a_bounded_number_of_streams(self) -> None:
        """A forgotten stream is only read again."""
        store = memory_store()
        store.records._remembered = 3
        for number in range(10):
            store.records.append(f"s{number % 5}", {"k": number})
        self.assertEqual(len(store.records._streams), 3)
        self.assertEqual(stored(store, "s0"), [0, 5])

    def test_fsync_rename_spares_what_only_tells(self) -> None:
        """With C{fsync: rename} a marker's name is forced to the disk, an in-flight note's not."""
        files = MemoryFiles(StandingClock().now)
        store = memory_store(files=files, fsync="rename")
        for stream in ("reboot/j", "inflight/j"):
            store.records.append(stream, {"k": 1})
        left = memory_store(files=files.power_loss())
        self.assertIsNot(left.records.latest("reboot/j"), None)
        self.assertIs(left.records.latest("inflight/j"), None)


class PruneTests(SynchronousTestCase):
    """What is left of a stream."""

    def test_captured_cadence(self) -> None:
        """A process prunes on its appends 1, 9, 17..., a second one on its own."""
        case = vector("prune-trace.json")
        clock = StandingClock()
        store = memory_store(clock)
        for step in case["keep_3_one_process"]:
            clock.advance(1)
            store.records.append("s", {"k": step["append"]}, keep=3)
            self.assertEqual(stored(store), step["left"])
        second = reopened(store)
        for step in case["keep_3_second_process"]:
            clock.advance(1)
            second.records.append("s", {"k": step["append"]}, keep=3)
            self.assertEqual(stored(second), step["left"])

    def test_captured_newest_per_name(self) -> None:
        """Of each name the newest stays, and the one that this append superseded."""
        clock = StandingClock()
        store = memory_store(clock)
        for step in vector("prune-trace.json")["latest_by_name"]:
            clock.advance(1)
            record = {"k": step["append"], "name": step["name"]}
            store.records.append("s", record, newest_per="name")
            self.assertEqual(stored(store), step["left"], step)

    def test_unnamed_records_stay(self) -> None:
        """Records without a text name, or that cannot be read now, are nobody's to replace."""
        clock = StandingClock()
        inner = MemoryFiles(clock.now)
        files = FaultyFiles(inner)
        store = memory_store(clock, files)
        store.records.append("s", {"k": 0, "name": 5})
        store.records.append("s", {"k": 1})
        hidden = store.records.append("s", {"k": 2, "name": "x"})
        files.fail("read", error=errno.EACCES, match=hidden)
        second = reopened(store)
        for number in range(3, 21):
            second.records.append("s", {"k": number, "name": "x"}, newest_per="name")
        files.heal()
        self.assertEqual(stored(second), [0, 1, 2, 19, 20])

    def test_prune_on_demand(self) -> None:
        """The newest C{keep} by name stay; none stay for 0 and less."""
        store = memory_store()
        for number in range(6):
            store.records.append("s", {"k": number})
        self.assertEqual(store.records.prune("s", 4), 2)
        self.assertEqual(stored(store), [2, 3, 4, 5])
        self.assertEqual(store.records.prune("s", 10), 0)
        self.assertEqual(store.records.prune("s", 0), 4)
        self.assertEqual(store.records.prune("gone", -1), 0)

    def test_never_too_much(self) -> None:
        """Whatever a stream holds, a prune leaves as many as it should, or all there are."""
        for there in range(1, 22):
            for keep in range(0, 25):
                store = memory_store()
                for number in range(there):
                    store.records.append("s", {"k": number})
                self.assertEqual(store.records.prune("s", keep), max(0, there - keep))
                self.assertEqual(stored(store), list(range(there))[max(0, there - keep) :])

    def test_bound_that_is_not_reached(self) -> None:
        """A stream that stays below its bound loses nothing."""
        store = memory_store()
        for number in range(100):
            store.records.append("s", {"k": number}, keep=100)
        self.assertEqual(stored(store), list(range(100)))

    def test_failed_prune_is_no_failed_append(self) -> None:
        """The record is in place, so the append succeeds; the trouble is said once."""
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files)
        for number in range(8):
            store.records.append("s", {"k": number})
        files.fail("unlink", error=errno.EIO, match="records")
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            for number in range(8, 30):
                store.records.append("s", {"k": number}, keep=3)
        self.assertEqual(len(logs.output), 1)
        self.assertEqual(stored(store), list(range(30)))


class ReadTests(SynchronousTestCase):
    """What is read of a stream."""

    def case(self, files: FaultyFiles | None = None) -> Store:
        """Return a store with the captured odd files in one stream."""
        clock = StandingClock()
        store = memory_store(clock, files)
        store.tree.instance = "cccccccccccc"
        case = vector("quarantine.json")["quarantine_case"]
        contents = dict(case["contents"])
        good = "0001795955000.000000-cccccccccccc-000000000003.json"
        contents[good] = '{"data":{"k":1},"schemaVersion":"v1"}'
        for file, content in contents.items():
            put(store, file, content)
        return store

    def test_odd_files(self) -> None:
        """What is understood is read in order; the rest is set aside and named in the log."""
        case = vector("quarantine.json")["quarantine_case"]
        store = self.case()
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            found = store.records.read("s")
        self.assertEqual([data["k"] for data in found], case["readable_in_order"])
        # Here we differ from the capture: a record of another scheme is set aside as well.
        foreign = "0001795955004.000000-dddddddddddd-000000000004.json"
        after = [file for file in case["after"] if file != foreign]
        aside = sorted([*case["quarantine"], f"{foreign}.cccccccccccc.bad"])
        names = store.tree.files.names
        self.assertEqual(sorted(names(store.tree.path("records", "s"))), after)
        self.assertEqual(sorted(names(store.tree.path("quarantine"))), aside)
        self.assertEqual(len(logs.output), 5)
        for file in aside:
            self.assertEqual(sum(file[:51] in line for line in logs.output), 1, file)

    def test_foreign_said_once_per_stream(self) -> None:
        """A stream full of a newer scheme's records is one warning."""
        store = memory_store()
        for number in range(20):
            put(store, f"{number:013d}.000000-a-1.json", '{"data":{},"schemaVersion":"v2"}')
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            self.assertEqual(store.records.read("s"), [])
        self.assertEqual(len(logs.output), 1)
        self.assertEqual(len(store.tree.files.names(store.tree.path("quarantine"))), 20)

    def test_strict(self) -> None:
        """A strict read does not take a record of another scheme, or an I/O error, for absent."""
        self.assertRaises(Unreadable, self.case().records.read, "s", strict=True)
        self.assertRaises(Unreadable, self.case().records.derive_max, "s", "k")
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files)
        store.records.append("s", {"k": 1})
        stem = store.records.append("s", {"k": 2})
        files.fail("read", error=errno.EIO, match=stem)
        self.assertEqual(store.records.read("s"), [{"k": 1}])
        self.assertRaises(OSError, store.records.read, "s", strict=True)
        self.assertRaises(OSError, store.records.derive_max, "s", "k")
        files.heal()
        self.assertEqual(store.records.latest("s", strict=True), {"k": 2})

    def test_unreadable_for_now(self) -> None:
        """A record that cannot be opened stays, and is said once until all can be read again."""
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files)
        store.records.append("s", {"k": 1})
        for _ in range(2):
            files.fail("read", error=errno.EACCES, match="records/s")
            with self.assertLogs("cronstable.state", "WARNING") as logs:
                for _ in range(5):
                    self.assertEqual(store.records.read("s"), [])
            self.assertEqual(len(logs.output), 1)
            self.assertIn("one user", logs.output[0])
            files.heal()
            self.assertEqual(store.records.read("s"), [{"k": 1}])

    def test_directory_in_place_of_a_record(self) -> None:
        """A directory with a record's name is set aside, also by a strict read."""
        store = memory_store()
        store.records.append("s", {"k": 1})
        store.tree.files.make_directory(store.tree.path("records", "s", "0.json"))
        self.assertEqual(store.records.read("s", strict=True), [{"k": 1}])
        self.assertEqual(len(store.tree.files.names(store.tree.path("quarantine"))), 1)

    def test_too_large_for_a_record(self) -> None:
        """A file of a size that nobody writes is set aside, also by a strict read."""
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files)
        store.records.append("s", {"k": 1})
        put(store, "0.json", "huge")
        files.fail("read", error=errno.EFBIG, match="0.json")
        self.assertEqual(store.records.read("s", strict=True), [{"k": 1}])
        self.assertEqual(len(files.names(store.tree.path("quarantine"))), 1)

    def test_quarantine_that_fails_is_said_once(self) -> None:
        """On a read-only mount a corrupt record is one warning, not one for each look."""
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files)
        put(store, "1-x.json", "{")
        files.fail("rename", error=errno.EROFS)
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            for _ in range(5):
                self.assertEqual(store.records.read("s"), [])
        self.assertEqual(len(logs.output), 1)

    def test_limit_counts_readable_ones(self) -> None:
        """The newest C{limit} readable records are returned, oldest first."""
        store = memory_store()
        for number in range(5):
            store.records.append("s", {"k": number})
        put(store, "zzz.json", "{")
        self.assertEqual([data["k"] for data in store.records.read("s", 2)], [3, 4])
        self.assertEqual(store.records.read("s", 0), [])
        self.assertEqual(store.records.latest("s"), {"k": 4})

    def test_absent_stream(self) -> None:
        """A stream nobody wrote is empty."""
        store = memory_store()
        self.assertEqual(store.records.read("gone"), [])
        self.assertIs(store.records.latest("gone"), None)
        self.assertIs(store.records.derive_max("gone", "k"), None)

    def test_vanishing_record(self) -> None:
        """A record that a peer prunes while we read is skipped, also by a strict read."""
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files)
        stem = store.records.append("s", {"k": 1})
        store.records.append("s", {"k": 2})
        path = store.tree.path("records", "s", f"{stem}.json")
        files.call("read", act=lambda: files._inner.unlink(path), match=stem, times=1)
        self.assertEqual(store.records.read("s", strict=True), [{"k": 2}])


class DeriveMaxTests(SynchronousTestCase):
    """The greatest value over a stream."""

    def test_order_does_not_matter(self) -> None:
        """The greatest wins wherever it stands; records without the field do not count."""
        store = memory_store()
        for value in (3, None, 7, 5):
            store.records.append("s", {} if value is None else {"k": value})
        self.assertEqual(store.records.derive_max("s", "k"), 7)

    def test_incomparable(self) -> None:
        """What cannot be compared with the greatest so far is passed over, in name order."""
        store = memory_store()
        for value in (3, "text", 4, [9], None):
            store.records.append("s", {"k": value})
        self.assertEqual(store.records.derive_max("s", "k"), 4)

    def test_read_as_something(self) -> None:
        """Values can be read as what they mean; those that mean nothing do not count."""
        store = memory_store()
        for text in ("2026-01-01T02:00:00+02:00", "2026-01-01T00:30:00+00:00", "garbage"):
            store.records.append("s", {"at": text})
        expected = from_text("2026-01-01T00:30:00+00:00")
        self.assertEqual(store.records.derive_max("s", "at", from_text), expected)


class StatsTests(SynchronousTestCase):
    """What is counted."""

    def test_operations(self) -> None:
        """Operations count under their names, with errors and the time they took."""
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files)
        files.call("create", act=lambda: clock.advance(0.5))
        store.records.append("s", {"k": 1})
        self.assertRaises(NotPortable, store.records.append, "s", {"k": float("nan")})
        store.records.latest("s")
        store.records.derive_max("s", "k")
        counts = {op: (n.count, n.errors, n.seconds) for op, n in store.stats.ops.items()}
        self.assertEqual(counts["append"], (3, 1, 0.5))  # the first is the store's stamp
        self.assertEqual(counts["list"], (1, 0, 0.0))
        self.assertEqual(counts["derive-max"], (1, 0, 0.0))
