"""
The shell reporter: a command of its own session that is told everything by its environment.

docs/reporting.md, "Shell", tells users what the command finds.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from twisted.internet.defer import Deferred
from zope.interface import implementer

from cronstable.config.values import ShellReport
from cronstable.executors.interfaces import Ended, IExecutor, IObserver, LaunchSpec, Leftover, Usage
from cronstable.reports.trouble import ReportFailed
from cronstable.runs.spec import argv

_START_WITHIN = 10.0
"""Seconds that a reporter's command may wait for room to start."""

_GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL."""

_numbers = itertools.count(1)


def compose(
    report: ShellReport, environ: Mapping[str, str], variables: Mapping[str, str]
) -> LaunchSpec:
    """Return what to launch: the daemon's environment and C{variables}, output not captured."""
    return LaunchSpec(
        argv=argv(report.command or "", report.shell),
        env={**environ, **variables},
        capture_stderr=False,
        execution_timeout=report.seconds,
        kill_timeout=_GRACE,
        start_within=_START_WITHIN,
    )


def run(executor: IExecutor, spec: LaunchSpec) -> Deferred[None]:
    """
    Launch C{spec}; fire when it has ended with status 0.

    Cancelling kills its process group.  Fails with L{ReportFailed} otherwise.
    """
    ref = f"report-{next(_numbers)}"

    def cancel(_: object) -> None:
        executor.cancel(ref, 0.0)

    done: Deferred[None] = Deferred(cancel)
    executor.launch(ref, spec, {"report": ref}, _Watch(done, spec))
    return done


@implementer(IObserver)
class _Watch:
    """Waits for the end of a reporter's command."""

    def __init__(self, done: Deferred[None], spec: LaunchSpec) -> None:
        self._done = done
        self._spec = spec

    def wanted(self) -> bool:
        """Return whether somebody still waits."""
        return not self._done.called

    def notice(self, kind: str, detail: str) -> None:
        """The end says it all."""

    def started(self, pid: int) -> None:
        """The command runs."""

    def output(self, stream: str, data: bytes) -> None:
        """Nothing is captured."""

    def exited(self, status: int | None) -> None:
        """The end comes at once."""

    def held_open(self, leftovers: tuple[Leftover, ...]) -> None:
        """Nothing is captured."""

    def sampled(self, usage: Usage) -> None:
        """Nothing is sampled."""

    def ended(self, ended: Ended) -> None:
        """Judge how the command ended."""
        if self._done.called:
            return
        trouble = self._trouble(ended)
        if trouble is None:
            self._done.callback(None)
        else:
            self._done.errback(ReportFailed(trouble))

    def _trouble(self, ended: Ended) -> str | None:
        if ended.cause == "timeout":
            return f"the command took more than {self._spec.execution_timeout:g} seconds, killed"
        if ended.cause in ("not-started", "withdrawn"):
            return f"the command could not start: {ended.reason or ended.cause}"
        return None if ended.status == 0 else f"the command ended with return code {ended.status}"
