"""
Who may ask: the runs that are live, each by its own token, and the scopes it may name.

A token is worth something from before the process starts until the run ends, and not a moment
longer.  docs/job-api.md, "Tokens and scopes", tells jobs.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from cronstable.jobapi.refusal import Refused, unauthorized
from cronstable.runs.environment import RunFacts
from cronstable.state.manifests import GLOBAL_SCOPE

if TYPE_CHECKING:
    from cronstable.jobapi.holds import Hold
    from cronstable.jobapi.hunts import Hunt


@attrs.define(eq=False)
class Caller:
    """A live run: its token, the secrets staged for it, and the locks that it holds or awaits."""

    run: RunFacts
    run_id: str
    token: str = attrs.field(repr=False)
    secrets: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    holds: dict[str, Hold] = attrs.field(factory=dict, init=False, repr=False)
    hunts: set[Hunt] = attrs.field(factory=set, init=False, repr=False)
    over: bool = attrs.field(default=False, init=False)

    def scope(self, asked: object) -> str:
        """
        Return the scope that a request is about; its own where it names none.

        Raises L{Refused} for one that the job may not use.  Scopes are compared as they are
        written.
        """
        if asked is None or asked == "":
            return self.run.scope
        job = self.run.job
        if isinstance(asked, str) and (
            asked in (self.run.scope, GLOBAL_SCOPE) or asked in job.allowed_scopes
        ):
            return asked
        raise Refused(
            403,
            f"scope {asked!r} is not permitted for job {job.name!r}; add it to"
            " stateAllowedScopes to allow this job to use it",
        )


class Callers:
    """The live runs, found by what a request's Authorization header says."""

    def __init__(self) -> None:
        self._by_ref: dict[str, Caller] = {}
        self._by_digest: dict[bytes, Caller] = {}

    def add(self, caller: Caller) -> None:
        """Let C{caller} in from now on."""
        self._by_ref[caller.run.ref] = caller
        self._by_digest[_digest(caller.token.encode("ascii"))] = caller

    def remove(self, ref: str) -> Caller | None:
        """Let nobody in any more as the run C{ref}; return who that was."""
        caller = self._by_ref.pop(ref, None)
        if caller is not None:
            del self._by_digest[_digest(caller.token.encode("ascii"))]
            caller.over = True
        return caller

    def all(self) -> tuple[Caller, ...]:
        """Return the live runs that have a token."""
        return tuple(self._by_ref.values())

    def find(self, header: bytes | None) -> Caller | None:
        """
        Return who sent this Authorization header, None if it is nobody.

        The time that takes tells nothing about a token: what is looked up is a digest of what was
        sent, and what is found is compared in constant time.
        """
        scheme, _, sent = (header or b"").partition(b" ")
        caller = self._by_digest.get(_digest(sent))
        if caller is None or scheme.lower() != b"bearer":
            return None
        return caller if hmac.compare_digest(sent, caller.token.encode("ascii")) else None

    def admit(self, header: bytes | None) -> Caller:
        """Return who sent this Authorization header, or raise L{Refused}."""
        caller = self.find(header)
        if caller is None:
            raise unauthorized()
        return caller


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
