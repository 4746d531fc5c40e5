"""Enough of PromQL to evaluate the alerts of docs/metrics.md over scrapes."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Series = Mapping[tuple[str, Labels], float]

_TOKEN = re.compile(
    r"\s*([a-zA-Z_][a-zA-Z0-9_]*|\d+(?:\.\d+)?|\"[^\"]*\"|==|!=|>=|<=|[-/(){}\[\]=,<>])"
)
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class Query:
    """One expression; evaluated it is a vector, empty if nothing fires, or a number."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise ValueError(f"cannot read {text[at:]!r}")
            self._tokens.append(match.group(1))
            at = match.end()

    def evaluate(self, now: float, series: Series, before: Series) -> Any:
        """Evaluate at C{now} over C{series}; C{before} is the scrape at the start of ranges."""
        self._left = list(self._tokens)
        self._now, self._series, self._before = now, series, before
        value = self._unless()
        if self._left:
            raise ValueError(f"left over: {self._left}")
        return value

    def _take(self, *wanted: str) -> str:
        token = self._left.pop(0)
        if wanted and token not in wanted:
            raise ValueError(f"expected {wanted}, got {token}")
        return token

    def _next(self) -> str:
        return self._left[0] if self._left else ""

    def _names(self) -> list[str]:
        self._take("(")
        names = []
        while self._next() != ")":
            names.append(self._take())
            if self._next() == ",":
                self._take()
        self._take(")")
        return names

    def _unless(self) -> Any:
        value = self._compared()
        if self._next() == "unless":
            self._take()
            self._take("on")
            names = self._names()
            gone = {_only(labels, names) for labels in self._compared()}
            value = {
                labels: each for labels, each in value.items() if _only(labels, names) not in gone
            }
        return value

    def _compared(self) -> Any:
        left = self._arithmetic()
        if self._next() not in _COMPARE:
            return left
        holds = _COMPARE[self._take()]
        right = self._arithmetic()
        if isinstance(right, dict):
            return {
                labels: value
                for labels, value in left.items()
                if labels in right and holds(value, right[labels])
            }
        return {labels: value for labels, value in left.items() if holds(value, right)}

    def _arithmetic(self) -> Any:
        left = self._term()
        while self._next() in ("-", "/"):
            apply = operator.sub if self._take() == "-" else operator.truediv
            ignored: list[str] = []
            if self._next() == "ignoring":
                self._take()
                ignored = self._names()
            left = _combine(apply, left, self._term(), ignored)
        return left

    def _term(self) -> Any:
        token = self._take()
        if token[0].isdigit():
            return float(token)
        if token == "time":
            self._take("("), self._take(")")
            return self._now
        if token == "increase":
            self._take("(")
            after, earlier = self._selector(self._take(), ranged=True)
            self._take(")")
            return {labels: value - earlier.get(labels, 0.0) for labels, value in after.items()}
        if token in ("sum", "max"):
            names = []
            if self._next() == "by":
                self._take()
                names = self._names()
            self._take("(")
            value = self._unless()
            self._take(")")
            return _grouped(sum if token == "sum" else max, value, names)
        return self._selector(token)[0]

    def _selector(self, name: str, ranged: bool = False) -> tuple[Vector, Vector]:
        wanted = {}
        if self._next() == "{":
            self._take()
            while self._next() != "}":
                label = self._take()
                self._take("=")
                wanted[label] = self._take().strip('"')
                if self._next() == ",":
                    self._take()
            self._take("}")
        if ranged:
            self._take("["), self._take(), self._take(), self._take("]")
        return tuple(  # type: ignore[return-value]
            {
                labels: value
                for (known, labels), value in series.items()
                if known == name and wanted.items() <= dict(labels).items()
            }
            for series in (self._series, self._before)
        )


def _only(labels: Labels, names: list[str]) -> Labels:
    return frozenset(pair for pair in labels if pair[0] in names)


def _without(labels: Labels, names: list[str]) -> Labels:
    return frozenset(pair for pair in labels if pair[0] not in names)


def _combine(
    apply: Callable[[float, float], float], left: Any, right: Any, ignored: list[str]
) -> Any:
    if not isinstance(left, dict):
        return {labels: apply(left, value) for labels, value in right.items()}
    if not isinstance(right, dict):
        return {labels: apply(value, right) for labels, value in left.items()}
    other = {_without(labels, ignored): value for labels, value in right.items()}
    return {
        _without(labels, ignored): apply(value, other[_without(labels, ignored)])
        for labels, value in left.items()
        if _without(labels, ignored) in other
    }


def _grouped(apply: Callable[[list[float]], float], vector: Vector, names: list[str]) -> Vector:
    groups: dict[Labels, list[float]] = {}
    for labels, value in vector.items():
        groups.setdefault(_only(labels, names), []).append(value)
    return {labels: apply(values) for labels, values in groups.items()}
