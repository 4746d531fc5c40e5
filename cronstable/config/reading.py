"""
The reading of one file: its tree, what is wrong in it, and how a place in it is named.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

import attrs

from cronstable.config import text
from cronstable.config.errors import ConfigProblem
from cronstable.config.interpolate import Unset, interpolate
from cronstable.config.text import Flaw, Node, Scalar, Sequence

Step = str | int
Path = tuple[Step, ...]


@attrs.frozen
class _Found:
    """A problem before its place has been named."""

    node: Node | None
    key: str | None
    message: str
    line: int
    column: int
    absolute: bool = False


class Reading:
    """
    One YAML file while it is read.

    Problems are noted with the node that they are about; the owner and the dotted key are worked
    out only when L{problems} is asked, since most files have none.
    """

    def __init__(self, file: str, document: text.Document, environ: Mapping[str, str]) -> None:
        self.file = file
        self.root = document.root
        self._environ = environ
        self._found: list[_Found] = [_of_flaw(flaw) for flaw in document.flaws]

    @property
    def sound(self) -> bool:
        """Whether nothing wrong has been noted so far."""
        return not self._found

    def wrong(self, node: Node, message: str, key: str | None = None) -> None:
        """Note C{message} about C{node}, or about C{key} of it whether it is there or not."""
        line, column = node.line, node.column
        if key is not None and isinstance(node, text.Mapping):
            line, column = node.places.get(key, (line, column))
        self._found.append(_Found(node, key, message, line, column))

    def unknown(self, node: text.Mapping, key: str, allowed: Iterable[str]) -> None:
        """Note that C{key} of C{node} is none of C{allowed}, with the nearest that is."""
        self.wrong(node, "not recognised" + near(key, allowed), key)

    def text(self, node: Scalar) -> str | None:
        """Return the text of C{node}, interpolated; None when a variable is missing."""
        try:
            return interpolate(node.text, self._environ)
        except Unset as missing:
            message = (
                f"the environment variable {missing.name} is not set; set it, or write "
                f"${{{missing.name}:-default}}"
            )
            found = _Found(node, None, message, node.line, node.column, absolute=True)
            self._found.append(found)
            return None

    def problems(self) -> list[ConfigProblem]:
        """Return what has been noted, in file order, each named in full."""
        if not self._found:
            return []
        paths: dict[int, Path] = {}
        if self.root is not None:
            _index(self.root, (), paths)
        named = [self._named(found, paths) for found in self._found]
        return sorted(named, key=lambda problem: (problem.line, problem.column))

    def _named(self, found: _Found, paths: dict[int, Path]) -> ConfigProblem:
        path: Path = () if found.node is None else paths.get(id(found.node), ())
        if found.key is not None:
            path = (*path, found.key)
        where, rest = owner(self.root, path)
        key = dotted(path if found.absolute else rest)
        return ConfigProblem(self.file, found.line, found.column, where, key, found.message)


def _of_flaw(flaw: Flaw) -> _Found:
    return _Found(flaw.owner, flaw.key, flaw.message, flaw.line, flaw.column)


def _index(node: Node, path: Path, paths: dict[int, Path]) -> None:
    paths[id(node)] = path
    if isinstance(node, text.Mapping):
        for key, child in node.entries.items():
            _index(child, (*path, key), paths)
    elif isinstance(node, Sequence):
        for number, child in enumerate(node.items):
            _index(child, (*path, number), paths)


def dotted(path: Iterable[Step]) -> str:
    """Return C{path} as an operator writes it: C{environment[0].value}."""
    said = ""
    for step in path:
        if isinstance(step, int):
            said += f"[{step}]"
        else:
            said += f".{step}" if said else step
    return said


def owner(root: Node | None, path: Path) -> tuple[str, Path]:
    """Return whose C{path} is (C{job 'x'}, C{dag 'd': task 't'}, or nobody's), and the rest."""
    if len(path) < 2 or path[0] not in ("jobs", "dags"):
        return "", path
    item = _step(_step(root, path[0]), path[1])
    if path[0] == "jobs":
        return _called("job", item, "name", path[:2]), path[2:]
    where = _called("dag", item, "name", path[:2])
    if len(path) < 4 or path[2] != "tasks":
        return where, path[2:]
    task = _step(_step(item, "tasks"), path[3])
    return f"{where}: {_called('task', task, 'id', path[2:4])}", path[4:]


def _step(node: Node | None, step: Step) -> Node | None:
    if isinstance(node, text.Mapping) and isinstance(step, str):
        return node.entries.get(step)
    if isinstance(node, Sequence) and isinstance(step, int):
        return node.items[step]
    return None


def _called(what: str, node: Node | None, key: str, path: Path) -> str:
    name = _step(node, key)
    if isinstance(name, Scalar) and name.text:
        return f"{what} '{name.text}'"
    return dotted(path)


def near(written: str, allowed: Iterable[str]) -> str:
    """Return C{(did you mean 'x'?)} with a blank before it, or nothing when nothing is near."""
    names = {name.lower(): name for name in allowed}
    match = difflib.get_close_matches(written.lower(), list(names), 1, 0.65)
    return f" (did you mean '{names[match[0]]}'?)" if match else ""
