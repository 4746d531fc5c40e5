"""
Addresses as they are written in a configuration: taken apart, and judged by whom they reach.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from urllib.parse import urlsplit

import attrs

_DIGITS = re.compile(r"[0-9]{1,5}")
_MAYBE_SHORT = re.compile(r"[0-9a-fxA-FX.]+")


@attrs.frozen
class HostPort:
    """A host without brackets and a port; C{port} is None where none was written."""

    host: str
    port: int | None


@attrs.frozen
class Listener:
    """One address to listen on; C{scheme} is lower case, empty for a bare C{host:port}."""

    scheme: str
    host: str = ""
    port: int | None = None
    path: str = ""

    @property
    def routable(self) -> bool:
        """Whether others than this host's processes may reach it, as far as can be told."""
        return self.scheme != "unix" and not is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Return whether C{host} names this host only: 127.0.0.0/8, ::1, C{localhost}."""
    if host.lower() == "localhost":
        return True
    address = _numeric(host)
    if address is None:
        return False
    return address.is_loopback and getattr(address, "ipv4_mapped", None) is None


def is_wildcard(host: str) -> bool:
    """Return whether C{host} stands for every address of this host."""
    address = _numeric(host)
    return host in ("", "*") or (address is not None and address.is_unspecified)


def _numeric(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address that the system takes C{host} for, also in a short form: C{127.1}."""
    if _MAYBE_SHORT.fullmatch(host):
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except OSError:
            return None
    return _literal(host)


def _literal(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def can_be_looked_up(host: str) -> bool:
    """Return whether a resolver takes C{host} at all: its labels have 1 to 63 letters, encoded."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


def host_port(written: str, *, lowest: int = 1, port_optional: bool = False) -> HostPort:
    """Return the parts of C{host:port} or C{[ipv6]:port}; raises ValueError with a hint."""
    shown = without_userinfo(written)
    if written.startswith("["):
        host, bracket, rest = written[1:].partition("]")
        if not bracket or _literal(host) is None:
            raise ValueError(f"not [ipv6]:port, got {shown!r}")
    elif written.count(":") > 1:
        raise ValueError(f"an IPv6 address needs brackets, got {shown!r}; write [address]:port")
    else:
        host, colon, rest = written.partition(":")
        rest = colon + rest
    if not rest and port_optional:
        if host:
            return HostPort(host, None)
    elif host and rest[:1] == ":" and _DIGITS.fullmatch(rest[1:]):
        port = int(rest[1:])
        if lowest <= port <= 65535:
            return HostPort(host, port)
    raise ValueError(f"not host:port, got {shown!r}; the port from {lowest} to 65535")


def same_node(peer: str, listen: str) -> bool:
    """
    Return whether C{peer} is the node that listens on C{listen}.

    That is the same text, or a loopback literal of the same family and port under a wildcard.
    """
    if peer == listen:
        return True
    theirs, ours = host_port(peer), host_port(listen)
    mine, other = _literal(ours.host), _literal(theirs.host)
    return (
        mine is not None
        and other is not None
        and mine.version == other.version
        and mine.is_unspecified
        and other.is_loopback
        and theirs.port == ours.port
    )


def listener(url: str) -> Listener | None:
    """Return the parts of a C{web.listen} entry, None when it is none that can be served."""
    scheme, separator, rest = url.partition("://")
    scheme = scheme.lower()
    if not separator:
        return None
    if scheme == "unix":
        return Listener(scheme, path=rest) if rest.startswith("/") else None
    if scheme not in ("http", "https"):
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    return Listener(scheme, host, port) if host and port is not None else None


def loose_listener(url: str) -> Listener:
    """Return what can be told of a C{web.listen} entry, be it servable or not."""
    found = listener(url)
    if found is not None:
        return found
    scheme = url.partition("://")[0].lower() if "://" in url else ""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        host = ""
    return Listener(scheme, host)


def without_userinfo(url: str) -> str:
    """Return C{url}, or C{host:port}, with any user and password before the host replaced."""
    return re.sub(r"(^|(?<=://))[^/?#]*@", "***@", url, count=1)
