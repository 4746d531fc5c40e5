"""
Starting one process, without a reactor: session, signals, descriptors, directory, identity.

It is started by vfork, whose cost depends neither on the size of the daemon nor on its open
descriptors: that is so as long as no identity is to be changed.  posix_spawn would leave two of
the C library's own signals ignored.  docs/executors.md says what a process finds
when it starts.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from cronstable import platform
from cronstable.executors import forkexec
from cronstable.executors.become import Become, still_the_prefix
from cronstable.executors.interfaces import DropTo, LaunchSpec
from cronstable.executors.program import (
    NoRoom,
    NotStarted,
    Program,
    check_script,
    find_program,
    why_not,
)

log = logging.getLogger("cronstable")

NO_ROOM = frozenset((errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM))
KEPT_FREE = 64
"""Descriptors left to the rest of the daemon when launches have taken all others."""


@attrs.define
class Spawned:
    """A process that was just started; the descriptors are ours and close on exec."""

    pid: int
    outputs: dict[str, int]
    """The read end of each captured stream."""
    pidfd: int | None
    program: Program
    become: Become | None = None
    """What the process goes through to take another identity, None if nothing."""
    drop_to: DropTo | None = None

    def failure(self, status: int) -> str | None:
        """
        Return why the program never ran although a process ended with C{status}.

        Ask before the process is reaped.  None when the status is the program's own.
        """
        if self.become is None or self.drop_to is None or status <= 0:
            return None
        if not still_the_prefix(self.pid, self.program):
            return None
        return self.become.explain(self.drop_to, self.program, status)

    def undo(self) -> None:
        """Kill the process that was just started, and leave nothing of it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        _close(*self.outputs.values(), -1 if self.pidfd is None else self.pidfd)


