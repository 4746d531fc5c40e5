"""
Checks of numbers and sizes, each a sentence about what is wrong or None.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

Check = Callable[[Any], "str | None"]

_MEMORY = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(?:([kmgt])i?b?|b)?", re.IGNORECASE | re.ASCII)
_POWER = {"k": 1, "m": 2, "g": 3, "t": 4}
_MIB = 1024**2
_OCTAL = re.compile(r"(?:0[oO]?)?[0-7]{1,3}")


def at_least(limit: float) -> Check:
    """Return a check that a number is C{limit} or more; None passes, NaN does not."""

    def check(value: Any) -> str | None:
        if value is None or value >= limit:
            return None
        return f"out of range, got {value}; at least {limit}"

    return check


def above(limit: float) -> Check:
    """Return a check that a number is more than C{limit}; None passes, NaN does not."""

    def check(value: Any) -> str | None:
        if value is None or value > limit:
            return None
        return f"out of range, got {value}; more than {limit}"

    return check


def finite_above(limit: float) -> Check:
    """Return a check that a number is finite and more than C{limit}."""

    def check(value: Any) -> str | None:
        if value > limit and math.isfinite(value):
            return None
        return f"out of range, got {value}; finite and more than {limit}"

    return check


def finite_at_least(limit: float) -> Check:
    """Return a check that a number is finite and C{limit} or more."""

    def check(value: Any) -> str | None:
        if value >= limit and math.isfinite(value):
            return None
        return f"out of range, got {value}; finite and at least {limit}"

    return check


def between(low: float, high: float) -> Check:
    """Return a check that a number lies from C{low} to C{high}, both included."""

    def check(value: Any) -> str | None:
        if low <= value <= high:
            return None
        return f"out of range, got {value}; {low} to {high}"

    return check


def cpu(written: str) -> float | None:
    """Return the CPUs of a cap, None for C{max}; raises ValueError."""
    trimmed = written.strip()
    if trimmed.lower() == "max":
        return None
    try:
        value = float(trimmed) if trimmed.isascii() else math.nan
    except ValueError:
        value = math.nan
    if not 0.01 <= value <= 1000000:
        raise ValueError(f"not a CPU count, got {written!r}; 0.01 to 1000000, or max")
    return value


def memory(written: str) -> int | None:
    """Return the bytes of a cap, None for C{max}; raises ValueError."""
    trimmed = written.strip()
    if trimmed.lower() == "max":
        return None
    match = _MEMORY.fullmatch(trimmed)
    size = 0
    if match is not None and len(trimmed) < 100:
        power = _POWER.get((match.group(2) or "").lower(), 0)
        size = int(Fraction(match.group(1)) * 1024**power)
    if not _MIB <= size < 2**63:
        raise ValueError(
            f"not a size, got {written!r}; bytes or a number with K, M, G or T (powers of 1024), "
            "at least 1 MiB and less than 8 EiB, or max"
        )
    return size


def processes(written: str) -> int | None:
    """Return the processes of a cap, None for C{max}; raises ValueError."""
    trimmed = written.strip()
    if trimmed.lower() == "max":
        return None
    try:
        value = int(trimmed) if trimmed.isascii() and len(trimmed) < 100 else 0
    except ValueError:
        value = 0
    if not 1 <= value <= 4194304:
        raise ValueError(f"not a process count, got {written!r}; 1 to 4194304, or max")
    return value


def umask(written: str) -> int:
    """Return the file mode mask that octal text spells; raises ValueError."""
    if _OCTAL.fullmatch(written) is None:
        raise ValueError(f"not a file mode mask, got {written!r}; octal, 000 to 777")
    return int(written.lower().replace("o", ""), 8)
