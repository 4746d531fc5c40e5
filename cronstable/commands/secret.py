"""``cronstable secret ACTION``: the secrets that are staged for this run (docs/job-state.md)."""

from __future__ import annotations

from cronstable.commands import jobside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from cronstable.jobapi.client import Endpoint


def add_arguments(parser: ArgumentParser) -> None:
    """Add the actions."""
    actions = jobside.actions_of(parser)
    get = jobside.action(actions, "secret", "get", _get, "print the value of a secret")
    get.add_argument("name", metavar="NAME")
    jobside.action(actions, "secret", "list", _list, "print the names of the secrets, one a line")


def run(options: Namespace) -> int:
    """Do what the action says, and return the exit status."""
    return jobside.run_action("secret", options)


def _get(options: Namespace, endpoint: Endpoint) -> int:
    from cronstable.jobapi.client import Absent

    try:
        answer = endpoint.get("/v1/secret/get", (("name", options.name),))
    except Absent:
        return jobside.not_there(f"secret not staged: {options.name}")
    jobside.show(answer.get("value"))
    return 0


def _list(options: Namespace, endpoint: Endpoint) -> int:
    jobside.show_names(endpoint.get("/v1/secret/list").get("names", []))
    return 0
