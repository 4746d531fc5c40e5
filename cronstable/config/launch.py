"""
Builders of job fields that need more than a range check: each takes the merged values of its
keys and returns fields of L{JobConfig}, telling what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from cronstable.config import ranges
from cronstable.config.accounts import AccountTrouble, resolve
from cronstable.config.layers import Tell
from cronstable.config.reports import active, command, report, secret
from cronstable.config.values import (
    LATE_REPORT,
    STANDARD_REPORT,
    FailsWhen,
    JobConfig,
    Monitor,
    NamedSecret,
    PoolMembership,
    Report,
    ResourceLimits,
    RetryPolicy,
    Sla,
    Statsd,
    Verify,
)
from cronstable.config.world import EnvFileTrouble, World

Fields = dict[str, Any]
Values = Mapping[str, Any]


def checked(value: Any, check: ranges.Check, path: tuple[str, ...], tell: Tell) -> Any:
    """Return C{value} after telling what C{check} has against it."""
    wrong = check(value)
    if wrong:
        tell(path, wrong)
    return value


def environment(values: Values, tell: Tell, world: World) -> Fields:
    """Build C{environment} and C{env_file}: the file's variables, then the configured ones."""
    entries = values.get("environment", ())
    pairs = {entry["key"]: entry["value"] for entry in entries}
    for key, value in pairs.items():
        _check_variable("environment", key, value, tell)
    path = values.get("env_file")
    if path is not None:
        pairs = {**_from_file(path, tell, world), **pairs}
    return {"environment": world.shared(tuple(pairs.items())), "env_file": path}


def _from_file(path: str, tell: Tell, world: World) -> dict[str, str]:
    try:
        found = dict(world.env_file(path))
    except EnvFileTrouble as trouble:
        tell(("env_file",), trouble.message)
        return {}
    for key, value in found.items():
        _check_variable("env_file", key, value, tell)
    return found


def _check_variable(where: str, key: str, value: str, tell: Tell) -> None:
    if not key:
        tell((where,), "a variable without a name; allowed: a name without '=' and NUL")
    elif "=" in key or "\0" in key:
        begun = re.split("[=\0]", key)[0]
        tell(
            (where,),
            f"the name that begins with {begun!r} goes on with '=' or NUL; allowed: neither",
        )
    elif "\0" in value:
        tell((where,), f"the value of {key} holds a NUL; allowed: text without NUL")


def identity(values: Values, tell: Tell, world: World) -> Fields:
    """Build C{user} and C{group}, and the numbers that they come to."""
    user, group = values.get("user"), values.get("group")
    fields: Fields = {"user": user, "group": group}
    if user is None and group is None:
        return fields
    try:
        account = resolve(user, group, is_root=world.is_root, windows=world.windows)
    except AccountTrouble as trouble:
        tell((trouble.key,), trouble.message)
        return fields
    return {**fields, "uid": account.uid, "gid": account.gid, "login": account.login}


def working_directory(values: Values, tell: Tell, world: World) -> Fields:
    """Build C{workingDirectory}, absolute; blank opts out of a default."""
    path = values.get("workingDirectory")
    if not path:
        return {"working_directory": None}
    try:
        return {"working_directory": world.shared(world.absolute(path))}
    except OSError as error:
        tell(("workingDirectory",), f"cannot be made absolute: {error.strerror}, got {path!r}")
        return {}


def statsd(values: Values, tell: Tell, world: World) -> Fields:
    """Build C{statsd}."""
    written = values.get("statsd")
    return {"statsd": None if written is None else world.shared(Statsd(**written))}


def fails_when(values: Values, tell: Tell, world: World) -> Fields:
    """Build C{failsWhen}."""
    written = values.get("failsWhen")
    if not written:
        return {"fails_when": _FAILS_WHEN}
    names = {
        "producesStdout": "produces_stdout",
        "producesStderr": "produces_stderr",
        "nonzeroReturn": "nonzero_return",
        "always": "always",
    }
    built = FailsWhen(**{names[key]: value for key, value in written.items()})
    return {"fails_when": world.shared(built)}


