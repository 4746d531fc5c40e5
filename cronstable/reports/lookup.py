"""
Endpoints of hosts by name, for every name that the system's resolver takes.

Twisted refuses a name that is not one of the public Internet; hosts file, containers and service
discovery have others, with underscores.
"""

from __future__ import annotations

from typing import Any

from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.interfaces import IReactorPluggableNameResolver
from zope.interface import implementer


def endpoint_of(reactor: Any, host: str, port: int, timeout: float) -> Any:
    """Return an C{IStreamClientEndpoint} that connects to C{host} in C{timeout} seconds at most."""
    if "_" in host:
        return HostnameEndpoint(_LooksUp(reactor, host), "other.invalid", port, timeout=timeout)
    return HostnameEndpoint(reactor, host, port, timeout=timeout)


@implementer(IReactorPluggableNameResolver)
class _LooksUp:
    """The reactor, but that it looks C{host} up whatever name it is asked for."""

    def __init__(self, reactor: Any, host: str) -> None:
        self._reactor = reactor
        self._host = host
        self.nameResolver = self

    def resolveHostName(self, receiver: Any, name: str, *options: Any, **more: Any) -> Any:  # noqa: N802
        """Look C{host} up."""
        return self._reactor.nameResolver.resolveHostName(receiver, self._host, *options, **more)

    def installNameResolver(self, resolver: Any) -> Any:  # noqa: N802 - the interface's name
        """Nobody does that to a connection's reactor."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reactor, name)
