"""``cronstable artifact ACTION``: payloads for later runs and other nodes (docs/job-state.md)."""

from __future__ import annotations

import sys

from cronstable.commands import jobside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence
    from typing import Any, BinaryIO

    from cronstable.jobapi.client import Endpoint

    Query = Sequence[tuple[str, "str | None"]]

IN_MEMORY = 8 << 20
"""Bytes of a payload that wait in memory until all of it is here; more wait in a temporary file."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the actions."""
    actions = jobside.actions_of(parser)
    put = jobside.action(
        actions, "artifact", "put", _put, "publish a payload, and print its SHA-256"
    )
    put.add_argument("name", metavar="NAME")
    put.add_argument("file", metavar="FILE", nargs="?", default="-", help="default: stdin")
    get = jobside.action(actions, "artifact", "get", _get, "fetch the newest payload of a name")
    get.add_argument("name", metavar="NAME")
    get.add_argument(
        "-o", "--output", metavar="FILE", default="-", help="where to write it (default: stdout)"
    )
    names = jobside.action(actions, "artifact", "list", _list, "print the names, one a line")
    for each in (put, get, names):
        jobside.add_scope(each)


def run(options: Namespace) -> int:
    """Do what the action says, and return the exit status."""
    return jobside.run_action("artifact", options)


def _put(options: Namespace, endpoint: Endpoint) -> int:
    query = (("scope", options.scope), ("name", options.name))
    jobside.show(upload(endpoint, query, options.file).get("sha256"))
    return 0


def _get(options: Namespace, endpoint: Endpoint) -> int:
    from cronstable.jobapi.client import Absent

    query = (("scope", options.scope), ("name", options.name))
    try:
        download(endpoint, query, options.output)
    except Absent:
        return jobside.not_there(f"artifact not found: {options.name}")
    return 0


def _list(options: Namespace, endpoint: Endpoint) -> int:
    answer = endpoint.get("/v1/artifact/list", (("scope", options.scope),))
    jobside.show_names(answer.get("artifacts", []), "name")
    return 0


def upload(endpoint: Endpoint, query: Query, file: str) -> dict[str, Any]:
    """Publish what is in C{file} (C{-}: stdin); raises L{Trouble}."""
    if file == "-":
        if sys.stdin is None:
            raise _trouble("cannot read stdin: it is closed")
        return endpoint.upload("/v1/artifact/put", query, _Source(sys.stdin.buffer, "stdin"))
    try:
        with open(file, "rb") as source:
            return endpoint.upload("/v1/artifact/put", query, _Source(source, file))
    except OSError as error:
        raise _trouble(f"cannot read {file}: {error}") from None


def download(endpoint: Endpoint, query: Query, file: str) -> None:
    """
    Write a payload into C{file} (C{-}: stdout), which stays as it is until all of it is here.

    Raises L{Absent} and L{Trouble}.
    """
    parts = endpoint.download("/v1/artifact/get", query)
    next(parts)
    if file == "-":
        for part in parts:
            jobside.write(part)
        return
    import shutil
    import tempfile

    try:
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as whole:
            for part in parts:
                whole.write(part)
            whole.seek(0)
            with open(file, "wb") as target:
                shutil.copyfileobj(whole, target)
    except OSError as error:
        raise _trouble(f"cannot write {file}: {error}") from None


class _Source:
    """A file whose trouble is told as its own, not as the endpoint's."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name

    def read(self, size: int) -> bytes:
        """Return at most C{size} bytes, none at the end; raises L{Trouble}."""
        try:
            return self._file.read(size)
        except OSError as error:
            raise _trouble(f"cannot read {self._name}: {error}") from None


def _trouble(text: str) -> Exception:
    from cronstable.jobapi.client import Trouble

    return Trouble(text)
