"""``cronstable cursor ACTION``: marks of a job that only ever go up (docs/job-state.md)."""

from __future__ import annotations

from cronstable.commands import jobside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from cronstable.jobapi.client import Endpoint


def add_arguments(parser: ArgumentParser) -> None:
    """Add the actions."""
    actions = jobside.actions_of(parser)
    get = jobside.action(actions, "cursor", "get", _get, "print where a cursor stands")
    get.add_argument("name", metavar="NAME")
    advance = jobside.action(
        actions, "cursor", "advance", _advance, "move a cursor up, and print where it stands"
    )
    advance.add_argument("name", metavar="NAME")
    advance.add_argument("value", metavar="VALUE", help="a number, or text")
    advance.add_argument("--force", action="store_true", help="move it down as well")
    for each in (get, advance):
        jobside.add_scope(each)


def run(options: Namespace) -> int:
    """Do what the action says, and return the exit status."""
    return jobside.run_action("cursor", options)


def _get(options: Namespace, endpoint: Endpoint) -> int:
    from cronstable.jobapi.client import Absent

    try:
        answer = endpoint.get("/v1/cursor/get", (("scope", options.scope), ("name", options.name)))
    except Absent:
        return jobside.not_there(f"cursor not set: {options.name}")
    jobside.show(answer.get("value"))
    return 0


def _advance(options: Namespace, endpoint: Endpoint) -> int:
    answer = endpoint.post(
        "/v1/cursor/advance",
        {
            "scope": options.scope,
            "name": options.name,
            "value": number_or_text(options.value),
            "force": options.force,
        },
    )
    jobside.show(answer.get("value"))
    return 0


def number_or_text(text: str) -> int | float | str:
    """Return what is typed for a cursor: a number where it reads as one, so that 9 < 10."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
