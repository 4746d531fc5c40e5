"""
The secrets of a run: resolved anew at each launch, kept in memory, and nowhere else.

docs/job-state.md, "Secrets", tells operators what happens to one that cannot be had.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from cronstable.clock import Clock
from cronstable.config.secret_values import SecretResolver, SecretUnavailable
from cronstable.config.values import JobConfig
from cronstable.state.errors import TROUBLE
from cronstable.state.workers import Workers, within

log = logging.getLogger("cronstable.jobapi")

STAGED_WITHIN = 10.0
"""Seconds that a launch waits for the files of its secrets."""

READERS = 4
"""Threads that read the files of secrets."""


class Staging:
    """Resolves secrets; what cannot be had is a warning and is left out."""

    def __init__(self, reactor: Any, clock: Clock, environ: Mapping[str, str]) -> None:
        self._clock = clock
        self._resolve = SecretResolver(environ)
        self._readers = Workers(reactor, clock, "secret", READERS)

    def takes_time(self, job: JobConfig) -> bool:
        """Return whether a file has to be read."""
        return any(not each.secret.value and each.secret.from_file for each in job.secrets)

    def stage(self, job: JobConfig) -> dict[str, str]:
        """Return the secrets of C{job} by name; this reads files if it takes time."""
        staged = {}
        for named in job.secrets:
            try:
                staged[named.name] = self._resolve(named.secret, f"secrets.{named.name}")
            except SecretUnavailable as error:
                log.warning("Job %s: could not stage secret %r: %s", job.name, named.name, error)
        return staged

    async def stage_in_time(self, job: JobConfig) -> dict[str, str]:
        """Return the secrets of C{job} by name, none if their files cannot be read in time."""
        if not self.takes_time(job):
            return self.stage(job)
        try:
            return await within(
                self._clock, STAGED_WITHIN, self._readers.run(lambda: self.stage(job))
            )
        except TROUBLE as error:
            log.warning("Job %s: could not stage its secrets: %s", job.name, error)
            return {}

    def stop(self) -> None:
        """Let the threads end."""
        self._readers.stop()
