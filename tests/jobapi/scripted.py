"""A server that answers one request with whatever bytes a test wants."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType


class Scripted:
    """Answers each connection in turn with C{answers}, after the whole request has come."""

    def __init__(self, *answers: bytes, unread: bool = False) -> None:
        self._answers = answers
        self._unread = unread
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.requests: list[bytes] = []
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Scripted:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Closing alone would not wake who waits for a connection.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)

    def _serve(self) -> None:
        for answer in self._answers:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(10)
                self.requests.append(b"" if self._unread else _request(connection))
                connection.sendall(answer)


def _request(connection: socket.socket) -> bytes:
    """Read a request with its body."""
    raw = b""
    while b"\r\n\r\n" not in raw:
        raw += connection.recv(65536)
    head, _, body = raw.partition(b"\r\n\r\n")
    lowered = head.lower()
    if b"transfer-encoding: chunked" in lowered:
        while not body.endswith(b"0\r\n\r\n"):
            body += connection.recv(65536)
    elif b"content-length: " in lowered:
        length = int(lowered.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        while len(body) < length:
            body += connection.recv(65536)
    return head + b"\r\n\r\n" + body
