"""
What the schedule tests share: vectors, instants, zone trees.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from unittest import mock

from twisted.trial.unittest import SynchronousTestCase

from cronstable.schedule import reload_zones

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "tests" / "vectors"
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def load(path: Path) -> Any:
    """
    The JSON document of a file.
    """
    return json.loads(path.read_text(encoding="utf-8"))


def moment(text: str) -> datetime:
    """
    The moment of an ISO text; a trailing Z is UTC, no offset at all is read as UTC.
    """
    parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=timezone.utc)


def at(text: str) -> float:
    """
    The instant of an ISO text, in seconds from the epoch.
    """
    return (moment(text) - EPOCH).total_seconds()


def utc(instant: float | None) -> str | None:
    """
    An instant as an ISO text in UTC, for messages.
    """
    if instant is None:
        return None
    return datetime.fromtimestamp(instant, timezone.utc).isoformat()


def zone_file(footer: str, offset: int = 0, changes: list[tuple[int, int]] | None = None) -> bytes:
    """
    A compiled zone file: a first offset, (instant, offset) changes, and a closing rule.
    """
    changes = changes or []
    offsets = [offset, *(change[1] for change in changes)]
    header = struct.pack(">4sc15x6l", b"TZif", b"2", 0, 0, 0, len(changes), len(offsets), 4)
    types = b"".join(struct.pack(">lBB", value, 0, 0) for value in offsets)
    kinds = bytes(range(1, len(offsets)))
    narrow = struct.pack(f">{len(changes)}l", *(change[0] for change in changes))
    wide = struct.pack(f">{len(changes)}q", *(change[0] for change in changes))
    tail = kinds + types + b"LMT\0"
    return b"".join((header, narrow, tail, header, wide, tail, b"\n", footer.encode(), b"\n"))


def build_tree(root: Path, source: str, rules: dict[str, str]) -> None:
    """
    Fill a zone tree: with the zone compiler where there is one, else with the same rules by hand.
    """
    root.mkdir(parents=True, exist_ok=True)
    compiler = shutil.which("zic", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if compiler is not None:
        text = root.parent / f"{root.name}.zic"
        text.write_text(source, encoding="ascii")
        subprocess.run([compiler, "-d", str(root), str(text)], check=True)
        return
    for name, rule in rules.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zone_file(rule))


class ZoneTreeTestCase(SynchronousTestCase):
    """
    A test whose zone data comes from a directory of its own.
    """

    def setUp(self) -> None:
        """
        Start from an empty tree, and go back to the host's own data afterwards.
        """
        self.tree = Path(self.mktemp()).absolute()
        self.tree.mkdir()
        self.addCleanup(reload_zones)
        patcher = mock.patch.dict(os.environ, {"PYTHONTZPATH": str(self.tree)})
        patcher.start()
        self.addCleanup(patcher.stop)
        reload_zones()

    def hide_package(self) -> None:
        """
        Make the tzdata package look as if it were not installed.
        """
        patcher = mock.patch.dict("sys.modules", {"tzdata": None})
        patcher.start()
        self.addCleanup(patcher.stop)
        reload_zones()

    def put(self, name: str, data: bytes) -> None:
        """
        Write a file of the tree.
        """
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
