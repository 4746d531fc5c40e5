"""Questions about many jobs, asked of the store in bounded portions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from cronstable.state.errors import TROUBLE
from cronstable.state.service import StoreService
from cronstable.state.store import Store

T = TypeVar("T")

log = logging.getLogger("cronstable.state")

PORTION = 0.5
"""Seconds of reading after which a portion ends, so that none of them comes near its bound."""


class Open(dict[str, None]):
    """Names that are still to be asked about, in order."""

    @classmethod
    def of(cls, names: Iterable[str]) -> Open:
        """Return these names."""
        return cls(dict.fromkeys(names))


async def for_each(
    store: StoreService,
    names: Open,
    read: Callable[[Store, str], T],
    found: Callable[[str, T], object],
) -> None:
    """
    Call C{found} with what C{read} finds of each name, and take the name from C{names} before.

    Names that cannot be read stay; the first error is raised when all have been asked.  Raises
    L{cronstable.state.workers.StoreSlow} at once when the store does not answer in time.  What
    C{found} fails on is logged, and is no reason to forget the other names.
    """
    left = list(names)
    left.reverse()
    trouble: Exception | None = None
    while left:
        config = store.config
        one_by_one = config is not None and config.max_ops_per_second > 0
        portion = left[-1:] if one_by_one else left[-1000:]
        for name, answer, error in await store.ask(partial(_some, portion, read)):
            left.pop()
            if error is not None:
                trouble = trouble or error
                continue
            names.pop(name, None)
            for value in answer:
                try:
                    found(name, value)
                except Exception:
                    log.exception("state: what is saved of %s cannot be taken over", name)
    if trouble is not None:
        raise trouble


def _some(
    names: list[str], read: Callable[[Store, str], T], store: Store
) -> list[tuple[str, tuple[T, ...], Exception | None]]:
    until = store.seconds() + PORTION
    answers: list[tuple[str, tuple[T, ...], Exception | None]] = []
    for name in reversed(names):
        try:
            answers.append((name, (read(store, name),), None))
        except TROUBLE as error:
            answers.append((name, (), error))
        if store.seconds() >= until:
            break
    return answers
