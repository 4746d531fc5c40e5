"""What a terminal may be given of the output of jobs; docs/executors.md, "Output"."""

from __future__ import annotations

import re

_CONTROLS = re.compile(
    rb"(\x1b\[[0-9;:]*m)"  # colours, which stay
    rb"|\x1b\[[0-?]*[ -/]*[@-~]?"  # other control sequences
    rb"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # titles, links, device strings
    rb"|\x1b[ -/]*[0-~]?"  # other escapes
    rb"|\xc2[\x80-\x9f]"  # the same as single characters
    rb"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"  # other controls
)


def for_terminal(block: bytes) -> bytes:
    """
    Return what a terminal may be given: no escape sequence but colours, valid UTF-8.

    Tabs, newlines and carriage returns stay.
    """
    text = block.decode("utf-8", "replace").encode("utf-8")
    return _CONTROLS.sub(lambda match: match[1] or b"", text)
