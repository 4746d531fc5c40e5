"""
When the files of a configuration are read again: what has changed, and what may be opened.

The reload service asks a L{SourceWatch} once a minute and on each request, and tells it how every
parse ended.  Nothing here knows of a reactor; what touches the disk says so.  docs/reload.md
tells an operator the same rules.
"""

from __future__ import annotations

import enum
import hashlib
import os
import stat
from collections.abc import Iterable, Sequence

import attrs

from cronstable.config.sources import (
    Listing,
    Source,
    is_descriptor,
    is_read_once,
    open_regular,
    read_all,
    taken_names,
)

__all__ = [
    "Attempt",
    "Decision",
    "Signature",
    "SourceWatch",
    "changed_since_parse",
    "is_read_once",
    "relisted",
    "take",
]

_MOST_REFUSALS = 100


class Decision(enum.Enum):
    """What a check of the sources comes to."""

    PARSE = "parse"
    """Parse the configuration now."""

    KEEP = "keep"
    """Nothing has changed, or nothing that has not been answered."""

    WARN = "warn"
    """A source changed beside a configuration that reads once: log it, keep what is loaded."""


@attrs.frozen
class Look:
    """
    What a look at one path, without opening it, shows.

    A regular file has its modification time and size, a directory its modification time.  What
    reads once shows nothing, since reading it moves its times; a path that is not there is gone.
    """

    path: str
    mtime_ns: int | None = None
    size: int | None = None
    gone: bool = False


@attrs.frozen
class Signature:
    """What a look at all sources shows; two are equal while nothing seems to have changed."""

    looks: tuple[Look, ...]


def take(paths: Iterable[str]) -> Signature:
    """Return the signature of these files and directories; stats each, opens none."""
    return Signature(tuple(map(_look, sorted(set(paths)))))


def changed_since_parse(sources: Iterable[Source]) -> list[str]:
    """
    Return the paths whose bytes are no longer those that were parsed; reads every regular file.

    What reads once is left out, and a file that is one no more counts as changed, unopened.
    """
    return [
        each.path for each in sources if not each.read_once and _digest(each.path) != each.digest
    ]


def relisted(listings: Iterable[Listing]) -> list[str]:
    """Return the directories from which a load would take other names now; lists each."""
    return [each.directory for each in listings if _names(each.directory) != each.names]


@attrs.frozen
class Attempt:
    """One parse, from just before it began: what the sources showed and who wanted it."""

    before: Signature
    requested: bool


