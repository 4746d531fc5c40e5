"""
Everything that differs between operating systems, and what a process may learn of its host.

Linux is where it is proven; the other ways are written for macOS and other POSIX systems.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

DEFAULT_SHELL = "/bin/sh"
"""The shell of a command given as text when the job names none."""

DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
"""Where a program is looked for when the job's environment has no PATH."""

BOOT_TIME_TOLERANCE = 60.0
"""Seconds by which two readings of one boot's time may differ."""


def encode_argv(argv: Sequence[str]) -> list[bytes]:
    """
    Return the arguments as UTF-8 bytes, whatever the locale says.

    Bytes that Python could not decode come back as they were.  Raises ValueError for text that
    has no such form or holds a NUL.
    """
    encoded = [argument.encode("utf-8", "surrogateescape") for argument in argv]
    for position, argument in enumerate(encoded):
        if b"\0" in argument:
            raise ValueError(f"argument {position} of the command holds a NUL character")
    return encoded


def encode_env(env: Mapping[str, str]) -> Mapping[str, str] | Mapping[bytes, bytes]:
    """
    Return an environment that the system takes, values as UTF-8 where the locale has no form.

    Raises ValueError for text that has no form in either.
    """
    if sys.getfilesystemencoding() == "utf-8":
        return env
    return {_encode(name): _encode(value) for name, value in env.items()}


def _encode(text: str) -> bytes:
    try:
        return os.fsencode(text)
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape")


def is_root() -> bool:
    """Return whether this process may become other users."""
    return os.geteuid() == 0


def is_pid1() -> bool:
    """Return whether orphans of this process's namespace become its children."""
    return os.getpid() == 1


@attrs.frozen
class BootIdentity:
    """Which boot of the host this is; both None where the host tells neither."""

    boot_id: str | None = None
    """The kernel's random id of this boot: exact, Linux only."""
    boot_time: float | None = None
    """When the host booted, epoch seconds, good to about a minute."""

    @property
    def known(self) -> bool:
        """Whether this boot can be told from others at all."""
        return self.boot_id is not None or self.boot_time is not None

    def same_boot(self, boot_id: str | None, boot_time: float | None) -> bool:
        """Return whether a remembered identity is of this boot; an unknown one never is."""
        if self.boot_id is not None and boot_id is not None:
            return self.boot_id == boot_id
        if self.boot_time is not None and boot_time is not None:
            return abs(self.boot_time - boot_time) <= BOOT_TIME_TOLERANCE
        return False


def boot_identity(proc: Path = Path("/proc")) -> BootIdentity:
    """Return what the host tells of its boot; the time comes from uptime, else the kernel."""
    boot_id = None
    with contextlib.suppress(OSError, UnicodeDecodeError):
        boot_id = (proc / "sys/kernel/random/boot_id").read_text().strip() or None
    try:
        boot_time = time.time() - float((proc / "uptime").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return BootIdentity(boot_id, _kernel_boot_time())
    return BootIdentity(boot_id, boot_time)


def container_start(host: BootIdentity, proc: Path = Path("/proc")) -> BootIdentity:
    """
    Return which start of this container this is: that of process 1 of its PID namespace.

    Outside of containers that is the boot of the host.  Unknown where process 1 cannot be seen.
    """
    try:
        started = _stat_fields(1, proc)[_STARTED].decode("ascii")
    except (OSError, ValueError, IndexError):
        return BootIdentity()
    return BootIdentity(f"{host.boot_id or ''}/{started}")


def seconds_since_boot() -> float:
    """Return seconds since boot, suspended ones too; monotonic ones where that is not known."""
    clock_id = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock_id is None else time.clock_gettime(clock_id)


def _kernel_boot_time() -> float | None:
    try:
        import psutil

        return float(psutil.boot_time())
    except Exception:  # psutil raises different things on different systems
        return None


def process_start_time(pid: int, proc: Path = Path("/proc")) -> float | None:
    """
    Return when process C{pid} started, epoch seconds, or None if there is none, or none alive.

    With the pid it names a process for good: a pid that was given out again has a later start.
    """
    if sys.platform.startswith("linux"):
        try:
            fields = _stat_fields(pid, proc)
            if fields[0] in (b"Z", b"X"):
                return None  # It has ended; nobody has asked for its status yet.
            return _linux_boot_time(proc) + int(fields[_STARTED]) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError):
            return None
    try:
        import psutil

        return float(psutil.Process(pid).create_time())
    except Exception:  # psutil raises different things on different systems
        return None


