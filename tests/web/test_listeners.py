"""Tests for listening sockets and the addresses of C{web.listen}."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.protocol import Factory
from twisted.trial.unittest import SynchronousTestCase

from cronstable.web import listeners, sockets
from cronstable.web.listeners import Listeners


class _Port:
    """A port that only remembers."""

    def __init__(self, fd: int, family: int, factory: object) -> None:
        self.copy = socket.socket(fileno=os.dup(fd))
        self.factory = factory
        self.family = family

    def getHost(self) -> Any:  # noqa: N802
        return type("Address", (), {"port": self.copy.getsockname()[1]})()

    def stopListening(self) -> Deferred[None]:  # noqa: N802
        self.copy.close()
        return succeed(None)


class _Reactor:
    """Adopts sockets."""

    def __init__(self) -> None:
        self.ports: list[_Port] = []

    def adoptStreamPort(self, fd: int, family: int, factory: object) -> _Port:  # noqa: N802
        self.ports.append(_Port(fd, family, factory))
        return self.ports[-1]

    def addReader(self, port: object) -> None:  # noqa: N802
        pass

    def removeReader(self, port: object) -> None:  # noqa: N802
        pass

    def removeWriter(self, port: object) -> None:  # noqa: N802
        pass

    def callLater(self, delay: float, call: Callable[..., object], *given: Any) -> None:  # noqa: N802
        call(*given)


class ListenCase(SynchronousTestCase):
    """Listeners on a reactor that only adopts."""

    def setUp(self) -> None:
        self.reactor = _Reactor()
        self.site: Any = Factory()
        self.listeners = Listeners(self.reactor)
        self.patch(
            listeners, "in_thread", lambda reactor, name, call, *given: succeed(call(*given))
        )
        self.addCleanup(self.close)

    def close(self) -> None:
        for port in self.reactor.ports:
            port.copy.close()

    def want(self, *urls: str, mode: str | None = None) -> bool:
        """Bind addresses; plain ones are served by C{site}."""
        wanted = Deferred.fromCoroutine(
            self.listeners.want(urls, self.site, lambda site: ("tls", site), mode)  # type: ignore[arg-type]
        )
        return bool(self.successResultOf(wanted))

    def free(self) -> int:
        """Return a port that nobody has."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return int(probe.getsockname()[1])


class ListenersTests(ListenCase):
    """Each address is bound on its own."""

    def test_plain_and_secure(self) -> None:
        """Plain addresses get the site, https ones get it behind TLS; each is told."""
        with self.assertLogs("cronstable", "INFO") as logs:
            self.assertTrue(self.want("http://127.0.0.1:0", "https://127.0.0.1:0"))
        self.assertEqual(
            [port.factory for port in self.reactor.ports], [self.site, ("tls", self.site)]
        )
        number = self.listeners.number("http://127.0.0.1:0")
        self.assertIn(f"web: started listening on http://127.0.0.1:{number}", logs.output[0])

    def test_bad_url(self) -> None:
        """An address that cannot be understood is skipped with a warning; the rest is bound."""
        for url in ("http://127.0.0.1", "ftp://x:1", "127.0.0.1:80", "unix://x", "http://h:99999"):
            with self.assertLogs("cronstable", "WARNING") as logs:
                self.assertTrue(self.want(url, "http://127.0.0.1:0"))
            self.assertIn(f"Ignoring web listen url {url}:", logs.output[0])
            self.assertEqual(self.listeners.urls, ["http://127.0.0.1:0"])

    def test_taken(self) -> None:
        """One that cannot be bound is a warning, told once, and is tried again."""
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            url = f"http://127.0.0.1:{other.getsockname()[1]}"
            with self.assertLogs("cronstable", "WARNING") as logs:
                self.assertFalse(self.want(url))
                self.assertFalse(self.want(url))
            self.assertEqual(len(logs.output), 1)
            self.assertIn(f"web: could not listen on {url}: ", logs.output[0])
        self.assertTrue(self.want(url))

    def test_unknown_host(self) -> None:
        """A host that has no address, or cannot have one, is a warning; the rest is bound."""
        for host in ("no-such-host.invalid", "no..host", "a" * 70 + ".example"):
            with self.assertLogs("cronstable", "WARNING") as logs:
                self.assertTrue(self.want(f"http://{host}:80", "http://127.0.0.1:0"))
            self.assertIn(f"could not listen on http://{host}:80", logs.output[0])

    def test_no_credentials_in_the_log(self) -> None:
        """A password in an address is not shown."""
        with self.assertLogs("cronstable", "INFO") as logs:
            self.want("http://me:secret@127.0.0.1:0")
        self.assertNotIn("secret", logs.output[0])
        self.assertNotIn("secret", self.listeners.urls[0])

    def test_kept(self) -> None:
        """What is wanted again keeps its port; what is not wanted any more is given up."""
        one, other = (f"http://127.0.0.1:{self.free()}" for _ in range(2))
        self.want(one, other)
        first = self.reactor.ports[0]
        self.want(one, "http://127.0.0.1:0")
        self.assertEqual(self.reactor.ports[0], first)
        self.assertEqual(self.listeners.urls, [one, "http://127.0.0.1:0"])
        self.assertEqual(first.copy.fileno() >= 0, True)
        self.assertEqual(self.reactor.ports[1].copy.fileno(), -1)

    def test_moved(self) -> None:
        """A port may go from one address to another that covers it."""
        number = self.free()
        self.want(f"http://127.0.0.1:{number}")
        self.assertTrue(self.want(f"http://0.0.0.0:{number}"))

    def test_twice(self) -> None:
        """An address that is written twice is bound once."""
        url = f"http://127.0.0.1:{self.free()}"
        self.want(url, url)
        self.assertEqual(len(self.reactor.ports), 1)

    def test_both_families(self) -> None:
        """One port number can be had on all addresses of both families."""
        if not socket.has_ipv6:
            return
        number = self.free()
        try:
            probe = sockets.listen_tcp(socket.AF_INET6, ("::1", 0))
        except OSError:
            return
        probe.close()
        self.assertTrue(self.want(f"http://0.0.0.0:{number}", f"http://[::]:{number}"))
        self.assertEqual(len(self.listeners.urls), 2)

    def test_name_with_an_address_that_is_not_here(self) -> None:
        """Of a name's addresses those are bound that this host has."""
        here = (int(socket.AF_INET), ("127.0.0.1", 0))
        elsewhere = (int(socket.AF_INET), ("192.0.2.1", 0))
        self.patch(sockets, "resolve", lambda host, port: [elsewhere, here])
        self.assertTrue(self.want("http://some-name:0"))
        self.assertEqual(len(self.reactor.ports), 1)
        self.patch(sockets, "resolve", lambda host, port: [elsewhere])
        with self.assertLogs("cronstable", "WARNING"):
            self.assertFalse(self.want("http://other-name:0"))

    def test_close(self) -> None:
        """Afterwards nothing is bound."""
        self.want("http://127.0.0.1:0")
        self.successResultOf(Deferred.fromCoroutine(self.listeners.close()))
        self.assertEqual(self.listeners.urls, [])
        self.assertEqual(self.reactor.ports[0].copy.fileno(), -1)


