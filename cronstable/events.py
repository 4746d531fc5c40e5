"""
The events of a run's and a node's life, and the bus that carries them to the faces.

The faces (metrics, reports, HTTP streams) only listen: an event is published after the fact,
and what a listener does with it never changes the run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

log = logging.getLogger("cronstable")

E = TypeVar("E")


class Bus:
    """Carries each published event to the listeners of its exact type, in subscription order."""

    def __init__(self) -> None:
        self._listeners: dict[type, list[Callable[[Any], object]]] = {}

    def subscribe(self, kind: type[E], listener: Callable[[E], object]) -> Callable[[], None]:
        """Call C{listener} with each event of C{kind}; return a function that ends it."""
        listeners = self._listeners.setdefault(kind, [])
        listeners.append(listener)

        def unsubscribe() -> None:
            if listener in listeners:
                listeners.remove(listener)

        return unsubscribe

    def publish(self, event: object) -> None:
        """Hand C{event} to its listeners; one that raises is logged and stops no other."""
        for listener in tuple(self._listeners.get(type(event), ())):
            try:
                listener(event)
            except Exception:
                log.exception("a listener to %s failed", type(event).__name__)
