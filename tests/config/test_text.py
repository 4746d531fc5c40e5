"""What YAML is read, and where it goes wrong: through C{load}, with line and column."""

from __future__ import annotations

from unittest import mock

import yaml

from cronstable.config.errors import ConfigError
from tests.config.helpers import HEAD, ConfigCase


class AcceptedTextTests(ConfigCase):
    """Text that loads."""

    def names(self, content: str | bytes) -> list[str]:
        """Return the names of the jobs in C{content}."""
        return list(self.config(content).jobs)

    def test_empty(self) -> None:
        """A file that says nothing is a configuration without jobs."""
        for content in ("", "\n\n", "  \n", "# a comment\n", "---\n", "---\n...\n", "\ufeff"):
            self.assertEqual(self.names(content), [], repr(content))

    def test_byte_order_mark(self) -> None:
        """A byte order mark in front of the first key is no part of it."""
        self.assertEqual(self.names(b"\xef\xbb\xbf" + HEAD.encode()), ["a"])

    def test_line_ends(self) -> None:
        """Carriage returns leave nothing behind in any value."""
        job = self.config(HEAD.replace("\n", "\r\n")).jobs["a"]
        self.assertEqual((job.command, job.schedule_text), ("echo", "* * * * *"))
        block = HEAD.replace("echo\n", "|\n      one\n      two\n").replace("\n", "\r\n")
        self.assertEqual(self.config(block).jobs["a"].command, "one\ntwo\n")

    def test_no_last_newline(self) -> None:
        """The last line counts without a line end."""
        self.assertEqual(self.names(HEAD.rstrip("\n")), ["a"])

    def test_one_document(self) -> None:
        """One document may be marked as such at both ends."""
        self.assertEqual(self.names(f"---\n{HEAD}...\n"), ["a"])

    def test_unused_tag_directive(self) -> None:
        """A tag directive that nothing uses is harmless."""
        self.assertEqual(self.names(f"%TAG ! tag:example.org,2000:\n---\n{HEAD}"), ["a"])

    def test_flow_style(self) -> None:
        """Flow collections mean what their block twins mean."""
        flow = 'jobs: [{name: a, command: [echo, "b c"], schedule: {minute: "*/5"}}]'
        block = (
            "jobs:\n  - name: a\n    command:\n      - echo\n      - b c\n"
            "    schedule:\n      minute: '*/5'\n"
        )
        self.assertEqual(self.config(flow), self.config(block))

    def test_scalars_stay_text(self) -> None:
        """What looks like another type stays the text that was written, in text fields."""
        for text in ("no", "010", "1_000", "1.10", "null", "~", "2020-01-01", "yes", "0x1F"):
            job = self.config(HEAD.replace("name: a", f"name: {text}")).jobs[text]
            self.assertEqual(job.name, text)

    def test_folding(self) -> None:
        """Folded and quoted text is unfolded as YAML says."""
        folded = self.config(HEAD.replace("echo", ">-\n      one\n      two")).jobs["a"]
        self.assertEqual(folded.command, "one two")
        quoted = self.config(HEAD.replace("echo", r'"a\tb\u00e9"')).jobs["a"]
        self.assertEqual(quoted.command, "a\tb\u00e9")

    def test_without_libyaml(self) -> None:
        """Without libyaml the same values come from PyYAML's own parser."""
        expected = self.config(HEAD)
        with mock.patch.object(yaml, "__with_libyaml__", False):
            self.assertEqual(self.config(HEAD), expected)
            self.assert_refused(HEAD + "\tx: 1\n", "c.yaml:5:1", "tab")
            self.assert_refused("a: \x07\n", "c.yaml:1:4", "U+0007")
            self.assert_refused(HEAD.replace("echo", "&x echo"), "an anchor")
            self.assert_refused("a: 'b\n", "not valid YAML")


