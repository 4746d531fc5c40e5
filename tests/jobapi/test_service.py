"""The endpoint of a daemon: served, moved, secured, and what runs are given for it."""

from __future__ import annotations

import json
import os
import socket
import ssl
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.error import CannotListenError
from twisted.internet.testing import MemoryReactorClock
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase, TestCase

from cronstable.clock import ManualClock, SystemClock
from cronstable.config.sections_values import JobApiConfig, StateConfig, TlsFiles
from cronstable.config.values import JobConfig, NamedSecret, Secret
from cronstable.jobapi.client import Endpoint, Trouble
from cronstable.jobapi.service import OPENED_WITHIN, JobApiService
from cronstable.runs.environment import Prepared, RunFacts
from cronstable.state.service import StoreService
from tests.certs import Authority
from tests.fakes import IDENTITY, job

NOW = 1_767_225_600.0


def section(path: str = "/state", **job_api: Any) -> StateConfig:
    """Return a C{state} section."""
    return StateConfig(path, job_api=JobApiConfig(**job_api))


def facts(one: JobConfig | None = None, ref: str = "r1", **given: Any) -> RunFacts:
    """Return a run that is about to start."""
    one = one or job("wire")
    given = {"cause": "scheduled", "slot": int(NOW), "attempt": 0, "scope": one.name, **given}
    return RunFacts(ref, one, **given)


