"""Addresses: whom they reach, and which names can be looked up."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.addresses import can_be_looked_up, is_loopback, is_wildcard


class ReachTests(SynchronousTestCase):
    """Tests for what an address reaches."""

    def test_loopback(self) -> None:
        """What the system takes for the loopback interface is it, however short it is written."""
        for host in (
            "127.0.0.1", "127.9.8.7", "::1", "[::1]", "localhost", "LocalHost", "127.1",
            "127.0.1", "0x7f.1", "0177.0.0.1", "2130706433", "127.000.000.001",
        ):  # fmt: skip
            self.assertTrue(is_loopback(host), host)
            self.assertFalse(is_wildcard(host), host)

    def test_others(self) -> None:
        """Nothing else is, not what only looks like it."""
        for host in (
            "192.0.2.1", "1.127", "128.1", "127", "127.1.example.org", "127.1 x", "127.0.0.0.1",
            "127.", "::ffff:127.0.0.1", "node-a", "", "fe", "0x", "４.1",
        ):  # fmt: skip
            self.assertFalse(is_loopback(host), host)

    def test_wildcard(self) -> None:
        """The same goes for what stands for every address."""
        for host in ("", "*", "0", "0.0", "0x0", "0.0.0.0", "::", "[::]"):
            self.assertTrue(is_wildcard(host), host)
            self.assertFalse(is_loopback(host), host)


class NameTests(SynchronousTestCase):
    """Tests for names of hosts."""

    def test_names(self) -> None:
        """A name has parts of 1 to 63 letters as they are encoded, and may end with a dot."""
        for host in ("", "a", "a" * 63, "a_b", "node-a.example.org.", "ü.example.org", "::1"):
            self.assertTrue(can_be_looked_up(host), host)
        for host in ("a" * 64, "a..b", ".a", ".", "ü" * 63, "\udcff"):
            self.assertFalse(can_be_looked_up(host), host)
