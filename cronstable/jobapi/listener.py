"""
The address that jobs are told, and the ports behind it.

docs/job-api.md, "Where it listens", tells operators what is bound.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from typing import Any

import attrs
from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.internet.error import CannotListenError

from cronstable.config.addresses import is_wildcard
from cronstable.config.sections_values import JobApiConfig, TlsFiles
from cronstable.config.sources import Stamps, stamps
from cronstable.config.state import job_api_address
from cronstable.threads import in_thread

BACKLOG = 512
_PORTS_TRIED = 8


class CannotListen(Exception):
    """The endpoint cannot be served; the text tells an operator why."""


@attrs.frozen
class Address:
    """Where the endpoint is to listen; C{port} 0 is any that is free."""

    secure: bool
    host: str
    port: int

    @classmethod
    def of(cls, config: JobApiConfig) -> Address:
        """Return the address that C{config} names."""
        if config.listen is None:
            return cls(False, "127.0.0.1", 0)
        secure, found = job_api_address(config.listen)
        return cls(secure, found.host.strip("[]"), found.port or 0)

    @property
    def told(self) -> str:
        """The host that jobs are told: one that they can reach where it stands for all."""
        if not is_wildcard(self.host):
            return self.host
        return "::1" if ":" in self.host else "127.0.0.1"

    def url(self, port: int) -> str:
        """Return the URL that jobs are told."""
        host = f"[{self.told}]" if ":" in self.told else self.told
        return f"{'https' if self.secure else 'http'}://{host}:{port}"


class Endpoint:
    """The endpoint as it is served, at C{url}."""

    def __init__(self, config: JobApiConfig, address: Address, ports: list[Any]) -> None:
        self.listen = config.listen
        self.address = address
        self.url = address.url(ports[0].getHost().port)
        self._ports = ports

    def close(self) -> Deferred[Any]:
        """Accept no connection any more; fires when the port is free again."""
        return DeferredList([maybeDeferred(port.stopListening) for port in self._ports])


async def open_endpoint(reactor: Any, config: JobApiConfig, factory: Any) -> Endpoint:
    """Serve C{factory} where C{config} says; raises L{CannotListen}."""
    address = Address.of(config)
    try:
        hosts = await _addresses(reactor, address.host)
        for _ in range(_PORTS_TRIED):
            ports = _listen(reactor, hosts, address.port, factory)
            if ports is not None:
                return Endpoint(config, address, ports)
    except (OSError, UnicodeError, CannotListenError) as error:
        reason = getattr(error, "socketError", error)
        text = getattr(reason, "strerror", None) or str(reason)
        raise CannotListen(f"could not listen on {address.url(address.port)}: {text}") from None
    raise CannotListen(f"could not find one free port for all addresses of {address.host}")


def signature_of(files: TlsFiles) -> Stamps:
    """Return what changes when a TLS file does."""
    return stamps((files.cert, files.key))


def _listen(reactor: Any, hosts: list[str], port: int, factory: Any) -> list[Any] | None:
    """Listen on one port of each address; None if the free one of the first is not free on all."""
    made: list[Any] = []
    for host in hosts:
        wanted = made[0].getHost().port if made else port
        try:
            made.append(reactor.listenTCP(wanted, factory, backlog=BACKLOG, interface=host))
        except CannotListenError as error:
            code = getattr(error.socketError, "errno", None)
            unknown_here = code in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
            if unknown_here and (made or host != hosts[-1]):
                continue
            for each in made:
                each.stopListening()
            if made and not port and code == errno.EADDRINUSE:
                return None
            raise
    return made


async def _addresses(reactor: Any, host: str) -> list[str]:
    if host in ("", "*", "0"):
        return ["0.0.0.0"]
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        return await in_thread(reactor, "resolve", _resolved, host)


def _resolved(host: str) -> list[str]:
    found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