class UnixTests(ListenCase):
    """Sockets in the file system."""

    def setUp(self) -> None:
        super().setUp()
        self.path = Path(self.mktemp()).absolute()
        # The path of a unix socket is short.
        self.path = Path(f"/tmp/{os.getpid()}-{self.id().rsplit('.', 1)[-1][:30]}.sock")
        self.addCleanup(lambda: self.path.unlink(missing_ok=True))
        self.url = f"unix://{self.path}"

    def mode(self) -> int:
        """Return the permissions of the socket."""
        return stat.S_IMODE(self.path.stat().st_mode)

    def test_mode(self) -> None:
        """A mode that was chosen is set, written with or without its prefix."""
        for text in ("0600", "600", "0o600", " 0600 "):
            self.want(self.url, mode=text)
            self.assertEqual(self.mode(), 0o600)
            self.want()
        for text in (None, ""):
            self.want(self.url, mode=text)
            before = os.umask(0)
            os.umask(before)
            self.assertEqual(self.mode(), 0o777 & ~before)
            self.want()

    def test_bad_mode(self) -> None:
        """One that is no octal number is a warning; the socket is served all the same."""
        for text in ("rw", "0888", "-1x"):
            with self.assertLogs("cronstable", "WARNING") as logs:
                self.assertTrue(self.want(self.url, mode=text))
            self.assertIn("socketMode", logs.output[0])
            self.want()

    def test_left_over(self) -> None:
        """A socket that nobody listens on is replaced."""
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(self.path))
        self.assertTrue(self.want(self.url))

    def test_in_use(self) -> None:
        """One that somebody listens on is not, nor is an ordinary file."""
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(self.path))
            other.listen()
            with self.assertLogs("cronstable", "WARNING") as logs:
                self.assertFalse(self.want(self.url))
            self.assertIn("could not listen", logs.output[0])
        self.path.unlink()
        self.path.write_text("precious")
        with self.assertLogs("cronstable", "WARNING"):
            self.want("unix:///nonexistent/x.sock", self.url)
        self.assertEqual(self.path.read_text(), "precious")

    def test_removed(self) -> None:
        """The socket goes away with its listener, unless another stands in its place."""
        self.want(self.url)
        self.want()
        self.assertFalse(self.path.exists())
        self.want(self.url)
        self.path.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(self.path))
            self.want()
            self.assertTrue(self.path.exists())

    def test_unsupported(self) -> None:
        """Where the platform has none, the entry is skipped with a warning."""
        self.patch(sockets, "unix_supported", lambda: False)
        with self.assertLogs("cronstable", "WARNING") as logs:
            self.assertFalse(self.want(self.url))
        self.assertIn("no unix sockets", logs.output[0])
