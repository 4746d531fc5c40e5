"""
One configuration file, its includes with it: what it says, complete but for cross-checks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from cronstable.config import crontab, notices, text
from cronstable.config.dags import Dags
from cronstable.config.errors import ConfigProblem
from cronstable.config.jobs import JOB_GROUPS, Blueprint, job
from cronstable.config.keys import DAG, DEFAULTS, JOB, TEXTS
from cronstable.config.layers import Layer, layer
from cronstable.config.notices import Notice
from cronstable.config.reading import Reading, owner
from cronstable.config.schema import BAD, Block
from cronstable.config.sections import POOLS, SECTIONS, build, pools
from cronstable.config.sections_values import DagConfig, PoolConfig
from cronstable.config.sources import Cache
from cronstable.config.sources import Reader as Sources
from cronstable.config.text import Mapping, Sequence, kind
from cronstable.config.values import JobConfig, Origin
from cronstable.config.world import World

TOP_KEYS = ("defaults", "jobs", "dags", "include", "pools", *SECTIONS)


@attrs.frozen(eq=False)
class Placed:
    """A value and where it was written."""

    value: Any
    origin: Origin


@attrs.frozen(eq=False)
class FileContent:
    """What one file says: finished jobs and workflows, sections, and defaults for an includer."""

    jobs: tuple[JobConfig, ...] = ()
    dags: tuple[DagConfig, ...] = ()
    pools: tuple[tuple[PoolConfig, Origin], ...] = ()
    sections: tuple[tuple[str, Placed], ...] = ()
    defaults: tuple[Layer, ...] = ()
    notices: tuple[Notice, ...] = ()


class FileLoader:
    """Reads files for one load, and collects what is wrong with them in C{problems}."""

    def __init__(self, world: World, sources: Sources, cache: Cache | None) -> None:
        self._world = world
        self._sources = sources
        self._cache = cache
        self.problems: list[ConfigProblem] = []

    def load(self, path: str, *, cached: bool, stack: tuple[str, ...] = ()) -> FileContent | None:
        """
        Return what the file at C{path} says, None when anything is wrong with it.

        C{cached} lets an earlier load's answer stand while nothing that it read has changed.
        Raises OSError when the file itself cannot be read.
        """
        real = self._world.from_cwd(path)
        if cached and self._cache is not None:
            known = self._cache.get(real, self._sources)
            if isinstance(known, FileContent):
                return known
        with self._sources.scope(real) as scope:
            before = len(self.problems)
            content = self._parse(path, self._sources.read(real), (*stack, real))
        if len(self.problems) > before:
            return None
        if cached and self._cache is not None:
            self._cache.put(real, scope, content)
        return content

    def _parse(self, path: str, data: bytes, stack: tuple[str, ...]) -> FileContent:
        written = text.decode(data)
        if not isinstance(written, str):
            self.problems.append(ConfigProblem(path, written.line, 0, "", "", written.message))
            return FileContent()
        named_yaml = crontab.is_yaml_name(path)
        if crontab.is_crontab_name(path) or (not named_yaml and crontab.sniff(written)):
            return self._crontab(path, written)
        return self._yaml(path, written, stack)

    def _crontab(self, path: str, written: str) -> FileContent:
        found = crontab.read_crontab(written, path)
        self.problems += found.problems
        if found.problems:
            return FileContent()
        blueprint = Blueprint((), JOB_GROUPS, self._world)
        jobs = []
        for entry in found.entries:
            values: dict[str, Any] = {
                "name": entry.name,
                "command": entry.command,
                "schedule": entry.schedule_text,
                "environment": [{"key": key, "value": value} for key, value in entry.environment],
            }
            if entry.shell:
                values["shell"] = entry.shell
            if entry.timezone:
                values["timezone"] = entry.timezone
            top = Layer(path, Mapping(entry.line, 0), values)
            built = job(blueprint, f"job '{entry.name}'", top, self._world)
            if built is not None:
                jobs.append(built)
        self.problems += blueprint.finish()
        said = [notices.warning(str(each)) for each in found.notices]
        said += notices.of_jobs(jobs, self._world)
        return FileContent(tuple(jobs), notices=tuple(said))

    def _yaml(self, path: str, written: str, stack: tuple[str, ...]) -> FileContent:
        document = text.parse(written)
        reading = Reading(path, document, self._world.environ)
        content = FileContent()
        if document.whole and document.root is not None:
            if isinstance(document.root, Mapping):
                content = _YamlFile(self, reading, document.root, stack).content()
            else:
                reading.wrong(
                    document.root,
                    f"must be a mapping of sections, got {kind(document.root)}; "
                    f"allowed: {', '.join(TOP_KEYS)}",
                )
        self.problems += reading.problems()
        return content

    @property
    def world(self) -> World:
        """The surroundings of this load."""
        return self._world


class _YamlFile:
    """Takes one YAML file apart."""

    def __init__(
        self, loader: FileLoader, reading: Reading, root: Mapping, stack: tuple[str, ...]
    ) -> None:
        self._loader = loader
        self._world = loader.world
        self._reading = reading
        self._root = root
        self._stack = stack
        self._notices: list[Notice] = []

    def content(self) -> FileContent:
        """Return what the file and its includes say."""
        for key in self._root.entries:
            if key not in TOP_KEYS:
                self._reading.unknown(self._root, key, TOP_KEYS)
        included, complete = self._includes()
        layers = [each for content in included for each in content.defaults]
        layers += self._defaults()
        tops = self._blocks("jobs", JOB), self._blocks("dags", DAG)
        jobs: list[JobConfig] = []
        dags: list[DagConfig] = []
        if complete:
            jobs = self._jobs(tops[0], layers)
            dags = self._dags(tops[1], layers)
        sections = self._sections()
        return FileContent(
            (*_each(included, "jobs"), *jobs),
            (*_each(included, "dags"), *dags),
            (*_each(included, "pools"), *self._pools()),
            (*_each(included, "sections"), *sections),
            tuple(layers),
            (*_each(included, "notices"), *self._notices),
        )

    def _includes(self) -> tuple[list[FileContent], bool]:
        """Return what the included files say, and whether all of them could be used."""
        node = self._root.entries.get("include")
        if node is None:
            return [], True
        targets = TEXTS.read(node, self._reading)
        if not isinstance(targets, list) or not isinstance(node, Sequence):
            return [], False
        contents = []
        for item, target in zip(node.items, targets, strict=True):
            content = self._include(item, target)
            if content is not None:
                contents.append(content)
        return contents, len(contents) == len(targets)

    def _include(self, item: text.Node, target: str) -> FileContent | None:
        path = os.path.join(os.path.dirname(self._reading.file), target)
        real = os.path.abspath(self._world.from_cwd(path))
        if not target:
            self._reading.wrong(item, "must name a file, got nothing")
        elif any(os.path.abspath(each) == real for each in self._stack):
            self._reading.wrong(item, f"'{path}' includes this file again, directly or not")
        elif os.path.isdir(real):
            self._reading.wrong(item, f"'{path}' is a directory; allowed: a file")
        else:
            try:
                return self._loader.load(path, cached=True, stack=self._stack)
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                self._reading.wrong(item, f"'{path}' cannot be read: {reason}")
        return None

    def _defaults(self) -> list[Layer]:
        node = self._root.entries.get("defaults")
        if node is None:
            return []
        entries = DEFAULTS.read(node, self._reading)
        if entries is None or not isinstance(node, Mapping):
            return []
        return [layer(self._reading.file, node, entries)]

    def _blocks(self, section: str, record: Block) -> list[tuple[str, Layer]]:
        """Return the items of a list section, each with the name that problems give it."""
        node = self._root.entries.get(section)
        if node is None:
            return []
        if not isinstance(node, Sequence):
            self._reading.wrong(node, f"must be a list, got {kind(node)}")
            return []
        blocks = []
        for number, item in enumerate(node.items):
            entries = record.read(item, self._reading)
            if entries is None or not isinstance(item, Mapping):
                continue
            name = entries.get("name")
            if isinstance(name, str) and name:
                where = f"{section[:-1]} '{name}'"
            else:
                where = owner(self._root, (section, number))[0]
            blocks.append((where, layer(self._reading.file, item, entries)))
        return blocks

    def _jobs(self, tops: Iterable[tuple[str, Layer]], layers: list[Layer]) -> list[JobConfig]:
        blueprint = Blueprint(layers, JOB_GROUPS, self._world)
        jobs = []
        for where, top in tops:
            built = job(blueprint, where, top, self._world)
            if built is not None:
                jobs.append(built)
        self._add(blueprint.finish())
        self._notices += notices.of_jobs(jobs, self._world)
        return jobs

    def _dags(self, tops: Iterable[tuple[str, Layer]], layers: list[Layer]) -> list[DagConfig]:
        builder = Dags(layers, self._world)
        dags = []
        for where, top in tops:
            built = builder.build(where, top)
            if built is not None:
                dags.append(built)
                self._notices += _of_dag(built, self._world)
        self._add(builder.finish())
        return dags

    def _pools(self) -> list[tuple[PoolConfig, Origin]]:
        node = self._root.entries.get("pools")
        if node is None:
            return []
        values = POOLS.read(node, self._reading)
        if not isinstance(values, dict) or not isinstance(node, Mapping):
            return []
        built, wrong = pools(self._reading.file, node, values)
        self._add(wrong)
        return built

    def _sections(self) -> Iterator[tuple[str, Placed]]:
        for name in SECTIONS:
            node = self._root.entries.get(name)
            if node is not None:
                placed = self._section(name, node)
                if placed is not None:
                    yield name, placed

    def _section(self, name: str, node: text.Node) -> Placed | None:
        values = SECTIONS[name].record.read(node, self._reading)
        if values is BAD:
            return None
        built = build(name, self._reading.file, node, values, self._world)
        self._add(built.problems)
        self._notices += built.notices
        line = self._root.places[name][0]
        return Placed(built.value, Origin(self._reading.file, line))

    def _add(self, problems: Iterable[ConfigProblem]) -> None:
        self._loader.problems += problems


def _each(contents: Iterable[FileContent], field: str) -> Iterator[Any]:
    for content in contents:
        yield from getattr(content, field)


def _of_dag(dag: DagConfig, world: World) -> Iterator[Notice]:
    where = f"dag '{dag.name}'"
    if dag.schedule is not None and dag.schedule_text is not None:
        yield from notices.of_schedule(where, dag.schedule_text, dag.schedule, world)
    for task in dag.tasks:
        yield from notices.of_launch(f"{where}: task '{task.id}'", task.job, world)
