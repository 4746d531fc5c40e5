"""``cronstable init``: write a first configuration that works, and never touch one that exists."""

from __future__ import annotations

import os
import shlex
import sys

from cronstable.commands.defaults import default_config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

STARTER_NAME = "cronstable.yaml"

STARTER = """\
# A first cronstable configuration.
#
# All *.yaml and *.yml files of this directory are read, and crontabs by their names: *.crontab,
# *.cron, crontab.  A name that starts with _ or . is left out.  An edit is in force within a
# minute; "cronstable -v -c DIRECTORY" checks it first.

jobs:
  - name: hello
    schedule: "*/5 * * * *"
    command: echo "hello from $(uname -n)"
    captureStdout: true

# A dashboard and an HTTP API for this machine only.  Put a long random text into CRONSTABLE_TOKEN
# where the daemon starts, take the comment marks away, and open the address in a browser.
#
# web:
#   listen:
#     - http://127.0.0.1:8080
#   authToken:
#     fromEnvVar: CRONSTABLE_TOKEN
"""

_NAMES_SHOWN = 5


class Refused(Exception):
    """Nothing was written; the text says why."""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments of C{init}."""
    parser.add_argument(
        "directory",
        metavar="DIRECTORY",
        nargs="?",
        help="where to write it"
        f" (default: the one named by -c before init, else {default_config()})".replace("%", "%%"),
    )


def run(options: Namespace) -> int:
    """Write the starter file and say how to go on; 1 with the reason on stderr if refused."""
    chosen = options.directory or options.config or default_config()
    if options.directory and options.config and options.directory != options.config:
        print(
            f"cronstable init: -c {options.config} and DIRECTORY {options.directory} differ;"
            f" writing to {chosen}",
            file=sys.stderr,
        )
    try:
        path = write_starter(chosen)
    except Refused as refusal:
        print(f"cronstable init: {refusal}", file=sys.stderr)
        return 1
    where = "" if chosen == default_config() else f" -c {shlex.quote(chosen)}"
    print(f"wrote {path}")
    print(f"start the scheduler with: cronstable{where}")
    return 0


def write_starter(directory: str) -> str:
    """
    Create C{directory} and the starter file in it, and return the file's path.

    Raises Refused if the directory is a file, cannot be listed or written, or already holds
    something that would be loaded.
    """
    if os.path.isfile(directory):
        raise Refused(
            f"{directory} is a file; the starter goes into a directory: name one, or edit the file"
        )
    from cronstable.config.sources import taken_names

    try:
        present = taken_names(directory)
    except FileNotFoundError:
        present = ()
    except OSError as error:
        raise Refused(f"cannot list {directory}: {error}") from error
    if present:
        shown = ", ".join(present[:_NAMES_SHOWN])
        raise Refused(
            f"{directory} already holds configuration ({shown}); a starter would add a job to it"
        )
    path = os.path.join(directory, STARTER_NAME)
    try:
        os.makedirs(directory, mode=0o755, exist_ok=True)
        _create(path, STARTER)
    except OSError as error:
        raise Refused(f"could not write {path}: {error}") from error
    return path


def _create(path: str, text: str) -> None:
    """Write a file that must not exist yet; a half-written one is taken away again."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except BaseException:
        os.unlink(path)
        raise
