"""
How often the store did what, how long it took, and how long locks were waited for.

docs/metrics.md, "The store", tells an operator what is shown.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import attrs


@attrs.frozen
class OpCount:
    """Totals of one operation since the store was made; C{seconds} inside the store."""

    count: int = 0
    errors: int = 0
    seconds: float = 0.0


@attrs.frozen
class LockCount:
    """Totals of lock acquisitions; C{wait_seconds} is contention."""

    acquisitions: int = 0
    wait_seconds: float = 0.0


class Stats:
    """The counters; any thread may add to them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ops: dict[str, OpCount] = {}
        self._locks = LockCount()

    def add(self, op: str, seconds: float, failed: bool) -> None:
        """Count one operation."""
        with self._lock:
            before = self._ops.get(op, OpCount())
            self._ops[op] = OpCount(
                before.count + 1, before.errors + failed, before.seconds + max(0.0, seconds)
            )

    def add_lock(self, seconds: float) -> None:
        """Count one lock that was taken after a wait of C{seconds}."""
        with self._lock:
            before = self._locks
            self._locks = LockCount(before.acquisitions + 1, before.wait_seconds + seconds)

    @property
    def ops(self) -> dict[str, OpCount]:
        """A copy of the totals by operation, in order of first use."""
        with self._lock:
            return dict(self._ops)

    @property
    def locks(self) -> LockCount:
        """The totals of lock acquisitions."""
        return self._locks


class Measured(Protocol):
    """What L{measured} needs of the object whose operations it counts."""

    @property
    def stats(self) -> Stats:
        """Where to count."""

    def seconds(self) -> float:
        """Return monotonic seconds."""


M = TypeVar("M", bound=Measured)
P = ParamSpec("P")
R = TypeVar("R")


def measured(
    op: str,
) -> Callable[[Callable[Concatenate[M, P], R]], Callable[Concatenate[M, P], R]]:
    """
    Count each call as operation C{op}; one that raises is an error.

    For methods of what is L{Measured}, and for functions that take it first.
    """

    def decorate(method: Callable[Concatenate[M, P], R]) -> Callable[Concatenate[M, P], R]:
        def counted(self: M, /, *args: P.args, **kwargs: P.kwargs) -> R:
            began = self.seconds()
            failed = True
            try:
                result = method(self, *args, **kwargs)
                failed = False
                return result
            finally:
                self.stats.add(op, self.seconds() - began, failed)

        functools.update_wrapper(counted, method)
        return counted

    return decorate
