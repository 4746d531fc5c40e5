"""Who a process is."""

from __future__ import annotations

import socket

from twisted.trial.unittest import SynchronousTestCase

from cronstable.identity import this_process


class IdentityTests(SynchronousTestCase):
    """Tests for L{this_process}."""

    def test_names(self) -> None:
        """A node is called as its host is, unless it is given a name."""
        self.patch(socket, "gethostname", lambda: "node-a")
        self.assertEqual((this_process(1).host, this_process(1).node_name), ("node-a", "node-a"))
        named = this_process(1, "first")
        self.assertEqual((named.host, named.node_name), ("node-a", "first"))

    def test_odd_host(self) -> None:
        """Bytes of a host name that are no UTF-8 are spelled out: it goes into every record."""
        self.patch(socket, "gethostname", lambda: "node-\udcff")
        self.assertEqual(this_process(1).host, "node-\\udcff")
