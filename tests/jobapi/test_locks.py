"""Locks: asked for, held, renewed, lost, and given back."""

from __future__ import annotations

import errno
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.jobapi.callers import Caller
from cronstable.jobapi.holds import BOUND
from tests.answers import Answer
from tests.fakes import job
from tests.jobapi.support import World


class LockCase(SynchronousTestCase):
    """One world with two runs."""

    def setUp(self) -> None:
        self.world = World()
        self.one = self.world.caller
        self.two = self.world.let_in(job("two"), 2)

    def answer(self, caller: Caller | None = None, **said: Any) -> Answer:
        """Ask for a lock, in the common scope."""
        said.setdefault("name", "m")
        said.setdefault("scope", "global")
        return self.world.post("/v1/lock/acquire", said, caller)

    def acquire(self, caller: Caller | None = None, **said: Any) -> Any:
        """Ask for a lock and return the JSON of the answer."""
        answer = self.answer(caller, **said)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json()

    def release(self, token: str, caller: Caller | None = None) -> bool:
        answer = self.world.post("/v1/lock/release", {"token": token}, caller)
        self.assertEqual(answer.status, 200, answer.body)
        released: bool = answer.json()["released"]
        return released

    def held(self, lease: str = "lock/global/m#0") -> bool:
        """Return whether a lease is held now."""
        return self.world.leases()[lease][2]


class AcquireTests(LockCase):
    """One pass."""

    def test_taken(self) -> None:
        """Who has it is told a token, a fence and a time; its lease has the agreed names."""
        taken = self.acquire()
        self.assertEqual(
            {key: taken[key] for key in ("acquired", "slot", "fence", "ttl")},
            {"acquired": True, "slot": 0, "fence": 1, "ttl": 30.0},
        )
        self.assertRegex(taken["token"], "^[0-9a-f]{32}$")
        self.assertEqual(
            self.world.leases(),
            {"lock/global/m#0": (f"node-a#0123456789ab#{taken['token']}", 1, True)},
        )

    def test_excludes(self) -> None:
        """Nobody else gets it, the same run neither."""
        self.acquire()
        for caller in (self.one, self.two):
            self.assertEqual(self.acquire(caller), {"acquired": False})

    def test_scopes(self) -> None:
        """The same name in two scopes is two locks."""
        self.assertTrue(self.acquire(self.one, scope=None)["acquired"])
        self.assertTrue(self.acquire(self.two, scope=None)["acquired"])
        self.assertEqual(set(self.world.leases()), {"lock/wire/m#0", "lock/two/m#0"})

    def test_permits(self) -> None:
        """As many may hold it as there are permits, taken in order; one run may hold several."""
        slots = [self.acquire(self.one, permits=3).get("slot") for _ in range(4)]
        self.assertEqual(slots, [0, 1, 2, None])

    def test_released(self) -> None:
        """Released by its token it is free at once, with a greater fence for the next."""
        taken = self.acquire()
        self.assertFalse(self.release(taken["token"], self.two))
        self.assertFalse(self.release("zzz"))
        self.assertTrue(self.held())
        self.assertTrue(self.release(taken["token"]))
        self.assertFalse(self.release(taken["token"]))
        self.assertEqual(self.acquire(self.two)["fence"], 2)

    def test_numbers(self) -> None:
        """Times are clamped; what is no number, or too many permits, is refused."""
        for ttl, given in ((1, 5.0), ("7", 7.0), (0, 5.0), (-3, 5.0), (1e12, 30 * 86400.0)):
            self.assertEqual(self.acquire(name=f"t{ttl}", ttl=ttl)["ttl"], given)
        for said, error in (
            ({"permits": "x"}, "permits must be an integer"),
            ({"permits": None}, "permits must be an integer"),
            ({"permits": 0}, "permits must be >= 1"),
            ({"permits": 2000}, "permits must be <= 1024"),
            ({"ttl": "x"}, "ttl and blockSeconds must be numbers"),
            ({"blockSeconds": [] or [1]}, "ttl and blockSeconds must be numbers"),
            ({"name": None}, "name is required"),
            ({"name": 5}, "name must be a string"),
        ):
            self.assertEqual(self.answer(**said).error, error)
        for raw, error in (
            (b'{"name":"m","ttl":1e400}', "ttl must be a finite number"),
            (
                b'{"name":"m","wait":true,"blockSeconds":NaN}',
                "blockSeconds must be a finite number",
            ),
            (b'{"name":"m","permits":1e400}', "permits must be an integer"),
        ):
            self.assertEqual(self.world.ask("POST", "/v1/lock/acquire", raw).error, error)
        self.assertEqual(self.world.post("/v1/lock/release", {}).error, "token is required")

    def test_default_ttl(self) -> None:
        """Without a time of its own it is held for the configured one."""
        self.world = World(lock_ttl=12.0)
        self.assertEqual(self.acquire(self.world.caller)["ttl"], 12.0)

    def test_unusable_lease(self) -> None:
        """A lease that cannot be judged is no answer, unless another permit can be had."""
        self.acquire()
        (path,) = [p for p in self.world.memory.paths() if p.endswith(".lease")]
        self.world.end(self.one)
        self.world.files.unlink(path)
        self.world.files.create(path, b"{", False)
        with self.assertLogs("cronstable.jobapi", "WARNING"):
            self.assertEqual(self.answer(self.two).status, 503)
        self.assertEqual(self.acquire(self.two, permits=2)["slot"], 1)


