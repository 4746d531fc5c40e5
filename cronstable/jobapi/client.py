"""
The client of the job API, for commands that run inside a job: quick to start, and strict.

It knows the endpoint from its environment alone; what it sends goes there and nowhere else.
docs/job-state.md describes the commands.
"""

from __future__ import annotations

from cronstable.jobapi.http1 import Answer, BadUrl, Url, chunked, exchange, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, Protocol

    class Readable(Protocol):
        """What gives bytes until there are no more."""

        def read(self, size: int) -> bytes:
            """Return at most C{size} bytes, none at the end."""

    Query = Sequence[tuple[str, "str | None"]]

URL = "CRONSTABLE_STATE_URL"
TOKEN = "CRONSTABLE_STATE_TOKEN"
CACERT = "CRONSTABLE_STATE_CACERT"

TIMEOUT = 30.0
"""Seconds that the endpoint may be silent."""

GATHERED = 1 << 20
"""Bytes of a body of unknown length that are gathered before it is sent in chunks."""

_INSIDE = "this command works inside a job that cronstable runs with state.jobApi on"


class Trouble(Exception):
    """A request could not be made, or was refused; the text says why."""


class Absent(Trouble):
    """What was looked up is not there."""


class Endpoint:
    """The job API as a job sees it."""

    def __init__(self, url: str, token: str, cacert: str | None = None) -> None:
        self._shown = url
        self._token = token
        self._cacert = cacert
        try:
            self._url = Url(url)
        except BadUrl as error:
            raise Trouble(
                f"cannot send a request to the cronstable state endpoint at {url}: {error}"
            ) from None
        if not all("!" <= char <= "~" for char in token):
            raise Trouble(f"{TOKEN} holds a character that HTTP does not allow")

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Endpoint:
        """Return the endpoint that a job's environment names; raises L{Trouble}."""
        for name in (URL, TOKEN):
            if not environ.get(name):
                raise Trouble(f"{name} is not set; {_INSIDE}")
        return cls(environ[URL], environ[TOKEN], environ.get(CACERT))

    def get(self, path: str, query: Query = ()) -> dict[str, Any]:
        """Return what GET answers; raises L{Absent} and L{Trouble}."""
        return self._json("GET", path + _query(query), {}, ())

    def post(self, path: str, body: Mapping[str, Any], timeout: float = TIMEOUT) -> dict[str, Any]:
        """Return what POST of a JSON object answers; raises L{Absent} and L{Trouble}."""
        import json

        raw = json.dumps(body).encode("ascii")
        headers = {"Content-Type": "application/json", "Content-Length": str(len(raw))}
        return self._json("POST", path, headers, (raw,), timeout)

    def upload(self, path: str, query: Query, source: Readable) -> dict[str, Any]:
        """Send all of C{source} as it is; return the answer."""
        headers = {"Content-Type": "application/octet-stream"}
        length, body = _measured(source)
        if length is None:
            headers["Transfer-Encoding"] = "chunked"
        else:
            headers["Content-Length"] = str(length)
        return self._json("POST", path + _query(query), headers, body)

    def download(self, path: str, query: Query) -> Iterator[bytes]:
        """
        Yield what GET answers, as it is; raises L{Trouble} when it is not all there.

        The first step raises L{Absent} and everything else that the answer's beginning can say.
        """
        answer = self._ask("GET", path + _query(query), {}, ())
        try:
            self._check(answer)
            yield b""
            yield from self._checked_parts(answer)
        finally:
            answer.close()

    def _checked_parts(self, answer: Answer) -> Iterator[bytes]:
        import hashlib

        seen = hashlib.sha256()
        try:
            for part in answer.parts():
                seen.update(part)
                yield part
        except OSError as error:
            raise self._unreachable(error) from None
        digest = answer.headers.get("x-cronstable-sha256")
        if digest is not None and digest != seen.hexdigest():
            raise Trouble("what came is not what was asked for: its SHA-256 differs")

    def _json(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: Iterable[bytes],
        timeout: float = TIMEOUT,
    ) -> dict[str, Any]:
        import json

        answer = self._ask(method, target, headers, body, timeout)
        try:
            self._check(answer)
            value = json.loads(answer.body())
        except OSError as error:
            raise self._unreachable(error) from None
        except ValueError:
            value = None
        finally:
            answer.close()
        if not isinstance(value, dict):
            raise Trouble(f"the endpoint at {self._shown} did not answer with a JSON object")
        return value

    def _ask(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: Iterable[bytes],
        timeout: float = TIMEOUT,
    ) -> Answer:
        common = {
            "Accept-Encoding": "identity",
            "User-Agent": "cronstable",
            "Authorization": f"Bearer {self._token}",
        }
        context = self._context()
        try:
            return exchange(
                self._url, method, target, {**common, **headers}, body, timeout, context
            )
        except OSError as error:
            raise self._unreachable(error) from None

    def _context(self) -> Any:
        if not self._url.secure:
            return None
        import ssl

        try:
            return ssl.create_default_context(cafile=self._cacert or None)
        except OSError as error:
            raise Trouble(
                f"cannot load the CA certificates that {CACERT} names ({self._cacert}): {error}"
            ) from None

    def _check(self, answer: Answer) -> None:
        """Raise what an error answer means."""
        status = answer.status
        if 200 <= status < 300:
            return
        if 300 <= status < 400:
            target = answer.headers.get("location", "somewhere unsaid")
            raise Trouble(f"the endpoint redirects to {target}, which is never followed")
        reason = _reason(answer) or f"the endpoint answered with HTTP status {status}"
        raise Absent(reason) if status == 404 else Trouble(reason)

    def _unreachable(self, error: OSError) -> Trouble:
        if type(error).__module__ == "ssl":
            return Trouble(
                f"TLS verification failed for the cronstable state endpoint at {self._shown}:"
                f" {error} (is {CACERT} the authority that signed the daemon's certificate?)"
            )
        return Trouble(f"cannot reach the cronstable state endpoint at {self._shown}: {error}")


def _reason(answer: Answer) -> str | None:
    """Return what an error answer says for itself, None if that is nothing to go by."""
    import json

    try:
        said = json.loads(answer.body())
    except (OSError, ValueError, RecursionError):
        return None
    reason = said.get("error") if isinstance(said, dict) else None
    return reason if isinstance(reason, str) and reason else None


def _query(pairs: Query) -> str:
    try:
        said = [f"{name}={quoted(value)}" for name, value in pairs if value is not None]
    except UnicodeEncodeError as error:
        raise not_utf8(error.object) from None
    return "?" + "&".join(said) if said else ""


def not_utf8(text: str) -> Trouble:
    """Return the trouble with a word that the endpoint could not be told."""
    return Trouble(f"{text!r} is not valid UTF-8, so it cannot be sent to the state endpoint")


def _measured(source: Readable) -> tuple[int | None, Iterable[bytes]]:
    """Return how long C{source} is, None where that shows only at its end, and how to send it."""
    parts: list[bytes] = []
    gathered = 0
    while gathered < GATHERED:
        part = source.read(GATHERED)
        if not part:
            return gathered, parts
        parts.append(part)
        gathered += len(part)
    return None, chunked(_all_of(parts, source))


def _all_of(begun: list[bytes], source: Readable) -> Iterator[bytes]:
    yield from begun
    yield from iter(lambda: source.read(GATHERED), b"")
