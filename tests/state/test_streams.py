"""The streams there are."""

from __future__ import annotations

import re
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from cronstable.state import streams

PAGE = Path(__file__).parents[2] / "docs" / "store-format.md"

KEPT = {
    streams.catchup("J"): streams.CATCHUP_KEEP,
    streams.dag_catchup("W"): streams.DAG_CATCHUP_KEEP,
    streams.retries("J"): streams.RETRY_KEEP,
    streams.paused("J"): streams.PAUSE_KEEP,
    streams.reboot("J"): streams.BOOT_KEEP,
    streams.inflight("J"): streams.INFLIGHT_KEEP,
    streams.slots("J"): streams.SLOT_KEEP,
    streams.counters("H"): streams.COUNTERS_KEEP,
    streams.manifests("H"): streams.MANIFEST_KEEP,
    streams.REBOOT_RAN: streams.REBOOT_RAN_KEEP,
}
OTHERS = {streams.runs("J"), streams.logs("J"), streams.artifacts("SCOPE"), streams.META}


class PageTests(SynchronousTestCase):
    """The page says what the code does."""

    def test_streams_and_retention(self) -> None:
        """Every stream is on the page, with how much of it is kept, and no other is."""
        section = PAGE.read_text("utf-8").split("## Streams")[1].split("### ")[0]
        found = {}
        for cells in re.findall(r"^\| (`[^|]*) \| ([^|]*) \|", section, re.MULTILINE):
            for name in re.findall(r"`([^`]+)`", cells[0]):
                found[name] = cells[1]
        self.assertEqual(set(found), set(KEPT) | OTHERS)
        for name, keep in KEPT.items():
            self.assertEqual(found[name], str(keep), name)


class AcknowledgeTests(SynchronousTestCase):
    """Which records somebody acts upon."""

    def test_told_apart(self) -> None:
        """Only output, counters, manifests and in-flight notes merely tell."""
        telling = {
            name for name in set(KEPT) | OTHERS | {"unknown/x"} if not streams.acknowledges(name)
        }
        self.assertEqual(telling, {"logs/J", "counters/H", "manifests/H", "inflight/J"})
