"""A scheduler and its runs on a clock that moves when told to, with fake processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from cronstable.clock import ManualClock
from cronstable.config.values import JobConfig
from cronstable.events import Bus
from cronstable.runs.boot import BootRuns
from cronstable.runs.index import Gap
from cronstable.runs.jobset import JobSet
from cronstable.runs.record import FinishedRun, RunFinished, RunRecord
from cronstable.runs.scheduler import Scheduler
from cronstable.runs.service import RunService
from tests.fakes import IDENTITY, FakeCaptures, FakeExecutor, FakeLaunch


class World:
    """Everything between a schedule and a process, with the time in the test's hand."""

    def __init__(self, now: float, *jobs: JobConfig, **wiring: Any) -> None:
        self.clock: ManualClock = wiring.pop("clock", None) or ManualClock(now)
        self.bus = Bus()
        self.executor = FakeExecutor()
        self.runs = RunService(
            self.clock, IDENTITY, self.executor, self.bus, self.make_captures(), {}, **wiring
        )
        self.book = self.runs.book
        self.scheduler = Scheduler(self.clock, self.book, self.runs.request, self.missed)
        self.boot = BootRuns(self.clock, self.book, self.runs.request, self.bus)
        self.finished: list[FinishedRun] = []
        self.bus.subscribe(RunFinished, lambda event: self.finished.append(event.run))
        self.install(*jobs)
        self.runs.startService()
        self.scheduler.startService()

    def missed(self, gap: Gap) -> bool:
        """Take over slots that have passed; nobody does here."""
        return False

    def make_captures(self) -> Any:
        """Return what keeps the output of runs."""
        return FakeCaptures()

    def install(self, *jobs: JobConfig) -> None:
        """Put a set of jobs in force, the way a reload does."""
        job_set = JobSet({job.name: job for job in jobs})
        self.runs.install(job_set)
        self.scheduler.install(job_set)

    def advance(self, seconds: float, step: float = 1.0) -> None:
        """Let time pass, in steps as a host's would."""
        end = self.clock.seconds() + seconds
        while self.clock.seconds() < end - 1e-9:
            self.clock.advance(min(step, end - self.clock.seconds()))

    def run(self, seconds: float) -> None:
        """Let time pass from one timer to the next, so that each is called at its time."""
        end = self.clock.seconds() + seconds
        while True:
            times = [call.getTime() for call in self.clock.getDelayedCalls()]
            soonest = min(times, default=end)
            if soonest > end:
                break
            self.clock.advance(max(soonest - self.clock.seconds(), 0.0))
            if soonest == end:
                break
        self.clock.advance(max(end - self.clock.seconds(), 0.0))

    def lasting(self, seconds: float, status: int = 0) -> Callable[[FakeLaunch], object]:
        """Return a behaviour: each process exits after C{seconds}."""
        return lambda launch: self.clock.callLater(seconds, launch.exit, status)

    def started(self, name: str) -> list[float]:
        """Return when the runs of C{name} started, wall time."""
        return [launch.memo["startedAt"] for launch in self.executor.launches if launch.job == name]

    def records(self, name: str) -> tuple[RunRecord, ...]:
        """Return the history of C{name}."""
        return self.runs.history.runs(name)

    def results(self, name: str) -> Counter[tuple[str, str | None]]:
        """Return how the slots of C{name} ended, counted by (result, reason)."""
        counted: Counter[tuple[str, str | None]] = Counter()
        for entry in self.book.entries(name):
            counted[(entry.result, entry.reason)] += entry.count
        return counted
