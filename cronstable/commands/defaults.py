"""Where the configuration is looked for when nobody says."""

from __future__ import annotations

import os


def default_config() -> str:
    """Return the path that stands for a missing C{-c}."""
    return "/etc/cronstable.d"


def is_absent(path: str) -> bool:
    """Return whether nothing is at C{path}; what cannot be looked at counts as present."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False
