"""
What a load may ask of its surroundings: environment, accounts, directories, other files.

Answers are remembered for the load, so that ten thousand jobs that name one account or one
env_file ask once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import attrs

from cronstable.config import text
from cronstable.schedule import Schedule, parse

_T = TypeVar("_T")

Pairs = tuple[tuple[str, str], ...]


class ReadsFiles(Protocol):
    """The part of the source reader that the building of jobs needs."""

    def read(self, path: str) -> bytes:
        """Return the bytes of a file and remember that it was read; raises OSError."""


@attrs.frozen
class EnvFileTrouble(Exception):
    """An C{env_file} that cannot be used: the message names the file and the line."""

    message: str


@attrs.define(eq=False)
class World:
    """The surroundings of one load."""

    environ: Mapping[str, str]
    cwd: str | None
    is_root: bool
    reader: ReadsFiles
    now: float
    windows: bool = os.name == "nt"
    _values: dict[Any, Any] = attrs.field(factory=dict, init=False)
    _env_files: dict[str, tuple[bytes, Pairs]] = attrs.field(factory=dict, init=False)
    _schedules: dict[tuple[str, str | None, bool], Schedule] = attrs.field(factory=dict, init=False)

    def shared(self, value: _T) -> _T:
        """Return the one object that stands for C{value} in this load."""
        return self._values.setdefault(value, value)  # type: ignore[no-any-return]

    def schedule(self, written: str, key: str, zone: str | None) -> Schedule:
        """Return the schedule of C{written} in C{zone} (None = host time); raises ScheduleError."""
        known = (written, zone, zone is None)
        found = self._schedules.get(known)
        if found is None:
            found = parse(written, key=key, zone=zone, local=zone is None)
            if not found.hashed:
                self._schedules[known] = found
        return found

    def absolute(self, path: str) -> str:
        """Return C{path} with C{~} expanded, absolute against the daemon's directory."""
        if path == "~" or path.startswith("~/"):
            path = self.environ.get("HOME", os.path.expanduser("~")) + path[1:]
        elif path.startswith("~"):
            path = os.path.expanduser(path)
        return os.path.normpath(self.from_cwd(path))

    def from_cwd(self, path: str) -> str:
        """Return C{path} as the daemon's directory sees it."""
        if self.cwd is None or os.path.isabs(path):
            return os.path.abspath(path) if self.cwd is None else path
        return os.path.join(self.cwd, path)

    def env_file(self, path: str) -> Pairs:
        """
        Return the variables of an C{env_file}, in order; raises L{EnvFileTrouble}.

        It is asked of the reader each time, so that it counts as read by each file that names it.
        """
        data = self._bytes(path)
        known = self._env_files.get(path)
        if known is None or known[0] is not data:
            known = self._env_files[path] = data, parse_env_file(path, data)
        return known[1]

    def _bytes(self, path: str) -> bytes:
        if not path:
            raise EnvFileTrouble("must name a file, got nothing")
        try:
            return self.reader.read(self.from_cwd(path))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise EnvFileTrouble(f"{path!r} cannot be read: {reason}") from None


def parse_env_file(path: str, data: bytes) -> Pairs:
    """Return the variables that C{data} sets; raises L{EnvFileTrouble}, which shows no value."""
    decoded = text.decode(data)
    if not isinstance(decoded, str):
        raise EnvFileTrouble(f"{path!r}: {decoded.message}")
    pairs = []
    for number, line in enumerate(decoded.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise EnvFileTrouble(f"{path!r}, line {number}: there is no '=' in it")
        pairs.append((name.strip(), value.strip()))
    return tuple(pairs)
