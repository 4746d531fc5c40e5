"""
Bytes to a tree of text: YAML without its surprises.

Every scalar stays the text that was written, with its place; what it means is for the schema to
say.  Duplicate keys, anchors, aliases, merge keys and tags are problems, never silently resolved.
docs/configuration.md, "The YAML that is read", specifies the subset.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import yaml

_MAX_DEPTH = 64
_BOM = b"\xef\xbb\xbf"


class Scalar:
    """A piece of text; C{line} and C{column} are 1-based."""

    __slots__ = ("column", "line", "text")

    def __init__(self, text: str, line: int, column: int) -> None:
        self.text = text
        self.line = line
        self.column = column


class Sequence:
    """A list of nodes."""

    __slots__ = ("column", "items", "line")

    def __init__(self, line: int, column: int) -> None:
        self.items: list[Node] = []
        self.line = line
        self.column = column


class Mapping:
    """Nodes by key, in written order; C{places} tells where each key stands."""

    __slots__ = ("column", "entries", "line", "places")

    def __init__(self, line: int, column: int) -> None:
        self.entries: dict[str, Node] = {}
        self.places: dict[str, tuple[int, int]] = {}
        self.line = line
        self.column = column


Node = Scalar | Sequence | Mapping


def kind(node: Node) -> str:
    """Return what C{node} is, in an operator's words."""
    if isinstance(node, Scalar):
        return "text" if node.text else "nothing"
    return "a list" if isinstance(node, Sequence) else "a mapping"


@attrs.frozen
class Flaw:
    """Something wrong with the text: at a place, or at C{key} of C{owner} when that is known."""

    message: str
    line: int = 0
    column: int = 0
    owner: Mapping | None = None
    key: str | None = None


@attrs.frozen
class Document:
    """
    A parsed file; C{root} is None when it says nothing.

    C{whole} is false when the tree misses parts, so that reading it on would only mislead.
    """

    root: Node | None
    flaws: tuple[Flaw, ...] = ()
    whole: bool = True


class _Broken(Exception):
    """The text cannot be read past a flaw that has been noted."""


def decode(data: bytes) -> str | Flaw:
    """Return C{data} as text without its byte order mark, or what is wrong with it."""
    try:
        return (data[3:] if data.startswith(_BOM) else data).decode("utf-8")
    except UnicodeDecodeError as error:
        hint = ""
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            hint = "; it looks like UTF-16"
        line = data.count(b"\n", 0, error.start) + 1
        return Flaw(f"not UTF-8 text: byte {error.start} cannot be decoded{hint}", line)


def parse(text: str) -> Document:
    """Return the tree of the YAML document in C{text}, with every flaw that was found."""
    return _Builder(text).document()


def _event_source(text: str) -> Callable[[], Any]:
    """Return a function that gives one parse event a call, from libyaml where it is installed."""
    if yaml.__with_libyaml__:
        from yaml._yaml import CParser

        parser: Any = CParser(text)
    else:
        parser = _PythonParser(text)
    return parser.get_event  # type: ignore[no-any-return]


class _PythonParser(yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser):
    """PyYAML's own parser, for installations without libyaml."""

    def __init__(self, text: str) -> None:
        yaml.reader.Reader.__init__(self, text)
        yaml.scanner.Scanner.__init__(self)
        yaml.parser.Parser.__init__(self)


