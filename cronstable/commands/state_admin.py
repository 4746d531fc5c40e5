"""
``cronstable state backup|restore|migrate|gc|check|migrate-schema``: the store without a daemon.

docs/cli.md describes them.  They need neither Twisted nor a running daemon.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable
    from typing import Any

    from cronstable.config.sections_values import Config, StateConfig
    from cronstable.state.admin import Outcome
    from cronstable.state.store import Store, StoreSettings


def add_actions(actions: Any) -> None:
    """
    Add the six actions to the sub-parsers of the C{state} command.

    Each sets C{act} to what does it with the parsed options and returns the exit status.
    """
    parser = _action(actions, "backup", _backup, "write the store into a .tar.gz archive")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.tar.gz")
    parser = _action(actions, "restore", _restore, "put an archive into the store")
    parser.add_argument("archive", metavar="FILE.tar.gz")
    _force(parser, "merge into a store that is not empty; stop cronstable first")
    parser = _action(actions, "migrate", _migrate, "copy the store to another path or mount")
    parser.add_argument("--dest", required=True, metavar="PATH")
    parser.add_argument(
        "--dest-deployment-id",
        metavar="ID",
        help="namespace at the destination (default: keep the present one)",
    )
    _force(parser, "copy into a store that is not empty; stop cronstable first")
    parser = _action(actions, "gc", _gc, "remove what no job of any node uses any more")
    _dry_run(parser)
    _action(actions, "check", _check, "prove that the store is usable and count what is in it")
    parser = _action(
        actions, "migrate-schema", _migrate_schema, "bring records of older formats up to date"
    )
    _dry_run(parser)


def _action(actions: Any, name: str, act: Callable[[Namespace], int], what: str) -> ArgumentParser:
    import argparse

    parser: ArgumentParser = actions.add_parser(name, help=what, description=what)
    # An absent -c must not undo one that stands before the command.
    parser.add_argument(
        "-c",
        "--config",
        metavar="FILE-OR-DIR",
        default=argparse.SUPPRESS,
        help="configuration whose state section names the store",
    )
    parser.set_defaults(act=act)
    return parser


def _force(parser: ArgumentParser, what: str) -> None:
    parser.add_argument("--force", action="store_true", help=what)


def _dry_run(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, do nothing")


def _backup(options: Namespace) -> int:
    from cronstable.state import admin

    return _run(options, lambda config: admin.backup(_settings(config), options.output))


def _restore(options: Namespace) -> int:
    from cronstable.state import admin

    return _run(
        options,
        lambda config: admin.restore(_settings(config), options.archive, options.force, _clock()),
    )


def _migrate(options: Namespace) -> int:
    from cronstable.state import admin

    return _run(
        options,
        lambda config: admin.migrate(
            _settings(config), options.dest, options.dest_deployment_id, options.force, _clock()
        ),
    )


def _gc(options: Namespace) -> int:
    from cronstable.identity import host_name
    from cronstable.state import admin
    from cronstable.state.manifests import names_of

    return _run(
        options,
        lambda config: admin.gc(
            _store(config),
            names_of(config, host_name() or "localhost"),
            float(_state(config).gc_grace),
            options.dry_run,
        ),
    )


def _check(options: Namespace) -> int:
    from cronstable.state import admin

    return _run(options, lambda config: admin.check(_store(config)))


def _migrate_schema(options: Namespace) -> int:
    from cronstable.state import admin

    return _run(options, lambda config: admin.migrate_schema(_store(config), options.dry_run))


class NoStore(Exception):
    """The configuration has no store; the text is for the operator."""


def _run(options: Namespace, act: Callable[[Config], Outcome]) -> int:
    """Load the configuration, act, print, and return the exit status."""
    from cronstable.commands.defaults import default_config
    from cronstable.commands.loglevel import level_number, log_to_stderr
    from cronstable.config.errors import ConfigError
    from cronstable.state.errors import TROUBLE

    log_to_stderr(level_number(getattr(options, "log_level", "INFO")))
    try:
        outcome = act(_load(options.config or default_config()))
    except (ConfigError, NoStore, *TROUBLE) as error:
        print(f"cronstable state error: {error}", file=sys.stderr)
        return 1
    for line in outcome.err:
        print(line, file=sys.stderr)
    for line in outcome.out:
        print(line)
    return outcome.status


def _load(path: str) -> Config:
    import time

    from cronstable.config.load import load

    return load(path, environ=os.environ, now=time.time()).config


def _state(config: Config) -> StateConfig:
    if config.state is None:
        raise NoStore("the configuration has no state section, so there is no store")
    return config.state


def _settings(config: Config) -> StoreSettings:
    from cronstable.state.store import StoreSettings

    return StoreSettings.of(_state(config))


def _store(config: Config) -> Store:
    from cronstable.state.store import open_store

    return open_store(_settings(config), _clock())


def _clock() -> Any:
    from cronstable.commands.hosttime import HostTime

    return HostTime()
