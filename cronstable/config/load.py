"""
The one public entry: a path in, a checked configuration out.

docs/configuration.md tells what may be at the path.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from functools import cached_property

import attrs

from cronstable.config.check import assemble
from cronstable.config.errors import ConfigError, ConfigProblem
from cronstable.config.file import FileContent, FileLoader
from cronstable.config.notices import Notice
from cronstable.config.sections_values import Config
from cronstable.config.sources import Cache, Listing, Reader, Source, taken_names
from cronstable.config.world import World

__all__ = ["Loaded", "Notice", "load"]


@attrs.frozen(slots=False)
class Loaded:
    """
    A configuration and what its load read and found worth saying.

    C{notices} are for the caller to log; nothing is logged here.
    """

    config: Config
    sources: tuple[Source, ...] = ()
    listings: tuple[Listing, ...] = ()
    notices: tuple[Notice, ...] = ()

    @cached_property
    def job_set_id(self) -> str:
        """The fingerprint of all jobs, worked out when it is first asked for."""
        from cronstable.config.fingerprint import job_set_id

        return job_set_id(self.config.jobs.values())


def load(
    path: str,
    *,
    environ: Mapping[str, str],
    now: float,
    cwd: str | None = None,
    cache: Cache | None = None,
    is_root: bool | None = None,
) -> Loaded:
    """
    Read the file or directory at C{path} and return what it configures.

    C{now} (seconds since the epoch) is what schedules are judged against; C{cwd} is the daemon's
    directory, by default this process's.  With a C{cache} the files that have not changed since an
    earlier load are not parsed again.  Raises L{ConfigError} with everything that is wrong.
    """
    reader = Reader(cache)
    if is_root is None:
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    world = World(environ, cwd, is_root, reader, now)
    loader = FileLoader(world, reader, cache)
    contents = _contents(path, loader, reader)
    if loader.problems:
        raise ConfigError(_by_file(loader.problems), reader.sources)
    assembled = assemble(contents, world)
    if assembled.problems:
        raise ConfigError(_by_file(assembled.problems), reader.sources)
    notices = [notice for content in contents for notice in content.notices]
    return Loaded(assembled.config, reader.sources, reader.listings, (*notices, *assembled.notices))


def _contents(path: str, loader: FileLoader, reader: Reader) -> list[FileContent]:
    if not path:
        missing = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        loader.problems.append(_unreadable("''", missing))
        return []
    real = loader.world.from_cwd(path)
    if not os.path.isdir(real):
        return _loaded(loader, path, cached=False)
    try:
        names = taken_names(real)
    except OSError as error:
        loader.problems.append(_unreadable(path, error))
        return []
    reader.listed(real, names)
    contents = []
    for name in names:
        contents += _loaded(loader, os.path.join(path, name), cached=True)
    return contents


def _loaded(loader: FileLoader, path: str, *, cached: bool) -> list[FileContent]:
    try:
        content = loader.load(path, cached=cached)
    except (OSError, ValueError) as error:
        loader.problems.append(_unreadable(path, error))
        return []
    return [] if content is None else [content]


def _unreadable(path: str, error: OSError | ValueError) -> ConfigProblem:
    reason = getattr(error, "strerror", None) or str(error)
    return ConfigProblem(path, 0, 0, "", "", f"cannot be read: {reason}")


def _by_file(problems: Iterable[ConfigProblem]) -> list[ConfigProblem]:
    """Return each problem once, those of one file together, in the order of the text."""
    unique = dict.fromkeys(problems)
    order = {file: number for number, file in enumerate(dict.fromkeys(p.file for p in unique))}
    return sorted(unique, key=lambda p: (order[p.file], p.line, p.column))