class RefusedTextTests(ConfigCase):
    """Text that does not load, each with its place."""

    def test_unquoted_secret(self) -> None:
        """A password that YAML takes for something else is not told."""
        for sign in "*&!@`%|>":
            text = HEAD + f"    environment: [{{key: A, value: {sign}hunter2}}]\n"
            error = self.assertRaises(ConfigError, self.load, text)
            self.assertNotIn("hunter2", str(error), sign)
            self.assertIn("c.yaml:5:", str(error), sign)

    def places(self, content: str | bytes) -> list[tuple[int, int]]:
        """Return line and column of each problem of C{content}."""
        return [(each.line, each.column) for each in self.problems(content)]

    def test_key_twice(self) -> None:
        """A key given twice is told with both its places, and the job and key named."""
        self.assert_refused(
            HEAD + "    command: two\n",
            "c.yaml:5:5: job 'a': command: given twice; first at line 3, column 5",
        )

    def test_key_thrice(self) -> None:
        """Each repetition is told."""
        content = HEAD + "    command: two\n    command: three\n"
        self.assertEqual(self.places(content), [(5, 5), (6, 5)])

    def test_key_twice_deep(self) -> None:
        """A repetition deep inside is named by its path; other problems are told with it."""
        content = (
            HEAD + "    sla:\n      maxRuntimeSeconds: 1\n      maxRuntimeSeconds: 2\n    x: 1\n"
        )
        self.assertEqual(
            [(each.line, each.key) for each in self.problems(content)],
            [(7, "sla.maxRuntimeSeconds"), (8, "x")],
        )

    def test_key_twice_in_free_form(self) -> None:
        """Repetitions count where any key is allowed, too."""
        self.assert_refused(
            "logging:\n  version: 1\n  root:\n    level: A\n    level: B\n",
            "c.yaml:5:5: logging.root.level: given twice; first at line 4, column 5",
        )

    def test_section_twice(self) -> None:
        """So do repeated sections."""
        self.assert_refused(HEAD + "jobs: []\n", "c.yaml:5:1: jobs: given twice; first at line 1")

    def test_anchor_alias_merge(self) -> None:
        """Anchors, merge keys and aliases are refused, each at its place."""
        content = HEAD.replace("  - name", "  - <<: *d\n    name")
        content = "defaults: &d\n  captureStdout: true\n" + content
        self.assertEqual(self.places(content), [(1, 11), (4, 5), (4, 9)])

    def test_anchor_alone(self) -> None:
        """An anchor that nothing refers to is refused as well."""
        self.assert_refused(HEAD.replace("echo", "&x echo"), "c.yaml:3:14", "an anchor")

    def test_alias_bomb(self) -> None:
        """Aliases are never expanded."""
        lines = ["a0: &a0 [x, x]"]
        for number in range(1, 40):
            lines.append(f"a{number}: &a{number} [*a{number - 1}, *a{number - 1}]")
        problems = self.problems("\n".join(lines))
        self.assertEqual(len(problems), 40 + 2 * 39)

    def test_tags(self) -> None:
        """Tags are refused, YAML's own among them."""
        for tag in ("!!str", "!x", "!"):
            self.assert_refused(HEAD.replace("echo", f"{tag} echo"), "c.yaml:3:14", "tag")

    def test_tab_indent(self) -> None:
        """A tab that indents is told as one."""
        for content, place in (
            (HEAD + "\tcaptureStdout: true\n", "c.yaml:5:1"),
            ("jobs:\n\t- name: a\n", "c.yaml:2:1"),
        ):
            self.assert_refused(content, place, "a tab cannot indent")

    def test_two_documents(self) -> None:
        """A second document is told where it starts."""
        self.assert_refused(HEAD + "---\n" + HEAD, "c.yaml:5:1", "second document")

    def test_syntax(self) -> None:
        """A syntax error has line and column."""
        self.assert_refused("a: b\n c: d\n", "c.yaml:2:3", "not valid YAML")
        self.assert_refused("a:\n  - 'b\n\n", "c.yaml:4:1", "began at line 2")

    def test_undecodable(self) -> None:
        """Bytes that are not UTF-8 are told with the file."""
        self.assert_refused(HEAD.encode("utf-16"), "c.yaml:1", "not UTF-8", "UTF-16")
        self.assert_refused(HEAD.encode() + b"# \xff\n", "c.yaml:5", "byte")

    def test_control_characters(self) -> None:
        """A control character is told with its code and place."""
        self.assert_refused("# fine\na: b\x07\n", "c.yaml:2:5", "U+0007")

    def test_keys_are_text(self) -> None:
        """A key that is a collection is refused."""
        self.assert_refused("? [a]\n: b\n", "c.yaml:1:3", "a key must be text")

    def test_depth(self) -> None:
        """Nesting without end is refused, whatever its depth."""
        for depth in (100, 2000, 100_000):
            self.assert_refused("[" * depth, "c.yaml:1:")

    def test_top_level(self) -> None:
        """The top level is a mapping of known sections."""
        self.assert_refused("- a\n", "c.yaml:1:1: must be a mapping of sections, got a list")
        self.assert_refused("just text\n", "must be a mapping of sections, got text")
        self.assert_refused(
            "wbe:\n  x: 1\n", "c.yaml:1:1: wbe: not recognised (did you mean 'web'?)"
        )

    def test_flow_where_text_is_wanted(self) -> None:
        """A mapping is not text."""
        self.assert_refused(HEAD.replace("echo", "{a: b}"), "job 'a': command: must be text, got a")
