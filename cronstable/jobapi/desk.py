"""
What handlers share: the limits in force, who may ask, and the store, whose trouble is told in the
log and never to a job.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

from cronstable.clock import Clock
from cronstable.config.sections_values import JobApiConfig
from cronstable.jobapi.callers import Caller, Callers
from cronstable.jobapi.refusal import NO_LOCKS, UNAVAILABLE, Refused, bad, too_large
from cronstable.state.encoding import Data
from cronstable.state.errors import TROUBLE, NotPortable, StoreMissing
from cronstable.state.jobstate import TooLarge
from cronstable.state.repeats import Repeats
from cronstable.state.service import StoreService
from cronstable.state.store import Store

log = logging.getLogger("cronstable.jobapi")

T = TypeVar("T")

BEYOND_VALUES = 65536
"""Bytes of a JSON request besides the value that it carries."""

QUOTED = re.compile(r"'[^']*'")
"""The path in the text of an error of the system; that of a temporary file is never the same."""


class Desk:
    """Everything that a handler needs besides its request."""

    def __init__(self, clock: Clock, store: StoreService) -> None:
        self.clock = clock
        self.store = store
        self.callers = Callers()
        self.config = JobApiConfig()
        self._repeats = Repeats(clock)

    @property
    def body_limit(self) -> int | None:
        """The bytes that any body may have, None for any number."""
        values, artifacts = self.config.max_value_bytes, self.config.max_artifact_bytes
        if not values or not artifacts:
            return None
        return max(artifacts, 6 * values) + BEYOND_VALUES

    @property
    def json_limit(self) -> int | None:
        """The bytes that a JSON body may have: a value may be six times as long in escapes."""
        values = self.config.max_value_bytes
        return 6 * values + BEYOND_VALUES if values else None

    async def ask(self, what: str, question: Callable[[Store], T]) -> T:
        """
        Return what the store says; raises L{Refused} for what is wrong with it or with C{what}.
        """
        try:
            return await self.store.ask(question)
        except TooLarge as error:
            raise too_large(what, error.size, error.limit) from None
        except NotPortable as error:
            raise bad(f"{what} is not portable across the fleet: {error}") from None
        except TROUBLE as error:
            raise self.unavailable(error) from None

    def check_locks(self) -> None:
        """Raise L{Refused} where locks of the store exclude nobody."""
        view = self.store.view
        if view is not None and view.locks_refused is not None:
            self._say(view.locks_refused)
            raise Refused(503, NO_LOCKS)

    def unavailable(self, error: Exception) -> Refused:
        """Tell the log what is wrong with the store, and return what a job is told."""
        self._say(str(error))
        return Refused(503, UNAVAILABLE)

    def _say(self, reason: str) -> None:
        more = self._repeats.again(QUOTED.sub("", reason))
        if more is not None:
            log.warning("state job API: the store cannot serve jobs: %s%s", reason, more)


@attrs.frozen
class Call:
    """One request that was let in: by whom, and what it says (a JSON object or a query)."""

    desk: Desk
    caller: Caller
    said: Mapping[str, Any]
    request: Any

    @property
    def scope(self) -> str:
        """The scope that it is about; raises L{Refused}."""
        scope = self.caller.scope(self.said.get("scope"))
        if scope != scope.strip():
            raise bad(
                f"scope {scope!r} has blanks at an end and cannot be used; scopes are compared as"
                " they are written"
            )
        return scope

    def text(self, name: str) -> str:
        """Return a text that must be there; raises L{Refused}."""
        value = self.said.get(name)
        if value is None or value == "":
            raise bad(f"{name} is required")
        if not isinstance(value, str):
            raise bad(f"{name} must be a string")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise bad(f"{name} holds a lone surrogate, which is not valid UTF-8") from None
        return value


def found(store: Store, answer: T) -> T:
    """
    Return what was looked up.

    Raises L{StoreMissing} where nothing was found because the whole store is not there, so that
    an outage never looks like absence.
    """
    if not answer:
        try:
            store.tree.files.status(store.tree.root)
        except FileNotFoundError:
            raise StoreMissing(store.tree.root) from None
    return answer


def stored(body: Data) -> dict[str, Any]:
    """Return what a job is told of a key or a cursor."""
    return {"value": body.get("value"), "updatedAt": body.get("updatedAt")}


def encoded(value: Any) -> bytes:
    """Return C{value} as JSON in ASCII, whatever its texts hold."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")
