"""
The secrets of a run: resolved anew at each launch, kept in memory, and nowhere else.

docs/job-state.md, "Secrets", tells operators what happens to one that cannot be had.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from cronstable.clock import Clock
from cronstable.config.secret_values import SecretResolver, SecretUnavailable
from cronstable.config.values import JobConfig, NamedSecret
from cronstable.state.errors import TROUBLE
from cronstable.state.workers import Workers, within

log = logging.getLogger("cronstable.jobapi")

STAGED_WITHIN = 10.0
"""Seconds that a launch waits for the files of its secrets."""

READERS = 16
"""Threads that read the files of secrets."""


class Staging:
    """Resolves secrets; what cannot be had is a warning and is left out."""

    def __init__(self, reactor: Any, clock: Clock, environ: Mapping[str, str]) -> None:
        self._clock = clock
        self._resolve = SecretResolver(environ)
        self._readers = Workers(reactor, clock, "secret", READERS)

    def takes_time(self, job: JobConfig) -> bool:
        """Return whether a file has to be read."""
        return any(_is_in_file(named) for named in job.secrets)

    def stage(self, job: JobConfig) -> dict[str, str]:
        """Return the secrets of C{job} by name; this reads files if it takes time."""
        return _had({named.name: self._value(job, named) for named in job.secrets})

    async def stage_in_time(self, job: JobConfig) -> dict[str, str]:
        """Return the secrets of C{job} by name, without those whose files do not answer in time."""
        asked = {named.name: self._ask(job, named) for named in job.secrets}
        return _had({name: await value for name, value in asked.items()})

    def _ask(self, job: JobConfig, named: NamedSecret) -> Deferred[str | None]:
        if not _is_in_file(named):
            return succeed(self._value(job, named))

        def not_had(failure: Failure) -> None:
            failure.trap(*TROUBLE)
            self._warn(job, named, failure.value)

        reading = self._readers.run(lambda: self._value(job, named))
        return within(self._clock, STAGED_WITHIN, reading).addErrback(not_had)

    def _value(self, job: JobConfig, named: NamedSecret) -> str | None:
        try:
            return self._resolve(named.secret, f"secrets.{named.name}")
        except SecretUnavailable as error:
            self._warn(job, named, error)
            return None

    def _warn(self, job: JobConfig, named: NamedSecret, error: object) -> None:
        log.warning("Job %s: could not stage secret %r: %s", job.name, named.name, error)

    def stop(self) -> None:
        """Let the threads end."""
        self._readers.stop()


def _is_in_file(named: NamedSecret) -> bool:
    return not named.secret.value and bool(named.secret.from_file)


def _had(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}
