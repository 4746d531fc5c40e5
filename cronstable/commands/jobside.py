"""
What the commands for use inside a job have in common: scopes, the endpoint, and how they end.

docs/job-state.md describes the commands, docs/cli.md their exit statuses.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable
    from typing import Any

    from cronstable.jobapi.client import Endpoint

    Act = Callable[[Namespace, Endpoint], int]

NOT_ACQUIRED = 3
"""The exit status where a lock could not be had."""

NOT_THERE = 4
"""The exit status where what was looked up is absent."""

CLAIMED = 5
"""The exit status where an idempotency key was claimed before."""


def actions_of(parser: ArgumentParser) -> Any:
    """Return where the actions of a command are added; without one its C{run} is called."""
    # Giving prog keeps argparse from building a formatter, and with it an import of shutil.
    return parser.add_subparsers(metavar="ACTION", prog=parser.prog)


def action(actions: Any, group: str, name: str, act: Act, what: str) -> ArgumentParser:
    """Add an action of C{group} that asks the endpoint, and return its parser."""
    parser: ArgumentParser = actions.add_parser(name, help=what, description=what)
    parser.set_defaults(act=lambda options: asked(group, act, options))
    return parser


def add_scope(parser: ArgumentParser) -> None:
    """Let a request name another scope than the job's own."""
    scopes = parser.add_mutually_exclusive_group()
    scopes.add_argument("--scope", metavar="NAME", help="scope to act in (default: this job's own)")
    scopes.add_argument(
        "--global",
        dest="scope",
        action="store_const",
        const="global",
        help="act in the scope that all jobs share",
    )


def run_action(group: str, options: Namespace) -> int:
    """Do what the action says; without one, say so and return 2."""
    act = getattr(options, "act", None)
    if act is None:
        tell(f"cronstable {group}: no action given (see --help)")
        return 2
    status: int = act(options)
    return status


def asked(group: str, act: Act, options: Namespace) -> int:
    """Let C{act} ask the endpoint, and return its exit status; 1 with the reason for trouble."""
    from cronstable.jobapi.client import Endpoint, Trouble

    try:
        return act(options, Endpoint.of(os.environ))
    except Trouble as trouble:
        tell(f"cronstable {group}: {trouble}")
        return 1


def not_there(text: str) -> int:
    """Say that what was looked up is absent, and return the status for that."""
    tell(text)
    return NOT_THERE


def tell(text: str) -> None:
    """Write a line to stderr, if that takes it: the exit status is the same if not."""
    try:
        print(text, file=sys.stderr)
    except OSError:
        pass


def show(value: object) -> None:
    """Print a value: text as it is, anything else as JSON."""
    if not isinstance(value, str):
        import json

        value = json.dumps(value)
    write(value.encode("utf-8", "surrogatepass") + b"\n")


def show_names(entries: list[Any], key: str | None = None) -> None:
    """Print one name a line: of each entry, or what each entry has under C{key}."""
    for entry in entries:
        show(str(entry if key is None else entry[key]))


def write(data: bytes) -> None:
    """Write bytes to stdout, whatever its encoding."""
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:
        sys.stdout.write(data.decode("utf-8", "backslashreplace"))
    else:
        binary.write(data)
