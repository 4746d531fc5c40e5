"""
The sections beside C{jobs}, C{dags} and C{defaults}: their shape, and who builds them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from cronstable.config import ranges
from cronstable.config.errors import ConfigProblem
from cronstable.config.keys import INT
from cronstable.config.notices import Notice
from cronstable.config.schema import MapOf, Reader, Record
from cronstable.config.sections_values import PoolConfig
from cronstable.config.text import Mapping, Node
from cronstable.config.values import Origin
from cronstable.config.world import World


@attrs.frozen(eq=False)
class Built:
    """A section's value, with what is wrong and what is to be said about it."""

    value: Any
    problems: tuple[ConfigProblem, ...] = ()
    notices: tuple[Notice, ...] = ()


@attrs.frozen(eq=False)
class Section:
    """The shape of a section and what turns its typed values into a configuration value."""

    record: Reader
    build: Callable[[str, Node, Any, World], Built]


SECTIONS: dict[str, Section] = {}

POOLS = MapOf(Record({"slots": INT, "maxQueued": INT}, required=("slots",)))
_POOL_RANGE = ranges.between(1, 10000)


def pools(
    file: str, node: Mapping, values: dict[str, dict[str, int]]
) -> tuple[list[tuple[PoolConfig, Origin]], list[ConfigProblem]]:
    """Return the pools of one file, and what is wrong with them."""
    return [], []
