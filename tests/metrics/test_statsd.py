"""Tests for statsd: the lines, and the sockets they go through."""

from __future__ import annotations

import json
import logging
import re
import socket
from pathlib import Path
from typing import Any

import attrs
from twisted.internet import reactor
from twisted.internet.address import IPv4Address
from twisted.internet.task import deferLater
from twisted.trial.unittest import SynchronousTestCase, TestCase

from cronstable.clock import ManualClock
from cronstable.config.values import Statsd
from cronstable.events import Bus
from cronstable.executors.interfaces import CapsReport, Usage
from cronstable.metrics.statsd import StatsdService, start_lines, stop_lines
from cronstable.runs.record import FinishedRun, RunFinished, RunRecord, RunStarted
from tests.fakes import job

VECTORS = Path(__file__).parents[1] / "vectors" / "metrics" / "statsd-datagrams.json"


def record(outcome: Any = "success", duration: float | None = 0.011, **fields: Any) -> RunRecord:
    """Return a finished run's record."""
    return RunRecord(job="ok", outcome=outcome, finished_at=1.0, duration=duration, **fields)


class LinesTests(SynchronousTestCase):
    """What is sent."""

    def test_captured(self) -> None:
        """The lines are those that were captured, for every run in the capture."""
        seen = 0
        for datagram in json.loads(VECTORS.read_text()):
            lines = dict(
                re.fullmatch(r"p\.\w+\.(\w+):(\d+)\|\w+", line).groups()  # type: ignore[union-attr]
                for line in datagram.splitlines()
            )
            prefix = datagram.split(":")[0].rpartition(".")[0]
            if "start" in lines:
                self.assertEqual(start_lines(prefix).decode(), datagram)
                continue
            usage = None
            if "cpu" in lines:
                usage = Usage(int(lines["cpu"]) / 1000, 0.0, int(lines["max_rss"]), samples=2)
            run = record(
                "success" if lines["success"] == "1" else "failure",
                int(lines["duration"]) / 1000,
                usage=usage,
            )
            self.assertEqual(stop_lines(prefix, run).decode(), datagram)
            seen += 1
        self.assertEqual(seen, 12)

    def test_outcomes(self) -> None:
        """Only a success is one; a cancelled and a replaced run are none."""
        for outcome in ("failure", "cancelled", "replaced"):
            self.assertIn(b"p.success:0|g\n", stop_lines("p", record(outcome)))

    def test_unsampled(self) -> None:
        """Resources are sent once a sample was taken, a memory kill where there was one."""
        usage = Usage(1.0, 1.0, 5, samples=0)
        self.assertNotIn(b"cpu", stop_lines("p", record(usage=usage)))
        run = record("failure", caps=CapsReport(True, memory_exceeded=True))
        self.assertTrue(stop_lines("p", run).endswith(b"\np.memory_limit_exceeded:1|c\n"))

    def test_prefix(self) -> None:
        """Nothing in a prefix can split a line; nothing else of it is changed."""
        self.assertEqual(start_lines("p:|.x"), b"p.x.start:1|g\n")
        self.assertEqual(start_lines("a\r\nb."), b"ab..start:1|g\n")
        self.assertEqual(start_lines("é\udcff"), "é?.start:1|g\n".encode())