class FakeReactor(MemoryReactorClock):  # type: ignore[misc]
    """Listens in memory; refuses what the test says; threads report at the next look."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: dict[tuple[str, int], int] = {}
        self.ports: list[Any] = []
        self.next_port = 40000
        self.from_threads: list[tuple[Any, ...]] = []

    def listenTCP(self, port: int, factory: Any, backlog: int = 50, interface: str = "") -> Any:  # noqa: N802
        code = self.refused.pop((interface, port), None)
        if code is not None:
            raise CannotListenError(interface, port, OSError(code, os.strerror(code)))
        if not port:
            self.next_port += 1
            port = self.next_port
        made = FakePort(interface, port)
        self.ports.append(made)
        return made

    def callFromThread(self, call: Any, *arguments: Any) -> None:  # noqa: N802
        self.from_threads.append((call, *arguments))


class FakePort:
    """A port that is listened on."""

    def __init__(self, interface: str, port: int) -> None:
        self.interface = interface
        self.port = port
        self.open = True

    def getHost(self) -> Any:  # noqa: N802
        return self

    def stopListening(self) -> Deferred[None]:  # noqa: N802
        self.open = False
        done: Deferred[None] = Deferred()
        done.callback(None)
        return done


class ServiceCase(SynchronousTestCase):
    """A service on a reactor that is none."""

    def setUp(self) -> None:
        self.reactor = FakeReactor()
        clock: Any = ManualClock(NOW)
        self.clock = clock
        self.store = StoreService(self.reactor, clock)
        self.api = JobApiService(
            self.reactor, clock, IDENTITY, self.store, {"FROM_ENV": "env-value"}
        )

    def reconcile(self, state: StateConfig | None) -> None:
        """Put a section in force."""
        self.successResultOf(Deferred.fromCoroutine(self.api.reconcile(state)))

    def prepare(self, run: RunFacts | None = None) -> Prepared:
        """Prepare a run that needs no time for it."""
        prepared = self.api.prepare(run or facts())
        assert isinstance(prepared, Prepared)
        return prepared

    @property
    def listening(self) -> list[tuple[str, int]]:
        """The ports that are open."""
        return [(port.interface, port.port) for port in self.reactor.ports if port.open]


class VariablesTests(ServiceCase):
    """What a run is given."""

    def test_variables(self) -> None:
        """The address, who the run is, and a token that is none of what can be shown."""
        self.reconcile(section())
        prepared = self.prepare(facts(cause="retry", attempt=2))
        run_id = prepared.run_id
        assert run_id is not None
        self.assertEqual(
            prepared.variables,
            {
                "CRONSTABLE_STATE_URL": "http://127.0.0.1:40001",
                "CRONSTABLE_RUN_ID": run_id,
                "CRONSTABLE_JOB_NAME": "wire",
                "CRONSTABLE_ATTEMPT": "2",
                "CRONSTABLE_SCHEDULED_AT": "2026-01-01T00:00:00+00:00",
                "CRONSTABLE_HOST": "node-a",
            },
        )
        self.assertRegex(run_id, "^[0-9a-f]{32}$")
        (name, token), *more = prepared.private.items()
        self.assertEqual((name, more), ("CRONSTABLE_STATE_TOKEN", []))
        self.assertRegex(token, "^[0-9a-f]{64}$")

    def test_slot(self) -> None:
        """A run by hand or at boot stands for no slot; one that is caught up with does."""
        self.reconcile(section())
        for cause, text in (
            ("manual", ""),
            ("boot", ""),
            ("task", ""),
            ("catchup", "2026-01-01T00:00:00+00:00"),
        ):
            given = self.prepare(facts(ref=cause, cause=cause)).variables
            self.assertEqual(given["CRONSTABLE_SCHEDULED_AT"], text, cause)

    def test_own_token(self) -> None:
        """Each run has a token and an id of its own."""
        self.reconcile(section())
        prepared = [self.prepare(facts(ref=f"r{number}")) for number in range(20)]
        self.assertEqual(len({each.private["CRONSTABLE_STATE_TOKEN"] for each in prepared}), 20)
        self.assertEqual(len({each.run_id for each in prepared}), 20)

    def test_authority(self) -> None:
        """The file of the authority is told as a path that is good in any directory."""
        authority = Authority(Path(self.mktemp()))
        pair = authority.issue("server")
        ca = os.path.relpath(authority.cert)
        tls = TlsFiles(str(pair.cert), str(pair.key), ca)
        self.api.expect(section(listen="https://127.0.0.1:0", tls=tls))
        done = Deferred.fromCoroutine(self.api.reconcile(self.api._state))
        while not done.called:
            for call, *arguments in self.reactor.from_threads:
                call(*arguments)
            self.reactor.from_threads.clear()
        given = self.prepare().variables
        self.assertEqual(given["CRONSTABLE_STATE_CACERT"], str(authority.cert.resolve()))
        self.assertTrue(given["CRONSTABLE_STATE_URL"].startswith("https://127.0.0.1:"))

    def test_no_section(self) -> None:
        """Without a section nothing is given and nothing is served."""
        self.reconcile(None)
        self.assertEqual(self.prepare(), Prepared())
        self.assertEqual(self.listening, [])

    def test_switched_off(self) -> None:
        """With the job API off a run has only an id."""
        self.reconcile(section(enabled=False))
        prepared = self.prepare()
        self.assertEqual((prepared.variables, prepared.private), ({}, {}))
        self.assertIsNot(prepared.run_id, None)
        self.assertEqual(self.listening, [])


class SecretsTests(ServiceCase):
    """Secrets of a run."""

    def job(self, **sources: Secret) -> JobConfig:
        return job("rich", secrets=tuple(NamedSecret(k, v) for k, v in sources.items()))

    def caller(self, prepared: Prepared) -> Any:
        token = prepared.private["CRONSTABLE_STATE_TOKEN"]
        return self.api._desk.callers.find(f"Bearer {token}".encode())

    def test_at_once(self) -> None:
        """What needs no file is staged at once, for that run and for masking."""
        self.reconcile(section())
        prepared = self.prepare(
            facts(self.job(A=Secret("value-1"), B=Secret(None, None, "FROM_ENV")))
        )
        self.assertEqual(prepared.secrets, ("value-1", "env-value"))
        self.assertEqual(self.caller(prepared).secrets, {"A": "value-1", "B": "env-value"})
        self.assertNotIn("value-1", repr(prepared))

    def test_missing(self) -> None:
        """One that cannot be had is a warning without a value, and the run starts."""
        self.reconcile(section())
        with self.assertLogs("cronstable.jobapi", "WARNING") as logged:
            prepared = self.prepare(
                facts(self.job(A=Secret("value-1"), B=Secret(None, None, "UNSET")))
            )
        self.assertEqual(prepared.secrets, ("value-1",))
        self.assertIn("Job rich: could not stage secret 'B'", logged.output[0])
        self.assertNotIn("value-1", logged.output[0])

    def test_from_files(self) -> None:
        """Files are read off the reactor's thread, anew for each run."""
        self.reconcile(section())
        path = Path(self.mktemp())
        rich = self.job(A=Secret(from_file=str(path)))
        for number, value in enumerate(("first-value", "second-value")):
            path.write_text(value + "\n", encoding="utf-8")
            prepared = self.heard(self.api.prepare(facts(rich, ref=f"r{number}")))
            self.assertEqual(prepared.secrets, (value,))
            self.assertEqual(self.caller(prepared).secrets, {"A": value})

    def heard(self, answer: Any) -> Prepared:
        """Let threads report until a run is prepared."""
        while not answer.called:
            while self.reactor.from_threads:
                call, *arguments = self.reactor.from_threads.pop(0)
                call(*arguments)
        prepared: Prepared = self.successResultOf(answer)
        return prepared

    def test_hanging_file(self) -> None:
        """A file that does not answer keeps a run for ten seconds; the other secrets are there."""
        self.reconcile(section())
        pipe = os.path.abspath(self.mktemp())
        os.mkfifo(pipe)
        rich = self.job(A=Secret(from_file=pipe), B=Secret("value-1"))
        answer: Any = self.api.prepare(facts(rich))
        with self.assertLogs("cronstable.jobapi", "WARNING") as logged:
            self.clock.advance(10)
        self.assertEqual(self.successResultOf(answer).secrets, ("value-1",))
        self.assertIn("Job rich: could not stage secret 'A': no answer", logged.output[0])
        # Let the thread go on, so that nothing of it is left.
        with open(pipe, "w", encoding="utf-8") as end:
            end.write("late")

    def test_dropped(self) -> None:
        """They are forgotten with the run."""
        self.reconcile(section())
        prepared = self.prepare(facts(self.job(A=Secret("value-1"))))
        caller = self.caller(prepared)
        self.api.ended("r1")
        self.assertEqual(caller.secrets, {})
        self.assertIs(self.caller(prepared), None)
        self.api.ended("r1")
        self.api.ended("never-was")


