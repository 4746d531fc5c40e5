"""
JSON as the store writes and reads it (docs/store-format.md, "Bytes").

Writers refuse what some reader could not read back; readers accept every spelling of the rest.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from cronstable.state.errors import Foreign, Malformed, NotPortable

SCHEME = "v1"
"""The C{schemaVersion} of every record and document that this build writes."""

LEAST = -(2**63)
GREATEST = 2**64 - 1
DEEPEST = 128
"""Arrays and objects within each other, the envelope and its C{data} included."""
LARGEST = 256 << 20
"""Bytes of a record or document; what is larger is neither written nor read."""

Data = dict[str, Any]

_encode = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    ensure_ascii=False,
    allow_nan=False,
    check_circular=False,
).encode


def to_text(value: object, *, around: int = 0) -> str:
    """
    Return C{value} as compact JSON with sorted keys.

    C{around} counts the containers that will enclose it.  Raises L{NotPortable} for NaN and
    infinity, integers beyond 64 bits, lone surrogates, keys that are not text, nesting beyond
    128, and whatever is not JSON.
    """
    _check(value, DEEPEST - around)
    try:
        text = _encode(value)
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise NotPortable("a text holds a lone surrogate, which is not valid UTF-8") from None
    except (TypeError, ValueError) as error:
        raise NotPortable(f"not JSON: {error}") from None
    return text


def portable(text: str) -> str:
    """Return C{text} with its lone surrogates spelled out: C{\\udcff}."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def portable_data(value: Any) -> Any:
    """Return C{value} with every text and key in it L{portable}."""
    if isinstance(value, str):
        return portable(value)
    if isinstance(value, Mapping):
        return {portable_data(key): portable_data(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [portable_data(member) for member in value]
    return value


def enveloped(data: Mapping[str, Any]) -> bytes:
    """Return the bytes of a record or document that holds C{data}; raises L{NotPortable}."""
    raw = to_text({"data": data, "schemaVersion": SCHEME}).encode("utf-8")
    if len(raw) > LARGEST:
        raise NotPortable(f"{len(raw)} bytes are more than the {LARGEST} that a record may have")
    return raw


def bare(body: Mapping[str, Any]) -> bytes:
    """Return the bytes of a lease file: C{body} without an envelope."""
    return to_text(body).encode("utf-8")


def opened(raw: bytes, *, any_scheme: bool = False) -> Data:
    """
    Return what the envelope in C{raw} holds.

    Raises L{Malformed} for anything that is no envelope, L{Foreign} for one of another scheme
    unless C{any_scheme}.
    """
    envelope = parsed(raw)
    if type(envelope) is not dict:
        raise Malformed("it is not a JSON object")
    data = envelope.get("data")
    if type(data) is not dict:
        raise Malformed("its data is not an object")
    version = envelope.get("schemaVersion")
    if version != SCHEME and not any_scheme:
        raise Foreign(version)
    return data


def parsed(raw: bytes) -> Any:
    """Return the JSON value in C{raw}; raises L{Malformed}."""
    try:
        text = raw.decode("utf-8")
        try:
            value, end = _scan(text, 0)
        except StopIteration:
            return _decode(text)
        return value if end == len(text) else _decode(text)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"it is not JSON: {error}" if str(error) else "it is not JSON") from None


_PLAIN = frozenset({str, float, bool, type(None)})
# The encoder itself refuses floats that are not finite.


def _check(value: object, room: int) -> None:
    """Refuse what the encoder would silently write in a form that some reader refuses."""
    pending = [(value, room)]
    while pending:
        value, room = pending.pop()
        if isinstance(value, Mapping):
            if not isinstance(value, dict):
                raise NotPortable(f"{type(value).__name__} is not a JSON object")
            for key in value:
                if not isinstance(key, str):
                    raise NotPortable(f"the key {key!r} is not text")
            members = list(value.values())
        elif isinstance(value, (list, tuple)):
            members = list(value)
        else:
            _check_number(value)
            continue
        if room <= 0:
            raise NotPortable(f"nested deeper than {DEEPEST} levels")
        for member in members:
            kind = type(member)
            if kind is int:
                _check_number(member)
            elif kind not in _PLAIN:
                pending.append((member, room - 1))


def _check_number(value: object) -> None:
    if isinstance(value, int) and not LEAST <= value <= GREATEST:
        raise NotPortable(f"the integer {value} is outside {LEAST} to {GREATEST}")
    if isinstance(value, float) and not math.isfinite(value):
        raise NotPortable(f"{value} is not a JSON number")


def _integer(literal: str) -> int:
    if len(literal) < 19:
        return int(literal)
    value = int(literal)
    if not LEAST <= value <= GREATEST:
        raise ValueError(f"the integer {literal[:40]} is outside 64 bits")
    return value


_decoder = json.JSONDecoder(parse_int=_integer)
_scan = vars(_decoder)["scan_once"]
_decode = _decoder.decode
