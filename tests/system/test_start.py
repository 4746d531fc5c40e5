"""Tests of how a start can end, with the real process; docs/cli.md lists the outcomes."""

from __future__ import annotations

import os
import re
import signal
import socket
from pathlib import Path
from typing import BinaryIO

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from tests.system.harness import Daemon, Kind

IDLE = """\
jobs:
  - name: idle
    schedule: "@yearly"
    command: "true"
"""
TICKING = """\
jobs:
  - name: tick
    schedule: "* * * * * * *"
    command: echo tock
    captureStdout: true
"""
WEB = """\
web:
  listen:
    - http://127.0.0.1:@PORT@
"""
RUNNING = r"^INFO:cronstable:Job set id: v1:[0-9a-f]{64} \((\d+) jobs\)$"
LOG_LINE = re.compile(r"^(DEBUG|INFO|WARNING|ERROR|CRITICAL):[\w.]+:")
KINDS: tuple[Kind, ...] = ("cronstable", "twistd")


class StartTestCase(TestCase):
    """Runs a behaviour under both ways to start the daemon."""

    def assert_clean(self, daemon: Daemon) -> None:
        """Fail if there was a traceback, a line in another format, or anything on stdout."""
        self.assertEqual(daemon.stdout, [])
        self.assertNotIn("Traceback", daemon.log)
        for line in daemon.stderr:
            self.assertRegex(line, LOG_LINE)


class StopTests(StartTestCase):
    """A daemon that starts, and stops when told."""

    async def test_signals(self) -> None:
        """SIGTERM and SIGINT stop it with status 0, however it was started."""
        for kind in KINDS:
            for number in (signal.SIGTERM, signal.SIGINT):
                daemon = Daemon(self, IDLE, kind=kind)
                self.assertEqual((await daemon.wait_for_log(RUNNING)).group(1), "1")
                self.assertEqual(await daemon.stop(number=number), 0, daemon.log)
                self.assertIn(
                    "INFO:cronstable:Shutting down (after currently running jobs finish)...",
                    daemon.stderr,
                )
                self.assert_clean(daemon)

    async def test_leaves_nothing(self) -> None:
        """It writes no file where it runs: no PID file, no log, no plugin cache."""
        for kind in KINDS:
            daemon = Daemon(self, IDLE, kind=kind)
            await daemon.wait_for_log(RUNNING)
            await daemon.stop()
            self.assertEqual(os.listdir(daemon.directory), ["config.yaml"])

    async def test_foreground(self) -> None:
        """It does not fork: the process that was started is the one that runs."""
        for kind in KINDS:
            daemon = Daemon(self, IDLE, kind=kind)
            await daemon.wait_for_log(RUNNING)
            self.assertEqual(daemon.descendants(), [daemon.pid])
            await daemon.stop()

    async def test_as_pid1(self) -> None:
        """As process 1 of a container it stops on SIGTERM with status 0."""
        daemon = Daemon(self, IDLE, as_pid1=True)
        await daemon.wait_for_log(RUNNING)
        self.assertEqual(await daemon.stop(), 0)

    async def test_running_job_finishes(self) -> None:
        """A stop waits for the running job, and starts no other."""
        job = """\
jobs:
  - name: patient
    schedule: "* * * * * * *"
    command: echo up; read line < @WORK@/gate; echo done
    captureStdout: true
    concurrencyPolicy: Forbid
"""
        work = Path(self.mktemp())
        work.mkdir()
        os.mkfifo(work / "gate")
        daemon = Daemon(self, job, directory=work)
        await daemon.wait_for_output(r"\[patient stdout\] up")
        daemon.signal(signal.SIGTERM)
        await daemon.wait_for_log("Shutting down")
        self.assertIsNone(daemon.status)
        (work / "gate").write_text("go\n")
        self.assertEqual(await daemon.wait_for_end(), 0)
        self.assertEqual(daemon.stdout, ["[patient stdout] up", "[patient stdout] done"])

    async def test_shutdown_request(self) -> None:
        """POST /shutdown stops it with status 0 for a token with control, and only for that."""
        web = WEB + "  authToken:\n    value: a-long-token-for-this-test\n"
        daemon = Daemon(self, IDLE + web)
        await daemon.wait_for_log("web: started listening")
        refused = await daemon.request("POST", "/shutdown")
        self.assertEqual(refused.status, 401)
        answer = await daemon.request(
            "POST", "/shutdown", headers={"Authorization": "Bearer a-long-token-for-this-test"}
        )
        self.assertEqual((answer.status, answer.json()), (200, {"shuttingDown": True}))
        self.assertEqual(await daemon.wait_for_end(), 0)

    async def test_empty_configurations(self) -> None:
        """An empty file and an empty directory are valid: no job, and the daemon runs."""
        for config, args in (("", []), (None, ["-c", "."])):
            daemon = Daemon(self, config, args=args)
            self.assertEqual((await daemon.wait_for_log(RUNNING)).group(1), "0")
            self.assertEqual(await daemon.stop(), 0)


