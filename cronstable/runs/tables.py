"""
Who is asked what, and what follows: the rules of admission and their consequences, as data.

Rows are gates or duties, columns are causes.  C{python -m cronstable.runs.tables} prints them;
docs/admission.md holds the print.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from cronstable.runs.record import Cause

CAUSES: tuple[Cause, ...] = ("scheduled", "boot", "retry", "catchup", "manual", "task")

ANSWERED: frozenset[Cause] = frozenset(("manual", "task"))
"""Causes behind which somebody waits to be told: a no is a refusal, and no slot is skipped."""

Answer = Literal["-", "skip", "row", "miss", "defer", "refuse"]

MEANINGS: Mapping[str, str] = {
    "-": "not asked",
    "skip": "the slot is skipped with the gate's reason",
    "row": "skipped, and a `skipped` row enters the history",
    "miss": "the slot is missed with the gate's reason",
    "defer": "asked again later by whoever sent it",
    "refuse": "an answer to the person who asked, nothing else",
}


@attrs.frozen
class Judgement:
    """One gate that changes nothing: its name, whether it is asked again just before the spawn."""

    gate: str
    again: bool
    answers: tuple[Answer, ...]

    def answer(self, cause: Cause) -> Answer:
        """Return what a no of this gate means for C{cause}."""
        return self.answers[CAUSES.index(cause)]


#                          scheduled  boot     retry    catchup  manual    task
JUDGEMENTS: tuple[Judgement, ...] = (
    Judgement("draining", True, ("miss", "miss", "skip", "defer", "refuse", "refuse")),
    Judgement("configured", True, ("miss", "miss", "skip", "miss", "refuse", "-")),
    Judgement("enabled", True, ("skip", "skip", "skip", "skip", "refuse", "-")),
    Judgement("sequence", True, ("-", "-", "skip", "-", "-", "-")),
    Judgement("paused", True, ("row", "defer", "defer", "defer", "-", "-")),
    Judgement("leadership", True, ("skip", "defer", "defer", "defer", "-", "-")),
    Judgement("last-succeeded", False, ("skip", "skip", "-", "-", "-", "-")),
    Judgement("overlap", True, ("skip", "skip", "skip", "defer", "refuse", "-")),
)


@attrs.frozen
class ClaimRow:
    """One gate that takes something, and what its no means for each cause that it is asked of."""

    claim: str
    answers: tuple[Answer, ...]

    def answer(self, cause: Cause) -> Answer:
        """Return what a no of this claim means for C{cause}."""
        return self.answers[CAUSES.index(cause)]


#                         scheduled  boot     retry    catchup  manual    task
CLAIMS: tuple[ClaimRow, ...] = (
    ClaimRow("retry-claim", ("-", "-", "defer", "-", "-", "-")),
    ClaimRow("boot-marker", ("-", "skip", "-", "-", "-", "-")),
)


@attrs.frozen
class Consequence:
    """One duty at a run's start or end, and the causes that have it."""

    duty: str
    causes: tuple[Cause, ...]

    def applies(self, cause: Cause) -> bool:
        """Return whether a run of C{cause} has this duty."""
        return cause in self.causes


_JOBS: tuple[Cause, ...] = ("scheduled", "boot", "retry", "catchup", "manual")

CONSEQUENCES: tuple[Consequence, ...] = (
    Consequence("owns a slot", ("scheduled", "boot", "catchup")),
    Consequence("begins a retry sequence", ("scheduled", "boot")),
    Consequence("uses a retry sequence", ("scheduled", "boot", "retry", "manual")),
    Consequence("writes history", _JOBS),
    Consequence("counts in job metrics", _JOBS),
    Consequence("sends job reports", _JOBS),
)

_BY_DUTY = {each.duty: frozenset(each.causes) for each in CONSEQUENCES}

BEGINS_SEQUENCE = _BY_DUTY["begins a retry sequence"]
USES_SEQUENCE = _BY_DUTY["uses a retry sequence"]
WRITES_HISTORY = _BY_DUTY["writes history"]
COUNTS = _BY_DUTY["counts in job metrics"]
REPORTS = _BY_DUTY["sends job reports"]


def rows_for(cause: Cause) -> tuple[tuple[str, Answer, bool], ...]:
    """Return (gate, answer, again) of each judgement that C{cause} is asked, in order."""
    return _ROWS[cause]


def claim_answer(claim: str, cause: Cause) -> Answer:
    """Return what a no of C{claim} means; one that the table does not know skips or refuses."""
    for row in CLAIMS:
        if row.claim == claim:
            return row.answer(cause)
    return "refuse" if cause in ANSWERED else "skip"


_ROWS: dict[Cause, tuple[tuple[str, Answer, bool], ...]] = {
    cause: tuple(
        (row.gate, row.answer(cause), row.again) for row in JUDGEMENTS if row.answer(cause) != "-"
    )
    for cause in CAUSES
}


def as_markdown() -> str:
    """Return the tables as the documentation prints them."""
    lines = ["## Judgements", ""]
    lines += _table(
        ["gate", "asked again at the spawn", *CAUSES],
        [[row.gate, "yes" if row.again else "no", *row.answers] for row in JUDGEMENTS],
    )
    lines += ["", *(f"- `{word}`: {meaning}" for word, meaning in MEANINGS.items())]
    lines += ["", "## Claims", ""]
    lines += _table(
        ["claim", *CAUSES],
        [[row.claim, *row.answers] for row in CLAIMS],
    )
    lines += ["", "## Consequences", ""]
    lines += _table(
        ["duty", *CAUSES],
        [[row.duty, *("yes" if row.applies(c) else "-" for c in CAUSES)] for row in CONSEQUENCES],
    )
    return "\n".join(lines) + "\n"


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


if __name__ == "__main__":
    print(as_markdown(), end="")
