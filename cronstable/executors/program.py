"""
Finding the program of a launch, and saying why one could not be started.

Reasons name paths, users and sizes, never values of variables.

docs/executors.md, "When a process cannot be started", lists the reasons.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Mapping, Sequence

import attrs

from cronstable.platform import DEFAULT_PATH

LONGEST_STRING = 131_072
"""Bytes that Linux takes for one argument or variable, its closing NUL included."""


class NotStarted(Exception):
    """The launch can never succeed as it is; the text says why, for the operator."""


class NoRoom(Exception):
    """The system has no descriptor or process to spare just now; the text says which."""


@attrs.frozen
class Program:
    """What to run: C{path} for the system (as the child sees it), C{checked} as we see it."""

    path: bytes
    checked: bytes


def find_program(name: bytes, env: Mapping[str, str], cwd: str | None) -> Program:
    """
    Look C{name} up as a shell would, on the PATH of C{env} and from C{cwd}.

    A name with a slash is taken as it is.  Raises NotStarted if PATH has no such program.
    """
    if not name:
        raise NotStarted("the command is empty")
    base = os.fsencode(cwd) if cwd else b"."
    if b"/" in name:
        return Program(name, os.path.join(base, name))
    path = os.fsencode(env.get("PATH", DEFAULT_PATH))
    refused: bytes | None = None
    for directory in path.split(b":"):
        candidate = os.path.join(directory or b".", name)
        checked = os.path.join(base, candidate)
        if not os.path.isfile(checked):
            continue
        if os.access(checked, os.X_OK):
            return Program(candidate, checked)
        refused = refused or checked
    if refused is not None:
        raise NotStarted(f"{show(refused)} is not executable")
    raise NotStarted(f"program not found: {show(name)} is in no directory of PATH")


def why_not(
    error: OSError, program: Program, cwd: str | None, argv: Sequence[bytes], env: Mapping[str, str]
) -> str:
    """Return the reason of an C{error} that starting C{program} met, as precise as can be."""
    code = error.errno
    if code == errno.E2BIG:
        return too_large(argv, env)
    if cwd is not None and not os.path.isdir(cwd):
        what = "is not a directory" if os.path.exists(cwd) else "does not exist"
        return f"working directory {cwd} {what}"
    if cwd is not None and error.filename in (cwd, os.fsencode(cwd)):
        return f"working directory {cwd}: {os.strerror(code or 0)}"
    path = show(program.checked)
    if os.path.isdir(program.checked):
        return f"{path} is a directory, not a program"
    if code in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG):
        if not os.path.exists(program.checked):
            return f"program not found: {path}"
        return _bad_interpreter(program.checked) or f"{path}: {os.strerror(code)}"
    if code == errno.EACCES:
        if not _any_execute_bit(program.checked):
            return f"{path} is not executable"
        if _is_script(program.checked):
            return _bad_interpreter(program.checked) or f"permission denied: {path}"
        return f"permission denied: {path}"
    if code == errno.ENOEXEC:
        return f"{path} is not a program that this system runs (a script needs a #! line)"
    return f"{path}: {os.strerror(code or 0)}"


def too_large(argv: Sequence[bytes], env: Mapping[str, str]) -> str:
    """Return which variables or arguments are too large to start anything with."""
    longest = max(range(len(argv)), key=lambda position: len(argv[position]))
    if len(argv[longest]) >= LONGEST_STRING:
        return (
            f"the command is too long: argument {longest} has {len(argv[longest])} bytes, "
            f"the system takes {LONGEST_STRING - 1}"
        )
    sizes = sorted((-_size(name, value), name) for name, value in env.items())
    total = -sum(size for size, _ in sizes)
    arguments = sum(len(argument) + 1 for argument in argv)
    if arguments > total:
        return f"the command is too long: {arguments} bytes in {len(argv)} arguments"
    largest = ", ".join(f"{name[:64]} ({-size} bytes)" for size, name in sizes[:3])
    return f"environment too large: {total} bytes in {len(sizes)} variables; the largest: {largest}"


def _size(name: str, value: str) -> int:
    return len(os.fsencode(name)) + len(os.fsencode(value)) + 2


def check_script(program: Program) -> None:
    """
    Raise NotStarted for what a wrapper would not report as the plain system call does.

    A text without #! would be run by a shell; a missing file or interpreter would only show as
    the wrapper's own exit status.
    """
    try:
        descriptor = os.open(program.checked, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise NotStarted(f"program not found: {show(program.checked)}") from None
    except OSError:
        # Not readable for us does not mean not executable for the other user.
        return
    try:
        mode = os.fstat(descriptor).st_mode
        head = os.read(descriptor, 256) if stat.S_ISREG(mode) else b""
    finally:
        os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise NotStarted(f"{show(program.checked)} is a directory, not a program")
    if not stat.S_ISREG(mode) or not mode & 0o111:
        raise NotStarted(f"{show(program.checked)} is not executable")
    if head.startswith(b"#!"):
        reason = _bad_interpreter(program.checked)
        if reason is not None:
            raise NotStarted(reason)
    elif b"\0" not in head:
        raise NotStarted(
            f"{show(program.checked)} is not a program that this system runs "
            "(a script needs a #! line)"
        )


def _bad_interpreter(path: bytes) -> str | None:
    """Return what is wrong with the interpreter that a script names, None if nothing is."""
    try:
        with open(path, "rb") as file:
            line = file.readline(512)
    except OSError:
        return None
    if not line.startswith(b"#!"):
        return f"{show(path)}: its loader does not exist on this system"
    # The kernel cuts at blanks and newlines only: a carriage return is part of the name.
    words = line[2:].rstrip(b"\n").strip(b" \t").replace(b"\t", b" ").split(b" ")
    interpreter = words[0]
    if not interpreter:
        return f"{show(path)}: its #! line names no interpreter"
    if os.path.exists(interpreter):
        if _any_execute_bit(interpreter):
            return None
        return f"{show(path)}: its interpreter {show(interpreter)} is not executable"
    hint = ""
    if interpreter.endswith(b"\r"):
        hint = " (the file has Windows line ends)"
    return f"{show(path)}: its interpreter {show(interpreter)} does not exist{hint}"


def _is_script(path: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def _any_execute_bit(path: bytes) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return True
    return stat.S_ISREG(mode) and bool(mode & 0o111)


def blocked_for(path: bytes, uid: int, gids: Iterable[int]) -> str | None:
    """
    Return the first part of C{path} that mode bits keep this user from entering or running.

    None when they do not, or when an access list or a file that cannot be looked at may decide.
    """
    if uid == 0:
        return None
    groups = frozenset(gids)
    parts = os.path.abspath(path).split(b"/")
    for end in range(1, len(parts) + 1):
        part = b"/".join(parts[:end]) or b"/"
        try:
            info = os.stat(part)
        except OSError:
            return None
        shift = 6 if info.st_uid == uid else 3 if info.st_gid in groups else 0
        if not info.st_mode >> shift & 1 and not _has_access_list(part):
            what = "is not executable" if end == len(parts) else "cannot be entered"
            return f"{show(part)} {what}"
    return None


def _has_access_list(path: bytes) -> bool:
    try:
        return bool(os.getxattr(path, "system.posix_acl_access"))
    except (OSError, AttributeError):
        return False


def show(path: bytes) -> str:
    """Return a path as text for people, odd bytes escaped."""
    text = os.fsdecode(path)
    return text if text.isprintable() else repr(text)
