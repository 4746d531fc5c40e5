"""From a job's definition to what an executor needs to launch it."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping

from cronstable.config.values import JobConfig
from cronstable.executors.interfaces import Caps, DropTo, LaunchSpec
from cronstable.platform import DEFAULT_SHELL

NICE = {"idle": 19, "below-normal": 10, "above-normal": -5, "high": -10}


def argv(command: str | tuple[str, ...], shell: str) -> tuple[str, ...]:
    """Return the argument vector: a list as it is, text through the shell, by default sh."""
    if isinstance(command, tuple):
        return command
    return (shell if shell.strip() else DEFAULT_SHELL, "-c", command)


def environment(job: JobConfig, base: Mapping[str, str]) -> Mapping[str, str]:
    """
    Return the whole environment of the job's process.

    The daemon's own comes first; a job that runs as another user gets that user's HOME, USER,
    LOGNAME and SHELL; what the configuration says wins.  Jobs that add nothing share C{base}.
    """
    if job.uid is None and not job.environment:
        return base
    made = dict(base)
    if job.uid is not None:
        made.update(_of_user(job.uid))
    made.update(job.environment)
    return made


def launch_spec(job: JobConfig, base: Mapping[str, str]) -> LaunchSpec:
    """Return the spec that launches the job's command."""
    limits = job.limits
    return LaunchSpec(
        argv=argv(job.command, job.shell),
        env=environment(job, base),
        cwd=job.working_directory,
        drop_to=drop_to(job),
        umask=job.umask,
        nice=NICE.get(job.priority),
        capture_stdout=job.capture_stdout,
        capture_stderr=job.capture_stderr,
        execution_timeout=job.execution_timeout,
        kill_timeout=job.kill_timeout,
        output_grace=job.output_grace,
        start_within=min(60.0, float(job.starting_deadline or 60)),
        caps=Caps(limits.cpu, limits.memory, limits.processes, limits.required)
        if limits.any
        else None,
        sample_interval=job.monitor.interval if job.monitor.enabled else None,
        sample_history=job.monitor.history if job.monitor.enabled else 0,
    )


def drop_to(job: JobConfig) -> DropTo | None:
    """
    Return who the process becomes, or None to stay who the daemon is.

    Of user and group, the one that the job does not name is the daemon's own.
    """
    if job.uid is None and job.gid is None:
        return None
    return DropTo(
        uid=os.geteuid() if job.uid is None else job.uid,
        gid=os.getegid() if job.gid is None else job.gid,
        login=job.login,
    )


def _of_user(uid: int) -> dict[str, str]:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return {}
    return {
        "HOME": entry.pw_dir,
        "USER": entry.pw_name,
        "LOGNAME": entry.pw_name,
        "SHELL": entry.pw_shell or DEFAULT_SHELL,
    }
