"""
The system's quickest start of a program: the call at the heart of subprocess, without Popen.

What Popen does around that call costs more CPU than the call itself, which a burst of a thousand
jobs feels.  The call is not a public one: it is made on the releases of Python whose signature is
known, and on all others C{start} starts nothing, so that its caller goes by Popen.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

KNOWN = ((3, 11), (3, 12), (3, 13))
"""Releases of Python on which the arguments of the call are as they are given here."""

_fork_exec: Any = None
if sys.version_info[:2] in KNOWN:
    from _posixsubprocess import fork_exec

    _fork_exec = fork_exec

INHERIT = -1
"""In place of a descriptor or a umask: what this process has."""


def block(env: Mapping[Any, Any]) -> list[bytes]:
    """Return an environment as the system takes it; raises ValueError for a name with C{=}."""
    entries = []
    for name, value in env.items():
        encoded = os.fsencode(name)
        if b"=" in encoded:
            raise ValueError("illegal environment variable name")
        entries.append(encoded + b"=" + os.fsencode(value))
    return entries


def start(
    argv: Sequence[bytes],
    program: bytes,
    env: list[bytes],
    *,
    cwd: str | None,
    umask: int,
    stdin: int,
    stdout: int,
    stderr: int,
) -> int | None:
    """
    Start C{program} in a session of its own; return its pid.

    None where it could not be started, or not by this way: Popen tells why, or does it.
    Descriptors above 2 are left to the child only where they are inheritable.
    """
    if _fork_exec is None:
        return None
    told, telling = os.pipe()
    try:
        try:
            pid: int = _fork_exec(
                argv,
                [program],
                False,  # close_fds
                (),  # kept descriptors
                cwd,
                env,
                stdin,
                -1,
                -1,
                stdout,
                -1,
                stderr,
                told,
                telling,
                True,  # Python's ignored signals back to their defaults
                True,  # a session of its own
                -1,  # no other process group
                None,
                None,
                None,  # nobody else's identity
                umask,
                None,  # nothing to call in the child
                True,  # by vfork
            )
        finally:
            os.close(telling)
        failed = os.read(told, 1)
    finally:
        os.close(told)
    if not failed:
        return pid
    os.waitpid(pid, 0)
    return None
