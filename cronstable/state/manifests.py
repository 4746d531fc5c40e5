"""
What each node says it still uses, and what follows for the rest.

A manifest names the jobs, scopes and workflows of a loaded configuration.  What no configuration
and no recent manifest names is nobody's (docs/store-format.md, "Garbage collection").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from cronstable.config.sections_values import Config
from cronstable.state.instants import from_text, to_text

GLOBAL_SCOPE = "global"
"""The scope that every job may use."""


@attrs.frozen
class Names:
    """What a configuration uses."""

    jobs: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    dags: frozenset[str] = frozenset()


@attrs.frozen
class InUse:
    """
    What is in use anywhere.

    C{recent} counts the manifests that said so; C{covers_scopes} is whether every one of them
    knew of scopes and workflows, without which those cannot be told from nobody's.
    """

    names: Names
    recent: int = 0
    covers_scopes: bool = False


def names_of(config: Config, host: str) -> Names:
    """Return what C{config} uses, in force on C{host}: also what is configured and not run."""
    tasks = [task.job for dag in config.dags.values() for task in dag.tasks]
    scopes = {scope for job in (*config.jobs.values(), *tasks) for scope in job.allowed_scopes}
    return Names(
        jobs=frozenset(config.jobs),
        hosts=frozenset((host,)),
        scopes=frozenset(scopes | {GLOBAL_SCOPE}),
        dags=frozenset(config.dags),
    )


def manifest(job_set_id: str, host: str, names: Names, now: float) -> dict[str, Any]:
    """Return the record by which C{host} says what it uses; now in epoch seconds."""
    return {
        "jobSetId": job_set_id,
        "host": host,
        "jobs": sorted(names.jobs),
        "scopes": sorted(names.scopes | {GLOBAL_SCOPE}),
        "dags": sorted(names.dags),
        "at": to_text(now),
    }


def in_use(manifests: Iterable[Mapping[str, Any]], own: Names, now: float, grace: float) -> InUse:
    """Return what C{own} and the manifests not older than C{grace} seconds name."""
    jobs, hosts = set(own.jobs), set(own.hosts)
    scopes, dags = set(own.scopes), set(own.dags)
    recent = 0
    covers = True
    for record in manifests:
        at = from_text(record.get("at"))
        if at is None or now - at > grace:
            continue
        recent += 1
        jobs |= _texts(record.get("jobs"))
        hosts |= _texts([record.get("host")])
        scopes |= _texts(record.get("scopes"))
        dags |= _texts(record.get("dags"))
        covers = covers and all(isinstance(record.get(key), list) for key in ("scopes", "dags"))
    named = Names(frozenset(jobs), frozenset(hosts), frozenset(scopes), frozenset(dags))
    return InUse(named, recent, recent > 0 and covers)


def history_spans(manifests: Iterable[Mapping[str, Any]], now: float, grace: float) -> bool:
    """Return whether manifests were kept long enough for their silence to mean something."""
    instants = [from_text(record.get("at")) for record in manifests]
    return any(at is not None and now - at >= grace for at in instants)


def _texts(value: object) -> set[str]:
    return {item for item in value if isinstance(item, str)} if isinstance(value, list) else set()
