"""
``cronstable state ACTION``: what a job keeps under keys, and the administration of the store.

The job's actions ask the daemon that runs the job; the others work on the store itself, without a
daemon.  docs/job-state.md and docs/cli.md describe them.
"""

from __future__ import annotations

from cronstable.commands import jobside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from cronstable.jobapi.client import Endpoint


def add_arguments(parser: ArgumentParser) -> None:
    """Add the actions; each sets C{act} to what does it and returns the exit status."""
    from cronstable.commands import state_admin

    actions = jobside.actions_of(parser)
    get = jobside.action(actions, "state", "get", _get, "print the value of a key")
    get.add_argument("key", metavar="KEY")
    put = jobside.action(actions, "state", "set", _set, "keep a value under a key")
    put.add_argument("key", metavar="KEY")
    put.add_argument("value", metavar="VALUE")
    put.add_argument("--json", action="store_true", help="VALUE is JSON, not text")
    delete = jobside.action(actions, "state", "delete", _delete, "remove a key")
    delete.add_argument("key", metavar="KEY")
    keys = jobside.action(actions, "state", "keys", _keys, "print all keys, one a line")
    for each in (get, put, delete, keys):
        jobside.add_scope(each)
    state_admin.add_actions(actions)


def run(options: Namespace) -> int:
    """Do what the action says, and return the exit status."""
    return jobside.run_action("state", options)


def _get(options: Namespace, endpoint: Endpoint) -> int:
    from cronstable.jobapi.client import Absent

    try:
        answer = endpoint.get("/v1/kv/get", (("scope", options.scope), ("key", options.key)))
    except Absent:
        return jobside.not_there(f"key not found: {options.key}")
    jobside.show(answer.get("value"))
    return 0


def _set(options: Namespace, endpoint: Endpoint) -> int:
    value = _parsed(options.value) if options.json else options.value
    endpoint.post("/v1/kv/set", {"scope": options.scope, "key": options.key, "value": value})
    return 0


def _delete(options: Namespace, endpoint: Endpoint) -> int:
    answer = endpoint.post("/v1/kv/delete", {"scope": options.scope, "key": options.key})
    return 0 if answer.get("existed") else jobside.NOT_THERE


def _keys(options: Namespace, endpoint: Endpoint) -> int:
    answer = endpoint.get("/v1/kv/list", (("scope", options.scope),))
    jobside.show_names(answer.get("keys", []), "key")
    return 0


def _parsed(text: str) -> Any:
    import json

    from cronstable.jobapi.client import Trouble

    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Trouble(f"VALUE is not JSON: {error}") from None
