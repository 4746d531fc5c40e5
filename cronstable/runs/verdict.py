"""What a finished process means for its run: exit code conventions and C{failsWhen}."""

from __future__ import annotations

from cronstable.config.values import JobConfig
from cronstable.executors.interfaces import Ended
from cronstable.runs.record import START_FAILED, TIMED_OUT, StreamText
from cronstable.state.encoding import portable


def exit_code(ended: Ended) -> int | None:
    """Return the exit code that is recorded: the child's, -N, 127 or -100."""
    if ended.cause == "not-started":
        return START_FAILED
    if ended.cause == "timeout":
        return TIMED_OUT
    return ended.status


def fail_reason(
    job: JobConfig,
    ended: Ended,
    stdout: StreamText | None,
    stderr: StreamText | None,
) -> str | None:
    """Return why the run counts as a failure, or None for a success; first match wins."""
    rules = job.fails_when
    code = exit_code(ended)
    if rules.always:
        return "configured to mark every run as failed (failsWhen.always)"
    if ended.caps is not None and ended.caps.refused:
        return _exited(code, ended, job)
    if rules.nonzero_return and code != 0:
        return _exited(code, ended, job)
    for name, wanted, stream in (
        ("stdout", rules.produces_stdout, stdout),
        ("stderr", rules.produces_stderr, stderr),
    ):
        if wanted and stream is not None and stream.produced:
            return f"command wrote to {name} (configured to count as a failure)"
    return None


def _exited(code: int | None, ended: Ended, job: JobConfig) -> str:
    if ended.caps is not None and ended.caps.memory_exceeded:
        return f"memory limit exceeded ({_mebibytes(job.limits.memory)})"
    if code is None:
        return "the command's exit status was lost"
    text = f"command exited with code {code}"
    if ended.cause == "not-started" and ended.reason:
        return portable(f"{text} (could not start: {ended.reason})")
    if ended.cause == "timeout":
        return f"{text} (executionTimeout of {job.execution_timeout:g} s passed)"
    return text


def _mebibytes(size: int | None) -> str:
    return "?" if size is None else f"{size / 1048576:g} MiB"
