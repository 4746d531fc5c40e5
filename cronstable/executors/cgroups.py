"""
Resource caps by Linux cgroups (version 2): a group per capped run, below the daemon's own.

docs/executors.md, "Resource caps", tells what the host has to provide.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import logging
import os
import signal
from pathlib import Path

import attrs

from cronstable import platform
from cronstable.executors.interfaces import Caps, CapsReport

log = logging.getLogger("cronstable")

MECHANISM = "cgroup v2"
LEAF = "cronstable-daemon"
"""Where the daemon moves itself: a group with members of its own cannot cap its children."""

PERIOD = 100_000
"""Microseconds over which a share of the processors is counted."""

CONTROLLERS = {"cpu": "cpu", "memory": "memory", "processes": "pids"}
"""The kernel's name of what caps each resource."""

HINT = (
    "run the daemon in a cgroup v2 group of its own that it may change: "
    "with systemd, Delegate=yes in its unit; in a container, a writable /sys/fs/cgroup"
)


@attrs.frozen
class CapsSupport:
    """Whether this host lets the daemon cap runs, for C{GET /node}."""

    available: bool
    mechanism: str | None = None
    resources: tuple[str, ...] = ()
    reason: str | None = None
    hint: str | None = None


class Refused(Exception):
    """Caps that are required cannot be applied; the text says why."""


class Cage:
    """The caps of one run; C{path} None means that none could be applied."""

    def __init__(self, house: Cgroups, path: Path | None, report: CapsReport) -> None:
        self._house = house
        self._path = path
        self._report = report
        self._final = False

    @property
    def reason(self) -> str | None:
        """Why not everything is capped, None if it is."""
        return self._report.reason

    def enclose(self, pid: int) -> None:
        """Move a process that has just started, and what it may have forked, into the group."""
        if self._path is None:
            return
        try:
            _write(self._path / "cgroup.procs", str(pid))
        except OSError as error:
            self._report = attrs.evolve(
                self._report, enforced=False, reason=f"{self._path}: {error.strerror}"
            )
            return
        for child in platform.children_of(pid):
            with contextlib.suppress(OSError):
                _write(self._path / "cgroup.procs", str(child))

    def kill(self) -> None:
        """Kill every process in the group, those too that left the run's session."""
        if self._path is None:
            return
        try:
            _write(self._path / "cgroup.kill", "1")
        except OSError:
            for pid in _members(self._path):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)

    def report(self) -> CapsReport:
        """Return what the caps did; the group is removed once it is empty."""
        if self._path is not None and not self._final:
            self._final = True
            self._report = _counted(self._path, self._report)
            self._house.leave(self._path)
        return self._report


