"""
Mutable documents, each changed under its own lock (docs/store-format.md, "Documents").

A reader takes no lock: it sees the body from before a change or the one from after it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

import attrs

from cronstable.state import names
from cronstable.state.encoding import Data, enveloped, opened
from cronstable.state.errors import Foreign, Malformed, Unreadable
from cronstable.state.stats import measured
from cronstable.state.tree import Part, directories_in, names_in, sync_of

BODY = ".doc"
LOCK = ".lock"


@attrs.frozen
class Put:
    """A change that stores C{body}; C{result} is what the one who asked gets."""

    body: Mapping[str, Any]
    result: Any = None


@attrs.frozen
class Remove:
    """A change that removes the document."""

    result: Any = None


@attrs.frozen
class Leave:
    """No change."""

    result: Any = None


Change = Put | Remove | Leave
Decide = Callable[[Data | None], Change]
"""Given the body (None = absent), says what becomes of it; runs under the document's lock."""


@attrs.frozen
class Listing:
    """Names that were found; C{complete} is false if something there could not be named."""

    names: tuple[str, ...]
    complete: bool = True

    @classmethod
    def of(cls, found: Collection[str | None]) -> Listing:
        """Return a listing of what was found, sorted; None is what could not be named."""
        named = sorted(name for name in found if name is not None)
        return cls(tuple(named), complete=len(named) == len(found))


@attrs.frozen
class Entry:
    """One document of a namespace; C{key} is None where the file name was cut."""

    token: str
    key: str | None
    body: Data


@attrs.define(eq=False)
class Documents(Part):
    """The documents of one store namespace; any thread may call."""

    @measured("doc-read")
    def read(self, namespace: str, key: str) -> Data | None:
        """
        Return the body, None if there is no such document.

        Raises L{Unreadable} if it exists and is not a document of this scheme.
        """
        return self._body(self._path(namespace, key, BODY))

    @measured("doc-mutate")
    def mutate(self, namespace: str, key: str, decide: Decide) -> Any:
        """
        Let C{decide} change the document while nobody else can; return its result.

        Nothing changes if C{decide} raises, the body is unreadable (L{Unreadable}), or the new
        one cannot be stored (L{NotPortable}, OSError).
        """
        path = self._path(namespace, key, BODY)
        with self._tree.locked(self._path(namespace, key, LOCK)):
            change = decide(self._body(path))
            if isinstance(change, Put):
                sync = sync_of(self._tree.fsync, acknowledges=True)
                self._tree.write("document", path, enveloped(change.body), sync)
            elif isinstance(change, Remove):
                self._remove(path)
        return change.result

    @measured("doc-list")
    def keys(self, namespace: str) -> Listing:
        """Return the keys of a namespace, sorted; incomplete if a file name was cut."""
        return Listing.of([names.name_of(token) for token in self._tokens(namespace)])

    @measured("doc-list")
    def entries(self, namespace: str) -> list[Entry]:
        """Return all documents of a namespace by token; raises L{Unreadable} for a bad one."""
        directory = self._directory(namespace)
        found = []
        for token in self._tokens(namespace):
            body = self._body(f"{directory}/{token}{BODY}")
            if body is not None:
                found.append(Entry(token, names.name_of(token), body))
        return found

    @measured("doc-list")
    def namespaces(self, prefix: str = "") -> Listing:
        """Return the namespaces that start with C{prefix}, sorted."""
        start = names.fragment(prefix)
        tokens = directories_in(self._tree.files, self._tree.path("docs"))
        return Listing.of([names.name_of(token) for token in tokens if token.startswith(start)])

    def _directory(self, namespace: str) -> str:
        return self._tree.path("docs", names.token(namespace))

    def _path(self, namespace: str, key: str, suffix: str) -> str:
        return f"{self._directory(namespace)}/{names.token(key)}{suffix}"

    def _tokens(self, namespace: str) -> list[str]:
        files = names_in(self._tree.files, self._directory(namespace))
        return sorted(file[: -len(BODY)] for file in files if file.endswith(BODY))

    def _body(self, path: str) -> Data | None:
        try:
            return opened(self._tree.files.read(path))
        except FileNotFoundError:
            return None
        except (Malformed, Foreign) as error:
            raise Unreadable(path, error) from None

    def _remove(self, path: str) -> None:
        try:
            self._tree.files.unlink(path)
        except FileNotFoundError:
            return
        self._tree.at("document.removed")
        if sync_of(self._tree.fsync, acknowledges=True).directory:
            self._tree.files.sync_directory(os.path.dirname(path))
