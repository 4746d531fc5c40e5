"""New configurations at the real process, in every way to replace a file; docs/reload.md."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from tests.system.harness import Daemon, faketime_in_minute
from tests.system.proc import together, until, written

BEFORE_THE_LOOK = 19.0
"""The second of the minute at which to start, well before the look at the files at 31.5."""

TICKING = """\
jobs:
  - name: tick
    schedule: "* * * * * * *"
    command: echo $(date +%s) {version} >> @WORK@/ticks
    captureStderr: false
"""
LONG = """\
  - name: long
    schedule: "@reboot"
    command: echo up; read line < @WORK@/gate
    captureStdout: true
"""


def ticking(version: str) -> str:
    """Return a configuration whose ticks show C{version}, always of one size."""
    return TICKING.format(version=version)


class Mounted:
    """A file as orchestrators mount it: a link to a link that is swapped."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._put("..one", ticking("v0"))
        (directory / "..data").symlink_to("..one")
        (directory / "config.yaml").symlink_to("..data/config.yaml")

    def swap(self, daemon: Daemon) -> None:
        """Let the new file appear at once."""
        self._put("..two", ticking("v1"))
        (self._directory / "..new").symlink_to("..two")
        (self._directory / "..new").rename(self._directory / "..data")

    def _put(self, name: str, text: str) -> None:
        (self._directory / name).mkdir(parents=True)
        filled = text.replace("@WORK@", str(self._directory.resolve()))
        (self._directory / name / "config.yaml").write_text(filled)


def in_place(daemon: Daemon) -> None:
    daemon.config_path.write_text(daemon.filled(ticking("v1")))


def renamed(daemon: Daemon) -> None:
    daemon.write(ticking("v1"))


def twice(daemon: Daemon) -> None:
    """Two changes of one size and one modification time."""
    for version in ("v9", "v1"):
        daemon.config_path.write_text(daemon.filled(ticking(version)))
        os.utime(daemon.config_path, ns=(10**18, 10**18))


def half(daemon: Daemon) -> None:
    text = daemon.filled(ticking("v1"))
    daemon.config_path.write_text(text[: text.index("command")] + '"')


def give(daemon: Daemon, text: str) -> object:
    """Write to the FIFO as soon as it is read."""
    fifo = daemon.directory / "fifo.yaml"
    return deferToThread(fifo.write_text, daemon.filled(text))


class WaysToChangeTests(TestCase):
    """The look at the files that comes once a minute."""

    timeout = 150

    async def test_ways(self) -> None:
        """
        A changed file is in force at the next look, however it was changed; no tick is lost.

        Half a file changes nothing and is one error; the whole of it is taken when it is there.
        """
        mounted = Path(self.mktemp())
        await together(
            self.changed(in_place),
            self.changed(renamed),
            self.changed(twice),
            self.changed(Mounted(mounted).swap, mounted),
            self.refused(),
            self.include_beside_fifo(),
        )

    async def changed(self, change: Callable[[Daemon], None], at: Path | None = None) -> None:
        """Start a daemon, change its file, and see the change in force."""
        daemon = self.daemon(at)
        await daemon.wait_for_log("Starting job tick")
        change(daemon)
        await until("the new version", lambda: "v1" in self.ticks(daemon), 100)
        await daemon.wait_for_log("INFO:cronstable:Job tick changed: command")
        await self.assert_even(daemon)

    async def refused(self) -> None:
        """Start a daemon and give it half a file, then all of it."""
        daemon = self.daemon(None)
        await daemon.wait_for_log("Starting job tick")
        half(daemon)
        await daemon.wait_for_log(r"^ERROR:cronstable:Error in configuration file", 100)
        ticks = len(self.ticks(daemon))
        await until("more ticks", lambda: len(self.ticks(daemon)) > ticks + 2)
        self.assertNotIn("v1", self.ticks(daemon))
        in_place(daemon)
        daemon.signal(signal.SIGHUP)
        await until("the new version", lambda: "v1" in self.ticks(daemon))
        self.assertEqual(daemon.log.count("ERROR:"), 1)
        await self.assert_even(daemon)

    async def include_beside_fifo(self) -> None:
        """A changed file beside a FIFO is told once, and read with the next request."""
        work = Path(self.mktemp())
        work.mkdir()
        os.mkfifo(work / "fifo.yaml")
        (work / "more.yaml").write_text(ticking("v0").replace("@WORK@", str(work.resolve())))
        main = "include:\n  - more.yaml\n"
        daemon = Daemon(
            self, args=["-c", "fifo.yaml"], directory=work, env=faketime_in_minute(BEFORE_THE_LOOK)
        )
        await give(daemon, main)
        await daemon.wait_for_log("Starting job tick")
        (work / "more.yaml").write_text(ticking("v1").replace("@WORK@", str(work.resolve())))
        await daemon.wait_for_log(
            r"^WARNING:cronstable:A configuration source changed\. fifo\.yaml is not a regular "
            r"file, so only a reload request reads it again; keeping the loaded configuration\.",
            100,
        )
        daemon.signal(signal.SIGHUP)
        await give(daemon, main)
        await daemon.wait_for_log("INFO:cronstable:Job tick changed: command")
        self.assertEqual(await daemon.stop(), 0)

    def daemon(self, directory: Path | None) -> Daemon:
        """Start a daemon that looks at its files soon."""
        config, args = (ticking("v0"), []) if directory is None else (None, ["-c", "config.yaml"])
        return Daemon(
            self, config, args=args, env=faketime_in_minute(BEFORE_THE_LOOK), directory=directory
        )

    def ticks(self, daemon: Daemon) -> list[str]:
        """Return the version that each tick showed."""
        path = daemon.directory / "ticks"
        return path.read_text().split()[1::2] if path.exists() else []

    async def assert_even(self, daemon: Daemon) -> None:
        """One tick in each second, the old ones before the new ones."""
        self.assertEqual(await daemon.stop(), 0)
        words = (await written(daemon.directory / "ticks")).split()
        seconds = list(map(int, words[::2]))
        self.assertEqual(seconds, list(range(seconds[0], seconds[0] + len(seconds))))
        self.assertEqual(words[1::2], sorted(words[1::2]))


