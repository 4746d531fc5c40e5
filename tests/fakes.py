"""Stand-ins for what a test does not want to be real: processes, output, values of a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
from zope.interface import implementer

from cronstable.config.values import JobConfig
from cronstable.executors.interfaces import Ended, IExecutor, LaunchSpec
from cronstable.identity import Identity
from cronstable.runs.record import StreamText
from cronstable.schedule import parse

IDENTITY = Identity("node-a", "node-a", 4711, "0123456789abcdef0123456789abcdef")


def job(name: str = "job", schedule: str = "* * * * *", **fields: Any) -> JobConfig:
    """Return a job whose schedule is C{schedule} in UTC unless C{zone} says otherwise."""
    zone = fields.pop("zone", "UTC")
    when = None if schedule == "@reboot" else parse(schedule, key=name, zone=zone)
    return JobConfig(
        name=name, command="true", schedule_text=schedule, schedule=when, timezone=zone, **fields
    )


@attrs.define
class FakeLaunch:
    """A launch that the test (or the executor's C{behave}) ends."""

    executor: FakeExecutor
    ref: str
    spec: LaunchSpec
    memo: Mapping[str, Any]
    observer: Any
    pid: int
    cancelled: float | None = None
    over: bool = False

    @property
    def job(self) -> str:
        return str(self.memo.get("job", ""))

    def exit(self, status: int = 0, cause: str = "exited", **fields: Any) -> None:
        """End the process, unless it is over."""
        if self.over:
            return
        self.over = True
        self.executor.live.remove(self)
        self.observer.exited(status)
        ended = Ended("cancelled" if self.cancelled is not None else cause, status, **fields)
        self.observer.ended(ended)


@implementer(IExecutor)
class FakeExecutor:
    """Records what is launched; C{behave} is called with each launch once it has started."""

    def __init__(self) -> None:
        self.launches: list[FakeLaunch] = []
        self.live: list[FakeLaunch] = []
        self.behave: Callable[[FakeLaunch], object] = lambda launch: None
        self.refuse: str | None = None
        self.room = True
        """Whether a launch starts; without, it waits until it is cancelled."""
        self.on_cancel: Callable[[FakeLaunch], object] = lambda launch: launch.exit(-15)

    def launch(self, ref: str, spec: LaunchSpec, memo: Mapping[str, Any], observer: Any) -> None:
        launch = FakeLaunch(self, ref, spec, memo, observer, 1000 + len(self.launches))
        self.launches.append(launch)
        if self.refuse is not None:
            launch.over = True
            observer.ended(Ended("not-started", reason=self.refuse))
            return
        self.live.append(launch)
        if not self.room:
            launch.pid = 0
            return
        observer.started(launch.pid)
        self.behave(launch)

    def attach(self, ref: str, observer: Any, offset: int) -> bool:
        return False

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        return {}

    def note(self, ref: str, memo: Mapping[str, Any]) -> None:
        pass

    def cancel(self, ref: str, grace: float) -> bool:
        for launch in self.live:
            if launch.ref == ref:
                launch.cancelled = grace
                if launch.pid:
                    self.on_cancel(launch)
                else:
                    launch.over = True
                    self.live.remove(launch)
                    launch.observer.ended(Ended("cancelled"))
                return True
        return False

    def flow(self, ref: str, stream: str, paused: bool) -> None:
        pass

    def ack(self, ref: str, offset: int) -> None:
        pass


class FakeCapture:
    """Keeps all output as text."""

    def __init__(self, job: JobConfig) -> None:
        self.hidden: tuple[str, ...] = ()
        self._kept = {
            name: b""
            for name, captured in (("stdout", job.capture_stdout), ("stderr", job.capture_stderr))
            if captured
        }

    def hide(self, values: Sequence[str]) -> None:
        self.hidden = tuple(values)

    def feed(self, stream: str, data: bytes) -> None:
        if stream in self._kept:
            self._kept[stream] += data

    def close(self) -> None:
        pass

    def _text(self, stream: str) -> StreamText | None:
        kept = self._kept.get(stream)
        return None if kept is None else StreamText(kept.decode("utf-8", "replace"))

    @property
    def stdout(self) -> StreamText | None:
        return self._text("stdout")

    @property
    def stderr(self) -> StreamText | None:
        return self._text("stderr")


class FakeCaptures:
    """Makes L{FakeCapture}s; both streams of a check are captured."""

    def for_run(self, job: JobConfig, ref: str) -> FakeCapture:
        return FakeCapture(job)

    def for_check(self, job: JobConfig, ref: str, run: Any) -> FakeCapture:
        return FakeCapture(attrs.evolve(job, capture_stdout=True, capture_stderr=True))