class Cgroups:
    """The daemon's corner of the cgroup tree, prepared at the first capped run."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._numbers = itertools.count(1)
        self._prepared: tuple[Path, frozenset[str]] | None = None
        self._refusal: str | None = None
        self._left: list[Path] = []

    def support(self) -> CapsSupport:
        """Return what could be capped here, without changing anything."""
        try:
            base = self._prepared[0] if self._prepared is not None else self._own_group()
            usable = self._usable(base)
            if self._refusal is not None:
                raise Refused(self._refusal)
            if not os.access(base, os.W_OK):
                raise Refused(f"{base} is not writable")
        except Refused as refused:
            return CapsSupport(False, reason=str(refused), hint=HINT)
        return CapsSupport(True, MECHANISM, usable)

    def cage(self, caps: Caps) -> Cage:
        """
        Return a group with these caps, or one that says why they are not in force.

        Raises Refused if they are required and one cannot be applied.
        """
        wanted = tuple(name for name in CONTROLLERS if getattr(caps, name) is not None)
        try:
            path = self._make_group(caps, wanted)
        except Refused as refused:
            if caps.required:
                raise
            return Cage(self, None, CapsReport(False, None, wanted, str(refused)))
        return Cage(self, path, CapsReport(True, MECHANISM))

    def _make_group(self, caps: Caps, wanted: tuple[str, ...]) -> Path:
        base, enabled = self._prepare()
        missing = [name for name in wanted if CONTROLLERS[name] not in enabled]
        if missing:
            raise Refused(f"the host has no cgroup v2 controller for {', '.join(missing)}")
        self._sweep()
        path = base / f"run-{os.getpid()}-{next(self._numbers)}"
        try:
            path.mkdir(exist_ok=True)
            for file, value in _settings(caps):
                _write(path / file, value)
        except OSError as error:
            self.leave(path)
            raise Refused(f"{error.filename or path}: {error.strerror}") from None
        with contextlib.suppress(OSError):
            if caps.memory is not None:
                _write(path / "memory.oom.group", "1")
                _write(path / "memory.swap.max", "0")
        return path

    def leave(self, path: Path) -> None:
        """Remove a group now, or later if processes of the run have outlived it."""
        try:
            path.rmdir()
        except FileNotFoundError:
            pass
        except OSError:
            self._left.append(path)

    def _sweep(self) -> None:
        left, self._left = self._left, []
        for path in left:
            self.leave(path)

    def _prepare(self) -> tuple[Path, frozenset[str]]:
        if self._prepared is None:
            if self._refusal is not None:
                raise Refused(self._refusal)
            try:
                base = self._own_group()
                usable = self._usable(base)
                enabled = frozenset(CONTROLLERS[name] for name in usable)
                self._enable(base, enabled)
            except Refused as refused:
                self._refusal = str(refused)
                raise
            self._prepared = base, enabled
        return self._prepared

    def _own_group(self) -> Path:
        """Return the directory of this process's own group."""
        try:
            groups = (self._proc / "self/cgroup").read_text().splitlines()
            mounts = (self._proc / "self/mountinfo").read_text().splitlines()
        except OSError:
            raise Refused("this system has no cgroups") from None
        own = next((line[3:] for line in groups if line.startswith("0::")), None)
        if own is None:
            raise Refused("this system has no cgroup v2 tree")
        for mount in mounts:
            before, _, after = mount.partition(" - ")
            if after.split(" ", 1)[0] == "cgroup2":
                root, point = before.split()[3:5]
                if own == root or own.startswith(root.rstrip("/") + "/"):
                    return Path(point) / own[len(root.rstrip("/")) :].lstrip("/")
        raise Refused("the cgroup v2 tree of this process is not mounted here")

    def _usable(self, base: Path) -> tuple[str, ...]:
        try:
            present = (base / "cgroup.controllers").read_text().split()
        except OSError as error:
            raise Refused(f"{base}: {error.strerror}") from None
        usable = tuple(name for name, kernel in CONTROLLERS.items() if kernel in present)
        if not usable:
            raise Refused(f"no cgroup v2 controller for cpu, memory or processes in {base}")
        return usable

    def _enable(self, base: Path, controllers: frozenset[str]) -> None:
        """Let groups below C{base} be capped, moving this process out of the way if need be."""
        file = base / "cgroup.subtree_control"
        try:
            if controllers <= set(file.read_text().split()):
                return
            request = " ".join(f"+{name}" for name in sorted(controllers))
            try:
                _write(file, request)
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
                self._move_down(base)
                _write(file, request)
        except OSError as error:
            raise Refused(f"{error.filename or file}: {error.strerror}") from None

    def _move_down(self, base: Path) -> None:
        members = _members(base)
        foreign = [pid for pid in members if not self._is_ours(pid)]
        if foreign:
            named = ", ".join(map(str, foreign[:4]))
            raise Refused(f"{base} has processes that are not the daemon's (pid {named})")
        leaf = base / LEAF
        leaf.mkdir(exist_ok=True)
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                _write(leaf / "cgroup.procs", str(pid))
        log.debug("moved to %s, to be able to cap runs", leaf)

    def _is_ours(self, pid: int) -> bool:
        """Whether a process is this one or descends from it."""
        for _ in range(1000):
            if pid == os.getpid():
                return True
            try:
                stat = (self._proc / str(pid) / "stat").read_bytes()
                pid = int(stat.rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                return False
            if pid <= 1:
                return os.getpid() == pid
        return False


def _settings(caps: Caps) -> list[tuple[str, str]]:
    settings = []
    if caps.cpu is not None:
        settings.append(("cpu.max", f"{max(1000, round(caps.cpu * PERIOD))} {PERIOD}"))
    if caps.memory is not None:
        settings.append(("memory.max", str(caps.memory)))
    if caps.processes is not None:
        settings.append(("pids.max", str(caps.processes)))
    return settings


def _counted(path: Path, report: CapsReport) -> CapsReport:
    memory = _table(path / "memory.events")
    throttled = _table(path / "cpu.stat").get("throttled_usec")
    peak = None
    with contextlib.suppress(OSError, ValueError):
        peak = int((path / "memory.peak").read_text())
    return attrs.evolve(
        report,
        memory_exceeded=memory.get("oom_kill", 0) > 0,
        process_limit_hits=_table(path / "pids.events").get("max", 0),
        peak_memory=peak,
        cpu_throttled=None if throttled is None else throttled / 1e6,
    )


def _table(file: Path) -> dict[str, int]:
    table = {}
    with contextlib.suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            name, value = line.split()
            table[name] = int(value)
    return table


def _members(path: Path) -> list[int]:
    try:
        return [int(pid) for pid in (path / "cgroup.procs").read_text().split()]
    except (OSError, ValueError):
        return []


def _write(file: Path, text: str) -> None:
    """Write to a file of the kernel's in one go, never creating or truncating anything."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    except OSError as error:
        error.filename = str(file)
        raise
    finally:
        os.close(descriptor)
