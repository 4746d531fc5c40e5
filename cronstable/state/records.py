"""
Streams of immutable records: one JSON file each, in the order of their names.

A record that cannot be understood is set aside when it is read; one that merely cannot be read
now is left where it is (docs/store-format.md, "Records").
"""

from __future__ import annotations

import errno
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import attrs

from cronstable.state import names, stems
from cronstable.state.encoding import Data, enveloped, opened
from cronstable.state.errors import Foreign, Malformed, Unreadable
from cronstable.state.stats import measured
from cronstable.state.streams import acknowledges, is_stamp
from cronstable.state.tree import Part, names_in, sync_of

log = logging.getLogger("cronstable.state")

T = TypeVar("T")

PRUNE_EVERY = 8
"""A process prunes on its first append to a stream and then on every eighth."""

SIDECAR = "stream-name.txt"
"""The exact name of a stream whose token was cut, beside its records."""


@attrs.define(eq=False)
class _Stream:
    """What this process remembers of a stream that it appends to."""

    name: str
    directory: str
    cut: bool
    lock: threading.Lock = attrs.field(factory=threading.Lock)
    floor: str | None = None
    """The greatest stem seen or given; None until the directory was read."""
    pruned_appends: int = 0
    keys: dict[str, str | None] = attrs.field(factory=dict)
    """The grouping key of record files, for streams that keep the newest of each key."""

    def raise_floor(self, files: Iterable[str]) -> None:
        """Never give out a stem below what these files have."""
        self.floor = max(self.floor or "", stems.greatest(files))


