"""
Starts the real daemon of this checkout for one test, watches what it says, and leaves nothing.

A test that uses it is a C{twisted.trial.unittest.TestCase}; what takes time is a Deferred that a
line of output or the end of the process fires, or that fails after a bound with the log so far.
"""

from __future__ import annotations

import glob
import http.client
import os
import re
import secrets
import signal as signals
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure
from twisted.trial.unittest import SkipTest, TestCase

from tests.answers import Answer
from tests.system.proc import command_line

CHECKOUT = Path(__file__).resolve().parents[2]
MARK = "CRONSTABLE_TEST_TREE"
"""Environment variable by which a daemon's descendants are found, whoever adopted them."""

T = TypeVar("T")

Kind = Literal["cronstable", "twistd"]

COMMANDS: Mapping[Kind, Sequence[str]] = {
    "cronstable": ("-m", "cronstable"),
    "twistd": (
        "-c",
        "from twisted.scripts.twistd import run; run()",
        *("-n", "--pidfile=", "cronstable"),
    ),
}


def require_root() -> None:
    """Skip the test unless it runs as root."""
    if os.geteuid() != 0:
        raise SkipTest("needs root")


def free_port() -> int:
    """Return a TCP port of the loopback address that was free just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def faketime(when: str) -> dict[str, str]:
    """Return the environment under which a process starts at C{when}, in libfaketime's syntax."""
    found = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
    if not found:
        raise SkipTest("libfaketime is not installed")
    return {"LD_PRELOAD": found[0], "FAKETIME": when, "NO_FAKE_STAT": "1", "TZ": "UTC"}


def faketime_in_minute(second: float) -> dict[str, str]:
    """Return the environment under which processes live at C{second} of the minute from now."""
    return faketime(f"{second - time.time() % 60:+.3f}s")


END = r"INFO:cronstable:Job {job} exit code (-?\d+); .*; fail_reason: (.*)$"


@attrs.frozen
class End:
    """How a run ended: the exit code of its record, and why it failed, C{None} if it did not."""

    code: int
    reason: str

    @property
    def well(self) -> bool:
        """Whether the run succeeded."""
        return self.reason == "None"


@attrs.define(eq=False)
class _Waiter:
    """Somebody who waits until C{look} returns something."""

    look: Callable[[], Any]
    done: Deferred[Any]


class _Output(ProcessProtocol):
    """Splits the output into lines and tells the daemon object of each event."""

    def __init__(self, daemon: Daemon, drop: bytes) -> None:
        self._daemon = daemon
        self._drop = drop
        self._rest = {1: b"", 2: b""}

    def childDataReceived(self, childFD: int, data: bytes) -> None:  # noqa: N802, N803
        *lines, self._rest[childFD] = (self._rest[childFD] + data).split(b"\n")
        self._add(childFD, lines)

    def processEnded(self, reason: Failure) -> None:  # noqa: N802
        for number, rest in self._rest.items():
            if rest:
                self._add(number, [rest])
        ended: Any = reason.value
        status = ended.exitCode if ended.signal is None else -ended.signal
        self._daemon._ended(status)

    def _add(self, number: int, lines: Sequence[bytes]) -> None:
        target = self._daemon.stdout if number == 1 else self._daemon.stderr
        kept = [line for line in lines if not line.startswith(self._drop)]
        target.extend(line.decode("utf-8", "replace") for line in kept)
        if kept:
            self._daemon._changed()


def _is_ours(name: str) -> bool:
    """Return whether a variable is one that tests are told by, which no job should see."""
    return name.startswith("CRONSTABLE_")


