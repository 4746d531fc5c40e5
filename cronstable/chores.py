"""The chores of each wall-clock minute, away from the full minute, when jobs start."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from twisted.application.service import Service
from twisted.internet.interfaces import IDelayedCall

from cronstable.clock import Clock

log = logging.getLogger("cronstable")

SECOND_OF_MINUTE = 31.5
"""Seconds after the full minute."""

Chore = Callable[[], object]


class Chores(Service):
    """Does each chore once a minute; one that fails is logged and stops no other."""

    def __init__(self, clock: Clock, chores: Sequence[Chore]) -> None:
        self._clock = clock
        self._chores = tuple(chores)
        self._wake: IDelayedCall | None = None

    def startService(self) -> None:
        """Begin with the next minute."""
        super().startService()
        self._sleep()

    def stopService(self) -> None:
        """Do nothing any more."""
        super().stopService()
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None

    def _sleep(self) -> None:
        into = self._clock.now() % 60.0
        self._wake = self._clock.callLater((SECOND_OF_MINUTE - into) % 60.0 or 60.0, self._do)

    def _do(self) -> None:
        self._wake = None
        for chore in self._chores:
            try:
                chore()
            except Exception:
                log.exception("please report this as a bug (1)")
        if self.running:
            self._sleep()
