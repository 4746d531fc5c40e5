"""
Workflows: the shape of their graph, and a launch template for each task.

docs/configuration.md, "Workflows: dags", specifies the keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cronstable.config import ranges
from cronstable.config.errors import ConfigProblem
from cronstable.config.jobs import TASK_GROUPS, Blueprint, when
from cronstable.config.keys import TASK_LAUNCH
from cronstable.config.launch import checked
from cronstable.config.layers import Layer, Tell, layer
from cronstable.config.reports import command
from cronstable.config.sections_values import DagConfig, Expansion, TaskConfig
from cronstable.config.text import Mapping, Scalar
from cronstable.config.text import Sequence as ListNode
from cronstable.config.values import JobConfig, Origin
from cronstable.config.world import World
from cronstable.schedule import REBOOT

_NOT_FOR_APPROVALS = ("pool", "verify", "resourceLimits")
_POOL_KEYS = ("pool", "poolSlots", "queuePriority", "queueTimeout")
_APPROVAL_COMMAND = "true"

_DAG_CHECKS = {
    "startingDeadlineSeconds": ranges.above(0),
    "catchupJitterSeconds": ranges.at_least(0),
    "retainRuns": ranges.at_least(1),
}
_DAG_FIELDS = {
    "onMissed": "on_missed",
    "startingDeadlineSeconds": "starting_deadline",
    "catchupJitterSeconds": "catchup_jitter",
    "clusterPolicy": "cluster_policy",
    "enabled": "enabled",
    "retainRuns": "retain_runs",
}
_TASK_FIELDS = {
    "type": "type",
    "triggerRule": "trigger_rule",
    "retries": "retries",
    "retryDelaySeconds": "retry_delay",
    "pokeIntervalSeconds": "poke_interval",
    "pokeTimeoutSeconds": "poke_timeout",
    "pokeJitterSeconds": "poke_jitter",
    "onReject": "on_reject",
}
_WAITS = ("retry_delay", "poke_interval", "poke_timeout", "poke_jitter")


class Dags:
    """Builds the workflows of one file over the launch keys of its C{defaults}."""

    def __init__(self, layers: Sequence[Layer], world: World) -> None:
        launch = [_launch_part(each) for each in layers]
        self._blueprint = Blueprint(launch, TASK_GROUPS, world)
        self._approvals = self._blueprint.without(*_POOL_KEYS, "verify", "resourceLimits")
        self._world = world
        self._plain = Blueprint((), (), world)

    def finish(self) -> list[ConfigProblem]:
        """Return all that is wrong with the workflows built so far."""
        return [
            *self._blueprint.finish(),
            *self._approvals.finish(),
            *self._plain.finish(),
        ]

    def build(self, where: str, top: Layer) -> DagConfig | None:
        """Return the workflow that C{top} describes, None when its name or tasks are bad."""
        values, tell = top.values, self._plain.teller(where, top)
        name = values.get("name")
        if name == "":
            tell(("name",), "must not be blank")
        for key, check in _DAG_CHECKS.items():
            if key in values:
                checked(values[key], check, (key,), tell)
        due = self._schedule(values, str(name), tell)
        tasks = self._tasks(where, str(name), top)
        if not name or tasks is None:
            return None
        _check_graph(tasks, tell)
        fields = {field: values[key] for key, field in _DAG_FIELDS.items() if key in values}
        origin = Origin(top.file, top.node.line)
        return DagConfig(name, tasks, origin=origin, **fields, **due)

    def _schedule(self, values: dict[str, Any], name: str, tell: Tell) -> dict[str, Any]:
        if values.get("schedule") == REBOOT:
            tell(
                ("schedule",),
                f"a workflow cannot start at boot, got '{REBOOT}'; allowed: a cron expression",
            )
            return {}
        frame = values.get("timezone"), values.get("utc", True)
        due = when(values, frame, f"dag:{name}", tell, self._world)
        if due is not None:
            return due
        zone, utc = frame
        return {"timezone": zone if zone is not None else "UTC" if utc else None, "utc": utc}

    def _tasks(self, where: str, dag: str, top: Layer) -> tuple[TaskConfig, ...] | None:
        node = top.node.entries.get("tasks")
        if not isinstance(node, ListNode) or "tasks" in top.bad:
            return None
        if not node.items:
            self._plain.teller(where, top)(("tasks",), "must hold at least 1 task")
        tasks = []
        for number, item in enumerate(node.items):
            entries = top.values["tasks"][number]
            if entries is None or not isinstance(item, Mapping):
                continue
            whose = f"{where}: {_task_name(item, number)}"
            task = self._task(whose, dag, layer(top.file, item, entries))
            if task is not None:
                tasks.append(task)
        return tuple(tasks) if len(tasks) == len(node.items) else None

    def _task(self, where: str, dag: str, top: Layer) -> TaskConfig | None:
        values = top.values
        approval = values.get("type") == "approval"
        blueprint = self._approvals if approval else self._blueprint
        tell = blueprint.teller(where, top)
        task_id = values.get("id")
        _check_id(task_id, tell)
        if approval:
            for key in _NOT_FOR_APPROVALS:
                if values.get(key) is not None:
                    tell((key,), "an approval runs nothing, so that it cannot have this key")
        elif "command" not in values and "command" not in top.bad:
            tell(("command",), "required, but missing")
        _check_task(values, tell)
        job = self._template(blueprint, where, f"{dag}.{task_id}", top, approval)
        if not task_id:
            return None
        fields = {field: values[key] for key, field in _TASK_FIELDS.items() if key in values}
        fields.update((field, max(0.0, fields[field])) for field in _WAITS if field in fields)
        expand = values.get("expand")
        return TaskConfig(
            task_id,
            job,
            depends_on=tuple(dict.fromkeys(values.get("dependsOn", ()))),
            expand=None if expand is None else Expansion(expand["fromTask"], expand["key"]),
            **fields,
        )

    def _template(
        self, blueprint: Blueprint, where: str, name: str, top: Layer, approval: bool
    ) -> JobConfig:
        launch = Layer(
            top.file,
            top.node,
            {key: value for key, value in top.values.items() if key in TASK_LAUNCH},
            top.bad,
        )
        fields = blueprint.fields(where, launch)
        run = _APPROVAL_COMMAND if approval else command(top.values.get("command", ""))
        origin = Origin(top.file, top.node.line)
        return JobConfig(name, run or "", REBOOT, None, origin=origin, **fields)


def _launch_part(each: Layer) -> Layer:
    """Return what tasks inherit of C{each}: launch keys, and of C{onFailure} its reports."""
    values = {key: value for key, value in each.values.items() if key in TASK_LAUNCH}
    return Layer(each.file, each.node, values, each.bad)


def _task_name(item: Mapping, number: int) -> str:
    name = item.entries.get("id")
    if isinstance(name, Scalar) and name.text:
        return f"task '{name.text}'"
    return f"tasks[{number}]"


def _check_id(task_id: str | None, tell: Tell) -> None:
    if task_id is None:
        return
    if not task_id:
        tell(("id",), "must not be blank")
    elif any(
        character in "#/" or ord(character) < 32 or 127 <= ord(character) < 160
        for character in task_id
    ):
        tell(("id",), f"got {task_id!r}; allowed: text without '#', '/' and control characters")


def _check_task(values: dict[str, Any], tell: Tell) -> None:
    if "retries" in values and values["retries"] < 0:
        tell(("retries",), f"out of range, got {values['retries']}; at least 0")
    expands = "expand" in values
    if expands and values.get("type", "task") != "task":
        tell(("expand",), f"a {values['type']} cannot be mapped; allowed: on a plain task")


def _check_graph(tasks: Sequence[TaskConfig], tell: Tell) -> None:
    known: dict[str, TaskConfig] = {}
    for number, task in enumerate(tasks):
        if task.id in known:
            tell(("tasks", number, "id"), f"two tasks are called '{task.id}'")
        known[task.id] = task
    sound = True
    for number, task in enumerate(tasks):
        for name in task.depends_on:
            if name == task.id or name not in known:
                reason = "itself" if name == task.id else f"'{name}', which is no task here"
                tell(("tasks", number, "dependsOn"), f"task '{task.id}' depends on {reason}")
                sound = False
        _check_expansion(number, task, known, tell)
    if sound:
        _check_cycles(tasks, known, tell)


def _check_expansion(
    number: int, task: TaskConfig, known: dict[str, TaskConfig], tell: Tell
) -> None:
    if task.expand is None:
        return
    source = task.expand.from_task
    path = ("tasks", number, "expand", "fromTask")
    if source not in task.depends_on:
        tell(path, f"task '{task.id}': must be one of its dependsOn, got {source!r}")
    elif source in known and known[source].expand is not None:
        tell(path, f"task '{task.id}': '{source}' is mapped itself; allowed: a task that is not")


def _check_cycles(tasks: Sequence[TaskConfig], known: dict[str, TaskConfig], tell: Tell) -> None:
    """Tell about the tasks that wait for each other, by removing all that can run in some order."""
    waiting = {task.id: len(task.depends_on) for task in known.values()}
    followers: dict[str, list[str]] = {}
    for task in known.values():
        for name in task.depends_on:
            followers.setdefault(name, []).append(task.id)
    ready = [name for name, count in waiting.items() if not count]
    while ready:
        name = ready.pop()
        del waiting[name]
        for follower in followers.get(name, ()):
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.append(follower)
    if waiting:
        cycle = _one_cycle(waiting, known)
        numbers = {task.id: number for number, task in enumerate(tasks)}
        tell(
            ("tasks", numbers[cycle[0]], "dependsOn"),
            f"the tasks wait for each other: {' -> '.join([*cycle, cycle[0]])}",
        )


def _one_cycle(waiting: dict[str, int], known: dict[str, TaskConfig]) -> list[str]:
    seen: dict[str, int] = {}
    name = next(iter(waiting))
    while name not in seen:
        seen[name] = len(seen)
        name = next(each for each in known[name].depends_on if each in waiting)
    return list(seen)[seen[name] :]