class ListeningTests(ServiceCase):
    """The endpoint over reloads."""

    def test_logged(self) -> None:
        """Its address is told in the log."""
        with self.assertLogs("cronstable.jobapi", "INFO") as logged:
            self.reconcile(section())
        self.assertEqual(
            logged.output,
            ["INFO:cronstable.jobapi:state job API listening on http://127.0.0.1:40001"],
        )

    def test_stays(self) -> None:
        """It moves only if its address does; limits are in force at once."""
        self.reconcile(section())
        self.reconcile(section("/elsewhere", max_value_bytes=7))
        self.assertEqual(self.listening, [("127.0.0.1", 40001)])
        self.assertEqual(self.api._desk.config.max_value_bytes, 7)
        self.reconcile(section(listen="127.0.0.1:5000"))
        self.assertEqual(self.listening, [("127.0.0.1", 5000)])
        self.reconcile(None)
        self.assertEqual(self.listening, [])

    def test_addresses(self) -> None:
        """What is configured is bound and told; a wildcard is told as the loopback address."""
        for listen, bound, told in (
            ("127.0.0.1:5000", ("127.0.0.1", 5000), "http://127.0.0.1:5000"),
            ("http://[::1]:5001", ("::1", 5001), "http://[::1]:5001"),
            ("http://0.0.0.0:5002", ("0.0.0.0", 5002), "http://127.0.0.1:5002"),
            ("http://[::]:5003", ("::", 5003), "http://[::1]:5003"),
            ("127.0.0.9", ("127.0.0.9", 40001), "http://127.0.0.9:40001"),
        ):
            self.reconcile(section(listen=listen))
            self.assertEqual((self.listening, self.api.url), ([bound], told), listen)

    def test_cannot_bind(self) -> None:
        """What cannot be bound is an ERROR once; jobs run without, and it is tried again."""
        self.reactor.refused["127.0.0.1", 5000] = 98
        with self.assertLogs("cronstable.jobapi", "ERROR") as logged:
            self.reconcile(section(listen="127.0.0.1:5000"))
        self.assertEqual(len(logged.output), 1)
        self.assertIn("could not listen on http://127.0.0.1:5000", logged.output[0])
        self.assertEqual(self.prepare().variables, {})
        self.reactor.refused["127.0.0.1", 5000] = 98
        self.api.each_minute()
        self.assertIs(self.api.url, None)
        self.api.each_minute()
        self.assertEqual(self.api.url, "http://127.0.0.1:5000")

    def test_runs_wait(self) -> None:
        """A run that starts while the endpoint is being opened waits for it."""
        self.api.expect(section())
        answer = self.api.prepare(facts())
        assert isinstance(answer, Deferred)
        self.assertNoResult(answer)
        self.reconcile(section())
        self.assertIn("CRONSTABLE_STATE_URL", self.successResultOf(answer).variables)

    def test_runs_do_not_wait_for_ever(self) -> None:
        """One that is not opened in time is done without."""
        self.api.expect(section())
        answer: Any = self.api.prepare(facts())
        with self.assertLogs("cronstable.jobapi", "WARNING"):
            self.clock.advance(OPENED_WITHIN)
        self.assertEqual(self.successResultOf(answer).variables, {})
        self.reconcile(section())

    def test_moving(self) -> None:
        """A run that starts while the endpoint moves is told the new address."""
        self.reconcile(section())
        self.api.expect(section(listen="127.0.0.1:5000"))
        answer: Any = self.api.prepare(facts())
        self.reconcile(section(listen="127.0.0.1:5000"))
        given = self.successResultOf(answer).variables
        self.assertEqual(given["CRONSTABLE_STATE_URL"], "http://127.0.0.1:5000")

    def test_switching_off(self) -> None:
        """A run that starts when the section is on its way out is told nothing."""
        self.reconcile(section())
        self.api.expect(None)
        self.assertEqual(self.prepare(), Prepared())
        self.api.expect(section(enabled=False))
        self.assertEqual(self.prepare().variables, {})

    def test_stop(self) -> None:
        """A stop lets nobody in any more, and is harmless when repeated."""
        self.reconcile(section())
        prepared = self.prepare()
        for _ in range(2):
            self.successResultOf(Deferred.fromCoroutine(self.api.stop()))
        self.assertEqual(self.listening, [])
        token = prepared.private["CRONSTABLE_STATE_TOKEN"]
        self.assertIs(self.api._desk.callers.find(f"Bearer {token}".encode()), None)
        self.assertEqual(self.prepare(facts(ref="late")).variables, {})
        self.api.each_minute()
        self.reconcile(section())
        self.assertEqual(self.listening, [])


