"""
What a reload changes: which jobs, workflows and pools came, went or differ, and in which keys.

It names keys and never shows a value, since any value may be secret.  docs/reload.md shows the
lines that are logged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from cronstable.config.sections_values import Config
from cronstable.config.values import JobConfig, Report

_KEYS = {
    "schedule_text": "schedule",
    "env_file": "env_file",
    "uid": "user",
    "gid": "group",
    "login": "user",
    "output_grace": "outputGraceSeconds",
    "retry": "onFailure.retry",
    "starting_deadline": "startingDeadlineSeconds",
    "catchup_jitter": "catchupJitterSeconds",
    "allowed_scopes": "stateAllowedScopes",
    "monitor": "monitorResources",
    "limits": "resourceLimits",
    "retry_delay": "retryDelaySeconds",
    "poke_interval": "pokeIntervalSeconds",
    "poke_timeout": "pokeTimeoutSeconds",
    "poke_jitter": "pokeJitterSeconds",
}
"""Configuration keys that are not just their field's name in another spelling."""

_NAMED = {"jobs": "Job", "dags": "Workflow", "pools": "Pool"}
_SECTIONS = ("web", "mcp", "cluster", "state", "logging", "notify", "push")

_MOST_NAMES = 20


@attrs.frozen
class NamedDiff:
    """How one kind of named thing changed: names in the order of the configuration."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Names with the dotted keys that differ."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


@attrs.frozen
class Diff:
    """How one configuration differs from another; false if it does not."""

    jobs: NamedDiff = NamedDiff()
    dags: NamedDiff = NamedDiff()
    pools: NamedDiff = NamedDiff()
    sections: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.jobs or self.dags or self.pools or self.sections)

    def lines(self) -> list[str]:
        """Return what to log, a line for each kind of change and each changed thing, bounded."""
        said = []
        for field, noun in _NAMED.items():
            said += _told(noun, getattr(self, field))
        if self.sections:
            said.append(f"Sections changed: {', '.join(self.sections)}")
        return said


def diff(old: Config, new: Config) -> Diff:
    """Return how C{new} differs from C{old}; values that are the same object cost nothing."""
    named = {field: _named(getattr(old, field), getattr(new, field)) for field in _NAMED}
    sections = tuple(name for name in _SECTIONS if getattr(old, name) != getattr(new, name))
    return Diff(**named, sections=sections)


def changed_keys(old: Any, new: Any) -> tuple[str, ...]:
    """Return the dotted configuration keys in which two jobs, workflows or pools differ."""
    return tuple(dict.fromkeys(_changed(old, new)))


def _named(old: Mapping[str, Any], new: Mapping[str, Any]) -> NamedDiff:
    if old is new:
        return NamedDiff()
    return NamedDiff(
        tuple(name for name in new if name not in old),
        tuple(name for name in old if name not in new),
        tuple(
            (name, changed_keys(old[name], value))
            for name, value in new.items()
            if name in old and old[name] is not value and old[name] != value
        ),
    )


def _changed(old: Any, new: Any) -> Iterable[str]:
    for field in attrs.fields(type(new)):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if not field.eq or before is after or before == after:
            continue
        key = _key(field.name)
        if isinstance(after, Report):
            yield from _reporters(f"{key}.report", before, after)
        elif field.name == "tasks":
            yield from _tasks(before, after)
        elif isinstance(after, JobConfig):
            yield from _changed(before, after)
        else:
            yield key


def _reporters(key: str, old: Report, new: Report) -> Iterable[str]:
    for field in attrs.fields(Report):
        if getattr(old, field.name) != getattr(new, field.name):
            yield f"{key}.{field.name}"


def _tasks(old: Iterable[Any], new: Iterable[Any]) -> Iterable[str]:
    before = {task.id: task for task in old}
    after = {task.id: task for task in new}
    if list(before) != list(after):
        yield "tasks"
    for name, task in after.items():
        if name in before:
            for key in _changed(before[name], task):
                yield f"tasks.{name}.{key}"


def _key(field: str) -> str:
    if field in _KEYS:
        return _KEYS[field]
    first, *others = field.split("_")
    return first + "".join(word.capitalize() for word in others)


def _told(noun: str, change: NamedDiff) -> list[str]:
    said = []
    if change.added:
        said.append(f"{noun}s added: {_some(change.added)}")
    if change.removed:
        said.append(f"{noun}s removed: {_some(change.removed)}")
    for name, keys in change.changed[:_MOST_NAMES]:
        said.append(f"{noun} {name} changed: {', '.join(keys)}")
    if len(change.changed) > _MOST_NAMES:
        said.append(f"{noun}s changed: {len(change.changed) - _MOST_NAMES} more")
    return said


def _some(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
