"""Instants as records spell them: ISO 8601 in UTC (docs/store-format.md, "Bytes")."""

from __future__ import annotations

from datetime import datetime, timezone

_FIRST = -62_135_596_800.0
_LAST = 253_402_300_799.0
"""From the year 1 to the year 9999: other instants could be read, but not be told again."""


def to_text(epoch: float) -> str:
    """Return an instant of epoch seconds as C{2026-01-02T03:04:05.678901+00:00}."""
    return datetime.fromtimestamp(epoch, timezone.utc).isoformat()


def from_text(text: object) -> float | None:
    """Return the epoch seconds of ISO 8601 text (naive: UTC), None if it is none."""
    if not isinstance(text, str):
        return None
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        if text[-1:] not in "zZ":
            return None
        try:
            instant = datetime.fromisoformat(text[:-1] + "+00:00")
        except ValueError:
            return None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=timezone.utc)
    epoch = instant.timestamp()
    return epoch if _FIRST <= epoch <= _LAST else None