class RealTests(TestCase):
    """On real sockets."""

    def setUp(self) -> None:
        from twisted.internet import reactor

        self.reactor: Any = reactor
        clock = SystemClock(reactor)
        self.directory = Path(self.mktemp()).resolve()
        self.store = StoreService(reactor, clock)
        self.api = JobApiService(reactor, clock, IDENTITY, self.store, {})
        self.addCleanup(self.stop)

    async def stop(self) -> None:
        await self.api.stop()
        await self.store.close()

    async def serve(self, **job_api: Any) -> Endpoint:
        """Serve, and return the endpoint as a run sees it."""
        state = section(str(self.directory / "state"), **job_api)
        await self.api.reconcile(state)
        await self.store.reconcile(state)
        prepared = self.api.prepare(facts())
        assert isinstance(prepared, Prepared)
        return Endpoint.of({**prepared.variables, **prepared.private})

    async def test_round(self) -> None:
        """A value goes into a real store and comes back, over a real connection."""
        endpoint = await self.serve()
        said = {"key": "k", "value": {"n": 3}}
        await deferToThread(endpoint.post, "/v1/kv/set", said)
        answer = await deferToThread(endpoint.get, "/v1/kv/get", (("key", "k"),))
        self.assertEqual(answer["value"], {"n": 3})

    async def test_localhost(self) -> None:
        """A name is served on all that it stands for, by one port."""
        endpoint = await self.serve(listen="localhost")
        self.assertTrue((self.api.url or "").startswith("http://localhost:"))
        port = int((self.api.url or "").rpartition(":")[2])
        for address in {str(found[4][0]) for found in socket.getaddrinfo("localhost", port)}:
            try:
                socket.create_connection((address, port), 5).close()
            except OSError as error:
                self.assertNotEqual(error.errno, 111, address)
        self.assertEqual((await deferToThread(endpoint.get, "/v1/run"))["job"], "wire")

    async def test_port_taken(self) -> None:
        """A port that somebody has is told, and taken once it is free."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            state = section(str(self.directory), listen=f"127.0.0.1:{port}")
            with self.assertLogs("cronstable.jobapi", "ERROR") as logged:
                await self.api.reconcile(state)
            self.assertIn("Address already in use", logged.output[0])
        await self.api.reconcile(state)
        self.assertEqual(self.api.url, f"http://127.0.0.1:{port}")

    async def test_impossible_name(self) -> None:
        """A name that no host can have is told as what cannot be bound."""
        state = section(listen="no..host:5000", allow_non_loopback_bind=True)
        with self.assertLogs("cronstable.jobapi", "ERROR") as logged:
            await self.api.reconcile(state)
        self.assertIn("could not listen on http://no..host:5000", logged.output[0])

    async def test_tls(self) -> None:
        """Over TLS the server is verified by the authority that the run is told, by no other."""
        authority = Authority(self.directory / "ca")
        pair = authority.issue("server")
        tls = TlsFiles(str(pair.cert), str(pair.key), str(authority.cert))
        endpoint = await self.serve(listen="https://localhost:0", tls=tls)
        answer = await deferToThread(endpoint.get, "/v1/run")
        self.assertEqual(answer["job"], "wire")
        stranger = Authority(self.directory / "other", "other.example.org")
        url = self.api.url or ""
        for ca in (None, str(stranger.cert)):
            with self.assertRaises(Trouble) as refused:
                await deferToThread(Endpoint(url, "x", ca).get, "/v1/run")
            self.assertIn("TLS verification failed", str(refused.exception))

    async def test_new_certificate(self) -> None:
        """A renewed certificate is taken with the next look; a broken one leaves the old."""
        authority = Authority(self.directory / "ca")
        pair = authority.issue("server")
        tls = TlsFiles(str(pair.cert), str(pair.key), str(authority.cert))
        await self.serve(listen="https://localhost:0", tls=tls)
        port = int((self.api.url or "").rpartition(":")[2])

        def served() -> str:
            return ssl.get_server_certificate(("localhost", port), timeout=10)

        first = await deferToThread(served)
        authority.issue("server")
        await self.api.reconcile(self.api._state)
        second = await deferToThread(served)
        self.assertNotEqual(first, second)
        pair.cert.write_text("broken", encoding="utf-8")
        with self.assertLogs("cronstable.jobapi", "WARNING") as logged:
            await self.api.reconcile(self.api._state)
        self.assertIn("it stays as it is", logged.output[0])
        self.assertEqual(await deferToThread(served), second)

    async def test_no_certificate(self) -> None:
        """Without its certificate the endpoint is not served, and jobs run without."""
        tls = TlsFiles("/nowhere/cert.pem", "/nowhere/key.pem", None)
        with self.assertLogs("cronstable.jobapi", "ERROR") as logged:
            await self.api.reconcile(
                section(str(self.directory), listen="https://localhost:0", tls=tls)
            )
        self.assertIn("/nowhere/cert.pem", logged.output[0])
        prepared = self.api.prepare(facts())
        assert isinstance(prepared, Prepared)
        self.assertEqual(json.loads(json.dumps(dict(prepared.variables))), {})
