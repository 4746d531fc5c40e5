"""
The daemon: builds the service tree from a configuration, applies a new one to it, and stops it.

docs/architecture.md draws the tree; docs/operations.md tells what an operator may rely on.
"""

from __future__ import annotations

import gc
import logging
import os
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred

from cronstable import platform
from cronstable.chores import Chores
from cronstable.clock import Clock, SystemClock, use_monotonic_timers
from cronstable.config.errors import ConfigError
from cronstable.config.sections_values import Config
from cronstable.identity import this_process
from cronstable.logfiles import LogFiles
from cronstable.logs import LoggingSection, MirroredHandler, bridge_twisted, mirror_the_log
from cronstable.reload import ReloadService
from cronstable.rooms import Rooms
from cronstable.runs.record import JobSetChanged
from cronstable.service import background, first_of, log_failure
from cronstable.signals import Signals
from cronstable.sources import Configured, Sources
from cronstable.threads import use_daemon_threads

log = logging.getLogger("cronstable")

SECOND_SIGNAL_AFTER = 1.0
"""Seconds after the first signal from which on another one ends what runs."""

REPORTS_DRAIN = 30.0
"""Seconds that reports get at the stop."""

STORE_PATIENCE = 2.0
"""Seconds that the listeners wait for a store to come up."""
CLOCK_NOT_SET_BEFORE = 1_577_836_800.0
"""The start of 2020: a clock that shows less has not been set."""

SERVED = frozenset({"logging", "web", "state"})
"""Sections that this release serves; the others load with a warning."""


