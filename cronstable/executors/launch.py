"""
The life of one launch: deadline, kill sequence, and the wait for streams that stay open.

docs/executors.md, "How a run ends", specifies it.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall

from cronstable.clock import Clock
from cronstable.executors.cgroups import Cage
from cronstable.executors.child import Child
from cronstable.executors.interfaces import (
    CapsReport,
    EndCause,
    Ended,
    LaunchSpec,
    Leftover,
    Usage,
)
from cronstable.executors.sampling import Samples

log = logging.getLogger("cronstable")

HELD_AFTER = 10.0
"""Seconds after the exit at which whoever still holds a stream is named."""

DRAIN_LIMIT = 30.0
"""Seconds that streams may stay open after a kill sequence."""


class House(Protocol):
    """What a launch needs of its executor."""

    clock: Clock

    def gone(self, launch: Launch) -> None:
        """The launch is over."""

    def holders(self, pid: int, inodes: frozenset[int]) -> Deferred[tuple[Leftover, ...]]:
        """Find who has these pipes open; never fails and never takes long."""


class Launch:
    """One launch, from the request to its end."""

    __slots__ = (
        "_child",
        "_deadline",
        "_failure",
        "_grace",
        "_held",
        "_house",
        "_intent",
        "_kill",
        "_kill_at",
        "_killed",
        "_leftovers",
        "_output_cut",
        "_over",
        "_paused",
        "_pid",
        "_reason",
        "_status",
        "_usage",
        "asked_at",
        "cage",
        "exited",
        "looking",
        "memo",
        "observer",
        "ref",
        "samples",
        "spec",
        "waited",
        "waited_for_room",
    )

    def __init__(
        self, house: House, ref: str, spec: LaunchSpec, memo: Mapping[str, Any], observer: Any
    ) -> None:
        self._house = house
        self.ref = ref
        self.spec = spec
        self.memo = memo
        self.observer = observer
        self.asked_at = house.clock.seconds()
        self.waited = False
        """Whether it did not start in the turn in which it was asked for."""
        self.waited_for_room = False
        self.looking: tuple[IDelayedCall, ...] = ()
        """Timers of a launch whose places are being looked at."""
        self.exited = False
        self.cage: Cage | None = None
        self.samples: Samples | None = None
        self._child: Child | None = None
        self._pid: int | None = None
        self._failure: Callable[[int], str | None] | None = None
        self._status: int | None = None
        self._usage: Any = None
        self._intent: EndCause | None = None
        self._reason: str | None = None
        self._kill_at = 0.0
        self._killed = False
        self._output_cut = False
        self._over = False
        self._leftovers: tuple[Leftover, ...] = ()
        self._paused: set[str] = set()
        self._deadline: IDelayedCall | None = None
        self._kill: IDelayedCall | None = None
        self._held: IDelayedCall | None = None
        self._grace: IDelayedCall | None = None

    # What the executor asks

    @property
    def pid(self) -> int | None:
        """The process, also its session and group; None before it was started."""
        return self._pid

    @property
    def running(self) -> bool:
        """Whether the main process was started and not yet reaped."""
        return self._pid is not None and not self.exited

    def tell(self, name: str, *arguments: Any) -> None:
        """Tell the observer; what it does wrong is logged and harms nobody else."""
        try:
            getattr(self.observer, name)(*arguments)
        except Exception:
            log.exception("telling the observer of %s %r failed", self.ref, name)

    def wanted(self) -> bool:
        """Return whether a launch that waited should still happen."""
        try:
            return bool(self.observer.wanted())
        except Exception:
            log.exception("asking whether %s is wanted failed", self.ref)
            return False

    def stop_looking(self) -> None:
        """Its places answer, or nobody waits for them any more."""
        for timer in self.looking:
            if timer.active():
                timer.cancel()
        self.looking = ()

    def begin(self, child: Child, failure: Callable[[int], str | None]) -> None:
        """The process runs: start its deadline, and tell; C{failure} is L{Spawned.failure}."""
        self._child, self._pid = child, child.pid
        self._failure = failure
        for name in self._paused:
            child.pause(name, True)
        if self.spec.execution_timeout is not None:
            self._deadline = self._house.clock.callLater(
                self.spec.execution_timeout, self._timed_out
            )
        self.tell("started", child.pid)
        if self.cage is not None and self.cage.reason is not None:
            self.tell("notice", "uncapped", self.cage.reason)

    def never(self, cause: EndCause, reason: str | None = None) -> None:
        """End a launch that has no process."""
        self._finish(Ended(cause, reason=reason, caps=self._caps()))

    def refused(self, reason: str) -> None:
        """End a launch whose required caps cannot be applied."""
        caps = self._caps() or CapsReport(False)
        caps = attrs.evolve(caps, enforced=False, refused=True, reason=reason)
        self._finish(Ended("not-started", reason=reason, caps=caps))

    def cancel(self, grace: float) -> None:
        """End the process, unless something else already does so sooner."""
        if self._over or self._child is None:
            return
        if self._intent is not None:
            self._shorten(grace)
            return
        self._intent = "cancelled"
        self._end_it(grace)

    def intend(self, cause: EndCause, reason: str | None) -> None:
        """State how this launch will have ended, unless something else did before."""
        if self._intent is None:
            self._intent, self._reason = cause, reason

    def pause(self, stream: str, paused: bool) -> None:
        """Stop or resume reading a stream, started or not."""
        if paused:
            self._paused.add(stream)
        else:
            self._paused.discard(stream)
        if self._child is not None:
            self._child.pause(stream, paused)

    # What the child tells

    def child_output(self, name: str, data: bytes) -> None:
        """Pass output on."""
        try:
            self.observer.output(name, data)
        except Exception:
            log.exception("telling the observer of %s 'output' failed", self.ref)

    def child_closed(self, name: str) -> None:
        """The last stream to close after the exit ends the launch."""
        if self.exited and self._child is not None and not self._child.open_outputs:
            self._end()

    def child_exited(self, status: int | None, usage: Any) -> None:
        """Take the status; wait for the streams that are still open."""
        self.exited = True
        self._status, self._usage = status, usage
        if status is None and self._reason is None:
            self._reason = "the exit status is lost: another part of the system took it"
        self._cancel_timer("_kill")
        self.tell("exited", status)
        if self._child is None or not self._child.open_outputs:
            self._end()
        elif self._intent is None or self._intent == "not-started":
            self._await_streams()
        else:
            self._drain()

    def _await_streams(self) -> None:
        later = self._house.clock.callLater
        self._held = later(HELD_AFTER, self._find_holders)
        if self.spec.output_grace is not None:
            self._grace = later(self.spec.output_grace, self._cut)

    def child_ending(self, status: int) -> None:
        """Kill what is left of the group while its id cannot be anybody else's."""
        if self._intent in ("timeout", "cancelled"):
            self._kill_group()
        elif self._failure is not None:
            reason = self._failure(status)
            if reason is not None:
                self.intend("not-started", reason)

    # The kill sequence

    def _timed_out(self) -> None:
        self._deadline = None
        if self._over or self._intent is not None:
            return
        self._intent = "timeout"
        self.tell("notice", "timeout", "")
        self._end_it(self.spec.kill_timeout)

    def _end_it(self, grace: float) -> None:
        self._signal(signal.SIGTERM)
        if self._over:
            return
        if self.exited:
            self._kill_group()
            self._drain()
        else:
            self._arm_kill(grace)

    def _shorten(self, grace: float) -> None:
        if self._kill is not None and self._kill_at > self._house.clock.seconds() + grace:
            self._cancel_timer("_kill")
            self._arm_kill(grace)

    def _arm_kill(self, grace: float) -> None:
        self._kill_at = self._house.clock.seconds() + grace
        self._kill = self._house.clock.callLater(grace, self._kill_now, grace)

    def _kill_now(self, grace: float) -> None:
        self._kill = None
        if self.exited:
            return
        self._killed = True
        self.tell("notice", "killing", f"{grace:g}")
        self._kill_group()

    def _kill_group(self) -> None:
        self._signal(signal.SIGKILL)
        if self.cage is not None:
            self.cage.kill()

    def _signal(self, number: int) -> None:
        if self._child is None:
            return
        refused = self._child.signal_group(number)
        if refused is not None:
            text = os.strerror(refused.errno or 0)
            self.tell("notice", "unsignalled", f"(pid {self._child.pid}): {text}")

    # The streams

    def _drain(self) -> None:
        self._cancel_timer("_held")
        self._cancel_timer("_grace")
        self._grace = self._house.clock.callLater(DRAIN_LIMIT, self._cut)

    def _find_holders(self) -> None:
        self._held = None
        self._with_holders(self._told_holders)

    def _told_holders(self, found: tuple[Leftover, ...]) -> None:
        if self._over or (not found and self._paused):
            return
        self._leftovers = found
        self.tell("held_open", found)

    def _cut(self) -> None:
        """Name who holds the streams, then close our ends of them."""
        self._grace = None
        self._with_holders(self._cut_now)

    def _cut_now(self, found: tuple[Leftover, ...]) -> None:
        if self._over or self._child is None:
            return
        self._leftovers = found or self._leftovers
        self._output_cut = True
        self._child.cut_outputs()

    def _with_holders(self, then: Callable[[tuple[Leftover, ...]], None]) -> None:
        if not self._over and self._child is not None:
            child = self._child
            self._house.holders(child.pid, child.inodes()).addCallback(then)

    # The end

    def _end(self) -> None:
        self._finish(
            Ended(
                self._intent or "exited",
                status=None if self._intent == "not-started" else self._status,
                reason=self._reason,
                killed=self._killed,
                output_cut=self._output_cut,
                leftovers=self._leftovers,
                usage=self._final_usage(),
                caps=self._caps(),
            )
        )

    def _final_usage(self) -> Usage | None:
        if self.samples is None:
            return None
        return self.samples.final(self._usage)

    def _caps(self) -> CapsReport | None:
        return None if self.cage is None else self.cage.report()

    def _finish(self, ended: Ended) -> None:
        if self._over:
            return
        self._over = True
        self.stop_looking()
        for timer in ("_deadline", "_kill", "_held", "_grace"):
            self._cancel_timer(timer)
        # The child refers to this launch: without the circle both are gone at once.
        self._child = None
        self._house.gone(self)
        self.tell("ended", ended)

    def _cancel_timer(self, name: str) -> None:
        timer = getattr(self, name)
        if timer is not None and timer.active():
            timer.cancel()
        setattr(self, name, None)
