"""What the runs room asks of an executor: to launch a run, to check its work, to end it."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Mapping
from typing import Any

from cronstable.clock import Clock
from cronstable.config.values import JobConfig
from cronstable.executors.interfaces import Ended, IExecutor, LaunchSpec
from cronstable.identity import Identity
from cronstable.runs.capture import Captures
from cronstable.runs.environment import Outfit, RunEnvironment, hidden, shown, with_given
from cronstable.runs.record import EndedBy, Verification
from cronstable.runs.request import Ticket
from cronstable.runs.run import Run, RunKeeper
from cronstable.runs.spec import argv, launch_spec
from cronstable.runs.verify import Check, verification_spec

log = logging.getLogger("cronstable")


class Launcher:
    """
    Makes runs and takes them to an executor and back.

    C{outfit} gives each run what its job's configuration does not: see docs/job-api.md.
    """

    def __init__(
        self,
        clock: Clock,
        identity: Identity,
        executor: IExecutor,
        captures: Captures,
        base_environment: Mapping[str, str],
        environment: RunEnvironment | None,
    ) -> None:
        self.outfit = Outfit(environment)
        self._clock = clock
        self._executor = executor
        self._captures = captures
        self._base = dict(base_environment)
        self._specs: dict[str, tuple[JobConfig, LaunchSpec]] = {}
        self._refs = itertools.count(1)
        self._process = identity.process

    def make(
        self, keeper: RunKeeper, job: JobConfig, ticket: Ticket, holds: tuple[Any, ...]
    ) -> Run:
        """Return a run of C{job} that is not launched yet, with a name of its own."""
        ref = f"{self._process}-{next(self._refs)}"
        return Run(
            keeper,
            ref,
            job,
            ticket,
            holds,
            self._captures.for_run(job, ref),
            self._clock.now(),
            self._clock.seconds(),
        )

    def launch(self, run: Run) -> None:
        """Have C{run} launched; one that cannot even be tried ends as not started."""
        job, request = run.job, run.ticket.request
        memo = {
            "job": job.name,
            "cause": request.cause,
            "slot": request.slot,
            "attempt": request.attempt,
            "startedAt": run.started_at,
        }
        try:
            spec = with_given(self._spec(job), run)
            run.env = shown(spec, run)
            if run.given.secrets:
                run.captured.hide(run.given.secrets)
            self._executor.launch(run.ref, spec, memo, run)
        except Exception as error:
            log.exception("launching job %s failed", job.name)
            run.ended(Ended("not-started", reason=f"{type(error).__name__}: {error}"))

    def check(self, run: Run, done: Callable[[Verification], object]) -> None:
        """Launch the check of C{run}, whose command has passed, and tell C{done} what it found."""
        verify = run.job.verify
        assert verify is not None
        run.state = "verifying"
        run.verification_ref = f"{run.ref}-check"

        def checked(verification: Verification) -> None:
            run.verification_ref = None
            done(hidden(verification, run.given.secrets))

        spec = verification_spec(
            with_given(self._spec(run.job), run),
            argv(verify.command, run.job.shell),
            verify.timeout,
        )
        check = Check(
            self._clock,
            self._captures.for_check(run.job, run.verification_ref, run.captured),
            checked,
        )
        self._executor.launch(run.verification_ref, spec, {"check of": run.ref}, check)

    def stop(self, run: Run, intent: EndedBy, who: str | None = None) -> None:
        """End C{run}, or its check, unless somebody did already: the first intent stands."""
        if run.intend(intent, who):
            self._executor.cancel(run.verification_ref or run.ref, run.job.kill_timeout)

    def forget(self, name: str) -> None:
        """Drop what is kept of the job C{name}, which is configured no more."""
        self._specs.pop(name, None)

    def _spec(self, job: JobConfig) -> LaunchSpec:
        known = self._specs.get(job.name)
        if known is not None and known[0] is job:
            return known[1]
        spec = launch_spec(job, self._base)
        self._specs[job.name] = (job, spec)
        return spec
