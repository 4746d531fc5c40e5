"""Real launches for tests: an observer that records, and the wait for its end."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.internet import reactor, task
from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase
from zope.interface import implementer

from cronstable.clock import SystemClock
from cronstable.executors import local
from cronstable.executors.interfaces import Ended, IObserver, LaunchSpec, Leftover, Usage
from cronstable.executors.local import LocalExecutor
from cronstable.executors.reach import Reach

ENV = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C"}


@implementer(IObserver)
class Recorder:
    """Keeps everything it is told, in order; C{over} fires with the end."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.notices: list[tuple[str, str]] = []
        self.data: dict[str, bytes] = {"stdout": b"", "stderr": b""}
        self.pid: int | None = None
        self.status: int | None = None
        self.held: tuple[Leftover, ...] | None = None
        self.usages: list[Usage] = []
        self.result: Ended | None = None
        self.over: Deferred[Ended] = Deferred()
        self.want = True
        self.ref = ""
        self.on_output: Callable[[str, bytes], object] = lambda stream, data: None

    def wanted(self) -> bool:
        self.calls.append("wanted")
        return self.want

    def notice(self, kind: str, detail: str) -> None:
        self.calls.append("notice")
        self.notices.append((kind, detail))

    def started(self, pid: int) -> None:
        self.calls.append("started")
        self.pid = pid

    def output(self, stream: str, data: bytes) -> None:
        self.calls.append("output")
        self.data[stream] += data
        self.on_output(stream, data)

    def exited(self, status: int | None) -> None:
        self.calls.append("exited")
        self.status = status

    def held_open(self, leftovers: tuple[Leftover, ...]) -> None:
        self.calls.append("held_open")
        self.held = leftovers

    def sampled(self, usage: Usage) -> None:
        self.usages.append(usage)

    def ended(self, ended: Ended) -> None:
        self.calls.append("ended")
        self.result = ended
        self.over.callback(ended)

    def text(self, stream: str = "stdout") -> str:
        return self.data[stream].decode()


def shell(command: str, **fields: Any) -> LaunchSpec:
    """Return a spec that runs C{command} by /bin/sh, its standard output captured."""
    fields.setdefault("env", ENV)
    fields.setdefault("capture_stdout", True)
    return LaunchSpec(argv=("/bin/sh", "-c", command), **fields)


def program(*argv: str, **fields: Any) -> LaunchSpec:
    """Return a spec that runs a program without a shell."""
    fields.setdefault("env", ENV)
    return LaunchSpec(argv=argv, **fields)


def alive(*command: str) -> list[int]:
    """Return the processes that have exactly this command line."""
    wanted = "\0".join(command).encode() + b"\0"
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cmdline").read_bytes() == wanted:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def descriptors() -> set[tuple[int, str]]:
    """Return the open descriptors of this process and what is behind each."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add((int(name), os.readlink(f"/proc/self/fd/{name}")))
        except OSError:
            # The descriptor of the listing itself.
            continue
    return found


async def until(condition: Callable[[], object], limit: float = 5.0) -> None:
    """Return once C{condition} holds; fail after C{limit} seconds."""
    for _ in range(int(limit / 0.01)):
        if condition():
            return
        await task.deferLater(reactor, 0.01)
    raise AssertionError(f"{condition} did not come true within {limit} seconds")


class LaunchCase(TestCase):
    """Tests with a real executor on the real reactor."""

    timeout = 30

    def setUp(self) -> None:
        # What the host of the tests has mounted must not change when launches begin.
        self.patch(local, "Reach", lambda *wiring: Reach(*wiring, lambda: ()))
        self.clock: Any = SystemClock(reactor)
        self.executor = self.make_executor()
        self.addCleanup(lambda: self.executor.stop())
        self.number = 0

    def make_executor(self) -> LocalExecutor:
        return LocalExecutor(reactor, self.clock)

    def launch(self, spec: LaunchSpec) -> Recorder:
        """Launch C{spec} under a new reference, which the recorder gets as C{ref}."""
        self.number += 1
        recorder = Recorder()
        recorder.ref = f"run-{self.number}"
        self.executor.launch(recorder.ref, spec, {}, recorder)
        return recorder

    def cancel(self, recorder: Recorder, grace: float) -> bool:
        return self.executor.cancel(recorder.ref, grace)

    async def run_to_end(self, spec: LaunchSpec) -> Recorder:
        """Launch C{spec} and return its recorder when it is over."""
        recorder = self.launch(spec)
        await recorder.over
        return recorder
