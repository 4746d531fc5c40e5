"""
The declared shape of configuration text: readers that type a node or note what is wrong with it.

A reader returns plain values (text, numbers, booleans, None, dicts, lists) or L{BAD} after it
has told the reading why.  Ranges that depend on merged values are not its business.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from cronstable.config import text
from cronstable.config.reading import Reading, near
from cronstable.config.text import Node, Scalar, Sequence, kind

BAD: Any = object()

_INT = re.compile(r"[-+]?[0-9_]*[0-9][0-9_]*")
_FLOAT = re.compile(r"[-+]?(?:[0-9_]*[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"([-+]?)\.?(inf|nan)", re.IGNORECASE)
_BOOLS = dict.fromkeys(("yes", "true", "on", "1", "y"), True) | dict.fromkeys(
    ("no", "false", "off", "0", "n"), False
)


def _is_int(written: str) -> bool:
    return _INT.fullmatch(written) is not None and len(written) <= 300


class Reader(Protocol):
    """Turns a node into a plain value."""

    def read(self, node: Node, reading: Reading) -> Any:
        """Return the value of C{node}, or L{BAD} after noting why it has none."""


class Text:
    """
    Text, interpolated unless C{raw}; with C{null} a blank is None instead of empty.

    C{secret} text is never quoted in a message.
    """

    __slots__ = ("expects", "null", "raw", "secret")

    def __init__(
        self, *, raw: bool = False, null: bool = False, secret: bool = False, expects: str = "text"
    ) -> None:
        self.raw = raw
        self.null = null
        self.secret = secret
        self.expects = expects

    def read(self, node: Node, reading: Reading) -> Any:
        """Return the text, or None for a blank that may be null."""
        if node.__class__ is not Scalar:
            reading.wrong(node, f"must be {self.expects}, got {kind(node)}")
            return BAD
        value = node.text
        if not value:
            return None if self.null else value
        if "\0" in value:
            reading.wrong(node, "holds a NUL, which no path, command or variable can")
            return BAD
        if self.raw or "$" not in value:
            return value
        filled = reading.text(node)
        return BAD if filled is None else filled


class Typed:
    """A scalar that C{convert} understands, else a problem that says what C{expects} is."""

    __slots__ = ("_expects", "_null")

    def __init__(self, expects: str, null: bool = False) -> None:
        self._expects = expects
        self._null = null

    def convert(self, written: str) -> Any:
        """Return the value of C{written}, or L{BAD}."""
        raise NotImplementedError

    def read(self, node: Node, reading: Reading) -> Any:
        """Return the converted value, or None for a blank that may be null."""
        if node.__class__ is not Scalar:
            reading.wrong(node, f"must be {self._expects}, got {kind(node)}")
            return BAD
        if self._null and not node.text:
            return None
        value = self.convert(node.text)
        if value is BAD:
            reading.wrong(node, f"must be {self._expects}, got {shown(node.text)}")
        return value


class Bool(Typed):
    """A boolean, in any of YAML's old words."""

    def __init__(self, null: bool = False) -> None:
        super().__init__("a boolean (yes, no, true, false, on, off)", null)

    def convert(self, written: str) -> Any:
        """Return the boolean that C{written} names."""
        return _BOOLS.get(written.lower(), BAD)


class Int(Typed):
    """A whole number."""

    def __init__(self, null: bool = False) -> None:
        super().__init__("a whole number", null)

    def convert(self, written: str) -> Any:
        """Return the number that C{written} spells."""
        return int(written.replace("_", "")) if _is_int(written) else BAD


class Float(Typed):
    """A number, infinite and NaN included."""

    def __init__(self, null: bool = False) -> None:
        super().__init__("a number", null)

    def convert(self, written: str) -> Any:
        """Return the number that C{written} spells."""
        if _FLOAT.fullmatch(written) is not None:
            return float(written.replace("_", ""))
        special = _SPECIAL.fullmatch(written)
        if special is None:
            return BAD
        value = math.inf if special.group(2).lower() == "inf" else math.nan
        return -value if special.group(1) == "-" else value


class IntOrText(Text):
    """A number where it spells one, else interpolated text (an account)."""

    def read(self, node: Node, reading: Reading) -> Any:
        """Return an integer or text."""
        if node.__class__ is Scalar and _is_int(node.text):
            return int(node.text.replace("_", ""))
        return super().read(node, reading)


class Enum:
    """One of a few words, in exact case."""

    __slots__ = ("words",)

    def __init__(self, *words: str) -> None:
        self.words = words

    def read(self, node: Node, reading: Reading) -> Any:
        """Return the word."""
        if node.__class__ is not Scalar:
            reading.wrong(node, f"must be a word, got {kind(node)}; {self._allowed()}")
            return BAD
        if node.text in self.words:
            return node.text
        hint = near(node.text, self.words)
        reading.wrong(node, f"unknown value, got {shown(node.text)}; {self._allowed()}{hint}")
        return BAD

    def _allowed(self) -> str:
        return f"allowed: {', '.join(self.words)}"


