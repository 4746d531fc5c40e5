"""
Checks what each module of cronstable imports against the plan of the house.

The rooms and who may lean on whom are described in docs/architecture.md; here they are data.
Also held: no import circles, no module over 500 lines, no reactor at the top of a module, no
Twisted behind config and schedule, heavy packages only in their rooms, a command line that starts
without any of them, and no clock but the injected one.

Usage: python contrib/lint/layers.py [ROOT], ROOT being the directory that holds the package.
Exit status 1 if something is wrong, with one line each.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PACKAGE = "cronstable"
LONGEST = 500

BELOW: dict[str, str] = {
    # room: the rooms that it may import, besides itself and those at the bottom
    "schedule": "",
    "config": "schedule",
    "executors": "config schedule",
    "state": "config schedule",
    "pools": "executors state config schedule",
    "cluster": "executors state config schedule",
    "runs": "pools cluster executors state config schedule",
    "metrics": "runs pools cluster executors state config schedule",
    "reports": "runs pools cluster executors state config schedule",
    "dags": "runs pools cluster executors state config schedule",
    "jobapi": "runs pools cluster executors state config schedule",
    "web": "metrics reports dags jobapi runs pools cluster executors state config schedule",
}
"""Rooms that are packages, lowest first."""

BOTTOM = frozenset(
    "agenda clock events httpsite identity mounts platform service threads tls version".split()
)
"""Modules for everybody; they import only each other."""

HOUSE = frozenset("daemon chores counters facts logfiles logs reload rooms signals sources".split())
"""Modules that put the rooms together; they may import every room and each other."""

TOP = frozenset("commands tap simulation __main__".split())
"""What nobody imports but each other."""

HEAVY: dict[str, str] = {
    # package: the rooms that may import it
    "OpenSSL": "tls reports",
    "jinja2": "reports",
    "klein": "web jobapi cluster",
    "psutil": "executors platform",
    "sentry_sdk": "reports",
    "service_identity": "web jobapi cluster reports",
    "treq": "cluster reports",
}

NO_TWISTED = ("config", "schedule")
"""Rooms whose modules load without Twisted."""

LIGHT = ("commands", "__main__", "jobapi.client")
"""Modules that load without Twisted, the daemon and every heavy package."""

LAZY = ("daemon", "tap")
"""Modules that load without a heavy package: a configuration that uses none pays for none."""

CLOCKS = ("clock", "platform", "commands", "jobapi.client")
"""Modules that may ask the operating system for the time."""

CLOCK_CALLS = {
    "time": {"time", "time_ns", "monotonic", "monotonic_ns", "sleep"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
}


@dataclass(frozen=True)
class Import:
    """One import statement: the module it names, its line, and whether it runs at load time."""

    target: str
    line: int
    at_load: bool
    names: tuple[str, ...] = ()


@dataclass
class Module:
    """A module of the package: its dotted name without the package, and what its text holds."""

    name: str
    path: str
    lines: int
    imports: list[Import] = field(default_factory=list)
    clock_calls: list[tuple[int, str]] = field(default_factory=list)

    @property
    def room(self) -> str:
        """The first part of the name."""
        return self.name.split(".", 1)[0]

    def within(self, places: Iterable[str]) -> bool:
        """Return whether this is one of C{places} or inside one."""
        return any(self.name == place or self.name.startswith(place + ".") for place in places)


class _Reader(ast.NodeVisitor):
    """Collects the imports and clock calls of one module; type-checking-only code is left out."""

    def __init__(self, module: Module, package: tuple[str, ...]) -> None:
        self._module = module
        self._package = package
        self._depth = 0

    def visit_Import(self, node: ast.Import) -> None:  # noqa: N802
        for alias in node.names:
            self._add(alias.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:  # noqa: N802
        base = node.module or ""
        if node.level:
            above = self._package[: len(self._package) - node.level + 1]
            base = ".".join([*above, *([base] if base else [])])
        self._add(base, node.lineno, tuple(alias.name for alias in node.names))

    def visit_If(self, node: ast.If) -> None:  # noqa: N802
        if "TYPE_CHECKING" in ast.unparse(node.test):
            for statement in node.orelse:
                self.visit(statement)
        else:
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:  # noqa: N802
        self._inside(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:  # noqa: N802
        self._inside(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:  # noqa: N802
        self._inside(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:  # noqa: N802
        owner = node.value
        name = getattr(owner, "id", getattr(owner, "attr", ""))
        if node.attr in CLOCK_CALLS.get(name, ()):
            self._module.clock_calls.append((node.lineno, f"{name}.{node.attr}"))
        self.generic_visit(node)

    def _inside(self, node: ast.AST) -> None:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1

    def _add(self, target: str, line: int, names: tuple[str, ...] = ()) -> None:
        self._module.imports.append(Import(target, line, self._depth == 0, names))
        if target == "time":
            self._module.clock_calls.extend(
                (line, f"time.{name}") for name in names if name in CLOCK_CALLS["time"]
            )


@dataclass
class House:
    """All modules of a package, by dotted name."""

    modules: Mapping[str, Module]

    @classmethod
    def read(cls, root: Path) -> House:
        """Read every module under C{root}/cronstable."""
        modules = {}
        for path in sorted((root / PACKAGE).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            dotted = parts[:-1] if is_package else parts
            text = path.read_text(encoding="utf-8")
            name = ".".join(dotted[1:])
            module = Module(name, str(path.relative_to(root)), len(text.splitlines()))
            _Reader(module, dotted if is_package else dotted[:-1]).visit(ast.parse(text))
            modules[name] = module
        return cls(modules)

    def ours(self, imported: Import) -> list[str]:
        """Return the names of our modules that an import statement brings in."""
        if imported.target.split(".")[0] != PACKAGE:
            return []
        base = imported.target[len(PACKAGE) + 1 :]
        found = [base] if base in self.modules else []
        inner = [f"{base}.{name}" if base else name for name in imported.names]
        submodules = [name for name in inner if name in self.modules]
        # "from package import module" is about the module; the package itself only holds it.
        if submodules and len(submodules) == len(imported.names):
            return submodules
        return found + submodules

    def loads(self, name: str) -> set[str]:
        """Return all that loading C{name} loads: our modules by name, others by full name."""
        seen: set[str] = set()
        foreign: set[str] = set()
        waiting = [name]
        while waiting:
            current = waiting.pop()
            if current in seen or current not in self.modules:
                continue
            seen.add(current)
            if "." in current:
                waiting.append(current.rpartition(".")[0])
            for imported in self.modules[current].imports:
                if not imported.at_load:
                    continue
                ours = self.ours(imported)
                waiting.extend(ours)
                if not ours:
                    foreign.add(imported.target)
        return seen | foreign


def check(house: House) -> Iterator[str]:
    """Yield a line for each thing that is wrong."""
    for module in house.modules.values():
        yield from _lines(module)
        yield from _arrows(house, module)
        yield from _reactor(module)
        yield from _heavy_rooms(module)
        yield from _clocks(module)
        yield from _weight(house, module)
    yield from _circles(house)


def _lines(module: Module) -> Iterator[str]:
    if module.lines > LONGEST:
        yield f"{module.path}:{module.lines}: longer than {LONGEST} lines"


def allowed(room: str) -> frozenset[str] | None:
    """Return the rooms that C{room} may import, None for a room that the plan does not know."""
    if room == "":
        return frozenset({"version"})
    if room in BOTTOM:
        return BOTTOM
    if room in BELOW:
        return BOTTOM | {room, *BELOW[room].split()}
    if room in HOUSE:
        return BOTTOM | HOUSE | set(BELOW)
    if room in TOP:
        return BOTTOM | HOUSE | set(BELOW) | TOP
    return None


def _arrows(house: House, module: Module) -> Iterator[str]:
    rooms = allowed(module.room)
    if rooms is None:
        yield f"{module.path}:1: the plan has no room {module.room!r}"
        return
    for imported in module.imports:
        for name in house.ours(imported):
            room = name.split(".")[0]
            if room and room not in rooms:
                yield (
                    f"{module.path}:{imported.line}: {module.room or PACKAGE} may not import {name}"
                )


def _reactor(module: Module) -> Iterator[str]:
    for imported in module.imports:
        direct = imported.target == "twisted.internet.reactor"
        named = imported.target == "twisted.internet" and "reactor" in imported.names
        if imported.at_load and (direct or named):
            yield f"{module.path}:{imported.line}: imports the reactor at the top"


def _heavy_rooms(module: Module) -> Iterator[str]:
    for imported in module.imports:
        package = imported.target.split(".")[0]
        rooms = HEAVY.get(package)
        if rooms is not None and module.room not in rooms.split() and module.room not in TOP:
            yield f"{module.path}:{imported.line}: {package} belongs to {rooms.replace(' ', ', ')}"


def _clocks(module: Module) -> Iterator[str]:
    if not module.within(CLOCKS):
        for line, call in module.clock_calls:
            yield f"{module.path}:{line}: {call}: ask the injected clock"


def _weight(house: House, module: Module) -> Iterator[str]:
    banned: set[str] = set()
    if module.within(NO_TWISTED) or module.within(LIGHT):
        banned |= {"twisted", "zope"}
    if module.within(LIGHT) or module.within(LAZY):
        banned |= set(HEAVY)
    if not banned:
        return
    loaded = house.loads(module.name)
    found = {name for name in loaded if name.split(".")[0] in banned}
    if module.within(LIGHT):
        found |= {name for name in loaded if name in HOUSE or name == "tap"}
    for name in sorted(found):
        yield f"{module.path}:1: loading it loads {name}"


def _circles(house: House) -> Iterator[str]:
    arrows = {
        name: {
            target
            for imported in module.imports
            for target in house.ours(imported)
            if target not in (name, "")
        }
        for name, module in house.modules.items()
    }
    for circle in _components(arrows):
        yield f"{house.modules[circle[0]].path}:1: import circle: {' '.join(circle)}"


def _components(arrows: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """Yield the strongly connected groups of more than one name (Tarjan)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def walk(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for target in sorted(arrows[name]):
            if target not in order:
                walk(target)
                low[name] = min(low[name], low[target])
            elif target in stack:
                low[name] = min(low[name], order[target])
        if low[name] == order[name]:
            cut = stack.index(name)
            group = sorted(stack[cut:])
            del stack[cut:]
            if len(group) > 1:
                found.append(group)

    for name in sorted(arrows):
        if name not in order:
            walk(name)
    yield from found


def main(argv: list[str]) -> int:
    """Print what is wrong; 1 if anything is."""
    root = Path(argv[0]) if argv else Path(__file__).resolve().parents[2]
    wrong = list(check(House.read(root)))
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
