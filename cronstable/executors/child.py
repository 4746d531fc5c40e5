"""
A started process on the reactor: its output is read as it comes, its end noticed in constant
time, its group signalled as long as it is surely its own.

docs/executors.md, "How a run ends", tells users what follows from that.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from typing import Any, Protocol, cast

from twisted.internet import process as twisted_process
from twisted.internet.interfaces import IDelayedCall, IReadDescriptor
from twisted.python.failure import Failure
from zope.interface import implementer

from cronstable import platform
from cronstable.clock import Clock
from cronstable.executors.spawn import Spawned
from cronstable.executors.turns import Turns

log = logging.getLogger("cronstable")

READ_SIZE = 65_536
"""Bytes read from a stream in one turn."""

WIDE = 131_072
"""
The same from a stream that fills its pipe: a job that prints a lot costs fewer turns.

For larger blocks the C library would ask the system for memory each time, which costs more.
"""

LAST_READ = 1 << 20
"""Bytes still taken from a stream that is closed while others hold it."""

_HAS_WAITID = hasattr(os, "waitid")
_LOOK = os.WEXITED | os.WNOHANG | os.WNOWAIT if _HAS_WAITID else 0

_at_sigchld: dict[int, Any] = cast("dict[int, Any]", twisted_process.reapProcessHandlers)
"""Whose reapProcess Twisted calls at each SIGCHLD."""

POLL_INTERVAL = 1.0
"""Seconds between looks at a process that no descriptor or signal tells of."""


class Owner(Protocol):
    """Who is told of a child's life."""

    def child_output(self, name: str, data: bytes) -> None:
        """C{data} was read from stream C{name}."""

    def child_closed(self, name: str) -> None:
        """Stream C{name} has ended, or our end of it was closed."""

    def child_ending(self, status: int) -> None:
        """
        The process has ended with C{status} and is about to be reaped.

        Its pid and group are still its own, where the system can tell without reaping.
        """

    def child_exited(self, status: int | None, usage: Any) -> None:
        """The process was reaped; C{usage} is its rusage.  Status None: somebody else took it."""


@implementer(IReadDescriptor)
class _Output:
    """The read end of one captured stream, level-triggered, one block per reactor turn."""

    __slots__ = ("_child", "_size", "fd", "name", "paused")

    def __init__(self, child: Child, name: str, fd: int) -> None:
        self._child = child
        self._size = READ_SIZE
        self.name = name
        self.fd = fd
        self.paused = False

    def fileno(self) -> int:
        return self.fd

    def logPrefix(self) -> str:  # noqa: N802
        return "job output"

    def doRead(self) -> None:  # noqa: N802
        """Read one block; close at the end of the stream."""
        self.read()

    def read(self) -> bool:
        """Read one block; return whether the stream is still open."""
        try:
            data = os.read(self.fd, self._size)
        except BlockingIOError:
            return True
        except OSError as error:
            log.debug("reading the output of process %d failed: %s", self._child.pid, error)
            data = b""
        if not data:
            self._child.close_output(self.name)
            return False
        if len(data) == READ_SIZE and self._size == READ_SIZE:
            platform.widen_pipe(self.fd, WIDE)
            self._size = WIDE
        self._child.owner.child_output(self.name, data)
        return True

    def connectionLost(self, reason: Failure) -> None:  # noqa: N802
        """
        Take a hang-up told by the reactor as a hint only.

        In a batch of events, one may be of an earlier descriptor of the same number.
        """
        self._child.reread(self)


@implementer(IReadDescriptor)
class _Pidfd:
    """Readable once the process has ended."""

    __slots__ = ("_child", "fd")

    def __init__(self, child: Child, fd: int) -> None:
        self._child = child
        self.fd = fd

    def fileno(self) -> int:
        return self.fd

    def logPrefix(self) -> str:  # noqa: N802
        return "job"

    def doRead(self) -> None:  # noqa: N802
        """Reap the process, or let that have its turn."""
        self._child.ended()

    def connectionLost(self, reason: Failure) -> None:  # noqa: N802
        """Do as if readable: the reactor tells no more than that something happened."""
        self._child.ended()


