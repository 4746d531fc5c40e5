"""Names as file names."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state import names
from tests.properties import given, st
from tests.state.support import vector

NAMES = st.text(st.characters(codec=None), max_size=60)


class TokenTests(SynchronousTestCase):
    """What stands for a name in the file system."""

    def test_captured_tokens(self) -> None:
        """Every name has the token that the reference gives it."""
        for case in vector("names.json")["encode"]:
            self.assertEqual(names.token(case["name"]), case["token"])

    def test_captured_names(self) -> None:
        """Every token has the name that the reference reads from it, or none."""
        for case in vector("names.json")["decode"]:
            self.assertEqual(names.name_of(case["token"]), case["name"], case["token"])

    def test_captured_fragments(self) -> None:
        """Prefixes of names become prefixes of tokens."""
        for case in vector("names.json")["prefix_fragment"]:
            self.assertEqual(names.fragment(case["prefix"]), case["fragment"])

    @given(NAMES)
    def test_reads_back(self, name: str) -> None:
        """A token that was not cut gives its name back, one that was gives none."""
        token = names.token(name)
        expected = None if names.is_cut(token) else name or "_"
        self.assertEqual(names.name_of(token), expected)

    @given(NAMES, NAMES)
    def test_different_names_differ(self, one: str, other: str) -> None:
        """Two names never share a token, even where case does not count."""
        if one != other and {one, other} != {"", "_"}:
            self.assertNotEqual(names.token(one).lower(), names.token(other).lower())

    @given(NAMES)
    def test_is_a_plain_file_name(self, name: str) -> None:
        """A token is short, has no separator and no blank, and names no device."""
        token = names.token(name)
        self.assertLessEqual(len(token), names.LONGEST)
        self.assertRegex(token, r"\A[a-zA-Z0-9_%.-]+\Z")
        self.assertNotIn(token, ("con", "nul", "aux", "prn", "com1", "lpt9", ".", ".."))

    @given(st.text(max_size=40))
    def test_never_misread(self, text: str) -> None:
        """Whatever is read as a token is exactly what its name would be written as."""
        name = names.name_of(text)
        if name is not None:
            self.assertEqual(names.token(name), text)
