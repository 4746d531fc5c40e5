"""The signals that people and supervisors send, told to the daemon on the reactor thread."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any


class Signals:
    """Takes over SIGTERM, SIGINT and SIGHUP while the daemon runs."""

    def __init__(
        self, reactor: Any, stop: Callable[[], object], reload: Callable[[], object]
    ) -> None:
        self._reactor = reactor
        self._calls: dict[int, Callable[[], object]] = {
            signal.SIGTERM: stop,
            signal.SIGINT: stop,
        }
        if hasattr(signal, "SIGHUP"):
            self._calls[signal.SIGHUP] = reload
        self._before: dict[int, Any] = {}

    def install(self) -> None:
        """Take the signals over; called on the main thread once the reactor runs."""
        for number in self._calls:
            self._before[number] = signal.signal(number, self._caught)

    def remove(self) -> None:
        """Give the signals back to whoever had them."""
        for number, handler in self._before.items():
            if handler is not None:
                signal.signal(number, handler)
        self._before.clear()

    def _caught(self, number: int, frame: Any) -> None:
        self._reactor.callFromThread(self._calls[number])
