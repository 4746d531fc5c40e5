"""The one exception by which a request is answered with an error."""

from __future__ import annotations

from collections.abc import Mapping

UNAUTHORIZED = "401: Unauthorized"
NOT_FOUND = "404: Not Found"
METHOD_NOT_ALLOWED = "405: Method Not Allowed"
INTERNAL = "internal error; the cronstable log tells what happened"
UNAVAILABLE = "the state store is unavailable; the cronstable log tells why"
NO_LOCKS = "the state store cannot coordinate; the cronstable log tells why"


class Refused(Exception):
    """
    A request that gets an error answer: a status, and a reason for whoever sent it.

    C{charset} marks what is refused before any handler has seen it, as the API always has.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        headers: Mapping[str, str] | None = None,
        charset: bool = False,
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.headers = dict(headers or {})
        self.charset = charset


def bad(reason: str) -> Refused:
    """Return the refusal of a request that is wrong in itself."""
    return Refused(400, reason)


def absent(reason: str) -> Refused:
    """Return the refusal for something that is not there."""
    return Refused(404, reason)


def unauthorized() -> Refused:
    """Return the one refusal for every kind of missing or wrong token."""
    return Refused(401, UNAUTHORIZED, charset=True)


def too_long(limit: int) -> Refused:
    """Return the refusal of a body over the limit of all bodies."""
    return Refused(413, f"Maximum request body size {limit} exceeded.", charset=True)


def too_large(what: str, size: int, limit: int) -> Refused:
    """Return the refusal of a value or payload over its limit."""
    return Refused(413, f"{what} of {size} bytes exceeds the configured limit of {limit} bytes")