class ListOf:
    """A list whose items all have one shape."""

    __slots__ = ("_item", "_least")

    def __init__(self, item: Reader, least: int = 0) -> None:
        self._item = item
        self._least = least

    def read(self, node: Node, reading: Reading) -> Any:
        """Return the list of the items' values."""
        if node.__class__ is not Sequence:
            reading.wrong(node, f"must be a list, got {kind(node)}")
            return BAD
        if len(node.items) < self._least:
            reading.wrong(node, f"must hold at least {self._least} item")
            return BAD
        read = self._item.read
        values = [read(item, reading) for item in node.items]
        return BAD if BAD in values else values


class TextOrList(Text):
    """Text, or a list of texts."""

    __slots__ = ()

    def read(self, node: Node, reading: Reading) -> Any:
        """Return text, or a list of texts."""
        if node.__class__ is not Sequence:
            return super().read(node, reading)
        values = [super(TextOrList, self).read(item, reading) for item in node.items]
        if not values:
            reading.wrong(node, "must name a program, got an empty list")
            return BAD
        return BAD if BAD in values else values


class MapOf:
    """A mapping from any text to one shape."""

    __slots__ = ("_value",)

    def __init__(self, value: Reader) -> None:
        self._value = value

    def read(self, node: Node, reading: Reading) -> Any:
        """Return the values by key."""
        if node.__class__ is not text.Mapping:
            reading.wrong(node, f"must be a mapping, got {kind(node)}")
            return BAD
        read = self._value.read
        values = {key: read(child, reading) for key, child in node.entries.items()}
        return BAD if BAD in values.values() else values


class Record:
    """
    A closed mapping: the keys it may have, and those that it must.

    With C{null} a blank is None instead of a problem.
    """

    def __init__(
        self,
        fields: Mapping[str, Reader],
        required: Iterable[str] = (),
        *,
        null: bool = False,
        expects: str = "a mapping",
    ) -> None:
        self.fields = dict(fields)
        self._required = tuple(required)
        self._null = null
        self._expects = expects

    def read(self, node: Node, reading: Reading) -> Any:
        """Return the values by key; L{BAD} if any is bad or missing."""
        if self._null and node.__class__ is Scalar and not node.text:
            return None
        values = self.entries(node, reading)
        return BAD if values is None or BAD in values.values() else values

    def entries(self, node: Node, reading: Reading) -> dict[str, Any] | None:
        """
        Return the values by key with L{BAD} for each bad one; None for no mapping at all.

        A key that is not recognised is noted and left out.
        """
        if node.__class__ is not text.Mapping:
            reading.wrong(node, f"must be {self._expects}, got {kind(node)}")
            return None
        fields, values = self.fields, {}
        for key, child in node.entries.items():
            reader = fields.get(key)
            if reader is None:
                reading.unknown(node, key, fields)
            else:
                values[key] = reader.read(child, reading)
        for key in self._required:
            if key not in values:
                reading.wrong(node, "required, but missing", key)
                values[key] = BAD
        return values


class Block(Record):
    """A record whose bad values do not hide its good ones: it reads as its entries, or None."""

    def read(self, node: Node, reading: Reading) -> Any:
        """Return the values by key, L{BAD} ones included; None for no mapping at all."""
        return self.entries(node, reading)


class BoolOr:
    """A boolean, or a mapping that says more."""

    __slots__ = ("_bool", "_record")

    def __init__(self, record: Record) -> None:
        self._bool = Bool()
        self._record = record

    def read(self, node: Node, reading: Reading) -> Any:
        """Return a boolean or a dict."""
        reader: Reader = self._record if isinstance(node, text.Mapping) else self._bool
        return reader.read(node, reading)


class TextOr:
    """Text, or a mapping that says more."""

    __slots__ = ("_record", "_text")

    def __init__(self, record: Record) -> None:
        self._text = Text(expects="text or a mapping")
        self._record = record

    def read(self, node: Node, reading: Reading) -> Any:
        """Return text or a dict."""
        reader: Reader = self._record if isinstance(node, text.Mapping) else self._text
        return reader.read(node, reading)


class Free:
    """Anything at all, every scalar kept as the text it is."""

    __slots__ = ()

    def read(self, node: Node, reading: Reading) -> Any:
        """Return nested dicts, lists and text."""
        if isinstance(node, Scalar):
            return node.text
        if isinstance(node, Sequence):
            return [self.read(item, reading) for item in node.items]
        return {key: self.read(child, reading) for key, child in node.entries.items()}


def shown(written: str) -> str:
    """Return C{written} as a message quotes it: one line, not too long."""
    if not written:
        return "nothing"
    cut = written if len(written) <= 80 else written[:77] + "..."
    return repr(cut)
