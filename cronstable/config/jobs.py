"""
Jobs: the layers of configuration that a job is built from, merged, checked and made a value.

A file's jobs share one L{Blueprint}.  What a job does not mention is built once for all of them,
so that ten thousand plain jobs cost little more than their own few keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from cronstable.config import launch, ranges
from cronstable.config.errors import ConfigProblem
from cronstable.config.keys import SCHEDULE_KEYS
from cronstable.config.launch import Fields, Values, checked
from cronstable.config.layers import Layer, Tell, located
from cronstable.config.merge import alone, merge, merge_value
from cronstable.config.reading import Path
from cronstable.config.reports import command
from cronstable.config.values import JobConfig, Origin
from cronstable.config.world import World
from cronstable.schedule import REBOOT, NoZoneData, ScheduleError, UnknownZone, zone_named

_BLANKS = re.compile(r"[ \t\r\n\f\v]+")

Build = Callable[[Values, Tell, World], Fields]


@attrs.frozen(eq=False)
class Group:
    """Keys that are judged together, and what builds fields from them."""

    keys: tuple[str, ...]
    build: Build


def _plain(key: str, field: str, check: ranges.Check | None = None) -> Group:
    """Return the group of one key whose value is the field's, once C{check} has passed."""
    default = getattr(attrs.fields(JobConfig), field).default

    def build(values: Values, tell: Tell, world: World) -> Fields:
        value = values.get(key, default)
        return {field: value if check is None else checked(value, check, (key,), tell)}

    return Group((key,), build)


_LAUNCH_GROUPS = (
    _plain("shell", "shell"),
    _plain("priority", "priority"),
    _plain("captureStdout", "capture_stdout"),
    _plain("captureStderr", "capture_stderr"),
    _plain("streamPrefix", "stream_prefix"),
    _plain("saveLimit", "save_limit", ranges.at_least(0)),
    _plain("maxLineLength", "max_line_length", ranges.above(0)),
    _plain("outputGraceSeconds", "output_grace", ranges.at_least(0)),
    _plain("executionTimeout", "execution_timeout", ranges.above(0)),
    _plain("killTimeout", "kill_timeout", ranges.at_least(0)),
    Group(("environment", "env_file"), launch.environment),
    Group(("user", "group"), launch.identity),
    Group(("workingDirectory",), launch.working_directory),
    Group(("umask",), launch.umask),
    Group(("statsd",), launch.statsd),
    Group(("failsWhen",), launch.fails_when),
    Group(("monitorResources",), launch.monitor),
    Group(("verify",), launch.verify),
    Group(("resourceLimits",), launch.limits),
    Group(("secrets",), launch.secrets),
    Group(("stateAllowedScopes",), launch.scopes),
    Group(("pool", "poolSlots", "queuePriority", "queueTimeout"), launch.pool),
    Group(("onSuccess",), launch.on_success),
)

JOB_GROUPS = (
    *_LAUNCH_GROUPS,
    _plain("enabled", "enabled"),
    _plain("clusterPolicy", "cluster_policy"),
    _plain("onMissed", "on_missed"),
    _plain("startingDeadlineSeconds", "starting_deadline", ranges.above(0)),
    _plain("catchupJitterSeconds", "catchup_jitter", ranges.at_least(0)),
    _plain("catchupLimit", "catchup_limit", ranges.at_least(1)),
    _plain("onlyIfLastSucceeded", "only_if_last_succeeded"),
    _plain("archiveOutput", "archive_output"),
    _plain("redactArchivedSecrets", "redact_archived_secrets"),
    Group(("concurrencyPolicy", "concurrencyScope"), launch.concurrency),
    Group(("onFailure",), launch.on_failure),
    Group(("onPermanentFailure",), launch.on_permanent_failure),
    Group(("sla", "onLate"), launch.lateness),
)

TASK_GROUPS = (*_LAUNCH_GROUPS, Group(("onFailure",), launch.task_on_failure))


