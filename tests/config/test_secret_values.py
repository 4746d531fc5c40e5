"""Tests for reading secrets."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.secret_values import SecretResolver, SecretUnavailable
from cronstable.config.values import Secret


class SecretResolverTests(SynchronousTestCase):
    """The first source that is not empty, and only that one."""

    def setUp(self) -> None:
        self.resolve = SecretResolver({"TOKEN": "from env", "EMPTY": ""})
        self.path = Path(self.mktemp())

    def file(self, content: bytes) -> Secret:
        """Return a secret in a file, with an environment variable behind it."""
        self.path.write_bytes(content)
        return Secret(from_file=str(self.path), from_env_var="TOKEN")

    def refused(self, secret: Secret) -> str:
        """Return why C{secret} cannot be had."""
        return str(self.assertRaises(SecretUnavailable, self.resolve, secret, "mail.password"))

    def test_order(self) -> None:
        """C{value} comes before C{fromFile}, that before C{fromEnvVar}; empty ones are passed."""
        self.assertEqual(self.resolve(Secret(value="v", from_file="/nonexistent"), "k"), "v")
        self.assertEqual(self.resolve(self.file(b"in file"), "k"), "in file")
        self.assertEqual(self.resolve(Secret(value="", from_env_var="TOKEN"), "k"), "from env")

    def test_file(self) -> None:
        """A file is UTF-8; its mark and the white space around the value go."""
        self.assertEqual(self.resolve(self.file(b"\xef\xbb\xbf p\xc3\xa9 w \r\n"), "k"), "pé w")

    def test_relative_file(self) -> None:
        """A relative path is taken from the working directory."""
        self.file(b"x")
        here = os.path.relpath(self.path)
        self.assertEqual(self.resolve(Secret(from_file=here), "k"), "x")

    def test_failures(self) -> None:
        """A chosen source that gives nothing is an error that names the key; no other is tried."""
        for secret, part in (
            (Secret(from_file="/nonexistent/secret", from_env_var="TOKEN"), "No such file"),
            (self.file(b" \n"), "empty"),
            (Secret(from_env_var="EMPTY"), "not set or empty"),
            (Secret(from_env_var="NOSUCH"), "not set or empty"),
            (Secret(), "expects value, fromFile or fromEnvVar"),
        ):
            said = self.refused(secret)
            self.assertIn("mail.password", said)
            self.assertIn(part, said)
            self.assertNotIn("NOSUCH", said)

    def test_not_text(self) -> None:
        """Bytes that are no UTF-8 are an error that shows none of them."""
        said = self.refused(self.file(b"abc\xff\xfe"))
        self.assertIn("UTF-8", said)
        self.assertNotIn("abc", said)
