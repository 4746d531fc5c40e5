"""What somebody may see of single streams and namespaces, within bounds of number and size."""

from __future__ import annotations

import attrs

from cronstable.state import names
from cronstable.state.documents import BODY
from cronstable.state.encoding import Data, opened
from cronstable.state.errors import Foreign, Malformed, Unreadable
from cronstable.state.store import Store
from cronstable.state.tree import names_in

MOST_DOCUMENTS = 5000
"""Documents of one namespace that one look reads."""

MOST_BYTES = 4 << 20
"""Bytes of record files that one look reads; a single record may be longer."""


@attrs.frozen
class Found:
    """What a look found; C{complete} is false where there is more than it shows."""

    items: tuple[tuple[str, Data], ...]
    """Names (keys, stems) and bodies."""
    complete: bool = True


def documents(store: Store, namespace: str) -> Found:
    """
    Return the first documents of a namespace, sorted by key; an unreadable one is left out.

    Raises OSError if the namespace cannot be listed.
    """
    directory = store.tree.path("docs", names.token(namespace))
    files = sorted(file for file in names_in(store.tree.files, directory) if file.endswith(BODY))
    found: list[tuple[str, Data]] = []
    complete = len(files) <= MOST_DOCUMENTS
    for file in files[:MOST_DOCUMENTS]:
        try:
            body = opened(store.tree.files.read(f"{directory}/{file}"))
        except FileNotFoundError:
            continue
        except (OSError, Malformed, Foreign):
            complete = False
            continue
        found.append((_key(file[: -len(BODY)], body), body))
    return Found(tuple(sorted(found, key=lambda item: item[0])), complete)


def records(store: Store, stream: str, limit: int) -> Found:
    """
    Return the newest C{limit} records of a stream, newest first, fewer where they are large.

    Raises OSError if the stream cannot be listed, L{Unreadable} if nothing of it can be read.
    """
    files = store.records.files(names.token(stream))
    fitting = _fitting(store, stream, files, limit)
    items = store.records.items(stream, fitting)
    if not items and store.records.files(names.token(stream)):
        raise Unreadable(stream, "none of its records can be read")
    return Found(tuple(reversed(items)), complete=fitting >= min(limit, len(files)))


def _fitting(store: Store, stream: str, files: list[str], limit: int) -> int:
    """Return how many of the newest records have no more than L{MOST_BYTES} together."""
    left = MOST_BYTES
    count = 0
    for file in reversed(files[-limit:]):
        try:
            path = store.tree.path("records", names.token(stream), file)
            left -= store.tree.files.status(path).size
        except OSError:
            pass
        if left < 0 and count:
            break
        count += 1
    return max(count, 1)


def _key(token: str, body: Data) -> str:
    """Return the key of a document: what its body says if that is its name, else the file's."""
    for field in ("key", "name"):
        told = body.get(field)
        if isinstance(told, str) and names.token(told) == token:
            return told
    return names.name_of(token) or token