class RenewalTests(LockCase):
    """A hold over time."""

    def test_renewed(self) -> None:
        """It is renewed at a third of its time for as long as the run lives, on the lease lane."""
        self.acquire(ttl=9)
        self.world.store.leases = 0
        self.world.advance(90)
        self.assertTrue(self.held())
        self.assertEqual(self.world.store.leases, 30)
        self.assertEqual(self.world.leases()["lock/global/m#0"][1], 1)

    def test_behind_hunts(self) -> None:
        """It is renewed, and given back, while others look for locks and get nowhere."""
        token = self.acquire(ttl=9)["token"]
        self.world.store.hunting = []
        waiting = self.world.send("POST", "/v1/lock/acquire", {"name": "n"}, self.two)
        with self.assertLogs("cronstable.jobapi", "WARNING"):
            self.world.advance(30)
        answer = waiting.answer()
        assert answer is not None
        self.assertEqual(answer.status, 503)
        self.assertTrue(self.held())
        self.assertTrue(self.release(token))
        self.assertFalse(self.held())
        self.world.store.go_on()
        self.assertNotIn("lock/two/n#0", self.world.leases(), "it came too late to be looked for")

    def test_shortest(self) -> None:
        """The shortest there is is renewed at a third of five seconds."""
        self.acquire(ttl=1)
        self.world.store.leases = 0
        self.world.advance(50)
        self.assertIn(self.world.store.leases, range(25, 31))

    def test_run_ends(self) -> None:
        """The end of a run frees what it holds, at once, and stops its renewals."""
        for name in ("a", "b"):
            self.acquire(name=name)
        self.acquire(self.two, name="c")
        self.world.end(self.one)
        held = {name: state[2] for name, state in self.world.leases().items()}
        self.assertEqual(
            held, {"lock/global/a#0": False, "lock/global/b#0": False, "lock/global/c#0": True}
        )
        self.world.store.leases = 0
        self.world.advance(10)
        self.assertEqual(self.world.store.leases, 1)

    def test_outage(self) -> None:
        """A store that is away for a while is told once, and the hold goes on after it."""
        self.acquire(ttl=9)
        self.world.files.fail("lock", error=errno.EIO)
        with self.assertLogs("cronstable.jobapi", "WARNING") as logged:
            self.world.advance(20)
        self.assertEqual(len(logged.output), 1)
        self.assertIn(
            "Job wire: lock m (scope global, permit 0) could not be renewed", logged.output[0]
        )
        self.assertIn("6 s", logged.output[0])
        self.assertFalse(self.held())
        self.world.files.heal()
        self.world.advance(3)
        self.assertTrue(self.held())
        self.assertEqual(self.world.leases()["lock/global/m#0"][1], 1)

    def test_taken_over(self) -> None:
        """One that another took after it had run out is renewed no more, and is its no more."""
        token = self.acquire(ttl=9)["token"]
        self.world.files.fail("lock", error=errno.EIO)
        with self.assertLogs("cronstable.jobapi", "WARNING"):
            self.world.advance(10)
        self.world.files.heal()
        lease = self.world.store.store.leases
        lease.acquire("lock/global/m#0", "another", 600)
        with self.assertLogs("cronstable.jobapi", "WARNING") as logged:
            self.world.advance(3)
        self.assertIn("was taken over", logged.output[0])
        self.world.store.leases = 0
        self.world.advance(30)
        self.assertEqual(self.world.store.leases, 0)
        self.assertFalse(self.release(token))
        self.assertTrue(self.held())

    def test_suspended(self) -> None:
        """A host that slept longer than the lease renews it on waking, unless it is taken."""
        self.acquire(ttl=9)
        self.world.clock.suspend(3600)
        self.assertFalse(self.held())
        self.world.advance(3)
        self.assertTrue(self.held())

    def test_asleep_while_it_was_taken(self) -> None:
        """A lease that ran out in the host's sleep before it was answered for is not believed."""
        self.world.store.hold()
        connection = self.world.send("POST", "/v1/lock/acquire", {"name": "m", "ttl": 9})
        (waiting,) = self.world.store.held or []
        answer, work = waiting
        caught = work()
        self.world.clock.suspend(10)
        self.world.store.held = []
        answer.callback(caught)
        self.world.store.go_on()
        told = connection.answer()
        assert told is not None
        self.assertEqual(told.json(), {"acquired": False})
        self.assertFalse(self.world.leases()["lock/wire/m#0"][2])

    def test_release_fails(self) -> None:
        """A release that the store does not take is told, and may be tried again."""
        token = self.acquire(ttl=9)["token"]
        self.world.files.fail("lock", error=errno.EIO)
        with self.assertLogs("cronstable.jobapi", "WARNING"):
            answer = self.world.post("/v1/lock/release", {"token": token})
        self.assertEqual(answer.status, 503)
        self.world.files.heal()
        self.world.store.leases = 0
        self.world.advance(30)
        self.assertEqual(self.world.store.leases, 0)
        self.assertTrue(self.release(token))

    def test_release_fails_during_a_renewal(self) -> None:
        """A hold whose release was tried is renewed no more, whatever was under way meanwhile."""
        token, store = self.acquire(ttl=9)["token"], self.world.store
        store.hold()
        self.world.advance(3)
        connection = self.world.send("POST", "/v1/lock/release", {"token": token})
        assert store.held is not None
        store.held.reverse()
        self.world.files.fail("lock", error=errno.EIO)
        with self.assertLogs("cronstable.jobapi", "WARNING"):
            store.step()
        answer = connection.answer()
        assert answer is not None
        self.assertEqual(answer.status, 503)
        self.world.files.heal()
        store.go_on()
        store.leases = 0
        self.world.advance(30)
        self.assertEqual(store.leases, 0)
        self.assertTrue(self.release(token))

    def test_end_without_store(self) -> None:
        """A run whose locks cannot be given back is warned about; they end by their time."""
        self.acquire(ttl=9)
        self.world.files.fail("lock", error=errno.EIO)
        with self.assertLogs("cronstable.jobapi", "WARNING") as logged:
            self.world.end(self.one)
        self.assertIn("ends within 9 s", logged.output[0])

    def test_other_store_in_force(self) -> None:
        """A hold is renewed and given back where it was taken, whatever store is in force now."""
        token = self.acquire(ttl=9)["token"]
        old, other = self.world.store.store, World().store.store
        self.world.store.store = other
        self.world.advance(30)
        self.assertTrue(old.leases.read("lock/global/m#0").held(self.world.clock.now()))  # type: ignore[union-attr]
        self.assertTrue(self.release(token))
        self.assertIs(other.leases.read("lock/global/m#0"), None)