@attrs.define(eq=False)
class _Shared:
    """A complaint about what several jobs inherit: told once, naming them."""

    path: Path
    message: str
    jobs: list[str] = attrs.field(factory=list)


@attrs.frozen(eq=False)
class _Prepared:
    """The fields of all groups that a job leaves alone, and what is wrong with them."""

    fields: Fields
    complaints: tuple[_Shared, ...]


class Blueprint:
    """What the jobs (or tasks) of one file start from: the layers under them, by group."""

    def __init__(self, layers: Iterable[Layer], groups: Sequence[Group], world: World) -> None:
        self._layers = tuple(layers)
        self._groups = groups
        self._world = world
        self._of = {key: number for number, group in enumerate(groups) for key in group.keys}
        self._merged: dict[str, Any] = {}
        for each in self._layers:
            self._merged = merge(self._merged, each.values)
        self._bad = self._numbers(key for each in self._layers for key in each.bad)
        self._prepared: dict[frozenset[int], _Prepared] = {}
        self._built: dict[int, tuple[Fields, list[_Shared]]] = {}
        self.problems: list[ConfigProblem] = []

    def inherited(self, key: str) -> Any:
        """Return what the layers say about C{key}, None when nothing."""
        return self._merged.get(key)

    def without(self, *keys: str) -> Blueprint:
        """Return this blueprint with nothing inherited for C{keys}."""
        layers = [
            Layer(
                each.file,
                each.node,
                {key: value for key, value in each.values.items() if key not in keys},
                each.bad,
            )
            for each in self._layers
        ]
        return Blueprint(layers, self._groups, self._world)

    def fields(self, where: str, top: Layer) -> Fields:
        """
        Return the fields of the job that C{top} adds to the layers.

        What is wrong goes to C{problems}; C{where} names the job in them.
        """
        of = self._of
        touched = frozenset([of[key] for key in top.values if key in of])
        bad = self._numbers(top.bad)
        prepared = self._prepared.get(touched | bad)
        if prepared is None:
            prepared = self._prepare(touched | bad)
        for complaint in prepared.complaints:
            complaint.jobs.append(where)
        fields = dict(prepared.fields)
        tell = self.teller(where, top)
        for number in touched - bad - self._bad:
            group = self._groups[number]
            fields.update(group.build(self._values(group, top.values), tell, self._world))
        return fields

    def teller(self, where: str, top: Layer) -> Tell:
        """Return what tells about a path of C{top}, or of the layer that gave the value."""

        def tell(path: Path, message: str) -> None:
            problem = located((*self._layers, top), path, where, message)
            self.problems.append(problem)

        return tell

    def finish(self) -> list[ConfigProblem]:
        """Return all problems, those of what jobs inherit once for all of them."""
        for _, complaints in self._built.values():
            for complaint in complaints:
                if complaint.jobs:
                    where = _several(complaint.jobs)
                    self.problems.append(
                        located(self._layers, complaint.path, where, complaint.message)
                    )
                    complaint.jobs = []
        return self.problems

    def _numbers(self, keys: Iterable[str]) -> frozenset[int]:
        return frozenset(self._of[key] for key in keys if key in self._of)

    def _values(self, group: Group, own: dict[str, Any]) -> dict[str, Any]:
        base, values = self._merged, {}
        for key in group.keys:
            if key in own:
                inherited = key in base
                value = own[key]
                values[key] = merge_value(key, base[key], value) if inherited else alone(key, value)
            elif key in base:
                values[key] = base[key]
        return values

    def _prepare(self, touched: frozenset[int]) -> _Prepared:
        fields: Fields = {}
        complaints: list[_Shared] = []
        for number in range(len(self._groups)):
            if number not in touched and number not in self._bad:
                built, wrong = self._inherited(number)
                fields.update(built)
                complaints.extend(wrong)
        prepared = self._prepared[touched] = _Prepared(fields, tuple(complaints))
        return prepared

    def _inherited(self, number: int) -> tuple[Fields, list[_Shared]]:
        if number not in self._built:
            complaints: list[_Shared] = []
            group = self._groups[number]
            fields = group.build(
                self._values(group, {}),
                lambda path, message: complaints.append(_Shared(path, message)),
                self._world,
            )
            self._built[number] = fields, complaints
        return self._built[number]