class RefusalTests(StartTestCase):
    """A daemon that must not start."""

    async def test_configuration_error(self) -> None:
        """An error is logged once with file, line, job and key; status 1, nothing started."""
        config = IDLE + "    comand: x\n" + WEB + "state:\n  path: @WORK@/store\n"
        for kind in KINDS:
            daemon = Daemon(self, config, kind=kind)
            self.assertEqual(await daemon.wait_for_end(), 1)
            self.assertEqual(daemon.log.count("Configuration error: "), 1, daemon.log)
            first = daemon.stderr[0]
            self.assertTrue(first.startswith("ERROR:cronstable:Configuration error: "), first)
            for fact in ("config.yaml:5", "idle", "comand"):
                self.assertIn(fact, daemon.log)
            self.assertEqual(len(daemon.stderr), 1)
            self.assertEqual(os.listdir(daemon.directory), ["config.yaml"])
            self.assert_clean(daemon)

    async def test_missing(self) -> None:
        """A path that is not there ends with status 1 and the reason of the system."""
        for kind in KINDS:
            daemon = Daemon(self, args=["-c", "nowhere.yaml"], kind=kind)
            self.assertEqual(await daemon.wait_for_end(), 1)
            self.assertEqual(len(daemon.stderr), 1, daemon.log)
            self.assertRegex(
                daemon.log,
                r"^ERROR:cronstable:Configuration error: .*nowhere.yaml.*"
                "No such file or directory",
            )

    async def test_unreadable(self) -> None:
        """A path that cannot be read as a file is an error with its reason."""
        daemon = Daemon(self, args=["-c", "loop.yaml"], program=None, directory=self._loop())
        self.assertEqual(await daemon.wait_for_end(), 1)
        self.assertIn("symbolic links", daemon.log)
        self.assert_clean(daemon)

    async def test_unknown_level(self) -> None:
        """An unknown level is a usage error for twistd's command too, which names the choices."""
        for kind, status in (("cronstable", 2), ("twistd", 1)):
            daemon = Daemon(self, IDLE, args=["-l", "loud"], kind=kind)  # type: ignore[arg-type]
            self.assertEqual(await daemon.wait_for_end(), status)
            text = daemon.log + "\n".join(daemon.stdout)
            self.assertIn("DEBUG, INFO, WARNING, ERROR or CRITICAL", text)
            self.assertNotIn("Traceback", text)

    def _loop(self) -> Path:
        directory = Path(self.mktemp())
        directory.mkdir()
        (directory / "loop.yaml").symlink_to("loop.yaml")
        return directory


class LevelTests(StartTestCase):
    """-l."""

    async def test_error(self) -> None:
        """-l ERROR says nothing on stderr while all is well; output of jobs is no log."""
        for kind in KINDS:
            daemon = Daemon(self, TICKING, args=["-l", "error"], kind=kind)
            await daemon.wait_for_output(r"^\[tick stdout\] tock$")
            self.assertEqual(await daemon.stop(), 0)
            self.assertEqual(daemon.stderr, [])

    async def test_debug(self) -> None:
        """-l DEBUG says more than the default does."""
        for kind in KINDS:
            daemon = Daemon(self, IDLE, args=["-l", "DEBUG"], kind=kind)
            await daemon.wait_for_log(RUNNING)
            await daemon.stop()
            self.assertIn("DEBUG:", daemon.log)
            self.assert_clean(daemon)


