"""The one exception by which a handler answers with an error."""

from __future__ import annotations

from collections.abc import Mapping

UNAUTHORIZED = "401: Unauthorized"
NOT_FOUND = "404: Not Found"
METHOD_NOT_ALLOWED = "405: Method Not Allowed"
INTERNAL = "the server met an internal error; its log tells what happened"


class Refused(Exception):
    """
    A request that gets an error answer: a status, and a reason for whoever sent it.

    C{dressed} says whether the operator's own headers go with it.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        headers: Mapping[str, str] | None = None,
        dressed: bool = False,
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.headers = dict(headers or {})
        self.dressed = dressed


def not_found(reason: str = NOT_FOUND) -> Refused:
    """Return the refusal for something that is not there."""
    return Refused(404, reason)


def unauthorized() -> Refused:
    """Return the one refusal for every kind of missing or wrong credential."""
    return Refused(401, UNAUTHORIZED, {"WWW-Authenticate": 'Bearer realm="cronstable"'})
