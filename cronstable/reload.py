"""
Reload: a changed configuration is parsed off the reactor thread and put in force, or refused.

One parse at a time; requests that arrive before it share it, one that arrives during it gets a
parse of its own.  A refused configuration changes nothing.  docs/reload.md tells the rules.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from twisted.application.service import Service

from cronstable.clock import Clock
from cronstable.config.errors import ConfigError
from cronstable.config.sources import Source
from cronstable.config.watch import Attempt, Decision
from cronstable.service import background
from cronstable.sources import Configured, Sources
from cronstable.threads import in_thread

log = logging.getLogger("cronstable")

Apply = Callable[[Configured], Awaitable[None]]


class ReloadService(Service):
    """
    Asks once a minute, and on request, whether the sources changed, and applies what they say.

    C{apply} is awaited on the reactor's thread; the next parse waits for it.
    """

    def __init__(self, reactor: Any, clock: Clock, sources: Sources, apply: Apply) -> None:
        self.last_success: float = clock.now()
        """Epoch seconds of the last installed configuration."""
        self.busy = False
        self._reactor = reactor
        self._clock = clock
        self._sources = sources
        self._apply = apply
        self._requested = False

    @property
    def successful(self) -> bool:
        """Whether what is on the disk is what is in force, as far as is known."""
        return self._sources.watch.successful

    def request(self) -> None:
        """Reload now, even if nothing seems to have changed."""
        log.info("Reload requested (SIGHUP); reloading configuration")
        self._requested = True
        self.check()

    def check(self) -> None:
        """Look at the sources and reload if they changed; a reload under way goes on."""
        if self.running and not self.busy:
            self.busy = True
            background("reloading the configuration", self._passes())

    async def _passes(self) -> None:
        try:
            await self._pass()
            while self._requested and self.running:
                await self._pass()
        finally:
            self.busy = False

    async def _pass(self) -> None:
        requested, self._requested = self._requested, False
        configured = await in_thread(self._reactor, "reload", self._look, requested)
        if configured is not None and self.running:
            await self._apply(configured)
            self.last_success = self._clock.now()

    def _look(self, requested: bool) -> Configured | None:
        watch = self._sources.watch
        decision = watch.should_parse(requested)
        if decision is Decision.WARN:
            log.warning("%s", watch.changed_message)
        if decision is not Decision.PARSE:
            return None
        attempt = watch.begin(requested)
        try:
            loaded, configured = self._sources.again()
        except ConfigError as error:
            self._refuse(attempt, str(error), error.sources)
            return None
        except Exception as error:
            log.exception("please report this as a bug (1)")
            self._refuse(attempt, repr(error), ())
            return None
        if watch.gave_nothing(loaded.sources):
            watch.empty_read(attempt)
            log.warning("%s", watch.empty_message)
            return None
        watch.loaded(attempt, loaded.sources, loaded.listings)
        return configured

    def _refuse(self, attempt: Attempt, error: str, sources: Sequence[Source]) -> None:
        if self._sources.watch.refused(attempt, error, sources):
            log.error(
                "Error in configuration file(s), so not updating any of the config.:\n%s", error
            )
