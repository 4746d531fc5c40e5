"""
What a run is given besides its job's own environment: variables, and secrets to be hidden.

docs/job-api.md, "Variables", tells jobs what they may rely on.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import attrs
from twisted.internet.defer import Deferred

from cronstable.config.values import JobConfig
from cronstable.executors.interfaces import LaunchSpec
from cronstable.runs.record import Cause, Verification
from cronstable.runs.redact import Masker
from cronstable.runs.request import RunRequest

if TYPE_CHECKING:
    from cronstable.runs.run import Run

log = logging.getLogger("cronstable")


@attrs.frozen
class RunFacts:
    """
    A run that is about to start.

    C{slot} is the instant that it stands for, in epoch seconds; C{scope} where its state is kept.
    """

    ref: str
    job: JobConfig
    cause: Cause
    slot: int | None
    attempt: int
    scope: str

    @classmethod
    def of(cls, ref: str, job: JobConfig, request: RunRequest) -> RunFacts:
        """Return the facts of the run C{ref} that C{request} has led to."""
        scope = job.name if request.scope is None else request.scope
        return cls(ref, job, request.cause, request.slot, request.attempt, scope)


@attrs.frozen
class Prepared:
    """
    What a run is given.

    C{variables} win over the job's own environment; C{private} ones do as well and are never
    shown.  C{secrets} are values that its output must not show.
    """

    run_id: str | None = None
    variables: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    private: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    secrets: tuple[str, ...] = attrs.field(default=(), repr=False)


NOTHING = Prepared()
"""Given to a run that is given nothing."""


class RunEnvironment(Protocol):
    """Prepares what runs are given, and takes it back."""

    def prepare(self, run: RunFacts) -> Prepared | Deferred[Prepared]:
        """
        Return what a run is given, before its process starts.

        It may take time, but is bounded; C{ended} follows, also when the run never starts.
        """

    def ended(self, ref: str) -> None:
        """The run is over: what it was given is worth nothing any more."""


class Outfit:
    """Gives each run what C{environment} has for it; no trouble there keeps a run from starting."""

    def __init__(self, environment: RunEnvironment | None) -> None:
        self._environment = environment

    async def give(self, run: Run) -> bool:
        """Let C{run} be given what it is to have; return whether it should still start."""
        if self._environment is None:
            return True
        try:
            given = self._environment.prepare(RunFacts.of(run.ref, run.job, run.ticket.request))
            if not isinstance(given, Deferred):
                run.given = given
                return True
            run.given = await given
        except Exception:
            log.exception("preparing job %s failed; it runs without the job API", run.job.name)
        return run.wanted()

    def take_back(self, run: Run) -> None:
        """End what C{run} was given: its token is worth nothing from here on."""
        if self._environment is None:
            return
        try:
            self._environment.ended(run.ref)
        except Exception:
            log.exception("please report this as a bug (6)")


def with_given(spec: LaunchSpec, run: Run) -> LaunchSpec:
    """Return C{spec} with what C{run} was given, and the variables that its request asked for."""
    asked, given = run.ticket.request.variables, run.given
    if not given.variables and not asked:
        return spec
    return attrs.evolve(spec, env={**spec.env, **asked, **given.variables, **given.private})


def shown(spec: LaunchSpec, run: Run) -> Mapping[str, str] | None:
    """Return the environment of C{run} for reports; None when nobody added anything to it."""
    job, given = run.job, run.given
    if given.private:
        return {name: value for name, value in spec.env.items() if name not in given.private}
    adds = job.environment or job.uid is not None or run.ticket.request.variables
    return spec.env if adds or given.variables else None


def hidden(check: Verification, secrets: tuple[str, ...]) -> Verification:
    """Return C{check} with secrets masked in its output."""
    if not secrets:
        return check
    mask = Masker(secrets).mask
    return attrs.evolve(check, stdout=mask(check.stdout), stderr=mask(check.stderr))
