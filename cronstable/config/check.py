"""
The assembled configuration: what its files say together, and what only then can be judged.

docs/configuration.md, "What is wrong, and what is worth saying", lists what is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import Any

import attrs

from cronstable.config import notices
from cronstable.config.addresses import loose_listener, without_userinfo
from cronstable.config.errors import ConfigProblem
from cronstable.config.file import FileContent, Placed
from cronstable.config.notices import Notice
from cronstable.config.sections_values import Config, DagConfig, PoolConfig, WebConfig
from cronstable.config.values import JobConfig, Origin
from cronstable.config.world import World

_MOST_NAMES = 100
_RAISED = ("above-normal", "high")


@attrs.frozen(eq=False)
class Assembled:
    """The whole configuration, with what is wrong and what is to be said about it."""

    config: Config
    problems: tuple[ConfigProblem, ...] = ()
    notices: tuple[Notice, ...] = ()


def assemble(contents: Iterable[FileContent], world: World) -> Assembled:
    """Return the configuration that C{contents} make up, checked across its parts."""
    assembly = _Assembly()
    for content in contents:
        assembly.add(content)
    config = assembly.config()
    checks = _Checks(config, assembly.origins, world)
    problems = [*assembly.problems, *checks.problems()]
    return Assembled(config, tuple(problems), tuple(checks.notices()))


class _Assembly:
    """Puts the contents of files together; a name given twice is a problem."""

    def __init__(self) -> None:
        self.problems: list[ConfigProblem] = []
        self.origins: dict[str, Origin] = {}
        self._jobs: dict[str, JobConfig] = {}
        self._dags: dict[str, DagConfig] = {}
        self._pools: dict[str, tuple[PoolConfig, Origin]] = {}
        self._sections: dict[str, Placed] = {}

    def add(self, content: FileContent) -> None:
        """Take in what one file says."""
        for job in content.jobs:
            if job.name in self._jobs:
                first = self._jobs[job.name].origin
                self._twice(f"job '{job.name}'", "name", job.origin, first)
            self._jobs.setdefault(job.name, job)
        for dag in content.dags:
            if dag.name in self._dags:
                first = self._dags[dag.name].origin
                self._twice(f"dag '{dag.name}'", "name", dag.origin, first)
            self._dags.setdefault(dag.name, dag)
        for pool, origin in content.pools:
            if pool.name in self._pools:
                self._twice("", f"pools.{pool.name}", origin, self._pools[pool.name][1])
            self._pools.setdefault(pool.name, (pool, origin))
        for name, placed in content.sections:
            if name in self._sections:
                self._twice("", name, placed.origin, self._sections[name].origin)
            self._sections.setdefault(name, placed)

    def config(self) -> Config:
        """Return everything that was taken in."""
        self.origins = {name: placed.origin for name, placed in self._sections.items()}
        for name, (_, origin) in self._pools.items():
            self.origins.setdefault("pools", origin)
            self.origins[f"pools.{name}"] = origin
        sections: dict[str, Any] = {name: each.value for name, each in self._sections.items()}
        pools = {name: pool for name, (pool, _) in self._pools.items()}
        return Config(self._jobs, self._dags, pools, **sections)

    def _twice(self, where: str, key: str, again: Origin, first: Origin) -> None:
        message = f"given twice; first in {first.file}, line {first.line}"
        self.problems.append(ConfigProblem(again.file, again.line, 0, where, key, message))


@attrs.frozen(eq=False)
class _Checks:
    """What is judged on the whole."""

    config: Config
    origins: dict[str, Origin]
    world: World

    def problems(self) -> Iterator[ConfigProblem]:
        """Yield what is wrong between the parts."""
        yield from self._names()
        for where, job in self._launched():
            yield from self._launch(where, job)
        yield from self._store()
        yield from self._listeners()
        yield from self._push()

    def notices(self) -> Iterator[Notice]:
        """Yield what is to be said about several jobs at once."""
        jobs = self.config.jobs.values()
        yield from notices.of_names(self.config.jobs)
        if self.config.state is None:
            yield from _one_line(
                "onMissed has no effect without a state section",
                (job.name for job in jobs if job.on_missed != "skip"),
                notices.warning,
            )
            yield from _one_line(
                "archiveOutput has no effect without a state section",
                (job.name for job in jobs if job.archive_output),
                notices.warning,
            )
            yield from _one_line(
                "onlyIfLastSucceeded goes by this process's memory without a state section",
                (job.name for job in jobs if job.only_if_last_succeeded),
                notices.info,
            )
        if not self.world.is_root and not self.world.windows:
            yield from _one_line(
                "priority above normal needs the rights of root and may be refused",
                (job.name for _, job in self._launched() if job.priority in _RAISED),
                notices.warning,
            )
        if not self.world.windows:
            yield from _one_line(
                "report.eventlog has no effect except on Windows",
                (hook for hook, report in self._reports() if report.eventlog.enabled),
                notices.warning,
            )

    def _launched(self) -> Iterator[tuple[str, JobConfig]]:
        """Yield every job and every task's template, with the name for problems."""
        for job in self.config.jobs.values():
            yield f"job '{job.name}'", job
        for dag in self.config.dags.values():
            for task in dag.tasks:
                yield f"dag '{dag.name}': task '{task.id}'", task.job

    def _reports(self) -> Iterator[tuple[str, Any]]:
        for where, job in self._launched():
            for hook, report in notices.reports(job):
                yield f"{where}: {hook}", report
        if self.config.notify is not None:
            yield "notify", self.config.notify.report

    def _names(self) -> Iterator[ConfigProblem]:
        jobs = self.config.jobs
        templates: dict[str, str] = {}
        for dag in self.config.dags.values():
            clash = jobs.get(f"dag:{dag.name}")
            if clash is not None:
                yield _problem(
                    f"job '{clash.name}'",
                    "name",
                    clash.origin,
                    f"is what the schedule of dag '{dag.name}' is called; rename one of them",
                )
            for task in dag.tasks:
                where = f"dag '{dag.name}': task '{task.id}'"
                name = task.job.name
                other = templates.setdefault(name, where)
                if name in jobs:
                    other = f"job '{name}'"
                if other != where:
                    yield _problem(
                        where,
                        "id",
                        task.job.origin,
                        f"runs under the name '{name}', as does {other}; rename one of them",
                    )

    def _launch(self, where: str, job: JobConfig) -> Iterator[ConfigProblem]:
        state = self.config.state
        if job.concurrency_scope == "cluster" and state is None:
            yield _problem(where, "concurrencyScope", job.origin, "'cluster' needs a state section")
        if job.secrets and state is None:
            yield _problem(where, "secrets", job.origin, "needs a state section")
        elif job.secrets and state is not None and not state.job_api.enabled:
            yield _problem(where, "secrets", job.origin, "needs state.jobApi, which is off")
        if job.pool is not None:
            yield from self._membership(where, job)

    def _membership(self, where: str, job: JobConfig) -> Iterator[ConfigProblem]:
        membership = job.pool
        assert membership is not None
        pool = self.config.pools.get(membership.name)
        if pool is None:
            known = ", ".join(self.config.pools) or "none is configured"
            yield _problem(
                where,
                "pool",
                job.origin,
                f"no such pool, got {membership.name!r}; known under pools: {known}",
            )
        elif membership.slots > pool.slots:
            yield _problem(
                where,
                "poolSlots",
                job.origin,
                f"out of range, got {membership.slots}; 1 to {pool.slots}, the slots of pool "
                f"'{pool.name}'",
            )

    def _store(self) -> Iterator[ConfigProblem]:
        state = self.config.state
        if self.config.pools and state is None:
            shown = ", ".join(f"'{name}'" for name in self.config.pools)
            yield _problem("", "pools", self.origins["pools"], f"{shown}: needs a state section")
        for dag in self.config.dags.values():
            if state is None:
                yield _problem(f"dag '{dag.name}'", "", dag.origin, "needs a state section")
            elif not state.job_api.enabled:
                yield _problem(
                    f"dag '{dag.name}'", "", dag.origin, "needs state.jobApi, which is off"
                )

    def _listeners(self) -> Iterator[ConfigProblem]:
        mcp, web = self.config.mcp, self.config.web
        if mcp is None or not mcp.enabled:
            return
        origin = self.origins["mcp"]
        if web is None or not web.listen:
            yield _problem("", "mcp.enabled", origin, "needs a web section with a listen address")
        elif not mcp.allow_unauthenticated:
            yield from _open_listeners(web, "mcp", origin)

    def _push(self) -> Iterator[ConfigProblem]:
        push, web = self.config.push, self.config.web
        if push is None:
            for where, job in self._launched():
                for hook, report in notices.reports(job):
                    if report.push.enabled:
                        key = f"{hook}.report.push.enabled"
                        yield _problem(where, key, job.origin, "needs a push section")
            notify = self.config.notify
            if notify is not None and notify.report.push.enabled:
                key = "notify.report.push.enabled"
                yield _problem("", key, self.origins["notify"], "needs a push section")
            return
        origin = self.origins["push"]
        if find_spec("nacl") is None:
            yield _problem("", "push", origin, "needs the PyNaCl library, which is not installed")
        if self.config.state is None and not push.devices_file:
            yield _problem(
                "", "push.devicesFile", origin, "required while there is no state section"
            )
        if web is not None and not push.allow_unauthenticated:
            yield from _open_listeners(web, "push", origin)


def _open_listeners(web: WebConfig, section: str, origin: Origin) -> Iterator[ConfigProblem]:
    """Yield a problem if the section would be served to a network without any credential."""
    if web.authenticated:
        return
    reached = []
    for url in web.listen:
        listener = loose_listener(url)
        certified = listener.scheme == "https" and web.tls.ca is not None
        if listener.routable and not certified:
            reached.append(without_userinfo(url))
    if reached:
        yield _problem(
            "",
            section,
            origin,
            f"would be served without a token on {', '.join(reached)}; set web.authToken, "
            f"web.tls.clientCa with https://, or {section}.allowUnauthenticated: true",
        )


def _problem(where: str, key: str, origin: Origin, message: str) -> ConfigProblem:
    return ConfigProblem(origin.file, origin.line, 0, where, key, message)


def _one_line(said: str, names: Iterable[str], level: Any) -> Iterator[Notice]:
    """Yield one notice that names all it is about, if it is about anything."""
    owners = list(names)
    if owners:
        shown = ", ".join(owners[:_MOST_NAMES])
        more = len(owners) - _MOST_NAMES
        yield level(f"{said}: {shown}{f' and {more} more' if more > 0 else ''}")
