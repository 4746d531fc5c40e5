"""
``cronstable state ACTION``: administers the durable store.

docs/cli.md describes the actions.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def add_arguments(parser: ArgumentParser) -> None:
    """Add the actions; each sets C{act} to what does it and returns the exit status."""
    from cronstable.commands import state_admin

    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    state_admin.add_actions(actions)


def run(options: Namespace) -> int:
    """Do what the action says, and return the exit status."""
    status: int = options.act(options)
    return status