def on_failure(values: Values, tell: Tell, world: World) -> Fields:
    """Build C{onFailure}: the report and the retry policy."""
    written = values.get("onFailure") or {}
    return {**_report("onFailure", values, tell, world), "retry": _retry(written, tell, world)}


def _retry(written: Values, tell: Tell, world: World) -> RetryPolicy:
    retry = written.get("retry")
    if not retry:
        return _RETRY
    for key, check in _RETRY_CHECKS.items():
        if key in retry:
            checked(retry[key], check, ("onFailure", "retry", key), tell)
    built = RetryPolicy(
        retry["maximumRetries"],
        retry["initialDelay"],
        retry["maximumDelay"],
        retry["backoffMultiplier"],
        retry.get("jitter", 0.0),
    )
    return world.shared(built)


def task_on_failure(values: Values, tell: Tell, world: World) -> Fields:
    """Build a workflow task's C{onFailure}: reports only, an inherited C{retry} is ignored."""
    return _report("onFailure", values, tell, world)


def on_permanent_failure(values: Values, tell: Tell, world: World) -> Fields:
    """Build C{onPermanentFailure}."""
    return _report("onPermanentFailure", values, tell, world)


def on_success(values: Values, tell: Tell, world: World) -> Fields:
    """Build C{onSuccess}."""
    return _report("onSuccess", values, tell, world)


def _report(hook: str, values: Values, tell: Tell, world: World) -> Fields:
    return {_HOOK_FIELDS[hook]: _hook_report(hook, STANDARD_REPORT, values, tell, world)}


def _hook_report(hook: str, standard: Report, values: Values, tell: Tell, world: World) -> Report:
    written = (values.get(hook) or {}).get("report")
    if not written:
        return standard
    return world.shared(report(standard, written, (hook, "report"), tell))


def lateness(values: Values, tell: Tell, world: World) -> Fields:
    """Build C{sla} and C{onLate}, which needs it."""
    written = values.get("sla")
    sla = _SLA
    if written:
        for key, value in written.items():
            checked(value, _ABOVE_ZERO, ("sla", key), tell)
        sla = world.shared(
            Sla(
                written.get("maxTimeSinceSuccessSeconds"),
                written.get("lateAfterSeconds"),
                written.get("maxRuntimeSeconds"),
            )
        )
    late = _hook_report("onLate", LATE_REPORT, values, tell, world)
    if late is not LATE_REPORT and active(late) and sla == _SLA:
        tell(
            ("onLate",),
            "has a reporter, but nothing is watched; set maxTimeSinceSuccessSeconds, "
            "lateAfterSeconds or maxRuntimeSeconds under sla",
        )
    return {"sla": sla, "on_late": late}


def concurrency(values: Values, tell: Tell, world: World) -> Fields:
    """Build C{concurrencyPolicy} and C{concurrencyScope}."""
    policy = values.get("concurrencyPolicy", "Allow")
    scope = values.get("concurrencyScope", "node")
    if scope == "cluster" and policy == "Allow":
        tell(
            ("concurrencyScope",),
            "'cluster' bounds nothing under concurrencyPolicy Allow; allowed: Forbid or Replace",
        )
    return {"concurrency_policy": policy, "concurrency_scope": scope}


def secrets(values: Values, tell: Tell, world: World) -> Fields:
    """Build C{secrets}; each needs a source."""
    built = []
    for entry in values.get("secrets", ()):
        name, sources = entry["name"], secret(entry)
        if not name:
            tell(("secrets",), "a secret without a name")
        if not sources.configured:
            tell(
                ("secrets",),
                f"'{name}' has no source; set one of value, fromFile, fromEnvVar",
            )
        built.append(NamedSecret(name, sources))
    return {"secrets": world.shared(tuple(built))}


