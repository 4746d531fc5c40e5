"""The digest of each job's definition, worked out once per definition."""

from __future__ import annotations

from collections.abc import Callable, Collection

from cronstable.config.fingerprint import job_digest
from cronstable.config.values import JobConfig

Digest = Callable[[JobConfig], str]
"""Returns the digest of a job."""


class Digests:
    """Digests by job; a changed definition is digested anew."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[JobConfig, str]] = {}

    def keep_only(self, names: Collection[str]) -> None:
        """Forget the jobs that are gone."""
        for name in [name for name in self._known if name not in names]:
            del self._known[name]

    def __call__(self, job: JobConfig) -> str:
        """Return the digest of C{job}, 64 hex digits (docs/fingerprint.md)."""
        known = self._known.get(job.name)
        if known is None or known[0] is not job:
            known = self._known[job.name] = (job, job_digest(job))
        return known[1]
