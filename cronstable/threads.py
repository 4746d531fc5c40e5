"""Blocking work off the reactor thread, on threads that can never keep the process alive."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

T = TypeVar("T")


def in_thread(reactor: Any, name: str, call: Callable[..., T], *arguments: Any) -> Deferred[T]:
    """
    Run C{call} on a thread of its own, called C{name}, and fire with what it returns or raises.

    The thread is a daemon thread: a call that hangs is left behind when the process ends.
    """
    done: Deferred[T] = Deferred()

    def work() -> None:
        try:
            result: Any = call(*arguments)
        except BaseException:
            reactor.callFromThread(done.errback, Failure())
        else:
            reactor.callFromThread(done.callback, result)

    threading.Thread(target=work, name=name, daemon=True).start()
    return done
