"""JSON as the store writes and reads it."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state import encoding
from cronstable.state.errors import Foreign, Malformed, NotPortable
from tests.properties import given, st

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(encoding.LEAST, encoding.GREATEST)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


def nested(levels: int) -> list[object]:
    """Return lists within each other, C{levels} of them."""
    value: list[object] = []
    for _ in range(levels - 1):
        value = [value]
    return value


class WritingTests(SynchronousTestCase):
    """What may be written, and how."""

    def test_layout(self) -> None:
        """Keys are sorted, there is no blank and no line end, text stays as it is."""
        self.assertEqual(
            encoding.enveloped({"b": [1, True, None], "a": "é"}).decode(),
            '{"data":{"a":"é","b":[1,true,null]},"schemaVersion":"v1"}',
        )
        self.assertEqual(encoding.bare({"b": 1.0, "a": 0}), b'{"a":0,"b":1.0}')

    def test_refused(self) -> None:
        """What some reader could not read back is refused."""
        for value in (
            float("nan"),
            float("inf"),
            -float("inf"),
            2**64,
            -(2**63) - 1,
            "\ud800",
            {"\udfff": 1},
            {1: 2},
            {None: 2},
            b"bytes",
            {1, 2},
            object(),
        ):
            with self.assertRaises(NotPortable, msg=repr(value)):
                encoding.enveloped({"value": [value]})

    def test_portable(self) -> None:
        """Lone surrogates can be written as what they are called; all else stays as it is."""
        odd = {"a\udcff": ["\ud800", ("x\udc80y", 1, None, 2.5, True)], "b": {"é😀\\": "\0"}}
        self.assertEqual(
            encoding.portable_data(odd),
            {"a\\udcff": ["\\ud800", ["x\\udc80y", 1, None, 2.5, True]], "b": {"é😀\\": "\0"}},
        )
        encoding.enveloped(encoding.portable_data(odd))

    def test_depth(self) -> None:
        """128 containers within each other are the most, the envelope and its data included."""
        encoding.enveloped({"value": nested(126)})
        encoding.to_text(nested(126), around=2)
        for refused in (
            lambda: encoding.enveloped({"value": nested(127)}),
            lambda: encoding.to_text(nested(127), around=2),
            lambda: encoding.to_text(nested(100_000), around=2),
        ):
            self.assertRaises(NotPortable, refused)

    def test_too_large(self) -> None:
        """What no reader would take into its memory is refused."""
        size = len(encoding.enveloped({"value": "a"}))
        self.patch(encoding, "LARGEST", size)
        encoding.enveloped({"value": "a"})
        self.assertRaises(NotPortable, encoding.enveloped, {"value": "ab"})

    def test_integers_to_the_edge(self) -> None:
        """The whole range of signed and unsigned 64-bit integers is written."""
        for value in (2**64 - 1, -(2**63)):
            raw = encoding.enveloped({"value": value})
            self.assertEqual(encoding.opened(raw), {"value": value})

    @given(st.dictionaries(st.text(), VALUES))
    def test_reads_back(self, data: dict[str, object]) -> None:
        """What was written is read back as it was, by us and by any JSON parser."""
        raw = encoding.enveloped(data)
        self.assertEqual(encoding.opened(raw), data)
        self.assertEqual(json.loads(raw), {"schemaVersion": "v1", "data": data})


class ReadingTests(SynchronousTestCase):
    """What counts as a record."""

    def test_spellings(self) -> None:
        """Escapes, blanks around, further keys and another order make no difference."""
        for raw in (
            b'{"schemaVersion":"v1","data":{"k":"\\u00e9"}}',
            '{"data":{"k":"é"},"schemaVersion":"v1","extra":[1]}'.encode(),
            ' \n{"data": {"k": "é"}, "schemaVersion": "v1"}\n'.encode(),
        ):
            self.assertEqual(encoding.opened(raw), {"k": "é"})

    def test_malformed(self) -> None:
        """Anything that is no envelope is malformed."""
        wide = b'{"data":{"k":18446744073709551616},"schemaVersion":"v1"}'
        for raw in (
            b"",
            b"{",
            b"[1]",
            b'"v1"',
            b'{"data":[1],"schemaVersion":"v1"}',
            b'{"schemaVersion":"v1"}',
            b'{"data":{},"schemaVersion":"v1"} x',
            b'\xef\xbb\xbf{"data":{},"schemaVersion":"v1"}',
            b'{"data":{"k":"\xff"},"schemaVersion":"v1"}',
            '{"data":{},"schemaVersion":"v1"}'.encode("utf-16"),
            wide,
            b'{"data":{"k":' + b"9" * 5000 + b'},"schemaVersion":"v1"}',
            b"[" * 200_000,
        ):
            with self.assertRaises(Malformed, msg=raw[:60]):
                encoding.opened(raw)

    def test_foreign(self) -> None:
        """A well-formed envelope of another scheme is told from a broken one."""
        for version in ('"v2"', "1", "null"):
            raw = b'{"data":{},"schemaVersion":%s}' % version.encode()
            with self.assertRaises(Foreign, msg=version):
                encoding.opened(raw)
        self.assertRaises(Foreign, encoding.opened, b'{"data":{}}')

    def test_what_some_writers_wrote(self) -> None:
        """A NaN that an old writer let through does not lose the record."""
        data = encoding.opened(b'{"schemaVersion":"v1","data":{"k":7,"n":NaN}}')
        self.assertEqual(data["k"], 7)
