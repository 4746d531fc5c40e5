"""Leases and their fences."""

from __future__ import annotations

import errno
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state.errors import Malformed
from cronstable.state.faults import FaultyFiles
from cronstable.state.leases import Denied, Held, Lease, Leases, lease_in
from cronstable.state.memory import MemoryFiles
from cronstable.state.store import Store
from tests.properties import given, st
from tests.state.support import StandingClock, memory_store, reopened, vector

PATH = "/state/default/leases/slots%2Fjob.lease"


def overwrite(store: Store, content: str) -> None:
    """Put C{content} where the lease is, behind the store's back."""
    if "slots%2Fjob.lease" in store.tree.files.names("/state/default/leases"):
        store.tree.files.unlink(PATH)
    store.tree.files.create(PATH, content.encode(), True)


class TraceTests(SynchronousTestCase):
    """The protocol, step by step."""

    def test_captured_trace(self) -> None:
        """Every call has the answer and leaves the bytes that the reference's has."""
        clock = StandingClock()
        store = memory_store(clock)
        case = vector("lease-trace.json")
        for step in case["trace"]:
            clock.wall = step["now"]
            result = self.play(store, case["lease"], step)
            if step["op"] in ("acquire", "renew"):
                self.assertEqual(result, step["result"], step)
            self.assertEqual(store.tree.files.read(PATH).decode(), step["file_after"], step)

    def play(self, store: Store, name: str, step: dict[str, Any]) -> dict[str, Any] | None:
        """Do one step; return the lease as the capture spells it."""
        leases = store.leases
        got: Held | Denied | None = None
        if step["op"] == "acquire":
            got = leases.acquire(name, step["holder"], step["ttl"])
        elif step["op"] == "renew":
            got = leases.renew(name, step["holder"], step["fence"], step["ttl"])
        elif step["op"] == "release":
            leases.release(name, step["holder"], step["fence"])
        else:
            overwrite(store, step.get("content", step["file_after"]))
        if not isinstance(got, Held):
            return None
        lease = got.lease
        return {
            "name": lease.name,
            "holder": lease.holder,
            "fence": lease.fence,
            "expiresAt": lease.expires_at,
        }


class AnswerTests(SynchronousTestCase):
    """What a caller is told."""

    def test_why_denied(self) -> None:
        """A rival's lease, an unreadable file and an unwritable one are told apart."""
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files)
        leases = store.leases
        leases.acquire("slots/job", "a", 30.0)
        denied = leases.acquire("slots/job", "b", 30.0)
        self.assertEqual(denied, Denied("held", leases.read("slots/job")))
        files.fail("create", error=errno.ENOSPC, torn=True)
        for answer in (leases.acquire("slots/job", "a", 30), leases.renew("slots/job", "a", 1, 30)):
            self.assertIsInstance(answer, Denied)
            self.assertEqual(answer.why, "unwritable")  # type: ignore[union-attr]
        files.heal()
        files.fail("read", error=errno.EIO, match=".lease")
        answer = leases.acquire("slots/job", "b", 30.0)
        self.assertEqual(answer.why, "unreadable")  # type: ignore[union-attr]
        files.heal()
        self.assertEqual(leases.read("slots/job").fence, 1)  # type: ignore[union-attr]

    def test_last_fence(self) -> None:
        """A lease whose fence cannot grow is nobody's, like any unreadable one."""
        store = memory_store()
        raw = b'{"name":"slots/job","holder":"a","fence":18446744073709551615,"expiresAt":0}'
        store.tree.files.create(store.tree.path("leases", "slots%2Fjob.lease"), raw, True)
        answer = store.leases.acquire("slots/job", "b", 30.0)
        self.assertEqual(answer.why, "unreadable")  # type: ignore[union-attr]

    def test_store_that_cannot_be_asked(self) -> None:
        """Without a lock file, or a first lease that can be written, there is no answer."""
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files)
        files.fail("create", error=errno.ENOSPC)
        self.assertRaises(OSError, store.leases.acquire, "slots/job", "a", 30.0)
        files.heal()
        files.fail("lock", error=errno.ESTALE)
        self.assertRaises(OSError, store.leases.acquire, "slots/job", "a", 30.0)
        self.assertRaises(OSError, store.leases.renew, "slots/job", "a", 1, 30.0)
        files.heal()
        self.assertIs(store.leases.read("slots/job"), None)

    def test_release(self) -> None:
        """Only the holder under its fence releases; twice is harmless; errors are told."""
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files)
        leases = store.leases
        self.assertFalse(leases.release("slots/job", "a", 1))
        leases.acquire("slots/job", "a", 30.0)
        self.assertFalse(leases.release("slots/job", "b", 1))
        self.assertFalse(leases.release("slots/job", "a", 2))
        files.fail("create", error=errno.ENOSPC)
        self.assertRaises(OSError, leases.release, "slots/job", "a", 1)
        files.heal()
        self.assertTrue(leases.release("slots/job", "a", 1))
        self.assertTrue(leases.release("slots/job", "a", 1))
        overwrite(store, "{")
        self.assertFalse(leases.release("slots/job", "a", 1))

    def test_trouble_is_said_once(self) -> None:
        """A broken lease that is tried again and again is one warning."""
        store = memory_store()
        overwrite(store, "{")
        with self.assertLogs("cronstable.state", "WARNING") as logs:
            for _ in range(5):
                store.leases.acquire("slots/job", "a", 30.0)
        self.assertEqual(len(logs.output), 1)

    def test_renewal_skips_the_directory(self) -> None:
        """A renewal forces its file, a new fence its directory too, whatever C{state.fsync} is."""
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files, fsync="never")
        synced = []
        for act in (
            lambda: store.leases.acquire("slots/job", "a", 30.0),
            lambda: store.leases.renew("slots/job", "a", 1, 30.0),
            lambda: store.leases.acquire("slots/job", "a", 30.0),
        ):
            files.calls.clear()
            act()
            synced.append([op for op, _ in files.calls].count("sync_directory"))
        self.assertEqual(synced, [1, 0, 0])


