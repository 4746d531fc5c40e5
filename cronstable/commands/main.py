"""
The ``cronstable`` command: decides what argv asks for and gives the exit status.

Flags, their order of evaluation and the exit codes are described in docs/cli.md.  Nothing that
Twisted or the daemon needs is imported unless the daemon is to run.
"""

from __future__ import annotations

import errno
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

_NOT_PRINTED = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def main(argv: Sequence[str] | None = None) -> int:
    """
    Do what C{argv} (without the program's name; default: this process's) asks for.

    Returns the exit status: 0 done, 1 error or refusal, 2 usage, others as docs/cli.md says.
    """
    _have_output()
    _never_fail_to_print()
    try:
        status = _status_of(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        if error.errno not in _NOT_PRINTED or error.filename:
            raise
        # The interpreter must not trip again at exit over what stdout did not take.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno != errno.EPIPE:  # Else whoever read our output has only gone.
            print(f"cronstable error: cannot write to stdout: {error}", file=sys.stderr)
        return 1


def _status_of(argv: Sequence[str]) -> int:
    try:
        return _run(argv)
    except SystemExit as stop:  # From argparse, after a usage error or a help text.
        return stop.code if isinstance(stop.code, int) else 1


def _run(argv: Sequence[str]) -> int:
    if list(argv) == ["--version"]:
        return _print_version()  # The usual probe of an installation needs no parser.
    from cronstable.commands.loglevel import level_number
    from cronstable.commands.parser import parse, root_parser

    parser = root_parser()
    options = parse(parser, argv)
    try:
        level = level_number(options.log_level)
    except ValueError as error:
        parser.error(f"argument -l/--log-level: {error}")
    if options.version:
        return _print_version()
    if options.third_party_licenses:
        return _print_licenses()
    if options.sealable_suites:
        return 0
    if options.command is not None:
        status: int = options.run(options)
        return status
    return _use_config(parser, options, level, bare=not argv)


def _print_version() -> int:
    from cronstable.version import __version__

    print(__version__)
    return 0


def _print_licenses() -> int:
    from cronstable.commands.licenses import notices

    for notice in notices():
        print(notice)
    return 0


def _use_config(parser: ArgumentParser, options: Namespace, level: int, *, bare: bool) -> int:
    from cronstable.commands.defaults import default_config, is_absent
    from cronstable.commands.loglevel import log_to_stderr

    default = default_config()
    if options.config is None:
        options.config = default
    if options.config == default and is_absent(default):
        return _advise(parser, default, bare=bare)
    log_to_stderr(level)
    if options.job_set_id:
        from cronstable.commands.check import print_job_set_id

        return print_job_set_id(options.config)
    if options.validate_config:
        from cronstable.commands.check import validate

        return validate(options.config)
    options.log_level = level
    import gc

    from cronstable.platform import open_standard_descriptors
    from cronstable.signals import EarlySignals

    open_standard_descriptors()
    EarlySignals().install()
    gc.disable()  # See cronstable.tap; the daemon enables it again.
    from cronstable import daemon

    status: int = daemon.run(options)
    return status


def _advise(parser: ArgumentParser, path: str, *, bare: bool) -> int:
    """Say how to get a configuration; a bare probe of the installed program succeeds."""
    out = sys.stdout if bare else sys.stderr
    print(
        f"cronstable error: configuration file not found at the default location ({path})."
        " Create a first one there with `cronstable init`, or name another file or directory"
        " with -c.\n",
        file=out,
    )
    parser.print_help(out)
    return 0 if bare else 1


def _have_output() -> None:
    """Let output that was closed when the process started go nowhere, and so its children's."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            stream = open(os.devnull, "w")  # noqa: SIM115 - for as long as we live
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def _never_fail_to_print() -> None:
    """Escape what stdout's encoding cannot hold, as stderr does, instead of raising."""
    if getattr(sys.stdout, "errors", None) == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
