"""
The sections beside C{jobs}, C{dags} and C{defaults}: what each may hold, and who builds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from cronstable.config import ranges
from cronstable.config.cluster import CLUSTER, cluster
from cronstable.config.errors import ConfigProblem
from cronstable.config.keys import BOOL, FLOAT, INT, NULL_TEXT, REPORT
from cronstable.config.layers import Layer, Tell, located
from cronstable.config.listeners import MCP, WEB, mcp, web
from cronstable.config.notices import Notice, of_report
from cronstable.config.reports import report
from cronstable.config.schema import Enum, Free, ListOf, MapOf, Reader, Record, Text
from cronstable.config.sections_values import (
    NOTIFY_EVENTS,
    NotifyConfig,
    PoolConfig,
    PushConfig,
)
from cronstable.config.state import STATE, state
from cronstable.config.text import Mapping as MapNode
from cronstable.config.text import Node
from cronstable.config.values import NOTIFY_REPORT, Origin
from cronstable.config.world import World

Say = Callable[[Notice], None]
Build = Callable[[Any, Tell, Say, World], Any]


@attrs.frozen(eq=False)
class Section:
    """The shape of a section and what turns its typed values into a configuration value."""

    record: Reader
    build: Build


@attrs.frozen(eq=False)
class Built:
    """A section's value, with what is wrong and what is to be said about it."""

    value: Any
    problems: tuple[ConfigProblem, ...]
    notices: tuple[Notice, ...]


def build(name: str, file: str, node: Node, values: Any, world: World) -> Built:
    """Return the section called C{name} from its typed values."""
    problems: list[ConfigProblem] = []
    said: list[Notice] = []
    tell = teller(file, name, node, problems)
    value = SECTIONS[name].build(values, tell, said.append, world)
    return Built(value, tuple(problems), tuple(said))


def teller(file: str, name: str, node: Node, problems: list[ConfigProblem]) -> Tell:
    """Return what adds a problem about a path of the section C{name} to C{problems}."""
    block = node if isinstance(node, MapNode) else MapNode(node.line, node.column)
    root = MapNode(node.line, node.column)
    root.entries[name] = block
    layers = (Layer(file, root, {}),)
    return lambda path, message: problems.append(located(layers, (name, *path), "", message))


def pools(
    file: str, node: Node, values: Mapping[str, Mapping[str, int]]
) -> tuple[list[tuple[PoolConfig, Origin]], list[ConfigProblem]]:
    """Return the pools of one file, and what is wrong with them."""
    problems: list[ConfigProblem] = []
    tell = teller(file, "pools", node, problems)
    built = []
    for name, pool in values.items():
        if not name:
            tell((name,), "a pool without a name")
        for key, value in pool.items():
            wrong = _POOL_RANGE(value)
            if wrong:
                tell((name, key), wrong)
        line = node.places[name][0] if isinstance(node, MapNode) else node.line
        config = PoolConfig(name, pool["slots"], pool.get("maxQueued", 1000))
        built.append((config, Origin(file, line)))
    return built, problems


def _notify(values: Any, tell: Tell, say: Say, world: World) -> NotifyConfig:
    built = report(NOTIFY_REPORT, values.get("report"), ("report",), tell)
    for notice in of_report("notify", built):
        say(notice)
    events = values.get("events", NOTIFY_EVENTS)
    return NotifyConfig(tuple(dict.fromkeys(events)), built)


def _push(values: Any, tell: Tell, say: Say, world: World) -> PushConfig:
    url, timeout = values["relay"]["url"], values["relay"].get("timeout", 10.0)
    if not url.lower().startswith(("http://", "https://")):
        tell(("relay", "url"), "must be an http:// or https:// URL")
    wrong = ranges.above(0)(timeout)
    if wrong:
        tell(("relay", "timeout"), wrong)
    return PushConfig(
        url, timeout, values.get("devicesFile"), values.get("allowUnauthenticated", False)
    )


def _logging(values: Any, tell: Tell, say: Say, world: World) -> dict[str, Any]:
    return dict(values)


POOLS = MapOf(Record({"slots": INT, "maxQueued": INT}, required=("slots",)))
_POOL_RANGE = ranges.between(1, 10000)

_NOTIFY = Record({"events": ListOf(Enum(*NOTIFY_EVENTS)), "report": REPORT})

_PUSH = Record(
    {
        "relay": Record({"url": Text(secret=True), "timeout": FLOAT}, required=("url",)),
        "devicesFile": NULL_TEXT,
        "allowUnauthenticated": BOOL,
    },
    required=("relay",),
)

_LOGGING = Record(
    {
        "version": INT,
        "incremental": BOOL,
        "disable_existing_loggers": BOOL,
        **dict.fromkeys(("formatters", "filters", "handlers", "loggers", "root"), Free()),
    },
    required=("version",),
)

SECTIONS: dict[str, Section] = {
    "web": Section(WEB, web),
    "mcp": Section(MCP, mcp),
    "cluster": Section(CLUSTER, cluster),
    "state": Section(STATE, state),
    "logging": Section(_LOGGING, _logging),
    "notify": Section(_NOTIFY, _notify),
    "push": Section(_PUSH, _push),
}