class DeadlineTests(SynchronousTestCase):
    """How long a holder believes in its lease."""

    def test_counts_sleep_and_begins_before_the_write(self) -> None:
        """A slow write, a wall-clock step or a suspended host never lengthen the holder's time."""
        clock = StandingClock()
        files = FaultyFiles(MemoryFiles(clock.now))
        store = memory_store(clock, files)
        files.call("create", act=lambda: clock.advance(7.0))
        before = clock.awake_and_asleep()
        held = store.leases.acquire("slots/job", "a", 30.0)
        assert isinstance(held, Held)
        self.assertEqual(held.deadline, before + 30.0)
        clock.wall -= 3600.0
        clock.asleep += 40.0
        self.assertGreater(clock.awake_and_asleep(), held.deadline)

    def test_adopt(self) -> None:
        """An acquire whose answer was lost is found by its holder, with the time that is left."""
        clock = StandingClock()
        store = memory_store(clock)
        self.assertIs(store.leases.adopt("slots/job", "a"), None)
        store.leases.acquire("slots/job", "a", 30.0)
        clock.advance(10.0)
        held = store.leases.adopt("slots/job", "a")
        assert held is not None
        self.assertEqual((held.fence, held.deadline), (1, clock.awake_and_asleep() + 20.0))
        self.assertIs(store.leases.adopt("slots/job", "b"), None)
        clock.advance(20.0)
        self.assertIs(store.leases.adopt("slots/job", "a"), None)


class FileTests(SynchronousTestCase):
    """What a lease file may say."""

    def test_numbers_as_text(self) -> None:
        """Numbers that were written as text are numbers."""
        raw = b'{"name":"n","holder":"h","fence":"7","expiresAt":"450"}'
        self.assertEqual(lease_in(raw), Lease("n", "h", 7, 450.0))

    def test_unreadable(self) -> None:
        """A missing or mistyped field makes the lease unreadable."""
        good = {"name": '"n"', "holder": '"h"', "fence": "7", "expiresAt": "450.0"}
        bad = {
            "name": ("5", "null"),
            "holder": ("5", "[]"),
            "fence": (
                "true",
                "7.5",
                '"7.5"',
                '"x"',
                "null",
                "[]",
                "1e999",
                "18446744073709551615",
                '"9999999999999999999999999"',
            ),
            "expiresAt": ("true", '"x"', "null", '"nan"', "1e999"),
        }

        def text(fields: dict[str, str]) -> bytes:
            return ("{" + ",".join(f'"{k}":{v}' for k, v in fields.items()) + "}").encode()

        lease_in(text(good))
        for field, values in bad.items():
            for value in values:
                with self.assertRaises(Malformed, msg=f"{field}={value}"):
                    lease_in(text({**good, field: value}))
            missing = {name: value for name, value in good.items() if name != field}
            self.assertRaises(Malformed, lease_in, text(missing))
        self.assertRaises(Malformed, lease_in, b"[]")

    def test_listing(self) -> None:
        """All readable leases are listed; a broken one makes that incomplete."""
        store = memory_store()
        for name in ("slots/job", "a"):
            store.leases.acquire(name, "h", 30.0)
        leases, complete = store.leases.all()
        self.assertEqual(([lease.name for lease in leases], complete), (["a", "slots/job"], True))
        overwrite(store, "{")
        leases, complete = store.leases.all()
        self.assertEqual(([lease.name for lease in leases], complete), (["a"], False))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["acquire", "renew", "release", "die", "power"]),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from([0.0, 1.0, 5.0, 11.0]),
    ),
    max_size=30,
)


class PropertyTests(SynchronousTestCase):
    """What holds whatever happens."""

    @given(STEPS)
    def test_one_holder_and_growing_fences(self, steps: list[tuple[str, str, float]]) -> None:
        """Two never hold at once and a fence is of one reign, through deaths and power losses."""
        clock = StandingClock()
        files = MemoryFiles(clock.now)
        store = memory_store(clock, files)
        believed: dict[str, Held] = {}
        reigns: dict[int, str] = {}
        for op, who, pause in steps:
            clock.advance(pause)
            if op in ("die", "power"):
                files = files.process_death() if op == "die" else files.power_loss()
                store = reopened(store, files)
                if op == "power":
                    believed.clear()
                continue
            got = self.act(store.leases, op, who, believed.get(who))
            if got is None:
                believed.pop(who, None)
                continue
            believed[who] = got
            self.assertEqual(reigns.setdefault(got.fence, who), who)
            self.assertEqual(got.fence, max(reigns))
            now = clock.awake_and_asleep()
            self.assertEqual([w for w, held in believed.items() if held.deadline > now], [who])

    def act(self, leases: Leases, op: str, who: str, had: Held | None) -> Held | None:
        """Do one step for C{who}; return what it then believes to hold."""
        if op == "acquire":
            got = leases.acquire("l", who, 10.0)
            if isinstance(got, Held):
                return got
            now = leases._tree.clock.awake_and_asleep()
            self.assertFalse(had is not None and had.deadline > now, "denied to its holder")
            return None
        if had is None:
            return None
        if op == "renew":
            got = leases.renew("l", who, had.fence, 10.0)
            return got if isinstance(got, Held) else None
        leases.release("l", who, had.fence)
        return None