class _Builder:
    """Makes the tree from parse events."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._flaws: list[Flaw] = []
        self._whole = True

    def document(self) -> Document:
        root: Node | None = None
        try:
            self._next = _event_source(self._text)
            root = self._read_stream()
        except _Broken:
            self._whole = False
        except yaml.MarkedYAMLError as error:
            self._syntax(error)
        except yaml.reader.ReaderError as error:
            self._unreadable(error)
        if isinstance(root, Scalar) and not root.text:
            root = None
        return Document(root, tuple(self._flaws), self._whole)

    def _read_stream(self) -> Node | None:
        self._next()
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return None
        root = self._node(self._next(), 0)
        self._next()
        event = self._next()
        if isinstance(event, yaml.DocumentStartEvent):
            self._flaw(event, "a second document starts here; a file holds one document")
            raise _Broken
        return root

    def _node(self, event: Any, depth: int) -> Node:
        mark = event.start_mark
        cls = event.__class__
        if cls is yaml.ScalarEvent:
            if event.anchor is not None or event.tag is not None:
                self._adorned(event)
            return Scalar(event.value, mark.line + 1, mark.column + 1)
        if cls is yaml.AliasEvent:
            self._unsupported(event, "an alias", "*")
            self._whole = False
            return Scalar("", mark.line + 1, mark.column + 1)
        if event.anchor is not None or event.tag is not None:
            self._adorned(event)
        if depth >= _MAX_DEPTH:
            self._flaw(event, f"nested more than {_MAX_DEPTH} levels deep")
            raise _Broken
        if cls is yaml.MappingStartEvent:
            return self._mapping(mark, depth)
        return self._sequence(mark, depth)

    def _sequence(self, mark: Any, depth: int) -> Sequence:
        sequence = Sequence(mark.line + 1, mark.column + 1)
        event = self._next()
        while event.__class__ is not yaml.SequenceEndEvent:
            sequence.items.append(self._node(event, depth + 1))
            event = self._next()
        return sequence

    def _mapping(self, mark: Any, depth: int) -> Mapping:
        mapping = Mapping(mark.line + 1, mark.column + 1)
        entries, places, following = mapping.entries, mapping.places, self._next
        event = following()
        while event.__class__ is not yaml.MappingEndEvent:
            key = self._key(event, depth)
            mark = event.start_mark
            event = following()
            if event.__class__ is yaml.ScalarEvent and event.anchor is None and event.tag is None:
                at: Any = event.start_mark
                value: Node = Scalar(event.value, at.line + 1, at.column + 1)
            else:
                value = self._node(event, depth + 1)
            if key in entries:
                self._duplicate(mapping, key, mark)
            elif key is not None:
                entries[key] = value
                places[key] = (mark.line + 1, mark.column + 1)
            event = following()
        return mapping

    def _key(self, event: Any, depth: int) -> str | None:
        """Return the text of a key, or None for one that has been refused."""
        if event.__class__ is not yaml.ScalarEvent:
            if event.__class__ is not yaml.AliasEvent:
                self._flaw(event, "a key must be text")
            self._node(event, depth + 1)
            self._whole = False
            return None
        if event.anchor is not None or event.tag is not None:
            self._adorned(event)
        if event.value == "<<" and event.implicit[0]:
            self._flaw(event, "merge key <<: merge keys are not supported")
            self._whole = False
            return None
        return event.value  # type: ignore[no-any-return]

    def _adorned(self, event: Any) -> None:
        if event.anchor is not None:
            self._unsupported(event, "an anchor", "&")
        if event.tag is not None:
            self._unsupported(event, "a tag", "!")

    def _unsupported(self, event: Any, what: str, sign: str) -> None:
        # Its name is not told: it may be a password that somebody did not quote.
        self._flaw(event, f"{what} is not supported; text that begins with {sign} needs quotes")

    def _duplicate(self, mapping: Mapping, key: str, mark: Any) -> None:
        line, column = mapping.places[key]
        message = f"given twice; first at line {line}, column {column}"
        self._flaws.append(Flaw(message, mark.line + 1, mark.column + 1, mapping, key))

    def _flaw(self, event: Any, message: str) -> None:
        mark = event.start_mark
        self._flaws.append(Flaw(message, mark.line + 1, mark.column + 1))

    def _syntax(self, error: yaml.MarkedYAMLError) -> None:
        self._whole = False
        mark: Any = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        if self._at_tab(mark):
            self._flaws.append(Flaw("a tab cannot indent; use blanks", line, column))
            return
        said = [part for part in (error.problem, error.context) if part]
        message = "not valid YAML: " + " ".join(said)
        begun = error.context_mark
        if begun is not None and error.context and begun.line + 1 != line:
            message += f" that began at line {begun.line + 1}"
        self._flaws.append(Flaw(message, line, column))

    def _at_tab(self, mark: Any) -> bool:
        if mark is None:
            return False
        lines = self._text.split("\n", mark.line + 1)
        line = lines[mark.line] if mark.line < len(lines) else ""
        return line[mark.column : mark.column + 1] == "\t"

    def _unreadable(self, error: yaml.reader.ReaderError) -> None:
        self._whole = False
        index = next(
            (i for i, character in enumerate(self._text) if not _printable(character)), None
        )
        if index is None:
            self._flaws.append(Flaw(f"not readable as text: {error.reason}"))
            return
        line = self._text.count("\n", 0, index) + 1
        column = index - (self._text.rfind("\n", 0, index) + 1) + 1
        code = ord(self._text[index])
        self._flaws.append(Flaw(f"control character U+{code:04X} is not allowed", line, column))


def _printable(character: str) -> bool:
    """Return whether YAML allows C{character} to be written as it is."""
    return yaml.reader.Reader.NON_PRINTABLE.match(character) is None
