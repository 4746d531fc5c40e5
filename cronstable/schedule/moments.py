"""
Instants as texts, texts as instants, and what becomes of a wall-clock label in a zone.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

import attrs

from cronstable.schedule.errors import short
from cronstable.schedule.tzif import Offsets

_EPOCH = datetime(1970, 1, 1)
_AWARE_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FRACTION = re.compile(r"[.,]([0-9]{1,9})(?![0-9])")
_BLANK_PLUS = re.compile(r"(?<=:[0-9]{2}) (?=[0-9]{2}:?[0-9]{2}$)")


class BadTimestamp(ValueError):
    """
    A text that is no ISO 8601 moment; the message shows the forms that are.
    """


@attrs.frozen
class Placed:
    """
    A wall-clock label in a zone: `once`, `twice` (clocks back) or in a `gap` (clocks forward).

    The instant is that of the first occurrence; in a gap, the label with the offset before it.
    """

    kind: str
    instant: float
    offset: int


def iso(instant: float, offset: int) -> str:
    """
    An instant as ISO 8601 with an offset in seconds; microseconds appear only if there are any.
    """
    zone = timezone(timedelta(seconds=offset)) if offset else timezone.utc
    return datetime.fromtimestamp(instant, zone).isoformat()


def iso_in(offsets: Offsets, instant: float) -> str:
    """
    An instant as ISO 8601 in a zone.
    """
    return iso(instant, offsets.at(instant))


def parse_moment(text: str) -> datetime:
    """
    Read an ISO 8601 moment, with or without an offset; raises BadTimestamp.
    """
    normal = _BLANK_PLUS.sub("+", text.strip())
    if normal[-1:] in ("Z", "z"):
        normal = f"{normal[:-1]}+00:00"
    normal = _FRACTION.sub(lambda form: f".{form[1]:0<6.6}", normal)
    try:
        moment = datetime.fromisoformat(normal)
        (moment.replace(tzinfo=None) - (moment.utcoffset() or timedelta())).isoformat()
    except (ValueError, OverflowError):
        raise BadTimestamp(
            f"invalid timestamp {short(text)!r}: pass ISO 8601, e.g. 2026-07-14T09:00, "
            "2026-07-14T09:00:00+02:00 or 2026-07-14T09:00:00Z"
        ) from None
    return moment


def instant_of(moment: datetime) -> float:
    """
    The instant of a moment that has an offset.
    """
    return (moment - _AWARE_EPOCH).total_seconds()


def place(offsets: Offsets, label: datetime) -> Placed:
    """
    Where a wall-clock label falls in a zone.
    """
    seconds = (label.replace(tzinfo=None) - _EPOCH).total_seconds()
    holders = [
        at for at in range(len(offsets.starts)) if offsets.firsts[at] <= seconds < offsets.ends[at]
    ]
    if holders:
        offset = offsets.offsets[holders[0]]
        return Placed("twice" if len(holders) > 1 else "once", seconds - offset, offset)
    after = next(at for at in range(len(offsets.starts)) if offsets.firsts[at] > seconds)
    offset = offsets.offsets[after - 1]
    return Placed("gap", seconds - offset, offset)
