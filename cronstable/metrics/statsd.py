"""
statsd: two UDP datagrams per run, best effort, that never delay anything.

docs/metrics.md, "statsd", specifies the lines.
"""

from __future__ import annotations

import logging
import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Any

import attrs
from twisted.application.service import Service
from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.interfaces import IReadDescriptor, IResolutionReceiver, IWriteDescriptor
from twisted.python.failure import Failure
from zope.interface import implementer

from cronstable.clock import Clock
from cronstable.config.values import Statsd
from cronstable.events import Bus
from cronstable.runs.record import RunFinished, RunRecord, RunStarted

log = logging.getLogger("cronstable")
errors = logging.getLogger("statsd")

REBUILT_AFTER = 60.0
"""Seconds after which a name is looked up again."""

MOST_QUEUED = 1024 * 1024
"""Bytes that may wait for one address; what comes on top is dropped."""

_FORGOTTEN_AFTER = 300.0
"""Seconds without use after which an address and its socket are given up."""

_REMOVED = str.maketrans("", "", ":|\r\n")


def start_lines(prefix: str) -> bytes:
    """Return what is sent when a run's process exists."""
    return f"{_clean(prefix)}.start:1|g\n".encode("utf-8", "replace")


def stop_lines(prefix: str, record: RunRecord) -> bytes:
    """Return what is sent when a run is over; its duration is in whole milliseconds."""
    prefix = _clean(prefix)
    lines = (
        f"{prefix}.stop:1|g\n"
        f"{prefix}.success:{int(record.outcome == 'success')}|g\n"
        f"{prefix}.duration:{round((record.duration or 0.0) * 1000)}|ms\n"
    )
    usage = record.usage
    if usage is not None and usage.samples > 0:
        lines += f"{prefix}.cpu:{round((usage.cpu_user + usage.cpu_system) * 1000)}|ms\n"
        if usage.max_rss is not None:
            lines += f"{prefix}.max_rss:{usage.max_rss}|g\n"
    if record.caps is not None and record.caps.memory_exceeded:
        lines += f"{prefix}.memory_limit_exceeded:1|c\n"
    return lines.encode("utf-8", "replace")


class StatsdService(Service):
    """Sends the datagrams of jobs that have a C{statsd} block."""

    def __init__(self, reactor: Any, clock: Clock) -> None:
        self._reactor = reactor
        self._clock = clock
        self._addresses: dict[tuple[str, int], _Address] = {}

    def listen(self, bus: Bus) -> None:
        """Follow the runs that C{bus} tells of."""
        bus.subscribe(RunStarted, self.started)
        bus.subscribe(RunFinished, self.stopped)

    def started(self, event: RunStarted) -> None:
        """A run's process exists."""
        target = event.job.statsd
        if target is not None:
            self._send(target, event.job.name, "job_started", start_lines(target.prefix))

    def stopped(self, event: RunFinished) -> None:
        """A run is over; one that never started sends nothing, a replaced one does."""
        target, record = event.run.job.statsd, event.run.record
        if target is not None and not record.start_failed and record.outcome != "unknown":
            self._send(target, record.job, "job_stopped", stop_lines(target.prefix, record))

    def stopService(self) -> None:
        """Close every socket; what is queued is gone."""
        super().stopService()
        for address in self._addresses.values():
            address.close()
        self._addresses.clear()

    def _send(self, target: Statsd, job: str, what: str, data: bytes) -> None:
        key = (target.host, target.port)
        address = self._addresses.get(key)
        if address is None:
            self._forget_unused()
            address = self._addresses[key] = _Address(self._reactor, self._clock, *key)
        address.send(_Datagram(data, job, what))

    def _forget_unused(self) -> None:
        now = self._clock.seconds()
        for key, address in list(self._addresses.items()):
            if now - address.used_at > _FORGOTTEN_AFTER:
                address.close()
                del self._addresses[key]


@attrs.frozen
class _Datagram:
    """A datagram, and whose it is."""

    data: bytes
    job: str
    what: str

    def failed(self, error: object) -> None:
        """Say that it could not be sent."""
        log.warning("Job %s: failed to send statsd %s metric: %s", self.job, self.what, error)


@implementer(IResolutionReceiver)
class _Found:
    """Collects the addresses of a name."""

    def __init__(self, done: Callable[[list[Any]], None]) -> None:
        self._done = done
        self._found: list[Any] = []

    def resolutionBegan(self, resolution: Any) -> None:  # noqa: N802 - the interface's name
        """Nothing is known yet."""

    def addressResolved(self, address: Any) -> None:  # noqa: N802 - the interface's name
        """Keep an address."""
        self._found.append(address)

    def resolutionComplete(self) -> None:  # noqa: N802 - the interface's name
        """Hand over what was found."""
        self._done(self._found)