def monitor(values: Values, tell: Tell, world: World) -> Fields:
    """Build C{monitorResources}; a mapping switches it on."""
    written = values.get("monitorResources", False)
    if isinstance(written, bool):
        return {"monitor": Monitor(True) if written else _MONITOR}
    interval, history = written.get("interval", 1.0), written.get("history", 240)
    checked(interval, ranges.at_least(0.1), ("monitorResources", "interval"), tell)
    checked(history, ranges.between(0, 2000), ("monitorResources", "history"), tell)
    return {"monitor": world.shared(Monitor(written.get("enabled", True), interval, history))}


def verify(values: Values, tell: Tell, world: World) -> Fields:
    """Build C{verify}; blank opts out of a default."""
    written = values.get("verify")
    if written is None:
        return {"verify": None}
    run = command(written["command"])
    if not run or (isinstance(run, str) and not run.strip()):
        tell(("verify", "command"), "must not be blank")
    timeout = written.get("timeout", 60.0)
    checked(timeout, _FINITE_ABOVE_ZERO, ("verify", "timeout"), tell)
    return {"verify": world.shared(Verify(run or "", timeout))}


def pool(values: Values, tell: Tell, world: World) -> Fields:
    """Build the membership of a pool from C{pool} and the keys that need it unless standard."""
    name = values.get("pool")
    slots, timeout = values.get("poolSlots", 1), values.get("queueTimeout", 3600.0)
    if name is None:
        for key, value in (("poolSlots", 1), ("queuePriority", 0), ("queueTimeout", 3600.0)):
            if values.get(key, value) != value:
                tell((key,), "needs pool, which is not set")
        return {"pool": None}
    checked(slots, ranges.at_least(1), ("poolSlots",), tell)
    checked(timeout, _FINITE_ABOVE_ZERO, ("queueTimeout",), tell)
    membership = PoolMembership(name, slots, values.get("queuePriority", 0), timeout)
    return {"pool": world.shared(membership)}


def limits(values: Values, tell: Tell, world: World) -> Fields:
    """Build C{resourceLimits}."""
    written = values.get("resourceLimits")
    if not written:
        return {"limits": _LIMITS}
    caps: Fields = {"required": written.get("required", False)}
    for key, convert in (
        ("cpu", ranges.cpu),
        ("memory", ranges.memory),
        ("processes", ranges.processes),
    ):
        if key in written:
            try:
                caps[key] = convert(written[key])
            except ValueError as error:
                tell(("resourceLimits", key), str(error))
    return {"limits": world.shared(ResourceLimits(**caps))}


def umask(values: Values, tell: Tell, world: World) -> Fields:
    """Build C{umask}."""
    written = values.get("umask")
    try:
        return {"umask": None if written is None else ranges.umask(written)}
    except ValueError as error:
        tell(("umask",), str(error))
        return {}


def scopes(values: Values, tell: Tell, world: World) -> Fields:
    """Build C{stateAllowedScopes}."""
    written: Iterable[str] = values.get("stateAllowedScopes", ())
    return {"allowed_scopes": world.shared(tuple(written))}


_STANDARD = JobConfig("", "", "", None)
_RETRY = _STANDARD.retry
_FAILS_WHEN = _STANDARD.fails_when
_SLA = _STANDARD.sla
_MONITOR = _STANDARD.monitor
_LIMITS = _STANDARD.limits
_ABOVE_ZERO = ranges.above(0)
_FINITE_ABOVE_ZERO = ranges.finite_above(0)
_HOOK_FIELDS = {
    "onFailure": "on_failure",
    "onPermanentFailure": "on_permanent_failure",
    "onSuccess": "on_success",
}
_RETRY_CHECKS = {
    "maximumRetries": ranges.at_least(-1),
    "initialDelay": ranges.at_least(0),
    "maximumDelay": _ABOVE_ZERO,
    "backoffMultiplier": _ABOVE_ZERO,
    "jitter": ranges.between(0, 1),
}
