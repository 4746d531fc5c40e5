"""
Listening sockets, made here so that each says exactly what it could not do.

docs/http-api.md, "Listeners", tells operators what is bound and with which modes.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import sys
from typing import Any

BACKLOG = 512

_KEEPALIVE = (
    # A peer that vanished without a word is given up after about two minutes.
    ("TCP_KEEPIDLE", 60),
    ("TCP_KEEPINTVL", 15),
    ("TCP_KEEPCNT", 4),
    ("TCP_USER_TIMEOUT", 120_000),
)


def resolve(host: str, port: int) -> list[tuple[int, tuple[object, ...]]]:
    """Return (family, address) of each address that C{host} stands for; may ask a name server."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    seen = dict.fromkeys((int(family), tuple(address)) for family, _, _, _, address in found)
    return list(seen)


def listen_tcp(family: int, address: tuple[object, ...]) -> socket.socket:
    """Return a socket that listens on C{address}; raises OSError."""
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name != "nt":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE:
            option = getattr(socket, name, None)
            if option is not None:
                with contextlib.suppress(OSError):
                    made.setsockopt(socket.IPPROTO_TCP, option, value)
        made.bind(address)
        made.listen(BACKLOG)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made


def listen_unix(reactor: Any, path: str, factory: Any) -> Any:
    """
    Return a port that serves C{factory} on the unix socket C{path}; raises OSError.

    A socket that nobody listens on any more is replaced, anything else in its place is not.  Its
    permissions are those that the umask leaves.
    """
    from twisted.internet import tcp, unix
    from twisted.internet.error import CannotListenError

    class Port(unix.Port):  # type: ignore[misc, unused-ignore]
        """A port that takes away its own socket at the end, and nobody else's."""

        inode: tuple[int, int] | None = None

        def connectionLost(self, reason: Any) -> None:  # noqa: N802 - the name is Twisted's
            """Remove the socket unless something else has taken its place."""
            with contextlib.suppress(OSError):
                if self.inode == _inode(path):
                    os.unlink(path)
            tcp.Port.connectionLost(self, reason)

    if abandoned(path):
        os.unlink(path)
    mode = 0o777 & ~umask()
    port = Port(os.fsencode(path), factory, BACKLOG, mode=mode, reactor=reactor)
    try:
        port.startListening()
    except CannotListenError as error:
        raise error.socketError from None
    port.inode = _inode(path)
    return port


def umask() -> int:
    """Return the permissions that new files of this process do not get."""
    # It can only be read by setting it; other threads may meet the strict one for a moment.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _inode(path: str) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_dev, found.st_ino


def abandoned(path: str) -> bool:
    """Return whether C{path} is a unix socket that nobody listens on."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return False
    except OSError:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0.5)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


def unix_supported() -> bool:
    """Return whether this platform has unix sockets for us."""
    return sys.platform != "win32" and hasattr(socket, "AF_UNIX")
