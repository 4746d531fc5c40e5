"""What a run needs of whoever keeps its output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cronstable.config.values import JobConfig
from cronstable.runs.record import StreamText


class Capture(Protocol):
    """Keeps the output of one process; a stream that is not captured reads as None."""

    def hide(self, values: Sequence[str]) -> None:
        """Let nobody who watches see C{values}; asked before the first output comes."""

    def feed(self, stream: str, data: bytes) -> None:
        """Take what was read from C{stream}."""

    def close(self) -> None:
        """No more will come; a line without its end counts."""

    @property
    def stdout(self) -> StreamText | None:
        """What is kept of stdout."""

    @property
    def stderr(self) -> StreamText | None:
        """What is kept of stderr."""


class Captures(Protocol):
    """Makes the capture of each run and of each check."""

    def for_run(self, job: JobConfig, ref: str) -> Capture:
        """Return the capture of a run of C{job}."""

    def for_check(self, job: JobConfig, ref: str, run: Capture) -> Capture:
        """Return the capture of the check of a run, whose output followers see with the run's."""
