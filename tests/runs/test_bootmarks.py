"""Once per boot of the host: boot markers over restarts, changes and trouble."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.sections_values import StateConfig
from cronstable.config.values import JobConfig
from cronstable.platform import BootIdentity
from cronstable.runs.pauses import Pause
from cronstable.state.instants import to_text
from tests.fakes import job
from tests.runs.durable import STATE, DurableWorld, Host
from tests.runs.test_scheduler import NOON

BOOT = job("boot", "@reboot")


class BootTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.host = Host(NOON)

    def life(self, *jobs: JobConfig, seconds: float = 5, **wiring: Any) -> int:
        """Live for a while and stop; return how often boot runs were started."""
        wiring.setdefault("up", True)
        up = wiring.pop("up")
        world = DurableWorld(self.host, *(jobs or (BOOT,)), up=False, **wiring)
        world.executor.behave = world.lasting(1)
        if up:
            world.start()
        world.run(seconds)
        self.world = world
        count = sum(cause == "boot" for _, _, cause in world.slots)
        self.host = world.stop()
        return count

    def test_once_per_boot(self) -> None:
        """A daemon that is started again does not run it again, however it ended; a boot does."""
        self.assertEqual([self.life() for _ in range(3)], [1, 0, 0])
        self.assertEqual(self.world.results("boot"), {("skipped", "already-ran"): 1})
        self.host.boot_id = "boot-2"
        self.assertEqual([self.life(), self.life()], [1, 0])

    def test_said(self) -> None:
        """A start that skips it says so."""
        self.life()
        with self.assertLogs("cronstable", "INFO") as logs:
            self.life()
        self.assertIn(
            "INFO:cronstable:Job boot (@reboot) already ran during this OS boot; skipping",
            logs.output,
        )

    def test_marker(self) -> None:
        """The marker names host, boot, definition and moment, and precedes the launch."""
        seen: list[int] = []
        world = DurableWorld(self.host, BOOT, up=False)
        world.executor.behave = lambda launch: seen.append(len(world.records("reboot/boot")))
        world.start()
        self.assertEqual(seen, [1])
        (marker,) = world.records("reboot/boot")
        self.assertEqual(
            marker,
            {
                "host": "node-a",
                "bootId": "boot-1",
                "bootTime": None,
                "jobDigest": world.memory._digests(BOOT),
                "at": to_text(NOON),
            },
        )

    def test_killed_between(self) -> None:
        """A crash between marker and launch errs towards not running."""
        world = DurableWorld(self.host, BOOT, up=False)
        world.executor.launch = lambda *arguments: None  # type: ignore[method-assign]
        world.start()
        self.host = world.kill()
        self.assertEqual(self.life(), 0)

    def test_crash_while_it_runs(self) -> None:
        """A crash while it runs does not repeat it."""
        world = DurableWorld(self.host, BOOT)
        world.run(1)
        self.host = world.kill()
        self.assertEqual(self.life(), 0)
        self.assertEqual(self.world.records("runs/boot")[-1]["outcome"], "unknown")

    def test_changed_definition(self) -> None:
        """A changed definition runs once more in the same boot."""
        self.life()
        changed = attrs.evolve(BOOT, command="other")
        self.assertEqual([self.life(changed), self.life(changed)], [1, 0])

    def test_other_host(self) -> None:
        """Markers are per host."""
        self.life()
        self.host.name = "node-b"
        self.assertEqual(self.life(), 1)
        self.host.name = "node-a"
        self.assertEqual(self.life(), 0)

    def test_boot_time(self) -> None:
        """Where boots have no name their instant tells them apart, within a minute."""
        self.life()
        marker = {**self.world.records("reboot/boot")[-1], "bootId": None, "bootTime": NOON - 500}
        for boot_time, expected in ((NOON - 445, 0), (NOON - 430, 1)):
            self.world.append("reboot/boot", marker)
            world = DurableWorld(self.host, BOOT, up=False)
            world.memory.boot_marks._boots = {"host": BootIdentity(None, boot_time)}
            world.start()
            self.assertEqual(len(world.executor.launches), expected)

    def test_container(self) -> None:
        """Where a start of the container counts, a restart of the daemon in it does not."""
        state = attrs.evolve(STATE, boot="container")

        def life() -> int:
            world = DurableWorld(self.host, BOOT, state=state)
            world.run(5)
            self.host = world.stop()
            return len(world.executor.launches)

        self.assertEqual([life(), life()], [1, 0])
        self.host.container = 2
        self.assertEqual([life(), life()], [1, 0])
        self.host.boot_id = "boot-2"
        self.assertEqual([life(), life()], [1, 0])

    def test_cannot_be_told_apart(self) -> None:
        """Where nothing tells one boot from another each start counts, with a warning."""
        self.life()
        world = DurableWorld(self.host, BOOT, up=False)
        world.memory.boot_marks._boots = {"host": BootIdentity()}
        with self.assertLogs("cronstable", "WARNING") as logs:
            world.start()
        self.assertEqual(len(world.executor.launches), 1)
        self.assertIn("boots cannot be told apart", logs.output[0])

    def test_added_by_reload(self) -> None:
        """A job that a reload adds does not run until the next start of its host's daemon."""
        world = DurableWorld(self.host, BOOT)
        world.install(BOOT, job("late", "@reboot"))
        world.minute()
        self.assertEqual([launch.job for launch in world.executor.launches], ["boot"])

    def test_paused(self) -> None:
        """A paused job's boot run is deferred without a marker, and runs when it may."""
        world = DurableWorld(self.host, BOOT, up=False)
        world.runs.pause("boot", Pause(NOON, NOON + 100))
        world.start()
        self.assertEqual(world.records("reboot/boot"), [])
        world.run(101)
        world.minute()
        self.assertEqual(len(world.executor.launches), 1)
        self.assertEqual(len(world.records("reboot/boot")), 1)

    def test_started_by_hand(self) -> None:
        """A start by hand is the boot run, also for the next start of the daemon."""
        world = DurableWorld(self.host, BOOT, up=False)
        world.runs.pause("boot", Pause(NOON, NOON + 100))
        world.start()
        world.runs.start_now("boot")
        self.assertEqual(world.results("boot"), {("ran", None): 1})
        world.runs.resume("boot")
        self.host = world.kill()
        self.assertEqual(self.life(), 0)

    def test_without_a_store(self) -> None:
        """Without a store every start of the daemon counts as a boot."""
        for _ in range(2):
            world = DurableWorld(self.host, BOOT, up=False)
            world.boot.begin(world.runs.jobs)
            self.assertEqual(len(world.executor.launches), 1)