@attrs.define(eq=False)
class Records(Part):
    """The streams of one namespace; any thread may call."""

    _streams: OrderedDict[str, _Stream] = attrs.field(factory=OrderedDict, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _remembered: int = 65536

    @measured("append")
    def append(
        self,
        stream: str,
        data: Mapping[str, Any],
        *,
        keep: int | None = None,
        newest_per: str | None = None,
    ) -> str:
        """
        Add a record and return its stem.

        C{keep} leaves about that many of the newest (up to 7 more); C{newest_per} leaves, for
        each value of that field, the newest record and the one this append superseded.  Raises
        L{NotPortable} before anything is written, OSError if the record is not in place for
        certain.
        """
        raw = enveloped(data)
        memory = self._memory(stream)
        stem = self._next_stem(memory)
        file = stem + stems.SUFFIX
        sync = sync_of(self._tree.fsync, acknowledges(stream))
        self._tree.write("record", f"{memory.directory}/{file}", raw, sync)
        try:
            if memory.cut:
                self._name_stream(memory)
            if newest_per is not None:
                key = data.get(newest_per)
                memory.keys[file] = key if isinstance(key, str) else None
                self._prune_by_key(memory, newest_per, key)
            elif keep is not None and self._prune_is_due(memory):
                self._prune(memory.directory, keep, memory)
        except OSError as error:
            # The record is safe; what is left over goes with a later append.
            if self._tree.notices.first(("prune", stream, error.errno)):
                log.warning("state: could not prune %s: %s", stream, error)
        return stem

    @measured("list")
    def read(self, stream: str, limit: int | None = None, *, strict: bool = False) -> list[Data]:
        """
        Return the newest C{limit} readable records (default all) in stream order.

        What cannot be understood is set aside and skipped; what cannot be read is skipped, or
        with C{strict} raised (OSError, or L{Unreadable} for a record of another scheme).
        """
        return [data for _, data in self.items(stream, limit, strict=strict)]

    @measured("list")
    def picked(
        self, stream: str, pick: Callable[[Data], T], limit: int, known: Mapping[str, T]
    ) -> dict[str, T]:
        """
        Return what C{pick} makes of each of the newest C{limit} records, by file, newest first.

        Records never change, so what is C{known} from an earlier call is not read again.  What
        cannot be read or understood is treated as L{read} does.
        """
        directory = self._directory(names.token(stream))
        newest = _record_files(names_in(self._tree.files, directory))[-limit:]
        unread = [file for file in newest if file not in known]
        found = {
            file: pick(data)
            for file, data in self._newest_first(directory, unread, stream, None, False)
        }
        if len(unread) < len(newest):
            found.update((file, known[file]) for file in reversed(newest) if file in known)
        return found

    def latest(self, stream: str, *, strict: bool = False) -> Data | None:
        """Return the newest readable record, None if there is none."""
        found = self.read(stream, 1, strict=strict)
        return found[-1] if found else None

    def items(
        self, stream: str, limit: int | None = None, *, strict: bool = False
    ) -> list[tuple[str, Data]]:
        """Like L{read}, each record with its stem; not counted as an operation."""
        found = self._load(self._directory(names.token(stream)), stream, limit, strict)
        return [(file[: -len(stems.SUFFIX)], data) for file, data in found]

    @measured("derive-max")
    def derive_max(
        self,
        stream: str,
        field: str,
        read: Callable[[Any], Any] = lambda value: value,
        *,
        strict: bool = True,
    ) -> Any:
        """
        Return the greatest C{read(value)} of a field over a stream, None if no record has one.

        Values that C{read} maps to None do not count, nor those that cannot be compared with
        the greatest so far.
        """
        greatest: Any = None
        for _, data in self.items(stream, strict=strict):
            value = read(data.get(field))
            try:
                if value is not None and (greatest is None or value > greatest):
                    greatest = value
            except TypeError:
                continue
        return greatest

    @measured("prune")
    def prune(self, stream: str, keep: int) -> int:
        """Remove all but the newest C{keep} records by name; return how many went."""
        directory = self._directory(names.token(stream))
        with self._lock:
            memory = self._streams.get(stream)
        return self._prune(directory, keep, memory)

    def files(self, token: str) -> list[str]:
        """Return the record files of the stream with this token, in order; none if absent."""
        return _record_files(names_in(self._tree.files, self._directory(token)))

    def read_token(
        self, token: str, limit: int | None = None, *, strict: bool = False
    ) -> list[Data]:
        """Return the records of a stream that is known by its token only."""
        stream = names.name_of(token) or token
        return [data for _, data in self._load(self._directory(token), stream, limit, strict)]

    def _directory(self, token: str) -> str:
        return self._tree.path("records", token)

    def _memory(self, stream: str) -> _Stream:
        with self._lock:
            memory = self._streams.get(stream)
            if memory is None:
                token = names.token(stream)
                memory = _Stream(stream, self._directory(token), names.is_cut(token))
                self._streams[stream] = memory
                if len(self._streams) > self._remembered:
                    self._streams.popitem(last=False)
            else:
                self._streams.move_to_end(stream)
        return memory

    def _next_stem(self, memory: _Stream) -> str:
        tree = self._tree
        with memory.lock:
            if memory.floor is None:
                tree.make_directory(memory.directory)
                memory.raise_floor(names_in(tree.files, memory.directory))
            floor = memory.floor or ""
            stem = stems.above(floor, tree.clock.now(), tree.instance, tree.next_number())
            memory.floor = max(floor, stem)
        return stem

    def _name_stream(self, memory: _Stream) -> None:
        path = f"{memory.directory}/{SIDECAR}"
        raw = memory.name.encode("utf-8", "surrogatepass")
        try:
            if self._tree.files.read(path) == raw:
                return
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise
        self._tree.write("name", path, raw, sync_of(self._tree.fsync, acknowledges=True))

    def _prune_is_due(self, memory: _Stream) -> bool:
        with memory.lock:
            memory.pruned_appends += 1
            return memory.pruned_appends % PRUNE_EVERY == 1

    def _prune(self, directory: str, keep: int, memory: _Stream | None) -> int:
        files = _record_files(names_in(self._tree.files, directory))
        if memory is not None:
            with memory.lock:
                memory.raise_floor(files)
        return self._remove(directory, files[: max(0, len(files) - max(0, keep))])

    def _prune_by_key(self, memory: _Stream, field: str, own: object) -> None:
        files = _record_files(names_in(self._tree.files, memory.directory))
        with memory.lock:
            memory.raise_floor(files)
        groups: dict[str, list[str]] = {}
        for file, key in self._keys(memory, files, field).items():
            if key is not None:
                groups.setdefault(key, []).append(file)
        superseded = groups.pop(own, []) if isinstance(own, str) else []
        surplus = superseded[:-2]
        if self._prune_is_due(memory):
            surplus = surplus + [file for group in groups.values() for file in group[:-1]]
        self._remove(memory.directory, surplus)
        for file in surplus:
            memory.keys.pop(file, None)

    def _keys(self, memory: _Stream, files: list[str], field: str) -> dict[str, str | None]:
        """Return the key of each file, in stream order, from memory where it is known."""
        known = memory.keys
        found: dict[str, str | None] = {}
        for file in files:
            if file in known:
                found[file] = known[file]
                continue
            for _, data in self._load_files(memory.directory, [file], memory.name, 1, False):
                key = data.get(field)
                found[file] = key if isinstance(key, str) else None
        memory.keys = dict(found)
        return found

    def _remove(self, directory: str, files: Iterable[str]) -> int:
        removed = 0
        for file in files:
            try:
                self._tree.files.unlink(f"{directory}/{file}")
                removed += 1
            except FileNotFoundError:
                continue
            self._tree.at("prune.removed")
        return removed

    def _load(
        self, directory: str, stream: str, limit: int | None, strict: bool
    ) -> list[tuple[str, Data]]:
        files = sorted(names_in(self._tree.files, directory))
        return self._load_files(directory, files, stream, limit, strict)

    def _load_files(
        self, directory: str, files: list[str], stream: str, limit: int | None, strict: bool
    ) -> list[tuple[str, Data]]:
        found = list(self._newest_first(directory, files, stream, limit, strict))
        found.reverse()
        return found

    def _newest_first(
        self, directory: str, files: list[str], stream: str, limit: int | None, strict: bool
    ) -> Iterator[tuple[str, Data]]:
        """Read what are records among the sorted names C{files}."""
        read = self._tree.files.read
        wanted = len(files) if limit is None else limit
        missed = False
        for file in reversed(files):
            if wanted <= 0:
                break
            if not file.endswith(stems.SUFFIX):
                continue
            path = f"{directory}/{file}"
            try:
                data = opened(read(path))
            except (OSError, Malformed, Foreign) as error:
                missed = True
                self._not_read(path, stream, error, strict)
                continue
            wanted -= 1
            yield file, data
        if not missed:
            self._tree.notices.forget(("unreadable", stream))

    def _not_read(self, path: str, stream: str, error: Exception, strict: bool) -> None:
        """Deal with a record that gave nothing; raises what a strict read must not skip."""
        if isinstance(error, FileNotFoundError):
            return
        if isinstance(error, IsADirectoryError):
            error = Malformed("it is a directory")
        elif isinstance(error, OSError) and error.errno == errno.EFBIG:
            error = Malformed("it is too large for a record")
        if isinstance(error, Foreign):
            self._set_aside_foreign(path, stream, error)
        elif isinstance(error, Malformed):
            if self._tree.quarantine(path) or self._tree.notices.first(("malformed", path)):
                log.warning("state: quarantined corrupt record %s: %s", path, error)
        elif isinstance(error, OSError) and not strict:
            self._say_unreadable(path, stream, error)
        if strict and not isinstance(error, Malformed):
            raise error if isinstance(error, OSError) else Unreadable(path, error)

    def _set_aside_foreign(self, path: str, stream: str, error: Foreign) -> None:
        # The stamp of a newer store is what its own nodes start by: it stays.
        if not is_stamp(stream):
            self._tree.quarantine(path)
        if self._tree.notices.first(("foreign", stream)):
            log.warning(
                "state: quarantined a record of %s: %s; a newer release may have written it"
                " (said once per stream): %s",
                stream,
                error,
                path,
            )

    def _say_unreadable(self, path: str, stream: str, error: OSError) -> None:
        if not self._tree.notices.first(("unreadable", stream)):
            return
        hint = ""
        if error.errno in (errno.EACCES, errno.EPERM):
            hint = "; every node of a store must run as one user"
        log.warning("state: cannot read record %s, skipped for now: %s%s", path, error, hint)


def _record_files(files: Iterable[str]) -> list[str]:
    return sorted([file for file in files if file.endswith(stems.SUFFIX)])
