"""
Reload: a changed configuration is parsed off the reactor thread and put in force, or refused.

One parse at a time; requests that arrive before it share it, one that arrives during it gets a
parse of its own.  A refused configuration changes nothing.  docs/reload.md tells the rules.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred

from cronstable.clock import Clock
from cronstable.config.errors import ConfigError
from cronstable.config.load import Loaded
from cronstable.config.watch import Decision, SourceWatch
from cronstable.service import background
from cronstable.threads import in_thread

log = logging.getLogger("cronstable")

SWITCH_INTERVAL = 0.0005
"""Seconds that the parsing thread may keep the interpreter while the reactor waits for it."""

Parse = Callable[[], Loaded]
Apply = Callable[[Loaded], "Deferred[None]"]


class ReloadService(Service):
    """
    Asks once a minute, and on request, whether the sources changed, and applies what they say.

    C{parse} runs on a thread; C{apply} on the reactor's, and the next parse waits for it.
    """

    def __init__(
        self, reactor: Any, clock: Clock, watch: SourceWatch, parse: Parse, apply: Apply
    ) -> None:
        self.last_success: float = clock.now()
        """Epoch seconds of the last installed configuration."""
        self._reactor = reactor
        self._clock = clock
        self._watch = watch
        self._parse = parse
        self._apply = apply
        self._requested = False
        self._busy = False

    @property
    def successful(self) -> bool:
        """Whether what is on the disk is what is in force, as far as is known."""
        return self._watch.successful

    def request(self) -> None:
        """Reload now, even if nothing seems to have changed."""
        log.info("Reload requested (SIGHUP); reloading configuration")
        self._requested = True
        self.check()

    def check(self) -> None:
        """Look at the sources and reload if they changed; a reload under way goes on."""
        if self.running and not self._busy:
            self._busy = True
            background("reloading the configuration", self._pass())

    async def _pass(self) -> None:
        again = False
        try:
            again = await self._once()
        finally:
            self._busy = False
        if again and self.running:
            self.check()

    async def _once(self) -> bool:
        requested, self._requested = self._requested, False
        outcome = await in_thread(self._reactor, "reload", self._look, requested)
        if isinstance(outcome, Loaded) and self.running:
            await self._apply(outcome)
            self.last_success = self._clock.now()
        return self._requested

    def _look(self, requested: bool) -> Loaded | None:
        decision = self._watch.should_parse(requested)
        if decision is Decision.WARN:
            log.warning("%s", self._watch.changed_message)
        if decision is not Decision.PARSE:
            return None
        attempt = self._watch.begin(requested)
        switch_interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL)
        try:
            loaded = self._parse()
        except ConfigError as error:
            self._refuse(attempt, str(error), getattr(error, "sources", ()))
            return None
        except Exception as error:
            log.exception("please report this as a bug (1)")
            self._refuse(attempt, repr(error), ())
            return None
        finally:
            sys.setswitchinterval(switch_interval)
        if self._watch.gave_nothing(loaded.sources):
            self._watch.empty_read(attempt)
            log.warning("%s", self._watch.empty_message)
            return None
        self._watch.loaded(attempt, loaded.sources, loaded.listings)
        return loaded

    def _refuse(self, attempt: Any, error: str, sources: Any) -> None:
        if self._watch.refused(attempt, error, sources):
            log.error(
                "Error in configuration file(s), so not updating any of the config.:\n%s", error
            )