class _Polled:
    """Notices the end where there is no pidfd: at SIGCHLD, and at the latest each second."""

    def __init__(self, child: Child, clock: Clock) -> None:
        self._child = child
        self._clock = clock
        self._timer: IDelayedCall | None = clock.callLater(POLL_INTERVAL, self._poll)
        _at_sigchld[child.pid] = self

    def reapProcess(self) -> None:  # noqa: N802 - the name is Twisted's
        """Look whether the process has ended; Twisted calls this at each SIGCHLD."""
        self._child.ended()

    def _poll(self) -> None:
        self._timer = self._clock.callLater(POLL_INTERVAL, self._poll)
        self._child.ended()

    def stop(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None
        _at_sigchld.pop(self._child.pid, None)


def _status_of(info: Any) -> int:
    """Return an exit status, or -N after signal N."""
    return int(info.si_status if info.si_code == os.CLD_EXITED else -info.si_status)


class Child:
    """A process that runs, or has ended while its output is still open."""

    __slots__ = (
        "_clock",
        "_outputs",
        "_pidfd",
        "_polled",
        "_queued",
        "_reactor",
        "_turns",
        "owner",
        "pid",
        "reaped",
    )

    def __init__(
        self, reactor: Any, clock: Clock, turns: Turns, spawned: Spawned, owner: Owner
    ) -> None:
        self._reactor = reactor
        self._clock = clock
        self._turns = turns
        self.owner = owner
        self.pid = spawned.pid
        self.reaped = False
        self._queued = False
        self._outputs = {name: _Output(self, name, fd) for name, fd in spawned.outputs.items()}
        self._pidfd: _Pidfd | None = None
        self._polled: _Polled | None = None
        for output in self._outputs.values():
            reactor.addReader(output)
        if spawned.pidfd is None:
            self._polled = _Polled(self, clock)
        else:
            self._pidfd = _Pidfd(self, spawned.pidfd)
            reactor.addReader(self._pidfd)

    @property
    def open_outputs(self) -> list[str]:
        """Names of captured streams that have not ended."""
        return list(self._outputs)

    def inodes(self) -> frozenset[int]:
        """Return the numbers by which the system knows the open streams' pipes."""
        return frozenset(os.fstat(output.fd).st_ino for output in self._outputs.values())

    def pause(self, name: str, paused: bool) -> None:
        """Stop or resume reading one stream; harmless when it has ended."""
        output = self._outputs.get(name)
        if output is None or output.paused == paused:
            return
        output.paused = paused
        if paused:
            self._reactor.removeReader(output)
        else:
            self._reactor.addReader(output)

    def signal_group(self, number: int) -> OSError | None:
        """
        Signal the whole process group, or the process alone where that is refused.

        Returns the error if the system refuses that too.  Once the process is reaped, another one
        under its pid shows that no member of the group is left, and nothing is sent.
        """
        if self.reaped and platform.process_exists(self.pid):
            return None
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return None
        except OSError:
            return None if self.reaped else self._signal_alone(number)
        return None

    def _signal_alone(self, number: int) -> OSError | None:
        try:
            if self._pidfd is not None:
                signal.pidfd_send_signal(self._pidfd.fd, number)
            else:
                os.kill(self.pid, number)
        except ProcessLookupError:
            return None
        except OSError as refused:
            return refused
        return None

    def ended(self) -> None:
        """Have the process reaped, in a turn of its own when many end at once."""
        if self._queued or self.reaped:
            return
        if self._pidfd is not None:
            self._reactor.removeReader(self._pidfd)
        self._queued = True
        self._turns.do(self._reap)

    def _reap(self) -> None:
        self._queued = False
        status: int | None = None
        usage: Any = None
        try:
            if _HAS_WAITID:
                info = os.waitid(os.P_PID, self.pid, _LOOK)
                if info is None:
                    self._watch_again()
                    return
                self.owner.child_ending(_status_of(info))
                _, wait_status, usage = os.wait4(self.pid, 0)
            else:
                found, wait_status, usage = os.wait4(self.pid, os.WNOHANG)
                if found == 0:
                    self._watch_again()
                    return
                self.reaped = True
                self.owner.child_ending(os.waitstatus_to_exitcode(wait_status))
            status = os.waitstatus_to_exitcode(wait_status)
        except ChildProcessError:
            log.error("the status of process %d is lost: something else reaped it", self.pid)
        self.reaped = True
        self._stop_watching()
        for output in list(self._outputs.values()):
            if not output.paused:
                output.read()
        self.owner.child_exited(status, usage)

    def _watch_again(self) -> None:
        """Wait on after an event that was, in a batch, of an earlier descriptor of this number."""
        if self._pidfd is not None:
            self._reactor.addReader(self._pidfd)

    def _stop_watching(self) -> None:
        if self._pidfd is not None:
            os.close(self._pidfd.fd)
            self._pidfd = None
        if self._polled is not None:
            self._polled.stop()
            self._polled = None

    def reread(self, output: _Output) -> None:
        """Read what is left of a stream that the reactor says has hung up."""
        if self._outputs.get(output.name) is output and not output.paused and output.read():
            self._watch_output(output)

    def _watch_output(self, output: _Output) -> None:
        """Have the reactor read a stream, unless telling of its data closed or paused it."""
        if self._outputs.get(output.name) is output and not output.paused:
            self._reactor.addReader(output)

    def close_output(self, name: str) -> None:
        """Close our end of a stream; harmless when it is closed."""
        output = self._outputs.pop(name, None)
        if output is None:
            return
        self._reactor.removeReader(output)
        os.close(output.fd)
        self.owner.child_closed(name)

    def cut_outputs(self) -> None:
        """Take what the open streams hold right now, then close our ends of them."""
        for output in list(self._outputs.values()):
            taken = 0
            with contextlib.suppress(OSError):
                while taken < LAST_READ:
                    data = os.read(output.fd, READ_SIZE)
                    if not data:
                        break
                    taken += len(data)
                    self.owner.child_output(output.name, data)
            self.close_output(output.name)
