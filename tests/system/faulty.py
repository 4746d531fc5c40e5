"""
The real daemon on a file system that gets into trouble when told to.

Usage: python -m tests.system.faulty FAULT -c CONFIG.  SIGUSR1 lets the store's file system fail,
SIGUSR2 heals it.  FAULT is C{hang}, C{slow:SECONDS}, or the name of an error such as C{EIO}.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import cronstable.daemon
from cronstable.commands.loglevel import log_to_stderr
from cronstable.logs import bridge_twisted
from cronstable.state.faults import READING, WRITING, FaultyFiles
from cronstable.state.files import OsFiles
from cronstable.state.store import StoreSettings, open_store


def breaker(files: FaultyFiles, fault: str) -> Callable[[], object]:
    """Return what lets C{files} get into trouble."""
    kind, _, seconds = fault.partition(":")
    operations = (*READING, *WRITING, "sync_directory")
    if kind == "hang":
        return lambda: held.append(files.hang(*operations))
    if kind == "slow":
        return lambda: files.call(*operations, act=lambda: time.sleep(float(seconds)))
    return lambda: files.fail(*operations, error=getattr(errno, kind))


held: list[threading.Event] = []


def main(fault: str, _: str, config: str) -> int:
    """Run the daemon; return its exit status."""
    from twisted.internet import reactor

    log_to_stderr(20)
    files = FaultyFiles(OsFiles())

    def make(section: Any, clock: Any) -> Any:
        settings = StoreSettings(section.path, section.deployment_id, section.topology)
        return open_store(settings, clock, files=files)

    def heal(*_: object) -> None:
        files.heal()
        while held:
            held.pop().set()

    fail = breaker(files, fault)
    signal.signal(signal.SIGUSR1, lambda *_: fail())
    signal.signal(signal.SIGUSR2, heal)
    daemon = cronstable.daemon.make(reactor, config, os.environ)
    daemon.rooms.store._make = make
    bridge_twisted()
    daemon.startService()
    runner: Any = reactor
    runner.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
