"""
How a later layer of configuration lies over an earlier one.

docs/configuration.md, "Defaults and how they merge", holds the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_JOINED_BY = {"environment": "key", "secrets": "name"}
_REPLACED = frozenset({"fingerprint"})
_CLEARED_BY_BLANK = frozenset({"verify"})


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return C{over} laid on C{base}; neither is changed."""
    merged = dict(base)
    for key, value in over.items():
        merged[key] = merge_value(key, merged[key], value) if key in merged else alone(key, value)
    return merged


def merge_value(key: str, base: Any, over: Any) -> Any:
    """Return the value of C{key} when both layers have one."""
    if isinstance(base, dict):
        if isinstance(over, dict):
            return merge(base, over)
        return base if over is None and key not in _CLEARED_BY_BLANK else over
    if isinstance(base, list) and isinstance(over, list):
        return _merge_lists(key, base, over)
    return over if not isinstance(over, dict) else alone(key, over)


def alone(key: str, value: Any) -> Any:
    """Return the value of C{key} when only this layer has one: keyed lists lose repeats."""
    if key in _JOINED_BY and isinstance(value, list):
        return _merge_lists(key, [], value)
    return value


def _merge_lists(key: str, base: list[Any], over: list[Any]) -> list[Any]:
    if key in _REPLACED:
        return over
    by = _JOINED_BY.get(key)
    if by is None:
        return base + over
    joined = {entry[by]: entry for entry in base}
    joined.update((entry[by], entry) for entry in over)
    return list(joined.values())