class RunningJobTests(TestCase):
    """A reload while jobs run."""

    async def test_removed(self) -> None:
        """
        A reload waits for no job; one that it removes runs on, is recorded, and is not run again.

        What was added, removed and changed is logged.
        """
        work = Path(self.mktemp())
        work.mkdir()
        os.mkfifo(work / "gate")
        daemon = Daemon(self, ticking("v0") + LONG, directory=work)
        await daemon.wait_for_output("up")
        daemon.write(ticking("v1") + LONG.replace("long", "new"))
        daemon.signal(signal.SIGHUP)
        await daemon.wait_for_log("Reload requested .SIGHUP.; reloading configuration")
        await daemon.wait_for_log("INFO:cronstable:Jobs added: new")
        await daemon.wait_for_log("INFO:cronstable:Jobs removed: long")
        await daemon.wait_for_log("INFO:cronstable:Job tick changed: command")
        await daemon.wait_for_log(r"Job set id: v1:\w+ \(2 jobs\)", count=2)
        await daemon.wait_for_end_of("tick", count=len(daemon.ends("tick")) + 2)
        self.assertEqual(daemon.ends("long"), [])
        await deferToThread((work / "gate").write_text, "go\n")
        self.assertTrue((await daemon.wait_for_end_of("long")).well)
        self.assertEqual(await daemon.stop(), 0)
        self.assertNotIn("Starting job new", daemon.log)


class ReadOnceTests(TestCase):
    """A configuration that comes through something that gives its bytes once."""

    async def test_fifo(self) -> None:
        """A FIFO is read once at start and once for each request; nothing read changes nothing."""
        work = Path(self.mktemp())
        work.mkdir()
        os.mkfifo(work / "fifo.yaml")
        daemon = Daemon(self, args=["-c", "fifo.yaml"], directory=work)
        await give(daemon, ticking("v0"))
        await daemon.wait_for_log("Starting job tick")
        daemon.signal(signal.SIGHUP)
        await give(daemon, "")
        await daemon.wait_for_log(
            "^WARNING:cronstable:Reload read no configuration from fifo.yaml, which gives its "
            "bytes once; keeping the loaded configuration"
        )
        daemon.signal(signal.SIGHUP)
        await give(daemon, ticking("v1"))
        await daemon.wait_for_log("INFO:cronstable:Job tick changed: command")
        daemon.signal(signal.SIGHUP)
        await give(daemon, "jobs: [")
        await daemon.wait_for_log("^ERROR:cronstable:Error in configuration file")
        await daemon.wait_for_end_of("tick", count=len(daemon.ends("tick")) + 1)
        # A request whose writer never comes does not keep the daemon from stopping.
        daemon.signal(signal.SIGHUP)
        await daemon.wait_for_log("Reload requested", count=4)
        self.assertEqual(await daemon.stop(), 0)

    async def test_stdin(self) -> None:
        """A drained pipe at /dev/stdin gives nothing more: a request keeps what is loaded."""
        work = Path(self.mktemp())
        work.mkdir()
        (work / "source").write_text(ticking("v0").replace("@WORK@", str(work.resolve())))
        piped = ["/bin/sh", "-c", 'cat source | "$@"', "sh"]
        daemon = Daemon(self, args=["-c", "/dev/stdin"], directory=work, prefix=piped)
        await daemon.wait_for_log("Starting job tick")
        pid = next(p for p in daemon.descendants() if daemon.is_daemon(p))
        os.kill(pid, signal.SIGHUP)
        await daemon.wait_for_log(
            "^WARNING:cronstable:Reload read no configuration from /dev/stdin"
        )
        await daemon.wait_for_end_of("tick", count=len(daemon.ends("tick")) + 1)
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(await daemon.wait_for_end(), 0)
