"""
What every executor offers: a process is launched from a spec, reports to an observer, and can
be found again by its reference after the scheduler was away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs
from zope.interface import Interface

Notice = Literal["waiting", "timeout", "killing", "unsignalled", "uncapped"]


@attrs.frozen
class DropTo:
    """Who the process becomes; C{login} None means no supplementary groups at all."""

    uid: int
    gid: int
    login: str | None = None


@attrs.frozen
class Caps:
    """Resource caps of the process tree: CPUs, bytes, processes; None = uncapped."""

    cpu: float | None = None
    memory: int | None = None
    processes: int | None = None
    required: bool = False


@attrs.frozen
class LaunchSpec:
    """
    Everything needed to start one process; times in seconds.

    C{argv[0]} without a slash is looked up on C{env}'s PATH.  C{nice} is an absolute nice value
    given to the process group.  A captured stream is a pipe, others are the daemon's own.
    C{execution_timeout} counts from the spawn until the process has exited and its captured
    streams have closed; C{output_grace} bounds the wait for streams after the exit (None =
    unbounded).
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = attrs.field(repr=False)
    cwd: str | None = None
    drop_to: DropTo | None = None
    umask: int | None = None
    nice: int | None = None
    capture_stdout: bool = False
    capture_stderr: bool = True
    execution_timeout: float | None = None
    kill_timeout: float = 30.0
    output_grace: float | None = None
    start_within: float = 60.0
    """How long the launch may wait for descriptors or process slots before it is given up."""
    caps: Caps | None = None
    sample_interval: float | None = None
    """Seconds between resource samples of the process tree; None = not sampled."""
    sample_history: int = 0


EndCause = Literal["exited", "timeout", "cancelled", "not-started", "withdrawn"]


@attrs.frozen
class Usage:
    """What a process tree used; seconds and bytes; C{samples} counts readings taken."""

    cpu_user: float
    cpu_system: float
    max_rss: int | None = None
    samples: int = 0
    series: tuple[tuple[float, float, int], ...] = ()
    """(epoch seconds, CPU percent, RSS bytes) points, oldest first."""
    latest: tuple[float, float, int] | None = None
    """The newest such point, kept also where no series is."""


@attrs.frozen
class CapsReport:
    """Which caps were in force and what they did."""

    enforced: bool
    mechanism: str | None = None
    unenforced: tuple[str, ...] = ()
    reason: str | None = None
    refused: bool = False
    memory_exceeded: bool = False
    process_limit_hits: int = 0
    peak_memory: int | None = None
    cpu_throttled: float | None = None


@attrs.frozen
class Leftover:
    """A process that still holds an output stream of a run whose main process has exited."""

    pid: int
    command: str


@attrs.frozen
class Ended:
    """
    How a launch ended, told exactly once.

    C{status} is the exit status, -N after signal N, None when nothing ran or the status was
    lost.  C{cause} is the first stated intent while the run was open, that is until its main
    process has exited and its captured streams have closed: a cancel or a deadline before that
    wins over the exit, whose status is still told.
    """

    cause: EndCause
    status: int | None = None
    reason: str | None = None
    """For not-started, or a lost status: why, for the operator, without secrets."""
    killed: bool = False
    """Whether the group needed SIGKILL."""
    output_cut: bool = False
    """Whether a captured stream was still open when we closed our end."""
    leftovers: tuple[Leftover, ...] = ()
    usage: Usage | None = None
    caps: CapsReport | None = None


class IObserver(Interface):
    """
    What an executor tells about one launch.

    Order: C{started} (unless not started), any number of C{output}, C{exited}, C{held_open} at
    most once, and last C{ended} once.  Calls may come before C{launch} has returned.  Where a
    switch to another account fails only after the spawn, C{started} has been told although
    C{ended} says not-started.
    """

    def wanted() -> bool:
        """Return whether a launch that had to wait its turn or for room should still happen."""

    def notice(kind: str, detail: str) -> None:
        """
        Something happened that deserves a line in the log; C{kind} is a L{Notice}.

        'waiting' once when there is no room to start (detail: why; the executor itself logs one
        WARNING for all that wait together); 'timeout' at the deadline;
        'killing' when the main process outlived its grace (detail: the grace in seconds);
        'unsignalled' when the system refused a signal (detail: '(pid N): the error');
        'uncapped' when resource caps could not be applied (detail: why).
        """

    def started(pid: int) -> None:
        """The process runs; C{pid} is also its session and its group."""

    def output(stream: str, data: bytes) -> None:
        """C{data} was read from C{stream} ('stdout' or 'stderr'), as it came."""

    def exited(status: int | None) -> None:
        """The main process was reaped (None: by somebody else); streams may still be open."""

    def held_open(leftovers: tuple[Leftover, ...]) -> None:
        """Ten seconds after the exit these processes still hold a captured stream."""

    def sampled(usage: Usage) -> None:
        """A resource sample was taken; C{usage} is cumulative so far."""

    def ended(ended: Ended) -> None:
        """Nothing more will come."""


class IExecutor(Interface):
    """
    Launches processes and stays able to find them.

    C{ref} names one attempt of one run, unique for ever; a second C{launch} of a known ref does
    nothing.  Deadline and kill sequence live here, so that they hold while a scheduler is away.
    """

    def launch(ref: str, spec: LaunchSpec, memo: Mapping[str, Any], observer: Any) -> None:
        """Start C{spec} now, or as soon as the system has room for it; tell C{observer}."""

    def attach(ref: str, observer: Any, offset: int) -> bool:
        """Resume telling about a live launch from output byte C{offset}; False if unknown."""

    def inventory() -> Mapping[str, Mapping[str, Any]]:
        """Return the memo of each launch that this executor kept from an earlier scheduler."""

    def note(ref: str, memo: Mapping[str, Any]) -> None:
        """Replace what a new scheduler would be told about this launch."""

    def cancel(ref: str, grace: float) -> bool:
        """
        End a launch: SIGTERM to its group, SIGKILL C{grace} seconds later; False if it is gone.

        A launch that still waits for room ends at once.  Cancelled again, the shorter grace holds.
        """

    def flow(ref: str, stream: str, paused: bool) -> None:
        """Stop or resume reading a captured stream, so that a job waits for a slow reader."""

    def ack(ref: str, offset: int) -> None:
        """Output before C{offset} is kept by the scheduler and may be forgotten."""
