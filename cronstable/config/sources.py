"""
The files that a configuration is read from, and the per-file cache of what they said.

One load reads through one L{Reader}, which remembers each file's bytes for as long as the load
lasts: a load sees every path in one state, and a pipe that is written once is enough.  What a
file said is kept in a L{Cache} from load to load, for as long as all that its parse read is
unchanged.  docs/reload.md says what an operator may rely on.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import attrs

from cronstable.config.crontab import is_crontab_name, is_yaml_name

_DESCRIPTOR = re.compile(r"/dev/stdin|/dev/fd/\d+|/proc/(?:self|thread-self|\d+)/fd/\d+")
_WITHOUT_WAITING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

ROOM = 1024
"""How many entries a cache has room for whatever the size of the configuration."""

_RECENT_LOADS = 8

Stamps = tuple[tuple[str, tuple[int, int] | None], ...]
"""Paths, each with when it was changed, in nanoseconds, and its size in bytes; None = absent."""


@attrs.frozen
class Source:
    """
    One file as a load read it; C{path} is absolute.

    C{mtime_ns} and C{size} are its stat just before the read, None where it is not a regular
    file; C{digest} is the SHA-256 of the C{length} bytes that the read gave.  A C{read_once}
    source gives its bytes once: a pipe, a FIFO, a terminal, a device, or whatever is behind
    C{/dev/stdin} and C{/dev/fd/N}.
    """

    path: str
    read_once: bool
    mtime_ns: int | None
    size: int | None
    digest: bytes
    length: int

    @property
    def spent(self) -> bool:
        """
        Whether a source that reads once had given its bytes, or some of them, to an earlier read.

        Some systems let C{/dev/fd/N} share the descriptor's place in a regular file.
        """
        return self.read_once and (not self.length or self.length < (self.size or 0))


@attrs.frozen
class Listing:
    """The names that a load took from a configuration directory, in its order."""

    directory: str
    names: tuple[str, ...]


@attrs.define
class Scope:
    """What the parse of one file has read so far, that of the files it includes among it."""

    path: str
    _sources: dict[str, Source] = attrs.field(factory=dict, init=False)

    @property
    def sources(self) -> tuple[Source, ...]:
        """Everything that was read in this scope, each path once."""
        return tuple(self._sources.values())

    def add(self, source: Source) -> None:
        """Note that C{source} was read."""
        self._sources[source.path] = source


class Reader:
    """
    Reads the files of one load, each of them once, and remembers what was read.

    Make a new one for each load; it belongs to the thread that loads.
    """

    def __init__(self, cache: Cache | None = None) -> None:
        self.cache = cache
        self._held: dict[str, tuple[Source, bytes]] = {}
        self._whole = Scope("")
        self._open = [self._whole]
        self._listings: list[Listing] = []
        if cache is not None:
            cache.begin_load()

    @property
    def sources(self) -> tuple[Source, ...]:
        """All that this load read, and all that the cached entries which it used had read."""
        return self._whole.sources

    @property
    def listings(self) -> tuple[Listing, ...]:
        """The directories that this load listed."""
        return tuple(self._listings)

    def read(self, path: str) -> bytes:
        """
        Return the bytes of a file; raises OSError.

        A FIFO is waited for until a writer has opened and closed it.
        """
        path = os.path.abspath(path)
        held = self._held.get(path)
        if held is None:
            with open(path, "rb", buffering=0) as file:
                held = self._hold(path, file.fileno())
        self._note(held[0])
        return held[1]

    def listed(self, directory: str, names: Iterable[str]) -> None:
        """Note that the load took C{names}, in this order, from C{directory}."""
        self._listings.append(Listing(os.path.abspath(directory), tuple(names)))

    @contextmanager
    def scope(self, path: str) -> Iterator[Scope]:
        """Collect what is read inside the block; it counts for the enclosing blocks as well."""
        scope = Scope(os.path.abspath(path))
        self._open.append(scope)
        try:
            yield scope
        finally:
            self._open.pop()

    def unchanged(self, sources: Iterable[Source]) -> bool:
        """
        Return whether C{sources} still hold what they held, without opening one that reads once.

        Each is looked at before any is opened.  A regular file must still be one and give the
        same bytes; a FIFO must still be there and not have become a regular file; a path such as
        C{/dev/fd/3} counts as unchanged whatever is behind it.
        """
        sources = tuple(sources)
        if not all(map(_same_kind, sources)):
            return False
        return all(source.read_once or self._same_bytes(source) for source in sources)

    def adopt(self, sources: Iterable[Source]) -> None:
        """Count C{sources}, which a cached entry had read, as read by this load."""
        for source in sources:
            held = self._held.get(source.path)
            self._note(source if held is None else held[0])

    def _same_bytes(self, source: Source) -> bool:
        held = self._held.get(source.path)
        if held is None:
            try:
                with open_regular(source.path) as descriptor:
                    held = self._hold(source.path, descriptor)
            except OSError:
                return False
        return held[0].digest == source.digest

    def _hold(self, path: str, descriptor: int) -> tuple[Source, bytes]:
        found = os.fstat(descriptor)
        data = read_all(descriptor)
        regular = stat.S_ISREG(found.st_mode)
        source = Source(
            path,
            not regular or is_descriptor(path),
            found.st_mtime_ns if regular else None,
            found.st_size if regular else None,
            hashlib.sha256(data).digest(),
            len(data),
        )
        self._held[path] = source, data
        return source, data

    def _note(self, source: Source) -> None:
        for scope in self._open:
            scope.add(source)


class Cache:
    """
    What each file of a configuration said, kept between loads.

    It has room for every file of a large load and for at least L{ROOM}; the entries used longest
    ago go first, and only when a load begins, so that no load loses what it is about to use.
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[str, tuple[tuple[Source, ...], object]] = OrderedDict()
        self._used: set[str] = set()
        self._sizes: deque[int] = deque([0], _RECENT_LOADS)

    def __len__(self) -> int:
        return len(self._entries)

    def begin_load(self) -> None:
        """Make room as the last loads need it."""
        self._sizes.append(len(self._used))
        self._used = set()
        room = max(ROOM, *self._sizes)
        while len(self._entries) > room:
            self._entries.popitem(last=False)

    def get(self, path: str, reader: Reader) -> object | None:
        """
        Return what C{path} said, if all that its parse read is unchanged, else None.

        What that parse read then counts as read by C{reader} too.
        """
        path = os.path.abspath(path)
        entry = self._entries.get(path)
        if entry is None or not reader.unchanged(entry[0]):
            return None
        reader.adopt(entry[0])
        self._use(path)
        return entry[1]

    def put(self, path: str, scope: Scope, value: object) -> None:
        """
        Keep C{value}, what C{path} said, for as long as what C{scope} read is unchanged.

        A file that the scope read in two states, under two names, matches neither again.
        """
        path = os.path.abspath(path)
        self._entries[path] = scope.sources, value
        self._use(path)

    def _use(self, path: str) -> None:
        self._entries.move_to_end(path)
        self._used.add(path)