class Daemon(Service):
    """
    The whole of a running cronstable.

    C{startService} starts the rooms in order; C{stop} stops them in phases and then the reactor.
    """

    def __init__(
        self, reactor: Any, clock: Clock, sources: Sources, environ: Mapping[str, str]
    ) -> None:
        self._reactor = reactor
        self._clock = clock
        self._sources = sources
        self.rooms = Rooms(reactor, clock, this_process(os.getpid()), environ)
        self.rooms.web.house.shutdown = self.stop
        self._logging = LoggingSection()
        self._log_files = LogFiles(lambda: MirroredHandler(self.rooms.mirror))
        self._signals = Signals(reactor, clock, self._stop_asked_at, self._reload_requested)
        self.reload = ReloadService(reactor, clock, sources, self._apply)
        self.rooms.facts.reloads = self.reload
        self.chores = Chores(clock, self._each_minute())
        self._stop_asked: float | None = None
        self._stopped: Deferred[None] | None = None
        self._unmirror: Callable[[], None] = lambda: None

    def startService(self) -> None:
        """Start every room; jobs that are due from now on run."""
        super().startService()
        if self._clock.now() < CLOCK_NOT_SET_BEFORE:
            log.warning("The clock is not set: it shows a time before 2020")
        self._reactor.callWhenRunning(self._begin)

    def stopService(self) -> Deferred[None]:
        """Stop in phases, when somebody else stops the reactor."""
        super().stopService()
        return self._stop_once()

    def stop(self) -> None:
        """
        Stop gracefully and end the reactor; asked again a second or more later, end what runs.
        """
        self._stop_asked_at(self._clock.seconds())

    def _stop_asked_at(self, when: float) -> None:
        if self._stop_asked is None:
            self._stop_asked = when
            self._stop_once().addErrback(
                lambda failure: log_failure("shutting down", failure)
            ).addBoth(lambda _: self._reactor.stop())
        elif when - self._stop_asked >= SECOND_SIGNAL_AFTER:
            log.warning("Asked to stop again: ending the jobs that still run")
            self.rooms.runs.cut()

    def _begin(self) -> None:
        platform.prepare_to_spawn()
        platform.raise_descriptor_limit()
        self._signals.install()
        self._unmirror = mirror_the_log(self.rooms.mirror)
        configured = self._sources.configured
        self._say(configured, None)
        self._apply_logging(configured.config)
        self.rooms.install(configured.config, configured.job_set_id, ())
        self._say_unenforced()
        self.rooms.start()
        background("opening the rooms", self._open(configured.config))
        self.chores.startService()
        self.reload.startService()
        # The classes that importing has left over are not worth the time of finding them here.
        _keep_what_is()

    async def _open(self, config: Config) -> None:
        # Who reads the API right after a restart should find the history there.
        store = background("starting the store", self.rooms.start_store(config))
        if config.state is not None:
            await first_of(self._clock, STORE_PATIENCE, store)
        await self.rooms.reconcile(config)

    def _each_minute(self) -> list[Any]:
        # The look at the sources comes last: slots are not recounted while a reload is under way.
        return [
            lambda: self._apply_logging(self._sources.configured.config),
            self._log_files.look,
            self._housekeeping,
            self.reload.check,
        ]

    def _housekeeping(self) -> None:
        self.rooms.each_minute(audit=not self.reload.busy)

    def _apply_logging(self, config: Config) -> None:
        if self._logging.apply(config.logging):
            self._log_files.guard()
            self._unmirror()
            self._unmirror = mirror_the_log(self.rooms.mirror)

    def _reload_requested(self) -> None:
        self._log_files.reopen()
        self.reload.request()

    async def _apply(self, configured: Configured) -> None:
        before = self._sources.configured
        self._sources.configured = configured
        self._say(configured, before.job_set_id)
        self.rooms.install(configured.config, configured.job_set_id, configured.zones_changed)
        self._say_unenforced()
        change = configured.diff.jobs
        self.rooms.bus.publish(
            JobSetChanged(change.added, change.removed, tuple(name for name, _ in change.changed))
        )
        await self.rooms.reconcile_store(configured.config)
        await self.rooms.reconcile(configured.config)
        self._apply_logging(configured.config)

    def _say(self, configured: Configured, id_before: str | None) -> None:
        for notice in configured.notices:
            logging.getLogger("cronstable.config").log(notice.level, "%s", notice.text)
        for name in unserved(configured.config):
            log.warning("The section %s: is valid, but this release does not serve it", name)
        for line in configured.diff.lines():
            log.info("%s", line)
        if configured.zones_changed:
            log.info("Time zone rules changed: %s", ", ".join(configured.zones_changed))
        if configured.job_set_id != id_before:
            count = len(configured.config.jobs)
            log.info("Job set id: %s (%d jobs)", configured.job_set_id, count)

    def _say_unenforced(self) -> None:
        for warning in self.rooms.unenforced():
            log.warning("%s", warning)

    def _stop_once(self) -> Deferred[None]:
        if self._stopped is None:
            self._stopped = Deferred.fromCoroutine(self._stop_in_phases())
        return self._stopped

    async def _stop_in_phases(self) -> None:
        log.info("Shutting down (after currently running jobs finish)...")
        if not self.reload.running:
            return
        self.chores.stopService()
        self.reload.stopService()
        self.rooms.quiesce()
        await self.rooms.drain(REPORTS_DRAIN)
        await self.rooms.close()
        self._unmirror()
        self._signals.remove()


def _keep_what_is() -> None:
    """Let the garbage collector look only at what is made from now on."""
    gc.freeze()
    gc.enable()


def unserved(config: Config) -> list[str]:
    """Return the names of the configured sections that this release does not serve."""
    sections = ("web", "mcp", "cluster", "state", "notify", "push", "dags", "pools")
    return [name for name in sections if getattr(config, name) and name not in SERVED]


def make(reactor: Any, path: str, environ: Mapping[str, str]) -> Daemon:
    """
    Return the daemon for the configuration at C{path}.

    Raises L{ConfigError}; nothing has been started then.
    """
    use_monotonic_timers(reactor)
    use_daemon_threads(reactor)
    clock = SystemClock(reactor)
    return Daemon(reactor, clock, Sources(path, environ, clock), environ)


def run(options: Namespace) -> int:
    """Run the daemon in the foreground until it is stopped; return the exit status."""
    from twisted.internet import reactor

    try:
        daemon = make(reactor, options.config, os.environ)
    except ConfigError as error:
        log.error("Configuration error: %s", error)
        return 1
    bridge_twisted()
    daemon.startService()
    reactor.run()  # type: ignore[attr-defined]
    return 0