class EarlySignalTests(StartTestCase):
    """Signals that come while the configuration is being read; a FIFO makes that last."""

    async def started(self, kind: Kind) -> tuple[Daemon, BinaryIO]:
        """Return a daemon that reads its configuration, and the other end of that."""
        work = Path(self.mktemp())
        work.mkdir()
        os.mkfifo(work / "fifo.yaml")
        daemon = Daemon(self, args=["-c", "fifo.yaml"], directory=work, kind=kind)
        writer = await deferToThread(open, work / "fifo.yaml", "wb")
        self.addCleanup(writer.close)
        return daemon, writer

    async def test_stop(self) -> None:
        """A stop ends the process with status 0: nothing was started."""
        for kind in KINDS:
            for number in (signal.SIGTERM, signal.SIGINT):
                daemon, writer = await self.started(kind)
                self.assertEqual(await daemon.stop(number=number), 0, daemon.log)
                self.assertEqual(daemon.stderr, [])
                writer.close()

    async def test_stop_as_pid1(self) -> None:
        """Process 1, which the system protects from signals it has no handler for, stops too."""
        work = Path(self.mktemp())
        work.mkdir()
        os.mkfifo(work / "fifo.yaml")
        daemon = Daemon(self, args=["-c", "fifo.yaml"], directory=work, as_pid1=True)
        writer = await deferToThread(open, work / "fifo.yaml", "wb")
        self.assertEqual(await daemon.stop(), 0)
        writer.close()

    async def test_reload(self) -> None:
        """A request to reload does not end the process, and is answered once it can be."""
        for kind in KINDS:
            daemon, writer = await self.started(kind)
            daemon.signal(signal.SIGHUP)
            writer.write(IDLE.encode())
            writer.close()
            await daemon.wait_for_log("INFO:cronstable:Reload requested")
            again = await deferToThread(open, daemon.directory / "fifo.yaml", "wb")
            again.write(IDLE.encode().replace(b"idle", b"busy"))
            again.close()
            await daemon.wait_for_log("INFO:cronstable:Jobs added: busy")
            self.assertEqual(await daemon.stop(), 0)


class TroubleTests(StartTestCase):
    """What a daemon sits out instead of ending."""

    async def test_port_is_taken(self) -> None:
        """A listener that cannot bind is warned about; the daemon runs, and stops with 0."""
        for kind in KINDS:
            with socket.socket() as holder:
                holder.bind(("127.0.0.1", 0))
                holder.listen()
                port = holder.getsockname()[1]
                daemon = Daemon(self, IDLE + WEB.replace("@PORT@", str(port)), kind=kind)
                await daemon.wait_for_log(
                    rf"^WARNING:cronstable:web: could not listen on http://127.0.0.1:{port}"
                )
                await daemon.wait_for_log(RUNNING)
                self.assertIsNone(daemon.status)
                self.assertEqual(await daemon.stop(), 0)

    async def test_one_of_two_listeners(self) -> None:
        """A bad address never takes a good one with it."""
        config = IDLE + WEB + "    - http://256.0.0.1:1\n    - ftp://127.0.0.1:1\n"
        daemon = Daemon(self, config)
        await daemon.wait_for_log("web: started listening")
        answer = await daemon.get("/version")
        self.assertEqual(answer.status, 200)
        await daemon.wait_for_log(r"ftp://127\.0\.0\.1:1")
        await daemon.wait_for_log(r"256\.0\.0\.1")
        self.assertEqual(await daemon.stop(), 0)

    async def test_store_cannot_start(self) -> None:
        """A store that cannot start is an ERROR; the daemon runs, and stops with 0."""
        for kind in KINDS:
            daemon = Daemon(self, IDLE + "state:\n  path: /proc/nowhere/store\n", kind=kind)
            await daemon.wait_for_log(r"^ERROR:cronstable(\.\w+)?:state: failed to start: ")
            await daemon.wait_for_log(RUNNING)
            self.assertEqual(await daemon.stop(), 0)

    async def test_certificate_is_missing(self) -> None:
        """A TLS file that is not there keeps only the web API down, and -v does not mind it."""
        config = IDLE + (
            "web:\n  listen:\n    - https://127.0.0.1:@PORT@\n"
            "  tls:\n    cert: @WORK@/none.pem\n    key: @WORK@/none.key\n"
        )
        checked = Daemon(self, config, args=["-v"])
        self.assertEqual(await checked.wait_for_end(), 0)
        daemon = Daemon(self, config)
        await daemon.wait_for_log(r"^ERROR:cronstable.*none\.pem")
        await daemon.wait_for_log(RUNNING)
        self.assertEqual(await daemon.stop(), 0)
