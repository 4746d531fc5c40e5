"""The programs that are measured, and a running one."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import stamps

PEER = "cronstable==1.2.72"
NEVER = "0 0 1 1 *"
EACH_SECOND = "* * * * * * *"

Job = Mapping[str, Any]


@dataclass(frozen=True)
class Target:
    """A program: the command of its daemon, which a configuration follows, and its tool."""

    name: str
    daemon: tuple[str, ...]
    tool: str


def ours() -> Target:
    """Return what is installed beside the Python that runs this."""
    place = Path(sys.executable).parent
    daemon = (str(place / "twistd"), "-n", "--pidfile=", "cronstable", "-c")
    return Target("ours", daemon, str(place / "cronstable"))


def peer(venv: Path) -> Target:
    """Return the program of the peer, installed in C{venv} if that is not there yet."""
    if not (venv / "bin" / "cronstable").exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(venv / "bin" / "pip"), "install", "-q", PEER], check=True)
    tool = str(venv / "bin" / "cronstable")
    return Target("peer", (tool, "-c"), tool)


class Scratch:
    """A directory for the run, with the program that stamps its start."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="bench-"))
        self.path.chmod(0o755)
        self.stamp = self.path / "stamp"
        source = self.path / "stamp.c"
        source.write_text(stamps.SOURCE)
        command = ["cc", "-O2", "-static", "-o", str(self.stamp), str(source)]
        subprocess.run(command, check=True)

    def new_store(self) -> Path:
        """Return where a store may be that is not there yet."""
        return Path(tempfile.mkdtemp(dir=self.path)) / "store"

    def remove(self) -> None:
        """Leave nothing."""
        shutil.rmtree(self.path, ignore_errors=True)


def environment() -> dict[str, str]:
    """Return ours without what would change how a program in Python runs."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def idle_jobs(count: int) -> list[Job]:
    """Return jobs that are not due in the time of a measure, each with a schedule of its own."""
    return [
        {
            "name": f"idle{i:05d}",
            "command": f"/bin/true {i}",
            "schedule": f"{i % 60} {i // 60 % 24} 1 1 *",
        }
        for i in range(count)
    ]


def yaml(jobs: Iterable[Job], port: int, extra: str = "") -> str:
    """Return a configuration in the plainest YAML, which every peer reads."""
    lines = ["web:", "  listen:", f"    - http://127.0.0.1:{port}", *extra.splitlines(), "jobs:"]
    for job in jobs:
        mark = "- "
        for key, value in job.items():
            lines.append(f"  {mark}{key}: {json.dumps(value)}")
            mark = "  "
    return "\n".join(lines) + "\n"


class Daemon:
    """One daemon on a configuration of its own, from its start to its end."""

    def __init__(
        self,
        target: Target,
        scratch: Scratch,
        jobs: Iterable[Job],
        *,
        quiet: bool = False,
        store: Path | None = None,
    ) -> None:
        """
        C{quiet} gives it the null device for its own output, so that no disk is measured; C{store}
        is where it keeps its state, nowhere by default.
        """
        self._target = target
        self._extra = "" if store is None else f"state:\n  path: {store}"
        self.place = Path(tempfile.mkdtemp(dir=scratch.path))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._log = Path(os.devnull) if quiet else self.place / "log"
        self.configure(jobs)
        self._process: subprocess.Popen[bytes] | None = None
        self.ready = 0.0
        """Seconds from the start of the process to its first HTTP answer."""

    def configure(self, jobs: Iterable[Job]) -> None:
        """Write a configuration; a running daemon does not read it by that alone."""
        self._config = self.place / "config.yaml"
        self._config.write_text(yaml(jobs, self.port, self._extra))

    def __enter__(self) -> Daemon:
        with open(self._log, "wb") as log:
            begun = time.perf_counter()
            self._process = subprocess.Popen(
                [*self._target.daemon, str(self._config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.place,
                env=environment(),
            )
        try:
            self._wait_for_answer(begun + 120)
        except BaseException:
            self.stop()
            raise
        self.ready = time.perf_counter() - begun
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The process."""
        assert self._process is not None
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> None:
        """End the daemon, by force if it does not go within 20 seconds."""
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.place, ignore_errors=True)

    def connect(self) -> http.client.HTTPConnection:
        """Return a connection that is kept between requests."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def get(
        self,
        path: str,
        connection: http.client.HTTPConnection | None = None,
        headers: Mapping[str, str] | None = None,
        method: str = "GET",
    ) -> tuple[float, int, Mapping[str, str]]:
        """Return seconds, status and headers of one request, whose body is read to its end."""
        used = connection or self.connect()
        begun = time.perf_counter()
        used.request(method, path, headers=dict(headers or {}))
        answer = used.getresponse()
        answer.read()
        took = time.perf_counter() - begun
        if connection is None:
            used.close()
        return took, answer.status, {k.lower(): v for k, v in answer.getheaders()}

    def json(self, path: str) -> Any:
        """Return what a page says."""
        connection = self.connect()
        connection.request("GET", path)
        found = json.loads(connection.getresponse().read())
        connection.close()
        return found

    def _wait_for_answer(self, end: float) -> None:
        assert self._process is not None
        while time.perf_counter() < end and self._process.poll() is None:
            try:
                if self.get("/version")[1] == 200:
                    return
            except OSError:
                time.sleep(0.003)
        raise RuntimeError(f"{self._target.name}: {self._log.read_text()[-2000:]}")


class Watcher:
    """Asks a daemon for /version without a pause, in a thread; C{worst} is in seconds."""

    def __init__(self, daemon: Daemon, pause: float = 0.002) -> None:
        self._daemon = daemon
        self._pause = pause
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self.worst = 0.0

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _ask(self) -> None:
        connection = self._daemon.connect()
        while not self._stop.wait(self._pause):
            self.worst = max(self.worst, self._daemon.get("/version", connection)[0])
        connection.close()
