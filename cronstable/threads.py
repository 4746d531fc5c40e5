"""Blocking work off the reactor thread, on threads that can never keep the process alive."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, fail
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool

T = TypeVar("T")

LOOK_UPS = 64
"""Threads on which Twisted looks names up: names that hang must not hold up the others."""

TRY_AGAIN = 1.0
"""Seconds after which a name is looked up that found no thread to spare."""


def in_thread(reactor: Any, name: str, call: Callable[..., T], *arguments: Any) -> Deferred[T]:
    """
    Run C{call} on a thread of its own, called C{name}, and fire with what it returns or raises.

    The thread is a daemon thread: a call that hangs is left behind when the process ends.  Fails
    with OSError where the system has no thread to spare.
    """
    done: Deferred[T] = Deferred()

    def work() -> None:
        try:
            result: Any = call(*arguments)
        except BaseException:
            reactor.callFromThread(done.errback, Failure())
        else:
            reactor.callFromThread(done.callback, result)

    try:
        threading.Thread(target=work, name=name, daemon=True).start()
    except RuntimeError:
        return fail(OSError(errno.EAGAIN, "no thread to spare"))
    return done


class _DaemonThread(threading.Thread):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, daemon=True, **options)


class _DaemonThreads(ThreadPool):
    threadFactory = _DaemonThread  # noqa: N815 - the name is Twisted's

    def __init__(self, reactor: Any) -> None:
        super().__init__(0, LOOK_UPS, "twisted")
        self._reactor = reactor

    def callInThreadWithCallback(self, *call: Any, **more: Any) -> None:  # noqa: N802 - the same
        """Make a call on a thread, once there is one: Twisted's resolver would never answer."""
        try:
            super().callInThreadWithCallback(*call, **more)
        except RuntimeError:
            self.threads = [thread for thread in self.threads if thread.ident is not None]
            self._reactor.callLater(TRY_AGAIN, self.callInThreadWithCallback, *call, **more)


def use_daemon_threads(reactor: Any) -> None:
    """
    Let what Twisted itself does on threads, look names up, be left behind when the process ends.

    Its own pool would be waited for.  Call this before anybody has asked for that.
    """
    reactor.threadpool = pool = _DaemonThreads(reactor)
    reactor.callWhenRunning(pool.start)
