"""Loads the configuration, at the start and again: what was read, and how it differs."""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping

import attrs

from cronstable.clock import Clock
from cronstable.config.diff import Diff, diff
from cronstable.config.load import Loaded, Notice, load
from cronstable.config.sections_values import Config
from cronstable.config.sources import Cache
from cronstable.config.watch import SourceWatch
from cronstable.schedule import reload_zones

SWITCH_INTERVAL = 0.0005
"""Seconds that a parsing thread may keep the interpreter while the reactor waits for it."""


@attrs.frozen(eq=False)
class Configured:
    """A configuration ready to be put in force, and how it differs from the one before."""

    config: Config
    job_set_id: str
    notices: tuple[Notice, ...]
    diff: Diff = Diff()
    zones_changed: tuple[str, ...] = ()


class Sources:
    """
    The configuration at one path.

    Making one loads it and raises C{ConfigError} if it is bad.  C{again} is for a thread.
    """

    def __init__(self, path: str, environ: Mapping[str, str], clock: Clock) -> None:
        self.watch = SourceWatch(path)
        self._path = path
        self._environ = environ
        self._clock = clock
        self._cache = Cache()
        attempt = self.watch.begin(requested=True)
        loaded = self._load()
        self.watch.loaded(attempt, loaded.sources, loaded.listings, startup=True)
        self.configured = Configured(loaded.config, loaded.job_set_id, loaded.notices)

    def again(self) -> tuple[Loaded, Configured]:
        """Load once more; job values that did not change keep their identity."""
        switch_interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL)
        # A parse makes hundreds of thousands of objects and no cycles; looking for some would hold
        # up the reactor as well.
        gc.disable()
        try:
            zones = reload_zones()
            loaded = self._load()
            before = self.configured.config
            config = reuse(before, loaded.config)
            return loaded, Configured(
                config, loaded.job_set_id, loaded.notices, diff(before, config), zones
            )
        finally:
            gc.enable()
            sys.setswitchinterval(switch_interval)

    def _load(self) -> Loaded:
        return load(self._path, environ=self._environ, now=self._clock.now(), cache=self._cache)


def reuse(old: Config, new: Config) -> Config:
    """Return C{new} with the old objects wherever a job has not changed."""
    jobs = {}
    for name, job in new.jobs.items():
        before = old.jobs.get(name)
        jobs[name] = before if before is not None and before == job else job
    return attrs.evolve(new, jobs=jobs)
