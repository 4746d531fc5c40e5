"""
Lives of the real daemon on one store, each killed at a point that was chosen before.

Usage: python -m tests.system.crashing CONFIG LOG SPEC...  Every SPEC is one life, in order:
C{point:N} kills it at the N-th passing of a failpoint of the store, C{call:N} at the N-th call of
a function of the rooms that run and remember, C{time:S} after S seconds; C{end} stops it
properly once nothing is owed any more.  LOG gets a line of JSON for all that can be seen from
outside: starts, ends, records in place.  The modules are loaded once, then each life is forked.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import cronstable.daemon
import cronstable.rooms  # noqa: F401 - loaded before the forks, like all that follows
from cronstable.runs.record import RunFinished, RunStarted
from cronstable.state.records import Records
from cronstable.state.service import StoreService
from cronstable.state.store import StoreSettings, open_store

LONGEST = 1.2
"""Seconds after which a life whose point is not reached is killed all the same."""

WATCHED = ("/cronstable/runs/", "/cronstable/state/", "/cronstable/counters.py")


class Log:
    """Lines that are there as soon as they are written, whatever happens next."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def say(self, what: str, **fields: Any) -> None:
        line = json.dumps({"what": what, "life": os.getpid(), **fields})
        os.write(self._descriptor, line.encode() + b"\n")


def die() -> None:
    """End this process as a power switch would."""
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(10)


class Countdown:
    """Dies at the N-th time it is told that the point was passed."""

    def __init__(self, number: int) -> None:
        self._left = number
        self._lock = threading.Lock()

    def passed(self) -> None:
        with self._lock:
            self._left -= 1
            if self._left == 0:
                die()


def at_point(spec: str) -> Callable[[str], object]:
    """Return the failpoint callable that C{spec} wants."""
    wanted, _, number = spec.partition(":")
    countdown = Countdown(int(number) if number.isdigit() else -1)

    def at(point: str) -> None:
        if point == wanted:
            countdown.passed()

    return at


def count_calls(number: int) -> None:
    """Die at a call of a watched function, on whatever thread it is."""
    countdown = Countdown(number)

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event in ("call", "return") and any(w in frame.f_code.co_filename for w in WATCHED):
            countdown.passed()

    threading.setprofile(profile)
    sys.setprofile(profile)


def watched_store(log: Log, spec: str) -> Callable[..., Any]:
    """Return what makes a store whose records are told once they are in place."""

    def make(config: Any, clock: Any) -> Any:
        settings = StoreSettings(config.path, config.deployment_id, config.topology, config.fsync)
        return open_store(settings, clock, at=at_point(spec))

    append = Records.append

    def told(self: Records, stream: str, data: Any, **options: Any) -> str:
        stem = append(self, stream, data, **options)
        log.say("written", stream=stream, stem=stem, data=dict(data))
        return stem

    Records.append = told  # type: ignore[method-assign]
    return make


def live(config: str, log: Log, spec: str) -> None:
    """Be a daemon until the point of C{spec}."""
    os.setsid()
    from twisted.internet import reactor

    kind, _, number = spec.partition(":")
    daemon = cronstable.daemon.make(reactor, config, os.environ)
    rooms = daemon.rooms
    store: StoreService = rooms.store
    store._make = watched_store(log, spec)
    rooms.bus.subscribe(RunStarted, lambda event: _started(log, event))
    rooms.bus.subscribe(RunFinished, lambda event: _finished(log, event))
    _audit(log, rooms, reactor)
    log.say("born", spec=spec, now=time.time())
    clock: Any = reactor
    clock.callLater(float(number) if kind == "time" else LONGEST, _over, daemon, kind, log, clock)
    daemon.startService()
    if kind == "call":
        count_calls(int(number))
    clock.run()
    log.say("ended", unaccounted=rooms.runs.book.unaccounted())


def _started(log: Log, event: RunStarted) -> None:
    log.say(
        "started",
        job=event.job.name,
        slot=event.slot,
        cause=event.cause,
        attempt=event.attempt,
        at=event.started_at,
    )


def _finished(log: Log, event: RunFinished) -> None:
    record = event.run.record
    log.say("finished", job=record.job, slot=record.slot, at=record.started_at)


def _audit(log: Log, rooms: Any, reactor: Any) -> None:
    rooms.scheduler.audit()
    if rooms.runs.book.unaccounted():
        log.say("unaccounted", count=rooms.runs.book.unaccounted())
    reactor.callLater(0.2, _audit, log, rooms, reactor)


def _over(daemon: Any, kind: str, log: Log, clock: Any) -> None:
    if kind == "end":
        if daemon.rooms.memory.catchup._debts:
            clock.callLater(0.2, _over, daemon, kind, log, clock)
        else:
            daemon.stop()
        return
    log.say("not reached" if kind not in ("time",) else "killed")
    die()


def main(config: str, log_path: str, *specs: str) -> int:
    """Live one life after another."""
    logging.basicConfig(level=logging.WARNING)
    log = Log(log_path)
    for spec in specs:
        child = os.fork()
        if child == 0:
            try:
                live(config, log, spec)
            finally:
                os._exit(3 if sys.exc_info()[0] is not None else 0)
        _, status = os.waitpid(child, 0)
        log.say("died", spec=spec, status=os.waitstatus_to_exitcode(status))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
