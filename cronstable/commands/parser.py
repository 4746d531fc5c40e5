"""
Reads argv: the options of the daemon, one sub-command, and the rule for a bare ``--``.

The grammar is described in docs/cli.md.  A usage error prints the usage on stderr and exits 2.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib import import_module

from cronstable.commands.defaults import default_config
from cronstable.commands.loglevel import LEVELS
from cronstable.commands.table import COMMANDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class LazyParser(ArgumentParser):
    """A parser that asks C{module} for its arguments when it is first used."""

    def __init__(self, *, module: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._module = module

    # The overloads of typeshed cannot be repeated without importing typing at each start.
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Parse as any parser does, with the arguments of the module in place."""
        if self._module is not None:
            module = import_module(self._module)
            self._module = None
            module.add_arguments(self)
            self.set_defaults(run=module.run)
        return super().parse_known_args(args, namespace)


def root_parser() -> ArgumentParser:
    """Return the parser of the whole command line."""
    parser = ArgumentParser(
        prog="cronstable",
        description="Without COMMAND: run the scheduler in the foreground.",
    )
    option = parser.add_argument
    option(
        "-c",
        "--config",
        metavar="FILE-OR-DIR",
        help="configuration file, or directory of configuration files"
        f" (default: {default_config()})".replace("%", "%%"),
    )
    option(
        "-l",
        "--log-level",
        metavar="LEVEL",
        default="INFO",
        help=f"least severe level to log: {LEVELS} (default: INFO)",
    )
    for flag, what in (
        ("-v --validate-config", "check the configuration and exit; starts nothing"),
        ("--job-set-id", "print the fingerprint of the job set and exit"),
        ("--version", "print the version and exit"),
        ("--third-party-licenses", "print the licence notices of what is installed with it"),
        ("--sealable-suites", "print the push-encryption suites of this build (it has none)"),
    ):
        option(*flag.split(), action="store_true", help=what)
    # Giving prog keeps argparse from building a formatter, and with it an import of shutil.
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", prog="cronstable", parser_class=LazyParser
    )
    for command in COMMANDS:
        commands.add_parser(command.name, help=command.help, module=command.module)
    return parser


def parse(parser: ArgumentParser, argv: Sequence[str]) -> Namespace:
    """
    Return the options in C{argv}; exits 2 after a usage error, 0 after a help text.

    The first bare C{--} ends the options; what follows is C{after_dashes}, for a command that
    takes it.
    """
    words = list(argv)
    if "--" not in words:
        return parser.parse_args(words)
    end = words.index("--")
    options = parser.parse_args(words[:end])
    if not hasattr(options, "after_dashes"):
        parser.error("`--` is only valid before a `lock run` command")
    options.after_dashes = tuple(words[end + 1 :])
    return options
