"""
One HTTP/1.1 exchange over a socket: no proxies, no redirects, nothing imported that can wait.

It speaks as much of the protocol as a local endpoint needs; docs/job-api.md, "On the wire".
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from socket import socket
    from typing import Any, BinaryIO

_LONGEST_LINE = 65536
_MOST_HEADERS = 100
_PART = 1 << 18
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~")


class BadUrl(ValueError):
    """An address that no request can be sent to."""


class BadAnswer(OSError):
    """What came back is not HTTP, or not all of it."""


class Url:
    """An address taken apart: C{secure}, C{host} without brackets, C{port}, C{base} path."""

    __slots__ = ("base", "host", "netloc", "port", "secure")

    def __init__(self, text: str) -> None:
        scheme, separator, rest = text.partition("://")
        scheme = scheme.lower()
        if not separator or scheme not in ("http", "https"):
            raise BadUrl("the address is not an http:// or https:// URL")
        self.secure = scheme == "https"
        self.netloc, slash, base = rest.partition("/")
        self.base = (slash + base).rstrip("/")
        host, port = self.netloc, ""
        if host.startswith("["):
            host, bracket, port = host[1:].partition("]")
            if not bracket or (port and not port.startswith(":")):
                raise BadUrl("the address has a broken IPv6 host")
            port = port[1:]
        else:
            host, _, port = host.partition(":")
        if not host or not all("!" <= char <= "~" for char in rest) or "@" in host:
            raise BadUrl("the address has no usable host")
        if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise BadUrl(f"the address has no usable port: {port!r}")
        self.host = host
        self.port = int(port) if port else (443 if self.secure else 80)


class Answer:
    """An answer whose body is still to be read; header names in lower case."""

    def __init__(self, stream: BinaryIO, connection: socket) -> None:
        self._stream = stream
        self._connection = connection
        self.status = self._status()
        while 100 <= self.status < 200:
            self._read_headers()
            self.status = self._status()
        self.headers: Mapping[str, str] = self._read_headers()

    def parts(self) -> Iterator[bytes]:
        """Yield the body; raises L{BadAnswer} if it ends too early."""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            yield from self._chunks()
            return
        length = self.headers.get("content-length")
        if length is None:
            yield from iter(lambda: self._stream.read(_PART), b"")
            return
        if not length.isdigit():
            raise BadAnswer("the answer has a broken Content-Length")
        yield from self._exactly(int(length))

    def body(self) -> bytes:
        """Return the whole body."""
        return b"".join(self.parts())

    def close(self) -> None:
        """Give the connection up."""
        self._stream.close()
        self._connection.close()

    def _status(self) -> int:
        words = self._line().split(None, 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
            raise BadAnswer("the answer is not HTTP")
        return int(words[1])

    def _read_headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        for _ in range(_MOST_HEADERS):
            line = self._line()
            if not line:
                return headers
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        raise BadAnswer("the answer has too many headers")

    def _line(self) -> bytes:
        line = self._stream.readline(_LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise BadAnswer("the answer ended too early" if line else "there was no answer")
        return line.rstrip(b"\r\n")

    def _exactly(self, length: int) -> Iterator[bytes]:
        while length:
            part = self._stream.read(min(length, _PART))
            if not part:
                raise BadAnswer("the answer ended too early")
            length -= len(part)
            yield part

    def _chunks(self) -> Iterator[bytes]:
        while True:
            try:
                length = int(self._line().partition(b";")[0], 16)
            except ValueError:
                raise BadAnswer("the answer has a broken chunk") from None
            if length == 0:
                return
            yield from self._exactly(length)
            self._line()


def exchange(
    url: Url,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: Iterable[bytes],
    timeout: float,
    context: Any = None,
) -> Answer:
    """
    Send a request and return the answer, whose body is still to be read.

    C{timeout} bounds each wait, in seconds.  Raises OSError.
    """
    import socket

    connection = socket.create_connection((url.host, url.port), timeout)
    try:
        if context is not None:
            connection = context.wrap_socket(connection, server_hostname=url.host)
        lines = [f"{method} {url.base}{target} HTTP/1.1", f"Host: {url.netloc}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")
        refused = _send(connection, head, body)
        try:
            return Answer(connection.makefile("rb"), connection)
        except OSError as error:
            raise (refused or error) from None
    except BaseException:
        connection.close()
        raise


def _send(connection: socket, head: bytes, body: Iterable[bytes]) -> OSError | None:
    """Send all of it; return the error where an answer may have come before all was taken."""
    try:
        for part in body:
            connection.sendall(head + part if head else part)
            head = b""
        if head:
            connection.sendall(head)
    except (BrokenPipeError, ConnectionResetError) as error:
        return error
    return None


def chunked(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a body of unknown length in the form that says where it ends."""
    for part in parts:
        if part:
            yield b"%x\r\n" % len(part) + part + b"\r\n"
    yield b"0\r\n\r\n"


def quoted(text: str) -> str:
    """Return C{text} percent-encoded for a query; raises UnicodeEncodeError."""
    raw = text.encode("utf-8")
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in raw)
