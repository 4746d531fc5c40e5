"""What is in a store, counted: for C{state check} and for whoever looks at it from outside."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from cronstable.state import names, stems
from cronstable.state.documents import BODY
from cronstable.state.leases import Lease
from cronstable.state.stats import measured
from cronstable.state.store import Store
from cronstable.state.tree import directories_in, names_in


@attrs.frozen
class Scope:
    """One stream or document namespace; C{name} is what follows its prefix."""

    name: str
    count: int


@attrs.frozen
class Group:
    """All streams, or document namespaces, of one prefix."""

    count: int
    scopes: tuple[Scope, ...]

    @property
    def streams(self) -> int:
        """How many there are."""
        return len(self.scopes)


@attrs.frozen
class Inventory:
    """
    Everything counted; groups by prefix, in order of it.

    C{complete} is false if something there could not be named or read.
    """

    records: dict[str, Group]
    documents: dict[str, Group]
    leases: tuple[Lease, ...]
    quarantined: int
    complete: bool

    @property
    def streams(self) -> int:
        """How many streams there are."""
        return sum(group.streams for group in self.records.values())

    @property
    def record_count(self) -> int:
        """How many records there are."""
        return sum(group.count for group in self.records.values())


@measured("inventory")
def take(store: Store) -> Inventory:
    """Count what is in a store; raises OSError if its areas cannot be listed."""
    streams = [
        (token, store.stream_name(token), _files(store, "records", token, stems.SUFFIX))
        for token in store.stream_tokens()
    ]
    namespaces = [
        (token, names.name_of(token), _files(store, "docs", token, BODY))
        for token in directories_in(store.tree.files, store.tree.path("docs"))
    ]
    leases, all_leases = store.leases.all()
    in_doubt = any(name is None or count is None for _, name, count in streams + namespaces)
    return Inventory(
        records=_grouped(streams),
        documents=_grouped(namespaces),
        leases=tuple(leases),
        quarantined=len(names_in(store.tree.files, store.tree.path("quarantine"))),
        complete=all_leases and not in_doubt,
    )


def _grouped(found: Iterable[tuple[str, str | None, int | None]]) -> dict[str, Group]:
    """Group by what stands before the first slash; the unnameable stand under their token."""
    scopes: dict[str, list[Scope]] = {}
    for token, name, count in found:
        prefix, _, rest = (token.replace("%2F", "/", 1) if name is None else name).partition("/")
        scopes.setdefault(prefix, []).append(Scope(rest, count or 0))
    return {
        prefix: Group(
            sum(scope.count for scope in scopes[prefix]),
            tuple(sorted(scopes[prefix], key=lambda scope: scope.name)),
        )
        for prefix in sorted(scopes)
    }


def _files(store: Store, area: str, token: str, suffix: str) -> int | None:
    """Return how many files of a kind a directory has, None if it cannot be listed."""
    try:
        files = names_in(store.tree.files, store.tree.path(area, token))
    except OSError:
        return None
    return sum(file.endswith(suffix) for file in files)