class WaitingTests(LockCase):
    """Waiting for a lock that is taken."""

    def wait(self, seconds: float, ttl: float = 9, caller: Caller | None = None) -> Any:
        """Begin to wait as the second run."""
        said = {"name": "m", "scope": "global", "wait": True, "blockSeconds": seconds, "ttl": ttl}
        return self.world.send("POST", "/v1/lock/acquire", said, caller or self.two)

    def test_freed(self) -> None:
        """Whoever waits has it soon after it is free."""
        token = self.acquire()["token"]
        connection = self.wait(60)
        self.world.advance(20)
        self.assertIs(connection.answer(), None)
        self.release(token)
        self.world.advance(1)
        self.assertTrue(connection.answer().json()["acquired"])

    def test_time_is_up(self) -> None:
        """Whoever has waited long enough is told so, after a last try."""
        self.acquire()
        connection = self.wait(5)
        self.world.advance(4.5)
        self.assertIs(connection.answer(), None)
        self.world.advance(0.5)
        self.assertEqual(connection.answer().json(), {"acquired": False})
        self.assertEqual(self.two.hunts, set())

    def test_no_time(self) -> None:
        """To wait for no time is one try, as without waiting at all."""
        self.acquire()
        for said in ({"wait": True}, {"wait": True, "blockSeconds": -5}, {"blockSeconds": 60}):
            self.assertEqual(self.acquire(self.two, **said), {"acquired": False})

    def test_pauses(self) -> None:
        """Tries are a tenth of the time apart, at least a twentieth of a second, at most one."""
        self.acquire()
        for ttl, tries in ((5, 9), (600, 5)):
            self.world.store.hunts = 0
            self.wait(4, ttl=ttl)
            self.world.advance(4.5, 0.05)
            self.assertEqual(self.world.store.hunts, tries, ttl)

    def test_run_ends(self) -> None:
        """The end of the run ends its waiting, and nothing is held."""
        self.acquire()
        connection = self.wait(60)
        self.world.end(self.two)
        self.assertEqual(connection.answer().json(), {"acquired": False, "runEnded": True})
        self.world.end(self.one)
        self.world.advance(60)
        self.assertFalse(self.held())

    def test_run_ends_while_it_is_had(self) -> None:
        """A lock that comes when the run is over is given back."""
        self.world.store.hold()
        connection = self.wait(0)
        self.world.end(self.two)
        self.world.store.go_on()
        self.assertEqual(connection.answer().json(), {"acquired": False, "runEnded": True})
        self.assertFalse(self.held())

    def test_client_goes(self) -> None:
        """Nothing is taken for a client that has gone, whenever it went."""
        token = self.acquire()["token"]
        connection = self.wait(60)
        connection.lose()
        self.release(token)
        self.world.advance(60)
        self.assertFalse(self.held())
        self.world.store.hold()
        connection = self.wait(0)
        connection.lose()
        self.world.store.go_on()
        self.assertFalse(self.held())
        self.assertEqual((self.two.holds, self.two.hunts), ({}, set()))

    def test_slow_store(self) -> None:
        """A store that takes too long is told, and what it says later is given back."""
        self.world.store.hold()
        connection = self.wait(0)
        with self.assertLogs("cronstable.jobapi", "WARNING"):
            self.world.advance(BOUND)
        self.assertEqual(connection.answer().status, 503)
        self.world.store.go_on()
        self.assertFalse(self.held())

    def test_outage(self) -> None:
        """A store that fails to the end is an outage, not a lock that is taken."""
        self.world.files.fail("lock", error=errno.EIO)
        connection = self.wait(5)
        with self.assertLogs("cronstable.jobapi", "WARNING"):
            self.world.advance(5)
        self.assertEqual(connection.answer().status, 503)

    def test_outage_in_between(self) -> None:
        """One that fails for a while only costs time."""
        self.world.files.fail("lock", error=errno.EIO)
        connection = self.wait(60)
        self.world.advance(20)
        self.assertIs(connection.answer(), None)
        self.world.files.heal()
        self.world.advance(1)
        self.assertTrue(connection.answer().json()["acquired"])
