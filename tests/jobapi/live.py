"""A job API on a real socket and a real disk, and commands that are run as a job would."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from cronstable.clock import SystemClock
from cronstable.config.sections_values import JobApiConfig, StateConfig
from cronstable.config.values import JobConfig
from cronstable.jobapi.requests import JobRequest
from cronstable.jobapi.service import JobApiService
from cronstable.runs.environment import Prepared, RunFacts
from cronstable.state.service import StoreService
from tests.fakes import IDENTITY

CHECKOUT = Path(__file__).resolve().parents[2]

COMMAND = (
    sys.executable,
    "-c",
    "import sys; from cronstable.commands.main import main; sys.exit(main())",
)


class RecordedRequest(JobRequest):
    """A request that keeps its answer and is kept by its site."""

    def process(self) -> None:
        self.answered = b""
        self.sent = b"".join(self.body._pieces)
        self.channel.site.recorded.append(self)
        super().process()

    def write(self, data: bytes) -> None:
        self.answered += data
        super().write(data)


class LiveCase(TestCase):
    """A served endpoint, its requests recorded, and a directory that commands run in."""

    def setUp(self) -> None:
        from twisted.internet import reactor

        clock: Any = SystemClock(reactor)
        self.directory = Path(self.mktemp()).resolve()
        self.directory.mkdir(parents=True)
        self.store = StoreService(reactor, clock)
        self.api = JobApiService(reactor, clock, IDENTITY, self.store, {})
        self.addCleanup(self.stop)

    async def stop(self) -> None:
        await self.api.stop()
        await self.store.close()

    async def serve(self, one: JobConfig, **job_api: Any) -> None:
        """Serve, and let a run of C{one} in."""
        state = StateConfig(str(self.directory / "state"), job_api=JobApiConfig(**job_api))
        await self.api.reconcile(state)
        await self.store.reconcile(state)
        site = self.api._site
        site.requestFactory = RecordedRequest
        site.recorded = []
        self.environment = self.let_in(one)

    def let_in(self, one: JobConfig, ref: str = "r1") -> Mapping[str, str]:
        """Return the variables of a new run."""
        prepared = self.api.prepare(RunFacts(ref, one, "manual", None, 0, one.name))
        assert isinstance(prepared, Prepared)
        return {**prepared.variables, **prepared.private}

    @property
    def recorded(self) -> list[RecordedRequest]:
        """The requests since the endpoint was served."""
        found: list[RecordedRequest] = self.api._site.recorded
        return found

    def run_command(
        self,
        *argv: str,
        program: Sequence[str] = COMMAND,
        stdin: bytes = b"",
        environ: Mapping[str, str] | None = None,
    ) -> Deferred[subprocess.CompletedProcess[bytes]]:
        """Run C{cronstable ARGV} as the run would."""
        env = {**os.environ, "PYTHONPATH": str(CHECKOUT), **self.environment, **(environ or {})}
        return deferToThread(
            subprocess.run,
            [*program, *argv],
            input=stdin,
            capture_output=True,
            cwd=self.directory,
            env=env,
            timeout=60,
        )
