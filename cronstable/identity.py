"""Who this process is: one value, handed to constructors."""

from __future__ import annotations

import secrets
import socket

import attrs


@attrs.frozen
class Identity:
    """Names of this node and of this process's life."""

    node_name: str
    host: str
    pid: int
    instance: str
    """A random token of this process, 32 hex digits."""

    @property
    def process(self) -> str:
        """What names this process in records and in the references of its runs, 12 hex digits."""
        return self.instance[:12]

    @property
    def holder(self) -> str:
        """How this process signs what it holds in a store: its host and a token of its own."""
        return f"{self.host}#{self.process}"


def host_name() -> str:
    """Return the name of this host; bytes that are no text are spelled out: C{\\udcff}."""
    return socket.gethostname().encode("utf-8", "backslashreplace").decode("utf-8")


def this_process(pid: int, node_name: str | None = None) -> Identity:
    """Return the identity of the running process; C{node_name} defaults to the host name."""
    host = host_name()
    return Identity(node_name or host, host, pid, secrets.token_hex(16))
