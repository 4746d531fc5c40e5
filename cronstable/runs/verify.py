"""
The check that runs after a command passed: its own process, its own bounds, one verdict.

docs/runs.md tells users when it runs.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
from zope.interface import implementer

from cronstable.clock import Clock
from cronstable.executors.interfaces import Ended, IObserver, LaunchSpec, Leftover, Usage
from cronstable.runs.capture import Capture
from cronstable.runs.record import StreamText, Verification
from cronstable.runs.verdict import exit_code
from cronstable.state.encoding import portable

KEPT_CHARACTERS = 16384
"""Characters that are kept of each stream of a check."""


def verification_spec(spec: LaunchSpec, argv: tuple[str, ...], timeout: float) -> LaunchSpec:
    """Return how the check is launched: as the command was, both streams kept, its own time."""
    return attrs.evolve(
        spec,
        argv=argv,
        capture_stdout=True,
        capture_stderr=True,
        execution_timeout=timeout,
        sample_interval=None,
        sample_history=0,
    )


@implementer(IObserver)
class Check:
    """Listens to one verification process and tells its result to C{done}."""

    def __init__(
        self, clock: Clock, captured: Capture, done: Callable[[Verification], object]
    ) -> None:
        self._clock = clock
        self._captured = captured
        self._done = done
        self._started_at = clock.now()
        self._started = clock.seconds()

    def wanted(self) -> bool:
        """Return True: a check finishes what its run began."""
        return True

    def notice(self, kind: str, detail: str) -> None:
        """Nothing to log: the result of the check says it."""

    def started(self, pid: int) -> None:
        """Nothing to note: the run's own pid stays the one that is shown."""

    def output(self, stream: str, data: bytes) -> None:
        """Keep what the check wrote."""
        self._captured.feed(stream, data)

    def exited(self, status: int | None) -> None:
        """Nothing to note before the end."""

    def held_open(self, leftovers: tuple[Leftover, ...]) -> None:
        """Nothing to note: the check's timeout bounds this wait."""

    def sampled(self, usage: Usage) -> None:
        """Checks are not sampled."""

    def ended(self, ended: Ended) -> None:
        """Tell the verdict."""
        self._captured.close()
        stdout, out_cut = _bounded(self._captured.stdout)
        stderr, err_cut = _bounded(self._captured.stderr)
        reason = failure(ended)
        code = exit_code(ended)
        finished_at = self._clock.now()
        self._done(
            Verification(
                outcome="success" if reason is None else "failure",
                exit_code=code,
                fail_reason=reason,
                started_at=self._started_at,
                finished_at=max(finished_at, self._started_at),
                duration=self._clock.seconds() - self._started,
                stdout=stdout,
                stderr=stderr,
                stdout_discarded=_discarded(self._captured.stdout),
                stderr_discarded=_discarded(self._captured.stderr),
                output_truncated=out_cut or err_cut,
            ),
        )


def failure(ended: Ended) -> str | None:
    """Return why a check failed, or None when it passed."""
    if ended.cause == "not-started":
        return portable(f"could not start: {ended.reason}")
    if ended.cause == "timeout":
        return "timed out"
    if ended.cause == "cancelled":
        return "cancelled"
    return None if ended.status == 0 else f"exited with code {ended.status}"


def _bounded(stream: StreamText | None) -> tuple[str, bool]:
    if stream is None:
        return "", False
    text = stream.text
    return text[:KEPT_CHARACTERS], len(text) > KEPT_CHARACTERS or stream.discarded > 0


def _discarded(stream: StreamText | None) -> int:
    return 0 if stream is None else stream.discarded