class SurvivorTests(SynchronousTestCase):
    def survived(self) -> DurableWorld:
        """Return the life after a crash whose boot run lives on, in a newer boot's eyes."""
        host = Host(NOON)
        world = DurableWorld(host, BOOT)
        host = world.kill()
        host.alive = {1000: NOON}
        host.boot_id = "unknown-to-the-marker"
        return DurableWorld(host, BOOT)

    def test_not_started_again(self) -> None:
        """A boot run that lives on is not started a second time, marker or not."""
        world = self.survived()
        self.assertEqual(world.executor.launches, [])
        self.assertEqual(world.results("boot"), {("skipped", "still-running"): 1})

    def test_stream_stays(self) -> None:
        """The skip leaves the markers as they were; when it has died the marker decides."""
        world = self.survived()
        self.assertEqual([m["bootId"] for m in world.records("reboot/boot")], ["boot-1"])
        host = world.kill()
        host.alive = {}
        world = DurableWorld(host, BOOT)
        self.assertEqual(len(world.executor.launches), 1)


class TroubleTests(SynchronousTestCase):
    """What happens when the store cannot say whether the job has run."""

    def setUp(self) -> None:
        self.host = Host(NOON)

    def begun(self, policy: str, trouble: str) -> DurableWorld:
        world = DurableWorld(self.host, BOOT, up=False)
        state = StateConfig(path="/state", on_store_unavailable=policy)
        if trouble == "down":
            world.faults.fail("make_directory", "create")
        world.start(state) if trouble == "down" else world.use(state)
        if trouble in ("read", "create"):
            world.faults.fail(trouble, match="" if trouble == "create" else "reboot%2F")
        if trouble == "hang":
            world.stick()
        if trouble != "down":
            world.boot.begin(world.runs.jobs)
            world.run(11)
        return world

    def test_degrade(self) -> None:
        """Under degrade it runs, whatever is wrong with the store."""
        for trouble in ("down", "read", "create", "hang"):
            self.host = Host(NOON)
            DurableWorld(self.host, BOOT).executor.live[0].exit()
            self.host.boot_id = "boot-2"
            world = self.begun("degrade", trouble)
            self.assertEqual(len(world.executor.launches), 1, trouble)

    def test_fail_closed(self) -> None:
        """Under fail-closed it is skipped, and the slot says why."""
        for trouble in ("down", "read", "create", "hang"):
            self.host = Host(NOON)
            DurableWorld(self.host, BOOT).executor.live[0].exit()
            self.host.boot_id = "boot-2"
            world = self.begun("fail-closed", trouble)
            self.assertEqual(world.executor.launches, [], trouble)
            self.assertEqual(world.results("boot"), {("skipped", "store"): 1}, trouble)

    def test_budget(self) -> None:
        """A store that hangs delays the boot run by ten seconds, not more."""
        world = self.begun("degrade", "hang")
        self.assertEqual(world.started("boot"), [NOON + 10])
        world.unstick()
        world.run(1)
        self.assertEqual(len(world.executor.launches), 1)

    def test_stop_while_it_hangs(self) -> None:
        """A stop does not wait for a store that hangs."""
        world = DurableWorld(self.host, BOOT, up=False)
        world.use(STATE)
        world.stick()
        world.boot.begin(world.runs.jobs)
        world.scheduler.quiesce()
        world.boot.stop()
        world.memory.stop()
        world.runs.quiesce()
        self.successResultOf(world.runs.when_drained())
        self.assertEqual(world.results("boot"), {("missed", "shutdown"): 1})
        self.assertEqual(world.executor.launches, [])