def is_descriptor(path: str) -> bool:
    """Return whether a path names an open descriptor of this process rather than a file."""
    return _DESCRIPTOR.fullmatch(os.path.abspath(path)) is not None


def is_read_once(path: str) -> bool:
    """Return whether C{path} gives its bytes once; one that cannot be looked at does not."""
    if is_descriptor(path):
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def taken_names(directory: str) -> tuple[str, ...]:
    """
    Return the names that a load takes from a configuration directory, sorted; raises OSError.

    YAML files by extension and crontabs by name, without those that start with C{_} or C{.}.
    """
    return tuple(
        name
        for name in sorted(os.listdir(directory))
        if name[0] not in "_." and (is_yaml_name(name) or is_crontab_name(name))
    )


def stamps(paths: Iterable[str | None]) -> Stamps:
    """Return what differs once one of these files has changed, come or gone, contents unread."""
    return tuple((path, _stamp(path)) for path in paths if path)


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


@contextmanager
def open_regular(path: str) -> Iterator[int]:
    """
    Open a regular file and give its descriptor; raises OSError, also for anything else.

    It never waits: a FIFO that takes the file's place at the last moment is refused.
    """
    descriptor = os.open(path, _WITHOUT_WAITING)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def read_all(descriptor: int) -> bytes:
    """Return everything that can be read from a descriptor; raises OSError."""
    with open(descriptor, "rb", buffering=0, closefd=False) as file:
        return file.readall() or b""


def _same_kind(source: Source) -> bool:
    if is_descriptor(source.path):
        return True
    try:
        mode = os.stat(source.path).st_mode
    except OSError:
        return False
    return not stat.S_ISDIR(mode) and stat.S_ISREG(mode) != source.read_once