class SourceWatch:
    """
    What a daemon knows of its configuration's sources, and what is to be done about them.

    The reload service makes one for the path that C{-c} names, and then

      - at start: C{begin(requested=True)}, load, C{loaded(..., startup=True)};
      - once a minute, and as soon as a reload is requested: C{should_parse(requested)}.  On
        C{KEEP} nothing happens.  On C{WARN} it logs L{changed_message} at WARNING.  On C{PARSE}
        it forgets the requests made so far, since this parse answers them all, calls
        C{begin(requested)} and loads, away from the reactor's thread, with the one cache that it
        keeps.  A request made from here on is for the next pass;
      - after a load that succeeded: if C{gave_nothing(sources)}, C{empty_read(attempt)} and it
        logs L{empty_message} at WARNING, installing nothing; else C{loaded(...)}, and it installs;
      - after a load that failed: C{refused(...)}, and it logs the error in full if told to.

    C{successful} is the gauge C{cronstable_config_last_reload_successful} at any time.  Every
    method may touch the disk, C{loaded} reads all files when C{startup} or with a configuration
    that reads once: call them from the thread that loads, one at a time.
    """

    def __init__(self, main: str) -> None:
        self._shown = main
        self._main = os.path.abspath(main)
        self._main_reads_once = False
        self._paths = frozenset((self._main,))
        self._answered: Signature | None = None
        self._refusals: set[str] = set()
        self.successful = True

    @property
    def changed_message(self) -> str:
        """What to log on C{WARN}."""
        return (
            f"A configuration source changed. {self._shown} is not a regular file, so only a "
            "reload request reads it again; keeping the loaded configuration."
        )

    @property
    def empty_message(self) -> str:
        """What to log after an empty read."""
        return (
            f"Reload read no configuration from {self._shown}, which gives its bytes once; "
            "keeping the loaded configuration"
        )

    def should_parse(self, requested: bool) -> Decision:
        """
        Return what this check comes to; a request always parses.

        Without one, a configuration that is itself a pipe, a FIFO, a terminal or a device is
        never opened: a change of another source is told, once for each change.
        """
        if requested:
            return Decision.PARSE
        now = self._look_at(self._paths)
        if now == self._answered:
            return Decision.KEEP
        if not self._main_reads_once:
            return Decision.PARSE
        self._answered = now
        self.successful = False
        return Decision.WARN

    def begin(self, requested: bool) -> Attempt:
        """Note what the sources show just before a parse."""
        return Attempt(self._look_at(self._paths), requested)

    def gave_nothing(self, sources: Iterable[Source]) -> bool:
        """Return whether the configuration itself reads once and had been read before."""
        return any(source.path == self._main and source.spent for source in sources)

    def empty_read(self, attempt: Attempt) -> None:
        """Take note that a reload read nothing: this request, or this change, is answered."""
        self._answered = attempt.before
        self.successful = False

    def refused(self, attempt: Attempt, error: str, sources: Sequence[Source] = ()) -> bool:
        """
        Take note of a parse that failed, and return whether to log the error in full.

        It is tried again at the next check, until it parses, and told once for each distinct
        text and for each request.  If the configuration itself, or one of the C{sources} that
        the parse had read by then, reads once, it is only tried again on a request or a change.
        """
        self.successful = False
        self._answered = None
        if self._main_reads_once or any(source.read_once for source in sources):
            self._answered = _with_more(attempt.before, sources)
            self._paths = frozenset(look.path for look in self._answered.looks)
        told = error in self._refusals and not attempt.requested
        if len(self._refusals) >= _MOST_REFUSALS:
            self._refusals.clear()
        self._refusals.add(error)
        return not told

    def loaded(
        self,
        attempt: Attempt,
        sources: Sequence[Source],
        listings: Sequence[Listing] = (),
        startup: bool = False,
    ) -> None:
        """
        Take note of a parse whose result is installed.

        The next check parses again unless the sources are the same ones as before and showed the
        same before, during and after the parse.  At start, and when the configuration itself
        reads once, every file is read a second time instead and compared.
        """
        known = self._paths
        self._paths = frozenset(
            (self._main, *(s.path for s in sources), *(each.directory for each in listings))
        )
        self._refusals.clear()
        self.successful = True
        after = self._look_at(self._paths)
        if relisted(listings):
            settled = False
        elif startup or self._main_reads_once:
            settled = not changed_since_parse(sources)
        else:
            settled = self._paths == known and attempt.before == after and _as_read(after, sources)
        self._answered = after if settled else None

    def _look_at(self, paths: Iterable[str]) -> Signature:
        """Return what C{paths} show; also finds out whether the configuration reads once."""
        found = take(paths)
        main = next(look for look in found.looks if look.path == self._main)
        if not main.gone:
            self._main_reads_once = main.mtime_ns is None
        if not (main.gone and self._main_reads_once):
            return found
        # A FIFO that was read and removed has not changed: nothing would read it again anyway.
        return Signature(tuple(Look(main.path) if look is main else look for look in found.looks))


def _look(path: str) -> Look:
    try:
        found = os.stat(path)
    except OSError:
        return Look(path, gone=not is_descriptor(path))
    if stat.S_ISREG(found.st_mode):
        return Look(path, found.st_mtime_ns, found.st_size)
    if stat.S_ISDIR(found.st_mode):
        return Look(path, found.st_mtime_ns)
    return Look(path)


def _with_more(signature: Signature, sources: Iterable[Source]) -> Signature:
    """Return a signature with what the sources that it does not know showed when they were read."""
    looks = {source.path: Look(source.path, source.mtime_ns, source.size) for source in sources}
    looks.update((look.path, look) for look in signature.looks)
    return Signature(tuple(looks[path] for path in sorted(looks)))


def _as_read(signature: Signature, sources: Iterable[Source]) -> bool:
    """Return whether each regular file shows what it showed when it was read."""
    shown = {look.path: (look.mtime_ns, look.size) for look in signature.looks}
    return all(
        source.read_once or shown[source.path] == (source.mtime_ns, source.size)
        for source in sources
    )


def _digest(path: str) -> bytes | None:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with open_regular(path) as descriptor:
            return hashlib.sha256(read_all(descriptor)).digest()
    except OSError:
        return None


def _names(directory: str) -> tuple[str, ...] | None:
    try:
        return taken_names(directory)
    except OSError:
        return None
