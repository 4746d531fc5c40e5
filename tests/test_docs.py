"""Tests of the check that keeps the documentation whole."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.test_layers import load_script

docs = load_script("docs")


class CheckTests(SynchronousTestCase):
    """The check on a made-up repository."""

    def setUp(self) -> None:
        self.root = Path(self.mktemp())
        self.write("docs/index.md", "# Top\n\n[a](a.md) [self](#top)\n")
        self.write("docs/a.md", "# First: a `thing`\n\n[web](https://example.org/x.md)\n")

    def write(self, name: str, text: str) -> None:
        """Add a file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def wrong(self) -> list[str]:
        """What the check says."""
        return list(docs.check(self.root))

    def test_whole(self) -> None:
        """Pages whose links lead somewhere are fine; other sites are not looked at."""
        self.write("README.md", "[a](docs/a.md#first-a-thing) ![shot](docs/none.png)\n")
        self.assertEqual(self.wrong(), [])

    def test_links(self) -> None:
        """A link to nothing, and one to a heading that is not there, are told; code is not read."""
        self.write("README.md", "[x](docs/x.md) [y](docs/a.md#second)\n```\n[z](z.md)\n```\n")
        self.assertEqual(
            self.wrong(),
            [
                "README.md: no such file: docs/x.md",
                "README.md: docs/a.md has no heading for #second",
            ],
        )

    def test_reachable(self) -> None:
        """A page that nothing leads to from the index is told."""
        self.write("docs/lost.md", "# Lost\n")
        self.assertEqual(self.wrong(), ["docs/lost.md: cannot be reached from docs/index.md"])

    def test_named_pages(self) -> None:
        """A page that a module names must exist, and nothing may be left for later."""
        later = "TO" + "DO"
        self.write("cronstable/x.py", f'"""See docs/a.md and docs/none.md."""\n# {later}\n')
        self.assertEqual(
            self.wrong(),
            ["cronstable/x.py: no such page: docs/none.md", "cronstable/x.py:2: left for later"],
        )

    def test_quoted_headings(self) -> None:
        """A heading that a docstring quotes after a page must be one of its headings."""
        self.write(
            "cronstable/x.py",
            '''"""See docs/a.md, "First: a\nthing" and "Second", or "else"."""\n''',
        )
        self.assertEqual(self.wrong(), ["cronstable/x.py: docs/a.md has no heading 'Second'"])

    def test_tests(self) -> None:
        """Of tests only docstrings are read: what they make up need not exist."""
        self.write(
            "tests/test_x.py", 'def page():\n    """See docs/one.md."""\n    "docs/two.md"\n'
        )
        self.assertEqual(self.wrong(), ["tests/test_x.py: no such page: docs/one.md"])

    def test_fragments(self) -> None:
        """A news fragment that is not named by topic and kind is told."""
        self.write("docs/changes/one-thing.feature.md", "New.\n")
        self.write("docs/changes/other.misc.md", "?\n")
        self.assertEqual(self.wrong(), ["docs/changes/other.misc.md: not named TOPIC.KIND.md"])
