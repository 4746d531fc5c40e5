"""
The assembled configuration: what its files say together, and what only then can be judged.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from cronstable.config.errors import ConfigProblem
from cronstable.config.file import FileContent
from cronstable.config.notices import Notice
from cronstable.config.sections_values import Config
from cronstable.config.values import JobConfig, Origin
from cronstable.config.world import World


@attrs.frozen(eq=False)
class Assembled:
    """The whole configuration, with what is wrong and what is to be said about it."""

    config: Config
    problems: tuple[ConfigProblem, ...] = ()
    notices: tuple[Notice, ...] = ()


def assemble(contents: Iterable[FileContent], world: World) -> Assembled:
    """Return the configuration that C{contents} make up, checked across its parts."""
    problems: list[ConfigProblem] = []
    jobs: dict[str, JobConfig] = {}
    for content in contents:
        for job in content.jobs:
            first = jobs.setdefault(job.name, job)
            if first is not job:
                problems.append(_twice(f"job '{job.name}'", job.origin, first.origin))
    return Assembled(Config(jobs), tuple(problems))


def _twice(where: str, again: Origin, first: Origin) -> ConfigProblem:
    return ConfigProblem(
        again.file,
        again.line,
        0,
        where,
        "name",
        f"given twice; first in {first.file}, line {first.line}",
    )
