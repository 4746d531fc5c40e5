"""
The names of record files, which are the order of a stream.

C{<epoch>-<instance>-<number>}: 20 characters of wall-clock seconds, 12 hex digits, 12 digits
(docs/store-format.md, "Records").
"""

from __future__ import annotations

import re
from collections.abc import Iterable

SUFFIX = ".json"

_HEAD = re.compile(r"[0-9]{13}\.[0-9]{6}")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def head(epoch: float) -> str:
    """Return the first 20 characters of a stem written at C{epoch}."""
    return f"{max(0.0, epoch):020.6f}"


def bumped(text: str) -> str | None:
    """Return the head one microsecond after C{text}; None where there is none of 20 characters."""
    digits = f"{int(text.replace('.', '')) + 1:019d}"
    return f"{digits[:13]}.{digits[13:]}" if len(digits) == 19 else None


def canonical_head(stem: str) -> str | None:
    """Return the head of a stem if it may raise the floor of its stream, else None."""
    text, dash, _ = stem.partition("-")
    return text if dash and _HEAD.fullmatch(text) else None


def greatest(files: Iterable[str]) -> str:
    """Return the greatest stem among record file names that may raise a floor, else ''."""
    return max((stem for stem in map(_stem, files) if canonical_head(stem)), default="")


def above(floor: str, epoch: float, instance: str, number: str) -> str:
    """Return the stem of a record written at C{epoch} into a stream that has reached C{floor}."""
    natural = f"{head(epoch)}-{instance}-{number}"
    if natural > floor:
        return natural
    step = bumped(canonical_head(floor) or "")
    return natural if step is None else f"{step}-{instance}-{number}"


def written_at(file: str) -> float | None:
    """Return the epoch seconds that a record's file name tells, None if it tells none."""
    text, dash, _ = _stem(file).partition("-")
    if not dash or not _NUMBER.fullmatch(text):
        return None
    epoch = float(text)
    return epoch if epoch < float("inf") else None


def _stem(file: str) -> str:
    return file[: -len(SUFFIX)] if file.endswith(SUFFIX) else file
