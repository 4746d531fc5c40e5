"""
Names as file names: injective, also where upper and lower case are one.

docs/store-format.md, "Names", specifies the encoding.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

LONGEST = 130
"""Characters of a token beyond which it is cut and completed by a digest."""

_KEPT = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-")
_SPELLING = [chr(byte) if byte in _KEPT else f"%{byte:02X}" for byte in range(256)]
_RESERVED = frozenset(
    ["con", "prn", "aux", "nul"]
    + [f"{device}{number}" for device in ("com", "lpt") for number in range(1, 10)]
)
_CUT = "%."
_TOKEN = re.compile(r"(?:[a-z0-9_-]|%[0-9A-F]{2})+", re.ASCII)


@lru_cache(maxsize=8192)
def token(name: str) -> str:
    """Return the file name (without suffix) that stands for C{name}; different names differ."""
    whole = fragment(name)
    if not whole:
        return "_"
    if whole in _RESERVED:
        return f"%{ord(whole[0]):02X}{whole[1:]}"
    if len(whole) <= LONGEST:
        return whole
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{whole[:96]}{_CUT}{digest[:32]}"


def fragment(prefix: str) -> str:
    """Return what the token of every name that starts with C{prefix} starts with."""
    return "".join([_SPELLING[byte] for byte in prefix.encode("utf-8", "surrogatepass")])


def name_of(text: str) -> str | None:
    """Return the name whose token is C{text}; None if it is cut or no token of ours."""
    if not _TOKEN.fullmatch(text):
        return None
    pieces = text.split("%")
    raw = pieces[0].encode("ascii")
    for piece in pieces[1:]:
        raw += bytes((int(piece[:2], 16),)) + piece[2:].encode("ascii")
    try:
        name = raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
    return name if token(name) == text else None


def is_cut(text: str) -> bool:
    """Return whether a token was cut, so that its name is found only beside the records."""
    return _CUT in text
