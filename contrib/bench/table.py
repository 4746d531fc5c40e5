"""The table of a run: what is asked of each bar, what was found, and whether that will do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

Found = Mapping[str, float]
"""Medians of one target by the key of their bar."""


@dataclass(frozen=True)
class Rule:
    """
    A bound: C{factor} times what the peer or the limit reached, or C{factor} itself.

    At most that, or C{least} that.
    """

    factor: float
    of: Literal["peer", "limit", "fixed"] = "fixed"
    least: bool = False

    def __str__(self) -> str:
        """Return the bound as it is written in the table."""
        sign = ">=" if self.least else "<="
        return f"{sign} {self.factor:g}" + ("" if self.of == "fixed" else f" x {self.of}")

    def met(self, ours: float, others: Mapping[str, float | None]) -> bool | None:
        """Return whether C{ours} keeps the bound; None when what it refers to is not known."""
        base = 1.0 if self.of == "fixed" else others.get(self.of)
        if base is None:
            return None
        bound = self.factor * base
        return ours >= bound if self.least else ours <= bound


@dataclass(frozen=True)
class Bar:
    """One thing that is measured: its measure and key, what it is called, its unit and bounds."""

    measure: str
    key: str
    title: str
    unit: str
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class Row:
    """A bar with what was found; None where nothing was."""

    bar: Bar
    ours: float | None
    peer: float | None
    limit: float | None

    @property
    def verdict(self) -> str:
        """C{met}, C{missed}, or C{-} when there is no bound that could be judged."""
        if self.ours is None:
            return "-"
        others = {"peer": self.peer, "limit": self.limit}
        answers = [rule.met(self.ours, others) for rule in self.bar.rules]
        if False in answers:
            return "missed"
        return "met" if True in answers else "-"

    @property
    def ratio(self) -> str:
        """Ours to what the first relative bound refers to, else to the peer."""
        of = next((rule.of for rule in self.bar.rules if rule.of != "fixed"), "peer")
        base = self.limit if of == "limit" else self.peer
        if self.ours is None or not base:
            return "-"
        return f"{self.ours / base:.2f} x {of}"


def medians(rounds: Iterable[Found]) -> dict[str, float]:
    """Return the median of each key over some rounds."""
    found: dict[str, list[float]] = {}
    for each in rounds:
        for key, value in each.items():
            found.setdefault(key, []).append(value)
    return {key: median(values) for key, values in found.items()}


def rows(bars: Iterable[Bar], ours: Found, peer: Found, limit: Found) -> list[Row]:
    """Return a row for each bar of which something is known."""
    made = []
    for bar in bars:
        known = (ours.get(bar.key), peer.get(bar.key), limit.get(bar.key))
        if any(value is not None for value in known):
            made.append(Row(bar, *known))
    return made


def number(value: float | None) -> str:
    """Return three significant digits, thousands in full, or C{-}."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def render(found: Sequence[Row]) -> str:
    """Return the table as Markdown."""
    head = ("", "unit", "ours", "peer", "limit", "ratio", "target", "verdict")
    lines = [head, tuple("-" * 3 for _ in head)]
    for row in found:
        bar = row.bar
        target = "; ".join(map(str, bar.rules)) or "-"
        values = (number(row.ours), number(row.peer), number(row.limit))
        title = f"{bar.measure} {bar.title}"
        lines.append((title, bar.unit, *values, row.ratio, target, row.verdict))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    )
