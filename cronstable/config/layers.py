"""
Blocks of typed configuration that lie over each other, and where their values were written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from cronstable.config.errors import ConfigProblem
from cronstable.config.reading import Path, dotted
from cronstable.config.schema import BAD
from cronstable.config.text import Mapping, Node
from cronstable.config.text import Sequence as ListNode

Tell = Callable[[Path, str], None]
"""Tells what is wrong with the value at a path inside a block."""


@attrs.frozen(eq=False)
class Layer:
    """One block of configuration: where it is, and its typed values without the bad ones."""

    file: str
    node: Mapping
    values: dict[str, Any]
    bad: frozenset[str] = frozenset()


def layer(file: str, node: Mapping, entries: dict[str, Any]) -> Layer:
    """Return the layer of C{entries}, as a record has read them from C{node}."""
    bad = frozenset(key for key, value in entries.items() if value is BAD)
    values = {k: v for k, v in entries.items() if v is not BAD} if bad else entries
    return Layer(file, node, values, bad)


def located(layers: Sequence[Layer], path: Path, where: str, message: str) -> ConfigProblem:
    """Return the problem at the place where the latest layer that has C{path} wrote it."""
    best, depth = layers[-1], -1
    node: Node = best.node
    for each in layers:
        found, reached = _descend(each.node, path)
        if reached >= depth:
            best, node, depth = each, found, reached
    return ConfigProblem(best.file, node.line, node.column, where, dotted(path), message)


def _descend(node: Node, path: Path) -> tuple[Node, int]:
    """Return the deepest node on C{path} and how many steps lead to it."""
    for reached, step in enumerate(path):
        following: Node | None = None
        if isinstance(node, Mapping) and isinstance(step, str):
            following = node.entries.get(step)
        elif isinstance(node, ListNode) and isinstance(step, int) and step < len(node.items):
            following = node.items[step]
        if following is None:
            return node, reached
        node = following
    return node, len(path)