class Resolver:
    """A resolver whose answers the test gives."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    def resolveHostName(self, receiver: Any, host: str, port: int, **more: Any) -> None:  # noqa: N802
        self.asked.append((host, receiver))

    def answer(self, *hosts: str) -> None:
        """Answer the oldest question."""
        _, receiver = self.asked.pop(0)
        for host in hosts:
            receiver.addressResolved(IPv4Address("UDP", host, 0))
        receiver.resolutionComplete()


class FakeReactor:
    """Knows who reads and writes, and asks the test for addresses."""

    def __init__(self) -> None:
        self.nameResolver = Resolver()
        self.readers: set[Any] = set()
        self.writers: set[Any] = set()
        self.addReader = self.readers.add
        self.removeReader = self.readers.discard
        self.addWriter = self.writers.add
        self.removeWriter = self.writers.discard


class Records(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.name} {record.getMessage()}")


class Sending:
    """A statsd service, a socket where its datagrams arrive, and runs to tell of."""

    def prepare(self, test: Any, reactor: Any) -> None:
        self.clock = ManualClock()
        self.bus = Bus()
        self.service = StatsdService(reactor, self.clock)
        self.service.listen(self.bus)
        self.service.startService()
        test.addCleanup(self.service.stopService)
        self.log = Records()
        for name in ("cronstable", "statsd"):
            logging.getLogger(name).addHandler(self.log)
            test.addCleanup(logging.getLogger(name).removeHandler, self.log)
        self.inbox = self.open_inbox(test)
        self.port = self.inbox.getsockname()[1]

    def open_inbox(self, test: Any) -> socket.socket:
        inbox = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        inbox.bind(("127.0.0.1", 0))
        inbox.settimeout(5)
        test.addCleanup(inbox.close)
        return inbox

    def job(self, host: str = "127.0.0.1", port: int | None = None) -> Any:
        return job("ok", statsd=Statsd("p.ok", host, self.port if port is None else port))

    def start(self, of: Any) -> None:
        self.bus.publish(RunStarted(of, "r1", 1, 1.0, "scheduled", None, 0))

    def stop(self, of: Any, **fields: Any) -> None:
        self.bus.publish(RunFinished(FinishedRun(record(**fields), of, None, None)))

    def took(self) -> bytes:
        return self.inbox.recv(65536)

    def took_nothing(self) -> bool:
        self.inbox.setblocking(False)
        try:
            self.inbox.recv(65536)
        except BlockingIOError:
            return True
        finally:
            self.inbox.settimeout(5)
        return False


class StatsdServiceTests(SynchronousTestCase, Sending):
    """Datagrams through real sockets, with names that the test resolves."""

    def setUp(self) -> None:
        self.reactor = FakeReactor()
        self.prepare(self, self.reactor)

    def test_two_datagrams(self) -> None:
        """A run is two datagrams, in order, sent at once."""
        self.start(self.job())
        self.stop(self.job())
        self.assertEqual(self.took(), b"p.ok.start:1|g\n")
        self.assertEqual(self.took(), b"p.ok.stop:1|g\np.ok.success:1|g\np.ok.duration:11|ms\n")
        self.assertEqual(self.reactor.nameResolver.asked, [])

    def test_silent(self) -> None:
        """No block, no start, and a reconciled row: nothing is sent. A replaced run sends."""
        self.start(job("ok"))
        self.stop(self.job(), outcome="failure", exit_code=127, start_failed=True)
        self.stop(self.job(), outcome="unknown", duration=None)
        self.assertTrue(self.took_nothing())
        self.stop(self.job(), outcome="replaced")
        self.assertIn(b"success:0", self.took())

    def test_one_socket(self) -> None:
        """An address has one socket, whatever is sent through it."""
        for _ in range(5):
            self.start(self.job())
        self.assertEqual(len(self.reactor.readers), 1)

    def test_names(self) -> None:
        """A name is looked up without waiting; what comes meanwhile is sent in order after it."""
        self.start(self.job("stats.example.org"))
        self.stop(self.job("stats.example.org"))
        self.assertEqual(len(self.reactor.nameResolver.asked), 1)
        self.assertTrue(self.took_nothing())
        self.reactor.nameResolver.answer("127.0.0.1")
        self.assertEqual(self.took(), b"p.ok.start:1|g\n")
        self.assertIn(b"stop", self.took())
        self.start(self.job("stats.example.org"))
        self.assertIn(b"start", self.took())
        self.assertEqual(self.reactor.nameResolver.asked, [])

    def test_moved_name(self) -> None:
        """After a minute a name is looked up again; until that answers the old address serves."""
        of = self.job("stats.example.org")
        self.start(of)
        self.reactor.nameResolver.answer("127.0.0.1")
        self.took()
        self.clock.advance(61)
        self.start(of)
        self.assertEqual(len(self.reactor.nameResolver.asked), 1)
        self.assertIn(b"start", self.took())
        self.reactor.nameResolver.answer("127.0.0.2")
        self.start(of)
        self.assertTrue(self.took_nothing())

    def test_name_gone_for_a_while(self) -> None:
        """A look-up that fails later leaves the address that was good before."""
        of = self.job("stats.example.org")
        self.start(of)
        self.reactor.nameResolver.answer("127.0.0.1")
        self.took()
        self.clock.advance(61)
        self.start(of)
        self.took()
        self.reactor.nameResolver.answer()
        self.start(of)
        self.assertIn(b"start", self.took())
        self.assertEqual(self.log.lines, [])

    def test_unknown_name(self) -> None:
        """A name that does not resolve is one warning for each datagram; the next tries again."""
        of = self.job("nosuch.invalid")
        self.start(of)
        self.stop(of)
        self.reactor.nameResolver.answer()
        self.assertEqual(
            [line.partition(" metric:")[0] for line in self.log.lines],
            [
                "WARNING cronstable Job ok: failed to send statsd job_started",
                "WARNING cronstable Job ok: failed to send statsd job_stopped",
            ],
        )
        self.start(of)
        self.assertEqual(len(self.reactor.nameResolver.asked), 1)

    def test_full_queue(self) -> None:
        """Past a mebibyte that waits, datagrams are dropped silently, and so is memory kept."""
        of = attrs.evolve(self.job(), statsd=Statsd("p" * 1000, "stats.example.org", self.port))
        for _ in range(2000):
            self.start(of)
        (address,) = self.service._addresses.values()
        self.assertLessEqual(address._queued, 1024 * 1024)
        self.assertEqual(self.log.lines, [])

    def test_bad_addresses(self) -> None:
        """A port or address that cannot be used is a warning, not an error of the run."""
        for host, port in (("127.0.0.1", 70000), ("127.0.0.1", -1), ("256.1.1.1", 8125)):
            self.start(self.job(host, port))
        self.assertEqual(len([line for line in self.log.lines if "job_started" in line]), 2)

    def test_too_long(self) -> None:
        """A datagram that is too long is a warning, and the next one goes."""
        self.start(attrs.evolve(self.job(), statsd=Statsd("p" * 70000, "127.0.0.1", self.port)))
        self.assertIn("failed to send statsd job_started metric", self.log.lines[0])
        self.start(self.job())
        self.assertEqual(self.took(), b"p.ok.start:1|g\n")

    def test_full_socket(self) -> None:
        """Where the system has no room datagrams wait for it, in order."""
        self.start(self.job())
        self.took()
        (address,) = self.service._addresses.values()
        real = address._socket

        class Full:
            def send(self, data: bytes) -> None:
                raise BlockingIOError

            def close(self) -> None:
                pass

        address._socket = Full()  # type: ignore[assignment]
        self.start(self.job())
        self.stop(self.job())
        self.assertEqual(self.reactor.writers, {address})
        address._socket = real
        address.doWrite()
        self.assertIn(b"start", self.took())
        self.assertIn(b"stop", self.took())
        self.assertEqual(self.reactor.writers, set())

    def test_unused_addresses(self) -> None:
        """A socket that nothing was sent through for long is closed when another is opened."""
        self.start(self.job())
        self.clock.advance(301)
        self.start(self.job("127.0.0.2"))
        self.assertEqual(len(self.reactor.readers), 1)

    def test_stop_service(self) -> None:
        """Stopping closes every socket; a look-up that answers later changes nothing."""
        self.start(self.job())
        self.start(self.job("stats.example.org"))
        self.service.stopService()
        self.reactor.nameResolver.answer("127.0.0.1")
        self.assertEqual(self.reactor.readers, set())


class RefusedTests(TestCase, Sending):
    """Errors that the network reports, in a real reactor."""

    def setUp(self) -> None:
        self.prepare(self, reactor)

    async def test_refused(self) -> None:
        """A port where nobody listens is told by logger statsd, and runs go on."""
        self.inbox.close()
        for _ in range(50):
            self.start(self.job())
            self.stop(self.job())
        while not self.log.lines:
            await deferLater(reactor, 0.01)  # type: ignore[arg-type]
        self.assertEqual(len(self.log.lines), 1)
        self.assertIn("WARNING statsd UDP error received: ", self.log.lines[0])
        self.assertIn("refused", self.log.lines[0])

    async def test_back_again(self) -> None:
        """Once somebody listens again datagrams arrive."""
        self.inbox.close()
        self.start(self.job())
        while not self.log.lines:
            await deferLater(reactor, 0.01)  # type: ignore[arg-type]
        self.inbox = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.inbox.bind(("127.0.0.1", self.port))
        self.inbox.settimeout(5)
        self.addCleanup(self.inbox.close)
        self.start(self.job())
        self.assertEqual(self.took(), b"p.ok.start:1|g\n")

    async def test_real_name(self) -> None:
        """A real name is resolved by the reactor."""
        family, kind, _, _, address = socket.getaddrinfo("localhost", 0, type=socket.SOCK_DGRAM)[0]
        self.inbox = socket.socket(family, kind)
        self.addCleanup(self.inbox.close)
        self.inbox.bind(address)
        self.port = self.inbox.getsockname()[1]
        self.start(self.job("localhost"))
        while self.took_nothing():
            await deferLater(reactor, 0.01)  # type: ignore[arg-type]
