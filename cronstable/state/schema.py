"""
Bringing records of older schemes up to the present one, and counting what is what.

docs/durability.md, "Upgrading", tells an operator when that is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import attrs

from cronstable.state.encoding import Data, enveloped, opened
from cronstable.state.errors import Foreign, Malformed, NotPortable
from cronstable.state.stats import measured
from cronstable.state.store import Store
from cronstable.state.tree import names_in, sync_of

Convert = Callable[[Data], Data]

UPGRADES: Mapping[object, Convert] = {}
"""How the data of each older C{schemaVersion} becomes today's; there has only been one so far."""


@attrs.frozen
class Migration:
    """How many records were (or would be) converted, are current, and could not be."""

    converted: int = 0
    current: int = 0
    unknown: int = 0
    unreadable: int = 0
    failed: int = 0


@measured("migrate")
def migrate(
    store: Store, *, dry_run: bool = False, upgrades: Mapping[object, Convert] = UPGRADES
) -> Migration:
    """
    Convert records of older schemes in place; raises OSError if the store cannot be listed.

    Records of unknown schemes, quarantined ones too, are counted and stay as they are.
    """
    counts = dict.fromkeys(attrs.fields_dict(Migration), 0)
    for path, in_stream in _paths(store):
        kind = _treat(store, path, in_stream, dry_run, upgrades)
        if kind is not None:
            counts[kind] += 1
    return Migration(**counts)


def _paths(store: Store) -> Iterator[tuple[str, bool]]:
    """
    Yield every record's path, and whether it is in a stream rather than set aside.

    A stream that cannot be listed stands for a record that cannot be read.
    """
    for token in store.stream_tokens():
        try:
            files = store.records.files(token)
        except OSError:
            files = [""]
        for file in files:
            yield store.tree.path("records", token, file), True
    for name in sorted(names_in(store.tree.files, store.tree.path("quarantine"))):
        yield store.tree.path("quarantine", name), False


def _treat(
    store: Store, path: str, in_stream: bool, dry_run: bool, upgrades: Mapping[object, Convert]
) -> str | None:
    """Convert one record if that is due; return the name of what it counts as, None if it went."""
    raw = b""
    try:
        raw = store.tree.files.read(path)
        opened(raw)
        return "current" if in_stream else "unreadable"
    except FileNotFoundError:
        return None
    except (OSError, Malformed):
        return "unreadable"
    except Foreign as foreign:
        convert = upgrades.get(foreign.version) if in_stream else None
        if convert is None:
            return "unknown"
    if dry_run:
        return "converted"
    try:
        data = convert(opened(raw, any_scheme=True))
        store.tree.write("record", path, enveloped(data), sync_of(store.tree.fsync, True))
    except (OSError, NotPortable, ArithmeticError, LookupError, TypeError, ValueError):
        return "failed"
    return "converted"