class Daemon:
    """
    One real process with a configuration and a directory of its own.

    In C{config} C{@WORK@} stands for that directory and C{@PORT@} for C{port}.  C{config} None
    starts it without C{-c}.  C{as_pid1} runs it as process 1 of a PID namespace.  C{prefix} are the
    words of a command that executes the rest of its line, C{program} replaces what is run
    altogether.  Lines that start with C{drop} are not kept.  It and all that descends from it is
    killed when C{test} ends.
    """

    def __init__(
        self,
        test: TestCase,
        config: str | None = None,
        *,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        kind: Kind = "cronstable",
        as_pid1: bool = False,
        config_name: str = "config.yaml",
        directory: Path | None = None,
        program: Sequence[str] | None = None,
        prefix: Sequence[str] = (),
        drop: bytes = b"\n",
    ) -> None:
        self.directory = (directory or Path(test.mktemp())).resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.config_path = self.directory / config_name
        self.port = free_port()
        self.stdout: list[str] = []
        self.stderr: list[str] = []
        self.status: int | None = None
        self._waiters: list[_Waiter] = []
        self._mark = secrets.token_hex(8)
        self._as_pid1 = as_pid1
        if config is not None:
            self.write(config)
            args = ("-c", str(self.config_path), *args)
        argv = [*prefix, *(program or (sys.executable, *COMMANDS[kind])), *args]
        if as_pid1:
            argv = [*_new_pid_namespace(), *argv]
        self._environment = {
            **{name: os.environ[name] for name in os.environ if not _is_ours(name)},
            "PYTHONPATH": str(CHECKOUT),
            "PYTHONUNBUFFERED": "1",
            MARK: self._mark,
            **(env or {}),
        }
        self._process = self._spawn(argv, drop)
        test.addCleanup(self.kill)

    def write(self, config: str) -> None:
        """Replace the configuration; the daemon takes it at its next reload."""
        waiting = self.config_path.with_name(f".{self.config_path.name}.new")
        waiting.write_text(self.filled(config), encoding="utf-8")
        waiting.replace(self.config_path)

    def filled(self, config: str) -> str:
        """Return C{config} with this daemon's directory and port filled in."""
        return config.replace("@WORK@", str(self.directory)).replace("@PORT@", str(self.port))

    @property
    def pid(self) -> int:
        """The daemon's process id, as seen from here."""
        outer: int = self._process.pid
        if not self._as_pid1:
            return outer
        children = Path(f"/proc/{outer}/task/{outer}/children").read_text().split()
        return int(children[0])

    @property
    def log(self) -> str:
        """Everything on stderr so far."""
        return "\n".join(self.stderr)

    def ends(self, job: str) -> list[End]:
        """Return how the runs of C{job} have ended so far, as the log tells."""
        expression = re.compile(END.format(job=re.escape(job)))
        found = (expression.search(line) for line in self.stderr)
        return [End(int(match[1]), match[2]) for match in found if match is not None]

    def wait_for_end_of(self, job: str, timeout: float = 15.0, *, count: int = 1) -> Deferred[End]:
        """Fire with how the C{count}-th run of C{job} has ended, all that it printed read."""
        line = self.wait_for_log(END.format(job=re.escape(job)), timeout, count=count)
        line.addCallback(lambda match: Deferred.fromCoroutine(_read_once_more(match)))
        return line.addCallback(lambda match: End(int(match[1]), match[2]))

    def signal(self, number: int) -> None:
        """Send a signal to the daemon itself."""
        os.kill(self.pid, number)

    def wait_for_log(
        self, pattern: str, timeout: float = 15.0, *, since: int = 0, count: int = 1
    ) -> Deferred[re.Match[str]]:
        """
        Fire with the match of the C{count}-th stderr line that has C{pattern} in it.

        Lines before number C{since} do not count; C{len(daemon.stderr)} is now.
        """
        return self._line(self.stderr, pattern, timeout, since, count)

    def wait_for_output(
        self, pattern: str, timeout: float = 15.0, *, since: int = 0, count: int = 1
    ) -> Deferred[re.Match[str]]:
        """Fire with the match of a stdout line, counted as in L{wait_for_log}."""
        return self._line(self.stdout, pattern, timeout, since, count)

    def wait_for_end(self, timeout: float = 15.0) -> Deferred[int]:
        """Fire with the exit status, -N after signal N, once the process and its output ended."""
        return self._until("the process to end", lambda: self.status, timeout)

    def stop(self, timeout: float = 15.0, number: int = signals.SIGTERM) -> Deferred[int]:
        """Ask it to stop with a signal, and fire with its exit status."""
        if self.status is None:
            self.signal(number)
        return self.wait_for_end(timeout)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 15.0,
    ) -> Deferred[Answer]:
        """Make one HTTP request to C{port} and fire with the answer."""

        def ask() -> Answer:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
            try:
                connection.request(method, path, body, dict(headers or {}))
                answer = connection.getresponse()
                fields = {name.lower(): value for name, value in answer.getheaders()}
                return Answer(answer.status, fields, answer.read())
            finally:
                connection.close()

        return deferToThread(ask)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Deferred[Answer]:
        """GET C{path} from the daemon's C{port}."""
        return self.request("GET", path, headers=headers)

    def descendants(self) -> list[int]:
        """Return the living processes of this daemon's tree, itself among them."""
        mark = f"{MARK}={self._mark}".encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue  # It ended, or is another user's.
        return found

    def running(self, *argv: str) -> list[int]:
        """Return the living processes of this daemon's tree with exactly this command line."""
        return [pid for pid in self.descendants() if command_line(pid) == list(argv)]

    def is_daemon(self, pid: int) -> bool:
        """Return whether C{pid} runs cronstable's own program."""
        return command_line(pid)[:3] == [sys.executable, *COMMANDS["cronstable"]]

    def kill(self) -> Deferred[object]:
        """Kill the whole tree, and fire once the daemon's end has been seen."""
        for _ in range(100):
            tree = self.descendants()
            for pid in tree:
                _kill(pid)
            if not tree:
                break
        if self.status is not None:
            return succeed(None)
        try:
            self._process.signalProcess("KILL")
        except ProcessExitedAlready:
            pass
        return self.wait_for_end()

    def _spawn(self, argv: Sequence[str], drop: bytes) -> Any:
        from twisted.internet import reactor

        spawner: Any = reactor
        return spawner.spawnProcess(
            _Output(self, drop),
            argv[0],
            list(argv),
            env=self._environment,
            path=str(self.directory),
        )

    def _line(
        self, lines: list[str], pattern: str, timeout: float, since: int, count: int
    ) -> Deferred[re.Match[str]]:
        expression = re.compile(pattern)

        def look() -> re.Match[str] | None:
            found = [match for line in lines[since:] if (match := expression.search(line))]
            return found[count - 1] if len(found) >= count else None

        return self._until(f"line {count} like {pattern!r}", look, timeout)

    def _until(self, what: str, look: Callable[[], Any], timeout: float) -> Deferred[Any]:
        from twisted.internet import reactor

        waiter = _Waiter(look, Deferred())
        self._waiters.append(waiter)

        def too_late(result: object, timeout: float) -> object:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            raise AssertionError(f"waited {timeout} s for {what}; {self._story()}")

        clock: Any = reactor
        waiter.done.addTimeout(timeout, clock, too_late)
        self._changed()
        return waiter.done

    def _changed(self) -> None:
        for waiter in list(self._waiters):
            found = waiter.look()
            if found is not None and waiter in self._waiters:
                self._waiters.remove(waiter)
                waiter.done.callback(found)

    def _ended(self, status: int) -> None:
        self.status = status
        self._changed()
        for waiter in list(self._waiters):
            self._waiters.remove(waiter)
            waiter.done.errback(AssertionError(f"nothing more will come; {self._story()}"))

    def _story(self) -> str:
        state = "it runs" if self.status is None else f"it ended with {self.status}"
        return f"{state}; stdout:\n" + "\n".join(
            [*self.stdout[-40:], "stderr:", *self.stderr[-80:]]
        )


async def _read_once_more(result: T) -> T:
    from twisted.internet import reactor

    clock: Any = reactor
    # What was written to stdout before a line of the log may be read after it; the second of two
    # turns comes after whatever was there to read during the first.
    for _ in range(2):
        await deferLater(clock, 0)
    return result


def _new_pid_namespace() -> list[str]:
    if not sys.platform.startswith("linux"):
        raise SkipTest("PID namespaces are Linux only")
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    prefix = ["unshare", *user, "--pid", "--fork", "--mount-proc", "--kill-child", "--"]
    try:
        subprocess.run([*prefix, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SkipTest(f"no PID namespace can be made here: {error}") from error
    return prefix


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signals.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
