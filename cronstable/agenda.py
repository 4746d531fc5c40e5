"""Many calls at many times, one timer: a heap of what is due, in monotonic seconds."""

from __future__ import annotations

import heapq
import itertools
import logging
from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IDelayedCall

from cronstable.clock import Clock

log = logging.getLogger("cronstable")

SLICE = 0.005
"""Seconds of due calls made in one reactor turn before others get theirs."""


class Appointment:
    """One call to come; C{cancel} it or let it happen, once."""

    __slots__ = ("arguments", "call", "when")

    def __init__(self, when: float, call: Callable[..., object], arguments: Any) -> None:
        self.when = when
        self.call: Callable[..., object] | None = call
        self.arguments = arguments

    def cancel(self) -> None:
        """Drop the call; harmless when it was made or dropped already."""
        self.call = None
        self.arguments = ()

    @property
    def active(self) -> bool:
        """Whether the call is still to come."""
        return self.call is not None


class Agenda:
    """Makes each call when it is due, in order, a bounded slice of them per reactor turn."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Appointment]] = []
        self._order = itertools.count()
        self._wake: IDelayedCall | None = None
        self._wake_at = 0.0

    def after(self, delay: float, call: Callable[..., object], *arguments: Any) -> Appointment:
        """Make C{call} in C{delay} seconds; return what can cancel it."""
        appointment = Appointment(self._clock.seconds() + max(delay, 0.0), call, arguments)
        heapq.heappush(self._heap, (appointment.when, next(self._order), appointment))
        self._arm()
        return appointment

    def stop(self) -> None:
        """Drop every call."""
        for _, _, appointment in self._heap:
            appointment.cancel()
        self._heap.clear()
        self._disarm()

    def _arm(self) -> None:
        heap = self._heap
        while heap and heap[0][2].call is None:
            heapq.heappop(heap)
        if not heap:
            self._disarm()
            return
        if self._wake is not None:
            if self._wake_at == heap[0][0]:
                return
            self._disarm()
        self._wake_at = heap[0][0]
        wait = max(self._wake_at - self._clock.seconds(), 0.0)
        self._wake = self._clock.callLater(wait, self._run)

    def _disarm(self) -> None:
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None

    def _run(self) -> None:
        self._wake = None
        started = self._clock.seconds()
        while self._heap and self._heap[0][0] <= started:
            _, _, appointment = heapq.heappop(self._heap)
            call, arguments = appointment.call, appointment.arguments
            appointment.cancel()
            if call is None:
                continue
            try:
                call(*arguments)
            except Exception:
                log.exception("a timed call failed")
            if self._clock.seconds() - started > SLICE:
                break
        self._arm()