def children_of(pid: int, proc: Path = Path("/proc")) -> list[int]:
    """Return the children of process C{pid}, none where the system keeps no list of them."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(proc / str(pid) / "task"):
            with contextlib.suppress(OSError):
                text = (proc / str(pid) / "task" / task / "children").read_text()
                found.extend(map(int, text.split()))
    return found


_STARTED = 19
"""Where, behind its name, the stat of a process has its start, in ticks since the boot."""


def _stat_fields(pid: int, proc: Path) -> list[bytes]:
    return (proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()


def _linux_boot_time(proc: Path) -> float:
    for line in (proc / "stat").read_text().splitlines():
        if line.startswith("btime "):
            return float(line.split()[1])
    raise ValueError("no btime in /proc/stat")


def widen_pipe(descriptor: int, size: int) -> None:
    """Let a pipe hold C{size} bytes, where the system has a call for that and allows it."""
    import fcntl

    with contextlib.suppress(AttributeError, OSError):
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, size)


def process_exists(pid: int) -> bool:
    """Return whether any process, ours to signal or not, has this pid."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def process_name(pid: int) -> str | None:
    """Return the short name of process C{pid} (also of one not yet reaped), None if unknown."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").rstrip("\n")
    except OSError:
        return None


_pidfd: list[bool] = []


def pidfd_available() -> bool:
    """Return whether the end of a process can be waited for with a descriptor."""
    if not _pidfd:
        try:
            os.close(os.pidfd_open(os.getpid()))
            _pidfd.append(True)
        except (AttributeError, OSError):
            _pidfd.append(False)
    return _pidfd[0]


def take_own_descriptors() -> bool:
    """
    Give the calling thread a table of descriptors of its own, of which it shares 0 to 2 only.

    Returns False, and parts nothing, where the system cannot (before Linux 5.9, macOS).  The
    process's descriptors mean nothing to the thread after that, nor its own to the process and
    to what that starts.  No signal is handled on it any more.
    """
    if sys.platform != "linux":
        return False
    import ctypes

    # A handler tells the main thread through a descriptor, which this one will not have.
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())

    try:
        syscall = ctypes.CDLL(None, use_errno=True).syscall
    except (OSError, AttributeError):
        return False
    first, last = ctypes.c_long(3), ctypes.c_long(0xFFFFFFFF)
    result: int = syscall(_CLOSE_RANGE, first, last, ctypes.c_long(_CLOSE_RANGE_UNSHARE))
    return result == 0


_CLOSE_RANGE = 436
"""The number of the system call on all machines that Python runs on today but Alpha."""

_CLOSE_RANGE_UNSHARE = 2


@attrs.frozen
class DescriptorLimit:
    """What the descriptor limit of this process was before it was raised."""

    soft: int
    hard: int


_lowered: list[DescriptorLimit] = []


def raise_descriptor_limit() -> DescriptorLimit | None:
    """
    Lift the soft limit on open descriptors to the hard one.

    Returns what it was before if anything changed, now or at an earlier call; executors give
    that to the jobs, since old programs choke on a large limit.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard or _lowered:
        return original_descriptor_limit()
    # macOS says "unlimited" but takes no more than OPEN_MAX.
    for wanted in (hard, 1_048_576, 10_240):
        if hard != resource.RLIM_INFINITY and wanted > hard:
            continue
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            continue
        _lowered.append(DescriptorLimit(soft, hard))
        break
    return original_descriptor_limit()


def original_descriptor_limit() -> DescriptorLimit | None:
    """Return the descriptor limit from before it was raised, None if it never was."""
    return _lowered[0] if _lowered else None


RESETTABLE_SIGNALS = frozenset(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}
"""Signals whose handling a process can change."""


def prepare_to_spawn() -> None:
    """
    Make this process one that can start others cleanly; harmless when repeated.

    Descriptors 0 to 2 are opened if they were closed, others that were inherited are kept from
    children, no signal stays blocked, and what was ignored at the start (C{nohup}) stays without
    effect here but is at its default in children.  Call it from the main thread.
    """
    open_standard_descriptors()
    for descriptor in open_descriptors():
        if descriptor > 2:
            with contextlib.suppress(OSError):
                os.set_inheritable(descriptor, False)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in RESETTABLE_SIGNALS - {signal.SIGPIPE, getattr(signal, "SIGXFSZ", None)}:
        if signal.getsignal(number) is signal.SIG_IGN:
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, _without_effect)


def _without_effect(number: int, frame: object) -> None:
    """Do nothing: unlike an ignored signal, a handled one is at its default after an exec."""


def open_standard_descriptors() -> None:
    """
    Open those of the descriptors 0 to 2 that are closed, for this process and its children.

    Call it before anything else is opened, which would be given one of these numbers.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDONLY if descriptor == 0 else os.O_WRONLY)
            if opened == descriptor:
                os.set_inheritable(descriptor, True)
            else:
                os.dup2(opened, descriptor)
                os.close(opened)


def open_descriptors() -> list[int]:
    """Return the numbers of this process's open descriptors, or of as many as can be told."""
    for directory in ("/proc/self/fd", "/dev/fd"):
        with contextlib.suppress(OSError):
            return [int(name) for name in os.listdir(directory) if name.isdigit()]
    found = []
    for descriptor in range(1024):
        with contextlib.suppress(OSError):
            os.fstat(descriptor)
            found.append(descriptor)
    return found
