"""
The job API of a daemon: one endpoint on the loopback interface, and what each run is given for it.

It is served while there is a C{state} section whose C{jobApi} is on; nothing heavy is imported
before.  Trouble with the endpoint never keeps a job from running.  docs/job-api.md tells jobs
and operators what they may rely on.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import Deferred, DeferredLock

from cronstable.clock import Clock
from cronstable.config.sections_values import JobApiConfig, StateConfig
from cronstable.config.sources import Stamps
from cronstable.identity import Identity
from cronstable.jobapi.callers import Caller
from cronstable.jobapi.client import TOKEN
from cronstable.jobapi.desk import Desk
from cronstable.jobapi.holds import Holds
from cronstable.jobapi.listener import (
    CannotListen,
    Endpoint,
    open_endpoint,
    signature_of,
)
from cronstable.jobapi.staging import Staging
from cronstable.jobapi.variables import variables
from cronstable.runs.environment import NOTHING, Prepared, RunFacts
from cronstable.service import Waiters, background
from cronstable.state.errors import TROUBLE
from cronstable.state.service import StoreService
from cronstable.state.workers import within
from cronstable.threads import in_thread

log = logging.getLogger("cronstable.jobapi")

OPENED_WITHIN = 5.0
"""Seconds that a run waits for an endpoint that is being opened."""

RELEASED_WITHIN = 5.0
"""Seconds that a stopping daemon waits for the locks of its last runs to be given back."""


class JobApiService:
    """
    Serves running jobs (a L{cronstable.runs.environment.RunEnvironment}).

    C{expect} tells it a new C{state} section before a run can start under it, C{reconcile} puts
    the section in force, C{each_minute} looks after the endpoint, C{stop} ends it.
    """

    def __init__(
        self,
        reactor: Any,
        clock: Clock,
        identity: Identity,
        store: StoreService,
        environ: Mapping[str, str],
    ) -> None:
        self._reactor = reactor
        self._clock = clock
        self._identity = identity
        self._state: StateConfig | None = None
        self._holds = Holds(clock, store)
        self._desk = Desk(clock, store)
        self._staging = Staging(reactor, clock, environ)
        self._lock = DeferredLock()
        self._site: Any = None
        self._endpoint: Endpoint | None = None
        self._creator: Any = None
        self._signature: Stamps = ()
        self._said: str | None = None
        self._opening: Waiters | None = None
        """Who waits for the endpoint while it is being opened."""
        self._stopped = False

    @property
    def url(self) -> str | None:
        """Where jobs find the endpoint, None while there is none."""
        return None if self._endpoint is None else self._endpoint.url

    # the life of a run

    def prepare(self, run: RunFacts) -> Prepared | Deferred[Prepared]:
        """Let a run in, stage its secrets, and return what tells it of that."""
        if self._state is None:
            return NOTHING
        if self._opening is not None or self._staging.takes_time(run.job):
            return Deferred.fromCoroutine(self._prepare(run))
        return self._give(run, self._staging.stage(run.job))

    def ended(self, ref: str) -> None:
        """Let the run in no more, forget its secrets, and give back its locks."""
        caller = self._desk.callers.remove(ref)
        if caller is None:
            return
        caller.secrets = {}
        for hunt in tuple(caller.hunts):
            hunt.give_up()
        self._holds.release_all(caller)

    async def _prepare(self, run: RunFacts) -> Prepared:
        if self._opening is not None:
            await self._opened()
        return self._give(run, await self._staging.stage_in_time(run.job))

    def _give(self, run: RunFacts, staged: Mapping[str, str]) -> Prepared:
        if self._endpoint is None or self._wanted is None or self._stopped:
            return Prepared(secrets.token_hex(16))
        caller = Caller(run, secrets.token_hex(16), secrets.token_hex(32), staged)
        self._desk.callers.add(caller)
        ca = self._desk.config.tls.ca
        told = variables(
            run,
            caller.run_id,
            self._identity.host,
            self._endpoint.url,
            None if ca is None else os.path.abspath(ca),
        )
        return Prepared(caller.run_id, told, {TOKEN: caller.token}, tuple(staged.values()))

    async def _opened(self) -> None:
        """Wait for the endpoint, but not for long."""
        assert self._opening is not None
        try:
            await within(self._clock, OPENED_WITHIN, self._opening.wait())
        except TROUBLE:
            log.warning("state job API: not opened in time for a job, which runs without it")

    # the endpoint

    def expect(self, state: StateConfig | None) -> None:
        """Learn of a new section: runs that start from now on wait for what it asks for."""
        self._state = state
        if state is not None:
            self._desk.config = state.job_api
        if self._wanted is not None and not self._is_open and self._opening is None:
            self._opening = Waiters()

    async def reconcile(self, state: StateConfig | None) -> None:
        """Put a C{state} section in force; what is wrong with the endpoint is told in the log."""
        self.expect(state)
        await self._lock.run(self._apply)

    def each_minute(self) -> None:
        """Try again what did not work, and take TLS files that have changed."""
        if self._wanted is not None and not self._stopped:
            background("looking after the job API", self._look_after())

    async def stop(self) -> None:
        """Let nobody in any more, and give back what is held; repeating it does nothing."""
        if self._stopped:
            return
        self._stopped = True
        for caller in self._desk.callers.all():
            self.ended(caller.run.ref)
        try:
            await within(self._clock, RELEASED_WITHIN, self._holds.when_released())
        except TROUBLE:
            log.warning(
                "state job API: locks could not be given back in time; they end by their time"
            )
        await self._lock.run(self._close)
        if self._site is not None:
            self._site.close_connections()
        self._staging.stop()

    async def _look_after(self) -> None:
        await self._lock.run(self._apply)

    @property
    def _wanted(self) -> JobApiConfig | None:
        state = self._state
        return state.job_api if state is not None and state.job_api.enabled else None

    @property
    def _is_open(self) -> bool:
        """Whether the endpoint that is wanted is served."""
        wanted, endpoint = self._wanted, self._endpoint
        return endpoint is not None and wanted is not None and endpoint.listen == wanted.listen

    async def _apply(self) -> None:
        wanted = self._wanted
        try:
            if not self._is_open:
                await self._close()
            if wanted is not None and not self._stopped:
                await self._serve(wanted)
        finally:
            opening, self._opening = self._opening, None
            if opening is not None:
                opening.tell()

    async def _serve(self, wanted: JobApiConfig) -> None:
        """Open the endpoint, or let the open one have what has changed."""
        try:
            await self._load(wanted)
            if self._endpoint is None:
                factory = self._factory(wanted)
                self._endpoint = await open_endpoint(self._reactor, wanted, factory)
                log.info("state job API listening on %s", self._endpoint.url)
            self._said = None
        except CannotListen as error:
            self._complain(str(error))
        except Exception:
            log.exception("please report this as a bug (8)")

    async def _close(self) -> None:
        endpoint, self._endpoint = self._endpoint, None
        self._signature, self._creator = (), None
        if endpoint is not None:
            await endpoint.close()

    async def _load(self, wanted: JobApiConfig) -> None:
        """Have the certificate that is in its file now."""
        signature = signature_of(wanted.tls)
        if not wanted.tls.cert or signature == self._signature:
            return
        from cronstable import tls
        from cronstable.config.sections_values import TlsFiles

        # The authority is for jobs to judge by: nobody shows a certificate here.
        files = TlsFiles(wanted.tls.cert, wanted.tls.key)
        try:
            options = await in_thread(self._reactor, "tls", tls.load, files)
        except tls.MaterialError as error:
            raise CannotListen(str(error)) from None
        if self._creator is None:
            self._creator = tls.Creator(options)
        else:
            self._creator.options = options
        self._signature = signature

    def _factory(self, wanted: JobApiConfig) -> Any:
        if self._site is None:
            from cronstable.jobapi.requests import JobSite
            from cronstable.jobapi.routes import Routes

            routes = Routes(self._desk, self._identity, self._holds)
            self._site = JobSite(routes, self._reactor, routes.body_for)
        if not wanted.tls.cert:
            return self._site
        from cronstable import tls

        return tls.wrapped(self._creator, self._site, self._clock)

    def _complain(self, reason: str) -> None:
        if reason == self._said:
            return
        self._said = reason
        if self._endpoint is not None:
            log.warning("state job API: %s; it stays as it is", reason)
        else:
            log.error("state job API: %s; jobs run without it", reason)