@attrs.define
class Spawner:
    """Starts processes; C{use_pidfd} False is the way of systems that have none."""

    become: Become = attrs.field(factory=Become)
    use_pidfd: bool = attrs.field(factory=platform.pidfd_available)
    _null: int | None = None
    _encoded: tuple[Mapping[str, str], list[bytes]] | None = None

    def spawn(self, spec: LaunchSpec) -> Spawned:
        """
        Start C{spec} in a session of its own.

        Raises NotStarted when it cannot start, NoRoom when it may be tried again later.
        """
        if self._null is None:
            platform.prepare_to_spawn()
            self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            argv = platform.encode_argv(spec.argv)
        except ValueError as error:
            raise NotStarted(f"the command cannot be passed on: {error}") from None
        program = find_program(argv[0] if argv else b"", spec.env, spec.cwd)
        ours: dict[str, int] = {}
        theirs: dict[str, int] = {}
        reserved = -1
        try:
            reserved = self._open_pipes(spec, ours, theirs)
            with _given_limits(reserved) as adjust:
                pid = self._start(spec, argv, program, theirs)
                adjust(pid)
        except BaseException as error:
            _close(*ours.values())
            if isinstance(error, OSError):
                raise _translated(error, argv, program, spec) from None
            if isinstance(error, ValueError):
                raise NotStarted(f"cannot be passed to the system: {error}") from None
            raise
        finally:
            _close(*theirs.values(), reserved)
        pidfd = self._open_pidfd(pid)
        if spec.drop_to is None or self.become.setpriv is None:
            return Spawned(pid, ours, pidfd, program)
        return Spawned(pid, ours, pidfd, program, self.become, spec.drop_to)

    def close(self) -> None:
        """Give back what was kept open."""
        if self._null is not None:
            os.close(self._null)
            self._null = None

    def _open_pipes(self, spec: LaunchSpec, ours: dict[str, int], theirs: dict[str, int]) -> int:
        """Open the pipes, and a descriptor that keeps a place for the pidfd; return that."""
        for name, wanted in (("stdout", spec.capture_stdout), ("stderr", spec.capture_stderr)):
            if wanted:
                ours[name], theirs[name] = os.pipe()
                os.set_blocking(ours[name], False)
        reserved = os.dup(self._null or 0)
        limit = _soft_limit()
        if limit is not None and reserved >= limit - min(KEPT_FREE, limit // 8):
            os.close(reserved)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return reserved

    def _start(
        self, spec: LaunchSpec, argv: list[bytes], program: Program, theirs: Mapping[str, int]
    ) -> int:
        run = program.path
        if spec.drop_to is not None:
            check_script(program)
            self.become.check(spec.drop_to, program)
            if self.become.setpriv is None:
                return self._popen(spec, argv, run, theirs, self._identity(spec.drop_to))
            argv = [*self.become.prefix(spec.drop_to), program.path, *argv[1:]]
            run = argv[0]
        return self._popen(spec, argv, run, theirs, {})

    def _popen(
        self,
        spec: LaunchSpec,
        argv: list[bytes],
        program: bytes,
        theirs: Mapping[str, int],
        identity: dict[str, Any],
    ) -> int:
        if not identity:
            pid = forkexec.start(
                argv,
                program,
                self._block(spec.env),
                cwd=spec.cwd,
                umask=forkexec.INHERIT if spec.umask is None else spec.umask,
                stdin=forkexec.INHERIT if self._null is None else self._null,
                stdout=theirs.get("stdout", forkexec.INHERIT),
                stderr=theirs.get("stderr", forkexec.INHERIT),
            )
            if pid is not None:
                return pid
        # The signals that Python ignores are restored here, all others by prepare_to_spawn.
        process = subprocess.Popen(
            argv,
            executable=program,
            stdin=self._null,
            stdout=theirs.get("stdout"),
            stderr=theirs.get("stderr"),
            close_fds=False,
            cwd=spec.cwd,
            env=platform.encode_env(spec.env),
            umask=-1 if spec.umask is None else spec.umask,
            start_new_session=True,
            **identity,
        )
        # It is waited for by its pid; this keeps the module from doing so as well.
        process.returncode = 0
        return process.pid

    def _block(self, env: Mapping[str, str]) -> list[bytes]:
        """Return C{env} for the system; the last one is kept, as most jobs share the daemon's."""
        known = self._encoded
        if known is None or known[0] is not env:
            known = self._encoded = env, forkexec.block(platform.encode_env(env))
        return known[1]

    def _identity(self, drop: DropTo) -> dict[str, Any]:
        reason = self.become.refusal(drop)
        if reason is not None:
            raise NotStarted(reason)
        return {
            "user": drop.uid,
            "group": drop.gid,
            "extra_groups": list(self.become.groups(drop)),
        }

    def _open_pidfd(self, pid: int) -> int | None:
        if not self.use_pidfd:
            return None
        try:
            return os.pidfd_open(pid)
        except OSError as error:
            log.debug("no pidfd for process %d (%s): polling it", pid, error)
            return None


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _translated(error: OSError, argv: list[bytes], program: Program, spec: LaunchSpec) -> Exception:
    if error.errno in NO_ROOM:
        what = "process" if error.errno in (errno.EAGAIN, errno.ENOMEM) else "descriptor"
        return NoRoom(f"no {what} to spare: {os.strerror(error.errno or 0)}")
    if error.errno == errno.EPERM and spec.drop_to is not None:
        drop = spec.drop_to
        return NotStarted(f"cannot become uid {drop.uid}, gid {drop.gid}: {error.strerror}")
    return NotStarted(why_not(error, program, spec.cwd, argv, spec.env))


def _soft_limit() -> int | None:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


@contextlib.contextmanager
def _given_limits(newest: int) -> Iterator[Callable[[int], None]]:
    """
    Give the child the descriptor limit that this process was started with.

    Ours is lowered for the moment of the spawn, which the child inherits without a race, as long
    as no other thread could meet the low limit: C{newest} says how many descriptors are in use.
    Beyond that the child is given its limit right after the spawn.
    """
    given = platform.original_descriptor_limit()
    if given is None:
        yield _as_it_is
        return
    import resource

    raised = resource.getrlimit(resource.RLIMIT_NOFILE)
    if newest + 2 * KEPT_FREE < given.soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (given.soft, raised[1]))
        try:
            yield _as_it_is
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, raised)
        return

    def adjust(pid: int) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (given.soft, raised[1]))

    yield adjust


def _as_it_is(pid: int) -> None:
    """The child's limit is right already."""
