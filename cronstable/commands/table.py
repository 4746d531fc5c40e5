"""The sub-commands there are: one row each, its module imported only once it is asked for."""

from __future__ import annotations

from collections import namedtuple

Command = namedtuple("Command", ["name", "module", "help"])
"""
A sub-command: its word, the module behind it, and its line in the help.

The module has C{add_arguments(parser)} and C{run(options)}, which returns the exit status.  A
module whose C{run} takes the words after a bare C{--} says so with
C{parser.set_defaults(after_dashes=())}.
"""

COMMANDS = (
    Command(
        "init",
        "cronstable.commands.init",
        "write a starter configuration into a directory and exit",
    ),
    Command(
        "state",
        "cronstable.commands.state",
        "keep values of this job under keys; administer the durable store",
    ),
    Command("cursor", "cronstable.commands.cursor", "keep marks of this job that only go up"),
    Command("idempotent", "cronstable.commands.idempotent", "do something once, whoever tries"),
    Command("lock", "cronstable.commands.lock", "hold a lock while this job needs it"),
    Command("artifact", "cronstable.commands.artifact", "hand payloads to later runs"),
    Command("secret", "cronstable.commands.secret", "read the secrets of this run"),
)
