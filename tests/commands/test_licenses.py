"""Tests of the licence notices."""

from __future__ import annotations

import os
from importlib.metadata import Distribution, PackageNotFoundError, PathDistribution
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from cronstable.commands.licenses import closure, notices


class LicensesTests(SynchronousTestCase):
    """Notices of made-up distributions."""

    def setUp(self) -> None:
        self.root = Path(self.mktemp())
        self.install("cronstable", "Requires-Dist: One[fast]>=1; python_version >= '3'")

    def install(self, name: str, *facts: str, licence: str | None = None) -> None:
        """Write the metadata of a distribution."""
        info = self.root / f"{name.replace('-', '_')}-1.0.dist-info"
        os.makedirs(info)
        head = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0", *facts]
        (info / "METADATA").write_text("\n".join(head) + "\n")
        record = [f"{info.name}/METADATA,,"]
        if licence is not None:
            (info / "licenses").mkdir()
            (info / "licenses" / "LICENSE.txt").write_text(licence)
            record.append(f"{info.name}/licenses/LICENSE.txt,,")
        (info / "RECORD").write_text("\n".join(record) + "\n")

    def find(self, name: str) -> Distribution:
        """Find a distribution among those that the test installed."""
        path = self.root / f"{name.lower().replace('-', '_')}-1.0.dist-info"
        if not path.exists():
            raise PackageNotFoundError(name)
        return PathDistribution(path)

    def names(self) -> list[str]:
        """The names that notices are given for, in their order."""
        return [text.split("\n")[1].split(" ")[0] for text in list(notices(self.find))[1:]]

    def test_all_the_way_down(self) -> None:
        """What a requirement requires is told too, each once, sorted; cronstable itself is not."""
        self.install("one", "Requires-Dist: two", "Requires-Dist: a-three (>=2)")
        self.install("two", "Requires-Dist: a-three", "Requires-Dist: one")
        self.install("a-three")
        self.assertEqual(self.names(), ["a-three", "one", "two"])

    def test_extras(self) -> None:
        """Only the extras that are asked for count, under any spelling."""
        self.install(
            "one",
            "Requires-Dist: two; extra == 'fast'",
            'Requires-Dist: three; extra == "slow"',
        )
        self.install("two")
        self.install("three")
        self.assertEqual(self.names(), ["one", "two"])

    def test_not_installed(self) -> None:
        """A requirement of another platform is left out."""
        self.install("one", "Requires-Dist: two; sys_platform == 'elsewhere'")
        self.assertEqual(self.names(), ["one"])

    def test_text(self) -> None:
        """A notice has name, version, licence, home and the licence file."""
        self.install(
            "one",
            "License-Expression: MIT",
            "Home-page: https://example.org/one",
            licence="All yours.\n",
        )
        text = list(notices(self.find))[1]
        for fact in ("one 1.0\n", "Licence: MIT\n", "https://example.org/one", "All yours."):
            self.assertIn(fact, text)

    def test_licence_sources(self) -> None:
        """Older metadata name the licence by classifier or free text."""
        for index, (fact, told) in enumerate(
            (
                ("Classifier: License :: OSI Approved :: BSD License", "BSD License"),
                ("License: Some words", "Some words"),
                ("Summary: nothing", "see its notices"),
            )
        ):
            self.root = Path(self.mktemp())
            self.install("cronstable", f"Requires-Dist: d{index}")
            self.install(f"d{index}", fact)
            self.assertIn(f"Licence: {told}\n", list(notices(self.find))[1])

    def test_unknown(self) -> None:
        """In a checkout that is not installed everything installed is told."""

        def find(name: str) -> Distribution:
            raise PackageNotFoundError(name)

        self.assertIn("attrs", "\n".join(notices(find)))
        self.assertEqual(closure("cronstable", find), {})
