"""The reference page for users against the declared keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config import keys, sections
from cronstable.config.file import TOP_KEYS

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def names(reader: Any) -> Iterator[str]:
    """Yield every key and every word that a reader declares, at any depth."""
    for name, field in getattr(reader, "fields", {}).items():
        yield name
        yield from names(field)
    yield from getattr(reader, "words", ())
    for slot in ("_item", "_record", "_value"):
        inner = getattr(reader, slot, None)
        if inner is not None:
            yield from names(inner)


class DocumentationTests(SynchronousTestCase):
    """Tests for docs/configuration.md."""

    def setUp(self) -> None:
        """Read the page."""
        self.page = PAGE.read_text(encoding="utf-8")
        prose = re.sub(r"^```.*?^```", "", self.page, flags=re.MULTILINE | re.DOTALL)
        spans = re.findall(r"`([^`]+)`", prose)
        self.told = {word for span in spans for word in re.split(r"[\s.:,\[\]]+", span)}

    def test_every_key(self) -> None:
        """Each key and each allowed word stands on the page as code."""
        declared = set(TOP_KEYS)
        for reader in (keys.JOB, keys.DAG, keys.TASK, sections.POOLS):
            declared.update(names(reader))
        for section in sections.SECTIONS.values():
            declared.update(names(section.record))
        self.assertGreater(len(declared), 250)
        self.assertEqual(sorted(declared - self.told), [])

    def test_links(self) -> None:
        """Links to places on the page, and to other pages, lead somewhere."""
        headings = re.findall(r"^#+ (.+)$", self.page, re.MULTILINE)
        anchors = {
            re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
            for heading in headings
        }
        for target in re.findall(r"\]\(([^)]+)\)", self.page):
            if target.startswith("#"):
                self.assertIn(target[1:], anchors)
            else:
                self.assertTrue((PAGE.parent / target.partition("#")[0]).exists(), target)