def job(blueprint: Blueprint, where: str, top: Layer, world: World) -> JobConfig | None:
    """Return the job that C{top} describes, or None when too much of it is missing or wrong."""
    fields = blueprint.fields(where, top)
    values, tell = top.values, blueprint.teller(where, top)
    name = values.get("name")
    if name == "":
        tell(("name",), "must not be blank")
    elif isinstance(name, str) and not _is_utf8(name):
        tell(("name",), f"must be valid UTF-8, got {name!r}")
    due = when(values, _frame(blueprint, top), str(name), tell, world)
    if name is None or "command" not in values or due is None:
        return None
    fields.update(due)
    run = command(values["command"])
    return JobConfig(name, run, origin=Origin(top.file, top.node.line), **fields)  # type: ignore[arg-type]


def _frame(blueprint: Blueprint, top: Layer) -> tuple[Any, Any]:
    """Return what C{timezone} and C{utc} are for a job, defaults included."""
    zone = top.values.get("timezone", blueprint.inherited("timezone"))
    utc = top.values.get("utc", blueprint.inherited("utc"))
    return zone, True if utc is None else utc


def when(
    values: Values, frame: tuple[Any, Any], key: str, tell: Tell, world: World
) -> Fields | None:
    """
    Return the fields about the schedule of a job or workflow, None when there is none.

    C{@reboot} has no timetable; C{key} is what hashed slots depend on.
    """
    zone, utc = frame
    zone = zone if zone is not None else "UTC" if utc else None
    known = _zone_is_known(zone, tell)
    written = values.get("schedule")
    if written is None:
        return None
    line = schedule_line(written, tell)
    fields: Fields = {"schedule_text": line, "schedule": None, "timezone": zone, "utc": utc}
    if written == REBOOT or line is None:
        return fields
    try:
        fields["schedule"] = world.schedule(line, key, zone if known else "UTC")
    except ScheduleError as error:
        tell(("schedule",), f"invalid schedule '{line}': {error}")
    return fields


def _zone_is_known(zone: str | None, tell: Tell) -> bool:
    if zone is None:
        return True
    try:
        zone_named(zone)
    except (UnknownZone, NoZoneData) as error:
        wrong = str(error) if zone else "must not be blank"
        tell(("timezone",), f"{wrong}; allowed: a name of the IANA time zone database")
        return False
    return True


def schedule_line(written: str | dict[str, str], tell: Tell) -> str | None:
    """Return a schedule as one line, blanks collapsed; None after telling what is wrong."""
    if isinstance(written, str):
        return _BLANKS.sub(" ", written).strip(" ")
    sound = True
    for key, value in written.items():
        if not value or _BLANKS.search(value) or len(value.split()) != 1:
            tell(
                ("schedule", key), f"must be one field without blanks, got {value!r}; omit it for *"
            )
            sound = False
    if not sound:
        return None
    columns = [written.get(key, "*") for key in SCHEDULE_KEYS if key not in ("second", "year")]
    if "second" in written:
        columns = [written["second"], *columns, written.get("year", "*")]
    elif "year" in written:
        columns.append(written["year"])
    return " ".join(columns)


def _is_utf8(text: str) -> bool:
    """Return whether C{text} holds no bytes of an environment that are no text."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _several(names: Sequence[str]) -> str:
    """Return a few of C{names}, and how many more there are."""
    said = ", ".join(names[:3])
    return said if len(names) <= 3 else f"{said} and {len(names) - 3} more"
