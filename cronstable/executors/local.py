"""
Processes that live and die with this daemon: the executor that is there by default.

docs/executors.md tells users what a process finds, and how it ends.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.python.failure import Failure
from zope.interface import implementer

from cronstable.clock import Clock
from cronstable.executors.cgroups import CapsSupport, Cgroups, Refused
from cronstable.executors.child import Child
from cronstable.executors.holders import find_holders
from cronstable.executors.interfaces import IExecutor, LaunchSpec, Leftover
from cronstable.executors.launch import Launch
from cronstable.executors.program import NoRoom, NotStarted
from cronstable.executors.reach import Reach
from cronstable.executors.sampling import Sampler, Samples
from cronstable.executors.spawn import Spawned, Spawner
from cronstable.executors.turns import Turns
from cronstable.threads import in_thread

log = logging.getLogger("cronstable")

TRY_AGAIN = 0.25
"""Seconds after which launches without room are tried again, if no run has ended before."""

WARN_AGAIN = 60.0
"""Seconds after which launches that find no room are warned of again."""

SOON = 2.0
"""Seconds in which a directory or a program answers that is not said to be missing."""

LOOK_LIMIT = 5.0
"""Seconds that naming who holds a stream may take."""


@implementer(IExecutor)
class LocalExecutor:
    """
    Launches processes in this daemon's own system; none outlives it as a launch.

    Many starts, ends or kills at once are spread over reactor turns, in order.
    """

    def __init__(
        self,
        reactor: Any,
        clock: Clock,
        *,
        spawner: Spawner | None = None,
        reach: Reach | None = None,
    ) -> None:
        self.clock = clock
        self._reactor = reactor
        self._spawner = spawner or Spawner()
        self._cgroups = Cgroups()
        self._in_thread = partial(in_thread, reactor, "proc")
        self._reach = reach or Reach(clock, self._in_thread)
        self._sampler = Sampler(clock, self._in_thread)
        self._launches: dict[str, Launch] = {}
        self._starts = Turns(clock)
        self._ends = Turns(clock)
        self._signals = Turns(clock)
        self._no_room: deque[Launch] = deque()
        self._why_short = ""
        self._warn_at = float("-inf")
        self._again: IDelayedCall | None = None
        self._again_at = 0.0
        self._look_at = float("-inf")

    # IExecutor

    def launch(self, ref: str, spec: LaunchSpec, memo: Mapping[str, Any], observer: Any) -> None:
        """Start C{spec} now, or as soon as the system has room for it; tell C{observer}."""
        if ref in self._launches:
            return
        launch = self._launches[ref] = Launch(self, ref, spec, memo, observer)
        unsure = self._reach.unsure(spec)
        if unsure:
            launch.waited = True
            self._look_first(launch, unsure)
        else:
            self._line_up(launch)

    def attach(self, ref: str, observer: Any, offset: int) -> bool:
        """Nothing survives the daemon that launched it: False."""
        return False

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """Nothing was kept from an earlier scheduler."""
        return {}

    def note(self, ref: str, memo: Mapping[str, Any]) -> None:
        """Replace the memo of a launch."""
        launch = self._launches.get(ref)
        if launch is not None:
            launch.memo = memo

    def cancel(self, ref: str, grace: float) -> bool:
        """End a launch: SIGTERM to its group, SIGKILL C{grace} seconds later."""
        launch = self._launches.get(ref)
        if launch is None:
            return False
        if launch.pid is None:
            if launch in self._no_room:
                self._no_room.remove(launch)
            launch.never("cancelled")
        else:
            self._signals.do(launch.cancel, grace)
        return True

    def flow(self, ref: str, stream: str, paused: bool) -> None:
        """Stop or resume reading a captured stream."""
        launch = self._launches.get(ref)
        if launch is not None:
            launch.pause(stream, paused)

    def ack(self, ref: str, offset: int) -> None:
        """Nothing is kept here that could be forgotten."""

    # What others may ask

    def __len__(self) -> int:
        """Return how many launches are not over, waiting ones included."""
        return len(self._launches)

    @property
    def waiting(self) -> int:
        """How many launches wait for their turn or for room."""
        return len(self._starts) + len(self._no_room)

    def pids(self) -> frozenset[int]:
        """Return the processes that this executor will reap itself."""
        return frozenset(
            launch.pid
            for launch in self._launches.values()
            if launch.running and launch.pid is not None
        )

    def caps_support(self) -> CapsSupport:
        """Return whether this host can cap runs, without changing anything."""
        return self._cgroups.support()

    def stop(self) -> None:
        """
        Start nothing any more; launches that have no process end as withdrawn.

        What runs goes on, watched as before.
        """
        waiting = [launch for launch in self._launches.values() if launch.pid is None]
        self._starts.stop()
        self._no_room.clear()
        if self._again is not None and self._again.active():
            self._again.cancel()
        self._sampler.stop()
        for launch in waiting:
            launch.never("withdrawn", "the daemon is stopping")
        self._spawner.close()

    # What launches ask

    def gone(self, launch: Launch) -> None:
        """Forget a launch that is over; there may be room for another."""
        self._launches.pop(launch.ref, None)
        if self._no_room:
            self._try_again(0)

    def holders(self, pid: int, inodes: frozenset[int]) -> Deferred[tuple[Leftover, ...]]:
        """Find who has these pipes open; nobody, if that takes long or fails."""
        result: Deferred[tuple[Leftover, ...]] = Deferred()

        def told(found: tuple[Leftover, ...]) -> None:
            if timer.active():
                timer.cancel()
                result.callback(found)

        def failed(failure: Failure) -> None:
            log.warning("who holds the output of process %d is not known: %s", pid, failure.value)
            told(())

        timer = self.clock.callLater(LOOK_LIMIT, result.callback, ())
        self._in_thread(find_holders, pid, inodes).addCallback(told).addErrback(failed)
        return result

    # Starting

    def _look_first(self, launch: Launch, places: Sequence[str]) -> None:
        """Line C{launch} up once its places answer; give it up if they do not in its time."""
        place = places[0]
        why = f"{place} does not answer"
        left = launch.asked_at + launch.spec.start_within - self.clock.seconds()
        later = self.clock.callLater
        timers = (
            later(SOON, lambda: launch.tell("notice", "waiting", why)),
            later(max(left, SOON), lambda: self._give_up(launch, why)),
        )

        def reached(_: None) -> None:
            launch.stop_looking()
            if self._launches.get(launch.ref) is not launch:
                return
            if places[1:]:
                self._look_first(launch, places[1:])
            else:
                self._line_up(launch)

        launch.looking = timers
        self._reach.when_reached(place).addCallback(reached)

    def _line_up(self, launch: Launch) -> None:
        if self._no_room:
            self._wait_for_room(launch, "launches before this one wait for room")
        elif not self._starts.do(self._start, launch):
            launch.waited = True

    def _start(self, launch: Launch) -> None:
        if self._launches.get(launch.ref) is not launch:
            return
        if launch.waited and not launch.wanted():
            launch.never("withdrawn")
        elif self._no_room:
            self._wait_for_room(launch, "launches before this one wait for room")
        else:
            short = self._attempt(launch)
            if short is not None:
                self._wait_for_room(launch, short)

    def _attempt(self, launch: Launch) -> str | None:
        """Start a launch or end it; return why if it has to wait for room instead."""
        try:
            spawned = self._spawn(launch)
        except NoRoom as short:
            return str(short)
        except NotStarted as refused:
            launch.never("not-started", str(refused))
        except Refused as refused:
            launch.refused(f"the required resource limits cannot be applied: {refused}")
        except Exception as error:
            log.exception("starting %s failed", launch.ref)
            launch.never("not-started", f"starting it failed: {error}")
        else:
            self._begin(launch, spawned)
        return None

    def _spawn(self, launch: Launch) -> Spawned:
        spec = launch.spec
        if spec.caps is not None and launch.cage is None:
            launch.cage = self._cgroups.cage(spec.caps)
        spawned = self._spawner.spawn(spec)
        if launch.cage is not None and spec.caps is not None:
            launch.cage.enclose(spawned.pid)
            if spec.caps.required and launch.cage.reason is not None:
                spawned.undo()
                raise Refused(launch.cage.reason)
        if spec.nice is not None:
            try:
                os.setpriority(os.PRIO_PGRP, spawned.pid, spec.nice)
            except OSError as error:
                log.debug("nice %d for process %d: %s", spec.nice, spawned.pid, error)
        return spawned

    def _begin(self, launch: Launch, spawned: Spawned) -> None:
        spec = launch.spec
        child = Child(self._reactor, self.clock, self._ends, spawned, launch)
        if spec.sample_interval is not None:
            launch.samples = Samples(
                spec.sample_interval, spec.sample_history, self.clock.seconds()
            )
        launch.begin(child, spawned.failure)
        if launch.samples is not None:
            self._sampler.add(launch)

    # Room

    def _wait_for_room(self, launch: Launch, why: str) -> None:
        if self._expired(launch):
            self._give_up(launch, why)
            return
        if not launch.waited_for_room:
            launch.waited = launch.waited_for_room = True
            launch.tell("notice", "waiting", why)
        if not self._why_short and self.clock.seconds() >= self._warn_at:
            self._warn_at = self.clock.seconds() + WARN_AGAIN
            log.warning("a job cannot be started yet: %s; it waits for room", why)
        self._why_short = why if not self._no_room else self._why_short
        self._no_room.append(launch)
        self._try_again(TRY_AGAIN)

    def _expired(self, launch: Launch) -> bool:
        return self.clock.seconds() - launch.asked_at >= launch.spec.start_within

    def _give_up(self, launch: Launch, why: str) -> None:
        waited = self.clock.seconds() - launch.asked_at
        launch.never("not-started", f"{why} (waited {waited:.0f} seconds)")

    def _try_again(self, delay: float) -> None:
        at = self.clock.seconds() + delay
        if self._again is not None and self._again.active():
            if self._again_at <= at:
                return
            self._again.cancel()
        self._again_at = at
        self._again = self.clock.callLater(delay, self._room_again)

    def _room_again(self) -> None:
        self._again = None
        self._give_up_late()
        end = self.clock.seconds() + self._starts.budget
        short: str | None = None
        while self._no_room and self.clock.seconds() <= end:
            launch = self._no_room.popleft()
            if not launch.wanted():
                launch.never("withdrawn")
                continue
            short = self._attempt(launch)
            if short is not None:
                self._why_short = short
                self._no_room.appendleft(launch)
                break
        if self._no_room:
            self._try_again(TRY_AGAIN if short is not None else 0)
        else:
            self._why_short = ""

    def _give_up_late(self) -> None:
        """End those that have waited too long; looked at now and then, however many wait."""
        now = self.clock.seconds()
        if now < self._look_at:
            return
        self._look_at = now + TRY_AGAIN
        waiting, self._no_room = self._no_room, deque()
        for launch in waiting:
            if self._expired(launch):
                self._give_up(launch, self._why_short)
            else:
                self._no_room.append(launch)