@implementer(IReadDescriptor, IWriteDescriptor)
class _Address:
    """
    One host and port: its socket, and what waits for it.

    The name is looked up off the reactor thread, again after a minute or an error; until that
    answers, datagrams go to the address that was good before, or wait.
    """

    def __init__(self, reactor: Any, clock: Clock, host: str, port: int) -> None:
        self._reactor = reactor
        self._clock = clock
        self._host = host
        self._port = port
        self._socket: socket.socket | None = None
        self._opened_at = 0.0
        self._looking = False
        self._closed = False
        self._queue: deque[_Datagram] = deque()
        self._queued = 0
        self._said_at: float | None = None
        self._writing = False
        self._flushing = False
        self.used_at = clock.seconds()

    def send(self, datagram: _Datagram) -> None:
        """Send C{datagram} now if that needs no wait; queue it otherwise."""
        self.used_at = now = self._clock.seconds()
        if self._queued + len(datagram.data) <= MOST_QUEUED:
            self._queue.append(datagram)
            self._queued += len(datagram.data)
        if self._socket is None or now - self._opened_at > REBUILT_AFTER:
            self._look_up()
        if not self._writing:
            self._flush()

    def close(self) -> None:
        """Close the socket, and drop what waits."""
        self._closed = True
        self._queue.clear()
        self._queued = 0
        self._drop_socket()

    # finding the host

    def _look_up(self) -> None:
        if self._looking:
            return
        if isIPAddress(self._host) or isIPv6Address(self._host):
            self._open(self._host)
            return
        self._looking = True
        self._reactor.nameResolver.resolveHostName(
            _Found(self._found), self._host, self._port, transportSemantics="UDP"
        )

    def _found(self, found: list[Any]) -> None:
        self._looking = False
        if self._closed:
            return
        if found:
            self._open(found[0].host)
        elif self._socket is not None:
            self._opened_at = self._clock.seconds()
        else:
            self._give_up(f"{self._host} does not resolve")

    def _open(self, literal: str) -> None:
        """Make a socket for an address in digits, and send what has waited for it."""
        self._drop_socket()
        family = socket.AF_INET6 if isIPv6Address(literal) else socket.AF_INET
        opened = None
        try:
            opened = socket.socket(family, socket.SOCK_DGRAM)
            opened.setblocking(False)
            opened.connect((literal, self._port))
        except (OSError, OverflowError) as error:
            if opened is not None:
                opened.close()
            self._give_up(error)
            return
        self._socket = opened
        self._opened_at = self._clock.seconds()
        self._reactor.addReader(self)
        self._flush()

    def _give_up(self, why: object) -> None:
        """Nothing that waits can be sent."""
        waiting, self._queue, self._queued = self._queue, deque(), 0
        for datagram in waiting:
            datagram.failed(why)

    def _drop_socket(self) -> None:
        if self._socket is not None:
            self._reactor.removeReader(self)
            if self._writing:
                self._writing = False
                self._reactor.removeWriter(self)
            self._socket.close()
            self._socket = None

    # sending

    def _flush(self) -> None:
        """Send what waits, as far as the system takes it."""
        if self._flushing:
            return
        self._flushing = True
        try:
            while self._queue and self._socket is not None and not self._writing:
                self._send_first(self._socket)
        finally:
            self._flushing = False

    def _send_first(self, through: socket.socket) -> None:
        datagram = self._queue[0]
        try:
            through.send(datagram.data)
        except (BlockingIOError, InterruptedError):
            self._writing = True
            self._reactor.addWriter(self)
        except ConnectionRefusedError as error:
            # It tells of an earlier datagram; this one was not sent.
            self._erred(error)
            self._look_up()
        except OSError as error:
            self._drop_socket()
            self._give_up(error)
        else:
            self._queue.popleft()
            self._queued -= len(datagram.data)

    def _erred(self, error: OSError) -> None:
        """Say, at most once a minute, that an earlier datagram was not taken; start anew."""
        now = self._clock.seconds()
        if self._said_at is None or now - self._said_at >= REBUILT_AFTER:
            self._said_at = now
            errors.warning("UDP error received: %s", error)
        self._drop_socket()

    # what the reactor calls

    def fileno(self) -> int:
        """Return the socket's number, -1 when there is none."""
        return -1 if self._socket is None else self._socket.fileno()

    def doRead(self) -> None:  # noqa: N802 - the interface's name
        """Take what came: an error of an earlier datagram, or something that nobody asked for."""
        try:
            if self._socket is not None:
                self._socket.recv(65536)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._erred(error)

    def doWrite(self) -> None:  # noqa: N802 - the interface's name
        """There is room in the system again."""
        self._writing = False
        self._reactor.removeWriter(self)
        self._flush()

    def connectionLost(self, reason: Failure) -> None:  # noqa: N802 - the interface's name
        """The reactor saw an error on the socket: that of an earlier datagram."""
        if self._socket is not None:
            number = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            self._erred(OSError(number, os.strerror(number)))

    def logPrefix(self) -> str:  # noqa: N802 - the interface's name
        """Return the name for Twisted's log."""
        return "statsd"


def _clean(prefix: str) -> str:
    """Return C{prefix} without what would end or split a line."""
    return prefix.translate(_REMOVED)
