"""
The text in front of each mirrored line: C{streamPrefix}, its placeholders filled in.
"""

from __future__ import annotations

from functools import lru_cache
from string import Formatter


def filled(template: str, job: str, stream: str) -> str | None:
    """
    Return C{template} for a stream of a job; None if it has to be taken as it is written.

    That is so when anything but the placeholders job_name and stream_name is in braces.
    """
    if not _is_known(template):
        return None
    try:
        return template.format(job_name=job, stream_name=stream)
    except (ValueError, LookupError, AttributeError):
        return None


@lru_cache(maxsize=64)
def _is_known(template: str) -> bool:
    """Return whether a template has only placeholders that are known; most jobs share one."""
    try:
        fields = {name for _, name, _, _ in Formatter().parse(template) if name is not None}
    except ValueError:
        return False
    return fields <= {"job_name", "stream_name"}
